"""Whoever is killed at whatever moment under load: what was accepted ends once, with the right result."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.control.store.database import open_database
from jobman.tasks import Grid
from jobman.tasks.batches import Status
from jobman.tasks.entries import ENDS
from jobman.tasks.journal import Journal
from jobman.tasks.model import Ends, Told
from tests.tasks.crowd import Crowd, children, crowd, kill, wait_until
from tests.tasks.test_broker import ends_in

MINUTES = float(os.environ.get("JOBMAN_TEST_MINUTES", "0.2"))
SIZE = 100
AGENTS = ("one", "two", "three")
MOST_OPEN = 5000
Task = tuple[int, int]


class Client:
    """Submits batches for as long as it is told to, and follows what becomes of them by a cursor."""

    def __init__(self, url: str) -> None:
        self._grid = Grid(url, tenant="a")
        self._over = threading.Event()
        self.numbers: dict[Task, int] = {}
        """What is to be squared, of all that was accepted."""
        self.found: dict[Task, Ends] = {}
        self.error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._do, args=(each,)) for each in (self._submit, self._follow)
        ]
        for thread in self._threads:
            thread.start()

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.error = error

    def _submit(self) -> None:
        number = 0
        while not self._over.is_set():
            payloads = [str(number + index).encode() for index in range(SIZE)]
            key = f"from-{number}"
            batch = self._grid.submit_many("square", payloads, estimate=0.002, key=key)
            # Who is not sure whether it was accepted submits it again.
            assert self._grid.submit_many("square", payloads, estimate=0.002, key=key) == batch
            self.numbers.update({(batch, index): number + index for index in range(SIZE)})
            number += SIZE
            while len(self.numbers) - len(self.found) > MOST_OPEN and not self._over.is_set():
                self._over.wait(0.05)

    def _follow(self) -> None:
        place = 0
        while not (self._over.is_set() and self.found.keys() >= self.numbers.keys()):
            told = msgspec.convert(self._grid.ask("GET", f"/v1/tasks/results?after={place}&wait=0.5"), Told)
            for batch, ends in told.ends:
                new = dict.fromkeys(((batch, index) for index in ends.indexes), ends)
                # A dead letter that is tried again ends a second time; nothing else does.
                again = new.keys() & self.found.keys()
                assert all(self.found[task].deaths for task in again), again
                self.found |= new
            place = told.place

    def stop(self) -> None:
        """Submit no more."""
        self._over.set()

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def failed(self) -> list[Task]:
        return [task for task, ends in self.found.items() if ends.status != Status.COMPLETED]

    def has(self, count: int) -> bool:
        self.check()
        return len(self.found) >= count

    def has_all(self) -> bool:
        self.check()
        return self.found.keys() >= self.numbers.keys()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return self._grid.ask(method, path, body)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(60)
        self._grid.close()


class Killer:
    """Kills somebody at random, who is replaced at once."""

    def __init__(self, them: Crowd) -> None:
        self._crowd = them
        self._random = random.Random()
        self.kills: Counter[str] = Counter()

    def kill_one(self) -> None:
        # A broker that is killed whenever it starts would never be there.
        shares = (1.0 if self._crowd.has_broker() else 0.02, 2, 3)
        who = self._random.choices(("broker", "agent", "worker"), shares)[0]
        self.kills[who] += 1
        getattr(self, f"_kill_{who}")()

    def _kill_broker(self) -> None:
        assert self._crowd.broker is not None
        kill(self._crowd.broker.pid)
        self._crowd.broker.wait()
        self._crowd.start_broker()

    def _kill_agent(self) -> None:
        name = self._random.choice(AGENTS)
        kill(self._crowd.agents[name].pid)
        self._crowd.agents[name].wait()
        self._crowd.start_agent(name)

    def _kill_worker(self) -> None:
        agent = self._crowd.agents[self._random.choice(AGENTS)]
        for pid in children(agent.pid):
            kill(pid)


def journal_of(url: str) -> Journal:
    return Journal(open_database(url))


@pytest.mark.slow
def test_what_was_accepted_ends_once_whoever_is_killed(url: str, tmp_path: Path) -> None:
    with crowd(tmp_path, url, grace=1.0) as them:
        them.start_broker()
        them.wait_for_broker()
        for name in AGENTS:
            them.start_agent(name)
        client, killer, waiting = Client(them.url), Killer(them), threading.Event()
        try:
            wait_until(lambda: client.has(SIZE))
            until = threading.Timer(MINUTES * 60, waiting.set)
            until.start()
            while not waiting.wait(random.uniform(0.2, 2.0)):
                client.check()
                killer.kill_one()
            client.stop()
            wait_until(client.has_all, 60 + 60 * MINUTES)
            revived = client.ask("POST", "/v1/tasks/dead/retry") if client.failed() else 0
            wait_until(lambda: not client.failed())
        finally:
            client.stop()
            client.close()
        assert len(client.found) == len(client.numbers)
        assert all(
            ends.results[ends.indexes.index(index)] == str(client.numbers[batch, index] ** 2).encode()
            for (batch, index), ends in client.found.items()
        )
        tell(client, killer, them, revived)
        after_a_restart(them, url, client)
        for process in them.agents.values():
            them.end(process)
        assert them.broker is not None
        them.end(them.broker)
        wait_until(lambda: not them.left())


def tell(client: Client, killer: Killer, them: Crowd, revived: int) -> None:
    times = Counter(number for _, number in them.executed())
    print(
        f"{len(client.numbers):,} tasks, kills {dict(killer.kills)}, {revived} dead letters, "
        f"{sum(1 for count in times.values() if count > 1):,} executed more than once"
    )
    assert times.keys() == set(client.numbers.values())


def after_a_restart(them: Crowd, url: str, client: Client) -> None:
    """The journal has one end of each, and the counters say the same."""
    assert them.broker is not None
    them.end(them.broker)
    journal = journal_of(url)
    entries = list(journal.entries())
    journal.close()
    ended = ends_in(entries)
    assert set(ended.values()) == {1}
    assert ended.keys() == client.numbers.keys()
    completed = [
        msgspec.msgpack.decode(entry.body, type=Ends).status for entry in entries if entry.kind == ENDS
    ]
    assert Status.COMPLETED in completed
    them.start_broker()
    them.wait_for_broker()
    with Grid(them.url, tenant="a") as grid:
        stats = grid.ask("GET", "/v1/tasks/stats")
    (image,) = stats["images"]
    assert (stats["open"], image["queued"], image["running"]) == (0, 0, 0)
    assert image["completed"] == len(client.numbers)
    assert image["failed"] + image["killed"] + image["expired"] == 0
