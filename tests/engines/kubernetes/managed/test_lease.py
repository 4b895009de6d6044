"""Who leads: never two at once, whatever clocks, networks and processes do, and somebody in the end."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.engines.kubernetes.managed.lease import Candidate, Record, Terms

TERMS = Terms()


# -- a world of its own --------------------------------------------------------------------------------------


class Cluster:
    """One Lease, and compare-and-swap by its version."""

    def __init__(self) -> None:
        self.lease: Record | None = None
        self._version = 0

    def write(self, draft: Record) -> Record | None:
        """What stands there now; None where somebody was faster."""
        if draft.version != (self.lease.version if self.lease is not None else ""):
            return None
        self._version += 1
        self.lease = msgspec.structs.replace(draft, version=str(self._version))
        return self.lease


class Server:
    """A process with a clock of its own, which may be frozen anywhere, and whose requests may get lost."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._offset = world.chance.uniform(-1e6, 1e6)
        self._rate = world.chance.uniform(*world.rates)
        self.candidate = Candidate(name, TERMS)

    @property
    def clock(self) -> float:
        return self._offset + self._rate * self._world.now

    @property
    def leads(self) -> bool:
        return self.candidate.leads(self.clock)

    def live(self) -> Iterator[float]:
        """Yields for how long it waits, in seconds of the world."""
        candidate, cluster = self.candidate, self._world.cluster
        while not candidate.is_over:
            if candidate.must_look or candidate.until is None:
                yield self._world.delay()
                found = cluster.lease
                yield self._world.delay()
                if not self._world.is_broken():
                    candidate.see(found, self.clock)
            if candidate.may_write(self.clock):
                began, draft = self.clock, candidate.draft(f"{self.clock}")
                yield from self._write(began, draft)
            yield candidate.wait(self.clock) / self._rate + self._world.freeze()
            candidate.look_at_clock(self.clock)

    def _write(self, began: float, draft: Record) -> Iterator[float]:
        yield self._world.delay()
        written = None if self._world.is_broken() else self._world.cluster.write(draft)
        yield self._world.delay()
        if written is None or self._world.is_broken():
            self.candidate.failed()
        else:
            self.candidate.wrote(written, began, self.clock)


class World:
    """Servers that live side by side, moment by moment."""

    def __init__(
        self,
        chance: random.Random,
        *,
        rates: tuple[float, float] = (0.85, 1.2),
        trouble: float = 0.2,
        deletes: bool = False,
    ) -> None:
        self.chance, self.rates, self._trouble = chance, rates, trouble
        self.cluster = Cluster()
        self.now = 0.0
        self.servers: dict[str, Server] = {}
        self.led: list[str] = []
        self._steps = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        if deletes:
            self.cluster.write(Record())
            self._at(chance.uniform(0, 200), self._delete)

    def delay(self) -> float:
        return self.chance.uniform(0, 30 if self.is_broken() else 0.5)

    def freeze(self) -> float:
        return self.chance.uniform(0, 60) if self.is_broken() else 0.0

    def is_broken(self) -> bool:
        return self.chance.random() < self._trouble

    def start(self) -> Server:
        self._count += 1
        server = self.servers[f"s{self._count}"] = Server(self, f"s{self._count}")
        life = server.live()
        self._at(0.0, lambda: self._go_on(server, life))
        return server

    def kill(self, server: Server) -> None:
        del self.servers[server.candidate.name]

    def play(self, until: Callable[[], bool]) -> None:
        while not until() and self._events:
            self.now, _, step = heapq.heappop(self._events)
            step()
            # A lead begins at a step, so that two at once would be there at the step of the later one.
            assert len(self.leaders) <= 1, [server.candidate.name for server in self.leaders]
            if self.leaders:
                self.led += [self.leaders[0].candidate.name]

    def is_old(self) -> bool:
        return self.now > 600

    @property
    def leaders(self) -> list[Server]:
        return [server for server in self.servers.values() if server.leads]

    def _at(self, delay: float, step: Callable[[], None]) -> None:
        self._steps += 1
        heapq.heappush(self._events, (self.now + delay, self._steps, step))

    def _go_on(self, server: Server, life: Iterator[float]) -> None:
        if server.candidate.name not in self.servers:
            return
        pause = next(life, None)
        if pause is not None:
            self._at(pause, lambda: self._go_on(server, life))
            return
        self.kill(server)
        self.start()

    def _delete(self) -> None:
        self.cluster.lease = None


# -- what holds in every world -------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), trouble=st.sampled_from([0.0, 0.05, 0.2, 0.5]))
@settings(max_examples=150, deadline=None)
def test_two_servers_never_lead_at_once_whatever_their_clocks_and_networks_do(seed, trouble):
    world = World(random.Random(seed), trouble=trouble)
    for _ in range(3):
        world.start()
    world.play(until=lambda: world.now > 400)
    assert trouble > 0 or world.led, "without any trouble somebody leads"


@given(seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_a_lease_that_somebody_deletes_does_not_give_two_leaders(seed):
    world = World(random.Random(seed), deletes=True, trouble=0.1)
    for _ in range(3):
        world.start()
    world.play(until=lambda: world.now > 300)


def test_clocks_too_different_would_be_noticed():
    def play() -> None:
        for seed in range(200):
            world = World(random.Random(seed), rates=(0.3, 3.0), trouble=0.3)
            for _ in range(3):
                world.start()
            world.play(until=world.is_old)

    with pytest.raises(AssertionError):
        play()


@pytest.mark.parametrize("seed", range(10))
def test_when_the_leader_dies_another_one_leads(seed):
    world = World(random.Random(seed), trouble=0.0)
    for _ in range(2):
        world.start()
    world.play(until=lambda: bool(world.leaders))
    (first,) = world.leaders
    died_at = world.now
    world.kill(first)
    world.play(until=lambda: bool(world.leaders))
    assert world.leaders[0] is not first
    assert world.now - died_at < 30 * TERMS.lease
    assert world.cluster.lease is not None
    assert world.cluster.lease.transitions == 1


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))]
)
def test_a_leader_that_can_renew_leads_for_ever(seed):
    world = World(random.Random(seed), trouble=0.0)
    for _ in range(3):
        world.start()
    world.play(until=lambda: world.now > 3600)
    assert len(set(world.led)) == 1


# -- step by step --------------------------------------------------------------------------------------------


def held_by(name: str, *, renewed: str = "1", version: str = "1", duration: int = 15) -> Record:
    return Record(holder=name, duration=duration, renewed=renewed, version=version)


def leading(now: float = 100.0) -> Candidate:
    candidate = Candidate("me", TERMS)
    candidate.see(held_by("", duration=1), now)
    candidate.wrote(msgspec.structs.replace(candidate.draft("now"), version="1"), now, now)
    return candidate


def test_a_lease_that_is_not_there_is_made():
    candidate = Candidate("me", TERMS)
    assert not candidate.may_write(0), "it looks first"
    candidate.see(None, 0)
    assert not candidate.may_write(14.9), "somebody may have deleted that of a leader"
    candidate.see(None, 15)
    assert candidate.may_write(15)
    assert candidate.draft("noon") == Record(holder="me", duration=15, acquired="noon", renewed="noon")


def test_a_lease_of_another_is_taken_when_it_was_not_renewed_for_its_time():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by("you"), 0)
    assert not candidate.may_write(14.9)
    candidate.see(held_by("you", renewed="2", version="2"), 14.9)
    assert not candidate.may_write(29.8), "it was renewed"
    assert candidate.may_write(29.9)
    assert candidate.draft("noon").version == "2", "and is replaced only as it was seen"
    assert candidate.draft("noon").transitions == 1


def test_a_lease_of_another_counts_for_as_long_as_that_one_says():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by("you", duration=60), 0)
    assert not candidate.may_write(59)
    assert candidate.may_write(60)


def test_who_only_labels_the_lease_does_not_renew_it():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by("you"), 0)
    candidate.see(held_by("you", version="2"), 10)
    assert candidate.may_write(15)


def test_a_lease_that_was_given_back_is_taken_at_once():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by("you"), 0)
    candidate.see(held_by("", renewed="2", version="2", duration=1), 1)
    assert candidate.may_write(1)


def test_a_lead_lasts_from_the_moment_the_request_left_not_from_its_answer():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by(""), 0)
    candidate.wrote(held_by("me"), began=0, now=6)
    assert candidate.leads(9.9)
    assert not candidate.leads(10)


def test_an_answer_that_comes_too_late_gives_no_lead():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by(""), 0)
    candidate.wrote(held_by("me"), began=0, now=11)
    assert not candidate.leads(11)
    candidate.see(held_by("me"), 12)
    assert candidate.may_write(12), "but the Lease is ours, and can be renewed"


def test_who_did_not_renew_in_time_has_lost_it_for_good():
    candidate = leading(100)
    candidate.look_at_clock(110)
    assert candidate.is_over
    candidate.wrote(held_by("me", version="2"), began=109, now=110)
    assert not candidate.leads(110)
    assert not candidate.may_write(110)


def test_who_sees_another_holder_has_lost_it_at_once():
    candidate = leading(100)
    candidate.failed()
    candidate.see(held_by("you", version="2"), 101)
    assert not candidate.leads(101)


def test_a_leader_whose_lease_was_deleted_makes_it_anew():
    candidate = leading(100)
    candidate.failed()
    candidate.see(None, 102)
    assert candidate.leads(102)
    assert candidate.may_write(102)
    assert candidate.draft("noon").version == ""
    assert candidate.draft("noon").holder == "me"


def test_a_lease_that_vanished_is_still_waited_for():
    candidate = Candidate("me", TERMS)
    candidate.see(held_by("you"), 0)
    candidate.see(None, 5)
    assert not candidate.may_write(19)
    assert candidate.may_write(20)


def test_a_lease_lasts_some_seconds_at_least():
    assert Terms.lasting(15) == TERMS
    with pytest.raises(ValueError, match="3 seconds at least"):
        Terms.lasting(2)
