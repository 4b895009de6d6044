"""What the service charges, over random histories of jobs, groups, losses, acts, prices and restarts.

Nothing of accounting is asked for its opinion: what should be charged is read from when something was given,
and when and how its attempt ended.
"""

import asyncio
import json
import random
from datetime import UTC, datetime
from itertools import pairwise
from math import fsum
from typing import Any

import pytest

from jobman.control.accounting.ledger import OUR_FAULT
from jobman.control.administration import NewEntry
from jobman.engines.memory import Play
from tests.control.histories import unless
from tests.control.stage import EXACT, Theatre

CORE = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
PRICES = (1, 2.5, 7)
WAYS = (None, "freeze", "requeue")
REASONS = ("", "", "", "exit", "node-lost", "launch-failed", "signal")
RULES: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"reasons": ["node-lost", "launch-failed"], "action": "restart-group"}],
    [{"reasons": ["node-lost"], "action": "fail-job"}],
    [{"reasons": ["node-lost"], "action": "fail-task"}],
)


def task(chance, name="work"):
    found = {"name": name, "command": "x", "resources": CORE, "attributes": {"duration": "1000s"}}
    if chance.random() < 0.3:
        found["retries"] = chance.randint(1, 3)
    return found


def a_document(chance):
    """A job of a task, of several replicas, of a gang on several nodes, or of a group."""
    found = {"version": 1, "name": "job", "grace": "0s"}
    if way := chance.choice(WAYS):
        found["suspend"] = way
    kind = chance.choice(["task", "replicas", "gang", "group", "group"])
    if kind == "group":
        inside = [task(chance, "left"), task(chance, "right")]
        group: dict[str, Any] = {"name": "pair", "resources": {**CORE, "count": 2}, "tasks": inside}
        if chance.random() < 0.3:
            group["retries"] = 1
        rules = chance.choice(RULES)
        found |= {"groups": [group], "tasks": [{"group": "pair"}]}
        if rules:
            (group if rules[0]["action"] == "restart-group" else found)["on_failure"] = rules
        return json.dumps(found)
    work = task(chance)
    if kind == "replicas":
        work["replicas"] = chance.randint(2, 4)
    elif kind == "gang":
        work["resources"] = {"type": "node", "count": 2, "with": [CORE]}
    return json.dumps({**found, "tasks": [work]})


class Life:
    """One history of a service that is started again and again."""

    def __init__(self, theatre, seed):
        self._theatre = theatre
        self._chance = random.Random(seed)
        self._steps = {
            self._submit: 5,
            self._wait: 5,
            self._end: 4,
            self._act: 4,
            self._extend: 1,
            self._window: 1,
            self._price: 1,
            self._jump: 1,
        }
        self.jobs: list[str] = []

    async def live(self, lives, steps):
        for _ in range(lives):
            async with self._theatre.stage(lambda _: Play(seconds=None), nodes=2, cores=4) as stage:
                for _ in range(steps):
                    (step,) = self._chance.choices(list(self._steps), list(self._steps.values()))
                    await step(stage)
            self._theatre.clock.now += self._chance.choice([0.0, 10.0, 300.0])
        async with self._theatre.stage(lambda _: Play(seconds=None), nodes=2, cores=4) as stage:
            await self._finish(stage)
            return check(stage, self.jobs)

    async def _submit(self, stage):
        self.jobs.append(await stage.submit(a_document(self._chance), self._chance.choice(["ada", "bob"])))

    async def _wait(self, stage):
        await stage.pass_time(self._chance.choice([0.25, 30, 60, 61.5, 200]))

    async def _end(self, stage):
        """An attempt ends by itself, or is lost."""
        if stage.engine.now_playing:
            address = self._chance.choice(list(stage.engine.now_playing))
            reason = self._chance.choice(REASONS)
            stage.engine.end(address, reason, 1 if reason else 0)
            await stage.settle()

    async def _act(self, stage):
        if self.jobs:
            act = self._chance.choice(["hold", "release", "hold", "release", "cancel"])
            with unless("wrong-state"):
                await getattr(stage.director, act)(self._chance.choice(self.jobs), "root")
            await stage.settle()

    async def _extend(self, stage):
        if self.jobs:
            with unless("wrong-state", "would-delay"):
                await stage.director.extend(self._chance.choice(self.jobs), 100.0, None, "root")
            await stage.settle()

    async def _window(self, stage):
        """Maintenance begins on a node at once."""
        node = f"node-{self._chance.randrange(2)}"
        name = f"window-{self._chance.randrange(10**9)}"
        start = datetime.fromtimestamp(stage.now, UTC)
        entry = NewEntry(kind="maintenance", name=name, start=start, duration=50.0, nodes=[node])
        await stage.director.add_calendar(entry, "root")
        await stage.settle()

    async def _price(self, stage):
        self._theatre.decree(f"{EXACT}accounting: {{price: {self._chance.choice(PRICES)}}}\n")
        stage.director.reread()

    async def _jump(self, stage):
        """The clock of the day is put back."""
        await stage.settle()
        stage.clock.now -= self._chance.choice([0.5, 45.0, 100.0])

    async def _finish(self, stage):
        for job in list(stage.floor.jobs):
            with unless("wrong-state"):
                await stage.director.release(job, "root")
        await stage.pass_time(100)
        for job in list(stage.floor.jobs):
            await stage.director.cancel(job, "root")
        await stage.pass_time(1000)


def check(stage, jobs):
    """How many allocations there were, and how many of them were refunded."""
    store = stage.store
    assert not stage.floor.jobs
    assert not len(stage.floor.book.meter)
    everything, refunded, count = [], 0, 0
    for job in jobs:
        slices = store.slices(job)
        everything += slices
        attempts = {(one.key, one.attempt): one for one in store.attempts(job, limit=1000).items}
        given = {(one.key, one.attempt): one for one in store.allocations(job)}
        mine = {at: one for at, one in given.items() if "/" not in at[0]}
        assert {(one.key, one.attempt) for one in slices} <= mine.keys()
        for at, allocation in mine.items():
            of_it = [one for one in slices if (one.key, one.attempt) == at]
            inside = {one.ended_at for (key, _), one in attempts.items() if key.startswith(f"{at[0]}/")}
            refunded += check_one(allocation, attempts.get(at), inside, of_it)
            count += 1
    check_sums(stage, everything)
    return count, refunded


def check_one(allocation, attempt, inside, slices):
    """That an allocation is charged for the time it was held, or for none; whether it was refunded.

    A group was held until the last attempt inside it ended; where the clock was put back between two of them,
    that is later than the moment in which it was given back.
    """
    used = sorted((one for one in slices if one.kind == "use"), key=lambda one: one.number)
    back = [one for one in slices if one.kind == "refund"]
    ends = {allocation.returned_at, *inside} if attempt is None else {attempt.ended_at}
    held = {max(0.0, end - allocation.given_at) for end in ends}
    is_ours = any(one.reason in OUR_FAULT for one in back)
    if attempt is not None:  # a group has no attempt of its own that could be asked
        assert is_ours == (attempt.reason in OUR_FAULT and bool(used))
    assert fsum(one.seconds for one in slices) in ({0.0} if is_ours else held)
    assert [one.number for one in used] == list(range(len(used)))
    assert all(one.end == after.start for one, after in pairwise(used))
    assert not used or used[0].start == allocation.given_at
    assert len(back) <= 1
    # One price from its beginning to its end, whatever was decreed meanwhile.
    prices = [one.units / one.seconds for one in used if one.seconds >= 10]
    assert prices == pytest.approx([prices[0]] * len(prices), rel=1e-3) if prices else True
    if is_ours:
        assert fsum(one.units for one in slices) == 0.0
    return is_ours


def check_sums(stage, slices):
    sums: dict[tuple[str, str], float] = {}
    for one in slices:
        sums[one.account, one.owner] = sums.get((one.account, one.owner), 0.0) + one.units
    balances: dict[tuple[str, str], float] = {}
    for one in stage.store.balances():
        balances[one.account, one.owner] = balances.get((one.account, one.owner), 0.0) + one.units
    assert balances == pytest.approx(sums)
    used = {member: stage.floor.book.spending.used(*member) for member in sums}
    assert used == pytest.approx(sums)
    for tally in stage.planning.quotas.tallies():
        if tally.row.scope == "account":
            of_it = fsum(units for (account, _), units in sums.items() if account == tally.row.account)
            assert tally.charged == pytest.approx(of_it, abs=1e-6)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_the_service_charges_the_time_that_was_held_whatever_happens(sqlite_url, tmp_path, seed):
    life = Life(Theatre(sqlite_url, tmp_path), seed)
    count, _ = asyncio.run(life.live(lives=3, steps=12))
    assert count


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_the_same_over_longer_histories(sqlite_url, tmp_path, seed):
    life = Life(Theatre(sqlite_url, tmp_path), seed)
    count, refunded = asyncio.run(life.live(lives=4, steps=40))
    assert count > refunded > 0
