"""Two hundred jobs from several clients while everything but the copies is killed at random moments."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobman.client import Refused
from jobman.control.answers import FINAL_STATES, Attempt
from jobman.engines.local.trees import Process
from tests.crash.ledger import Ledger
from tests.crash.machine import Machine, until
from tests.crash.victims import kill

pytestmark = pytest.mark.slow

JOBS = 200
CLIENTS = 4
DEADLINE = 240.0
_SECONDS_TO_THINK = 0.4


class Kind(NamedTuple):
    """A kind of job, and what is to become of it. Exit codes are those of all attempts, by replica."""

    name: str
    make: Callable[[Ledger], dict[str, Any]]
    state: str
    codes: dict[str, list[int]]
    lines: dict[str, list[str]] = {}
    """What each replica writes, over all its attempts."""
    cancel: bool = False
    order: tuple[str, ...] = ()
    """Tasks that run one after the other."""


def plain(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo one; sleep 0.1; echo two; end 0")]}


def failing(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo one >&2; end 3")]}


def replicas(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo $JOBMAN_REPLICA; sleep 0.05; end $JOBMAN_REPLICA", replicas=3)]}


def flaky(ledger: Ledger) -> dict[str, Any]:
    script = 'echo "attempt $JOBMAN_ATTEMPT"; [ $JOBMAN_ATTEMPT -ge 3 ] || end 75; end 0'
    retries = {"limit": 2, "delay": "0.1s", "on": {"exit_codes": [75]}}
    return {"tasks": [ledger.task(script, retries=retries)]}


def hopeless(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("end 9", retries={"limit": 2, "on": {"exit_codes": [75]}})]}


def chain(ledger: Ledger) -> dict[str, Any]:
    first = ledger.task("sleep 0.05; end 0", name="a")
    second = ledger.task("echo b; end 0", name="b", replicas=2, depends_on=["a"])
    return {"tasks": [first, second, ledger.task("end 4", name="c", depends_on=["b"])]}


def group(ledger: Ledger) -> dict[str, Any]:
    server = ledger.task("exec sleep 600", name="server", service=True)
    work = ledger.task("sleep 0.1; end 0", name="work", depends_on=[{"name": "server", "when": "started"}])
    return {"groups": [{"name": "pair", "tasks": [server, work]}]}


def endless(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo one; exec sleep 600", attributes={"duration": "1s"})]}


def untidy(ledger: Ledger) -> dict[str, Any]:
    tidy = ledger.task("echo tidy; end 0", name="tidy", when="always")
    return {"tasks": [ledger.task("end 6"), tidy]}


def regretted(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("exec sleep 600"), ledger.task("end 0", name="tidy", when="always")]}


_TERM = 128 + 15
KINDS = (
    Kind("plain", plain, "succeeded", {"main.0": [0]}, {"main.0": ["one", "two"]}),
    Kind("failing", failing, "failed", {"main.0": [3]}, {"main.0": ["one"]}),
    Kind(
        "replicas",
        replicas,
        "failed",
        {"main.0": [0], "main.1": [1], "main.2": [2]},
        {"main.0": ["0"], "main.1": ["1"], "main.2": ["2"]},
    ),
    Kind(
        "flaky",
        flaky,
        "succeeded",
        {"main.0": [75, 75, 0]},
        {"main.0": ["attempt 1", "attempt 2", "attempt 3"]},
    ),
    Kind("hopeless", hopeless, "failed", {"main.0": [9]}),
    Kind(
        "chain",
        chain,
        "failed",
        {"a.0": [0], "b.0": [0], "b.1": [0], "c.0": [4]},
        {"b.0": ["b"], "b.1": ["b"]},
        order=("a", "b", "c"),
    ),
    Kind("group", group, "succeeded", {"pair.0/server.0": [_TERM], "pair.0/work.0": [0]}),
    Kind("endless", endless, "failed", {"main.0": [_TERM]}, {"main.0": ["one"]}),
    Kind(
        "untidy",
        untidy,
        "failed",
        {"main.0": [6], "tidy.0": [0]},
        {"tidy.0": ["tidy"]},
        order=("main", "tidy"),
    ),
    Kind("regretted", regretted, "cancelled", {"main.0": [_TERM], "tidy.0": [0]}, cancel=True),
)
_WEIGHTS = {"plain": 8, "group": 1, "endless": 1, "regretted": 1}


class Killed(NamedTuple):
    what: str
    who: Process
    at: float


class Killer(threading.Thread):
    """Kills the service, the launcher or a shim, again and again at moments that a seed decides."""

    def __init__(self, machine: Machine, seed: int) -> None:
        super().__init__(daemon=True)
        self._victims = machine.victims
        self._random = random.Random(seed)
        self._enough = threading.Event()
        self.killed: list[Killed] = []

    def run(self) -> None:
        finders: list[tuple[str, float, Callable[[], list[Process]]]] = [
            ("service", 0.45, self._victims.services),
            ("launcher", 0.15, self._victims.launchers),
            ("shim", 0.4, self._victims.shims),
        ]
        while not self._enough.wait(self._random.uniform(0.05, 1.2)):
            [(name, _, find)] = self._random.choices(finders, [weight for _, weight, _ in finders])
            found = find()
            victim = self._random.choice(found) if found else None
            if victim is not None and kill(victim):
                self.killed.append(Killed(name, victim, time.time()))

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def count(self) -> Counter[str]:
        return Counter(each.what for each in self.killed)

    def could_see_nothing(self, attempt: Attempt, shim: Process) -> bool:
        """Whether both who may learn of the end of a copy, shim and launcher, were killed while it ran."""
        meanwhile = [
            each for each in self.killed if (attempt.started_at or 0) <= each.at <= (attempt.ended_at or 0)
        ]
        return shim in [each.who for each in meanwhile] and "launcher" in [each.what for each in meanwhile]


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
    killer = Killer(either, seed)
    killer.start()
    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(author.work) for author in authors]:
            done.result()
    wanted = {job: kind for author in authors for job, kind in author.jobs.items()}
    wait_for_most(either, len(wanted) * 9 // 10)
    killer.stop()
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
    kinds = chance.choices(KINDS, [_WEIGHTS.get(kind.name, 3) for kind in KINDS], k=JOBS - len(KINDS))
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
        wanted = [] if is_lost(each[-1]) and kind.codes[key] == [_TERM] else kind.codes[key]
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
