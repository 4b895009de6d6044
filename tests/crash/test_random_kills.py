"""Two hundred jobs from several clients while everything but the copies is killed at random moments."""

from __future__ import annotations

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from jobman.client import Refused
from jobman.control.answers import FINAL_STATES, Attempt
from tests.crash.killer import Killer
from tests.crash.machine import Machine, until
from tests.crash.workload import KINDS, TERM, WEIGHTS, Kind

pytestmark = pytest.mark.slow

JOBS = 200
CLIENTS = 4
DEADLINE = 240.0
_SECONDS_TO_THINK = 0.4


class Author:
    """Somebody who submits jobs, and cancels some; what the service acknowledged is kept."""

    def __init__(self, machine: Machine, number: int, kinds: list[Kind], seed: float) -> None:
        self._machine = machine
        self._number = number
        self._kinds = kinds
        self._random = random.Random(seed)
        self.jobs: dict[str, Kind] = {}

    def work(self) -> None:
        client = self._machine.new_client()
        for number, kind in enumerate(self._kinds):
            time.sleep(self._random.uniform(0, _SECONDS_TO_THINK))
            virtual = "1x2" if kind.name == "group" else self._random.choice([None, "2x2"])
            document = kind.make(self._machine.ledger)
            key = f"{self._number}-{number}"
            job = self._machine.submit(
                client=client, key=key, name=f"{kind.name}-{key}", virtual=virtual, **document
            )
            self.jobs[job] = kind
            if kind.cancel:
                self._machine.wait_for_start(job)
                self._cancel(job)

    def _cancel(self, job: str) -> None:
        with suppress(Refused):  # it was done before, and the job is over
            self._machine.ask(lambda client: client.cancel(job))


@pytest.mark.parametrize("seed", [1])
def test_nothing_is_lost_and_nothing_runs_twice(either: Machine, seed: int) -> None:
    authors = make_authors(either, seed)
    with Killer(either, seed) as killer:
        with ThreadPoolExecutor(CLIENTS) as pool:
            for done in [pool.submit(author.work) for author in authors]:
                done.result()
        wanted = {job: kind for author in authors for job, kind in author.jobs.items()}
        wait_for_most(either, len(wanted) * 9 // 10)
    assert min(killer.count()[name] for name in ("service", "launcher", "shim")) > 0
    wait_for_most(either, len(wanted))

    assert len(wanted) == JOBS
    assert {job.id for job in either.client.jobs()} == set(wanted)
    assert either.ledger.twice() == []
    wrong = {f"{kind.name} {job}": what for job, kind in wanted.items() if (what := judge(either, job, kind))}
    assert not wrong, (killer.count(), wrong)
    assert not lost_without_need(either, set(wanted), killer)
    either.leaves_nothing()


def make_authors(machine: Machine, seed: int) -> list[Author]:
    chance = random.Random(seed)
    kinds = chance.choices(KINDS, [WEIGHTS.get(kind.name, 3) for kind in KINDS], k=JOBS - len(KINDS))
    everything = [*KINDS, *kinds]
    chance.shuffle(everything)
    return [Author(machine, n, everything[n::CLIENTS], chance.random()) for n in range(CLIENTS)]


def wait_for_most(machine: Machine, number: int) -> None:
    """Until so many jobs are over."""

    def over() -> bool:
        jobs = machine.ask(lambda client: list(client.jobs(state=FINAL_STATES)))
        return len(jobs) >= number

    until(over, f"the end of {number} jobs", DEADLINE)


def lost_without_need(machine: Machine, jobs: set[str], killer: Killer) -> list[str]:
    """Attempts whose end is unknown although somebody lived who could have seen it."""
    shims = {
        path.relative_to(machine.places.jobs).with_suffix(""): started.shim
        for path, started in machine.victims.on_record().items()
    }
    lost = {
        (job, one.replica, one.attempt): one for job in jobs for one in machine.attempts(job) if is_lost(one)
    }
    return [
        f"{job}/{replica}/{number}"
        for (job, replica, number), attempt in lost.items()
        if not killer.could_see_nothing(attempt, shims[Path(job, replica, str(number), "0")])
    ]


def is_lost(attempt: Attempt) -> bool:
    return attempt.reason == "node-lost"


def judge(machine: Machine, job: str, kind: Kind) -> str:
    """What is wrong with a job; nothing where all is as it should be."""
    found = machine.details(job)
    if found.state != kind.state:
        return f"{found.state}, not {kind.state}"
    attempts: dict[str, list[Attempt]] = {}
    for attempt in machine.attempts(job):
        attempts.setdefault(attempt.replica, []).append(attempt)
    return (
        _judge_codes(attempts, kind)
        or _judge_ledger(machine, job, attempts)
        or _judge_order(machine, job, kind)
        or _judge_lines(machine, job, kind, attempts)
    )


def _judge_codes(attempts: dict[str, list[Attempt]], kind: Kind) -> str:
    for key, each in attempts.items():
        if [one.attempt for one in each] != list(range(1, len(each) + 1)):
            return f"attempts of {key}: {[one.attempt for one in each]}"
    if attempts.keys() != kind.codes.keys():
        return f"attempts of {sorted(attempts)}"
    for key, each in attempts.items():
        # One of which nobody saw the end does not count, and is tried again unless it was being stopped.
        seen = [one.exit_code for one in each if not is_lost(one)]
        wanted = [] if is_lost(each[-1]) and kind.codes[key] == [TERM] else kind.codes[key]
        if seen != wanted:
            return f"{key} has exit codes {seen}, not {wanted}"
    return ""


def _judge_ledger(machine: Machine, job: str, attempts: dict[str, list[Attempt]]) -> str:
    started = Counter((f"{one.task}.{one.replica}", one.attempt) for one in machine.ledger.entries(job=job))
    known = Counter(
        (one.replica.rpartition("/")[2], one.attempt) for each in attempts.values() for one in each
    )
    return "" if started == known else f"the ledger has {started}, the service {known}"


def _judge_order(machine: Machine, job: str, kind: Kind) -> str:
    ran = [one.task for one in machine.ledger.entries(job=job)]
    expected = sorted(ran, key=kind.order.index) if kind.order else ran
    return "" if ran == expected else f"ran in the order {ran}"


def _judge_lines(machine: Machine, job: str, kind: Kind, attempts: dict[str, list[Attempt]]) -> str:
    lost = any(is_lost(one) for each in attempts.values() for one in each)
    for key, lines in kind.lines.items():
        found = machine.output(job, replica=key)
        if found != lines and not (lost and set(found) == set(lines)):
            return f"{key} wrote {found}, not {lines}"
    return ""


def test_the_kinds_of_jobs_end_as_they_should_where_nobody_is_killed(machine: Machine) -> None:
    author = Author(machine, 0, list(KINDS), 0)
    author.work()
    for job, kind in author.jobs.items():
        machine.wait(job)
        assert judge(machine, job, kind) == "", kind.name
    machine.leaves_nothing()
