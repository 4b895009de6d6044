"""kill -9 of the service: what people were promised, and what administrators decided, holds afterwards."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobman.client import Unreachable
from jobman.control.administration import NewEntry
from jobman.control.answers import Submission, Submitted
from tests.crash.machine import Machine, until
from tests.crash.victims import kill

pytestmark = pytest.mark.slow

POINTS = ("director.before-commit", "director.after-commit", "director.before-acts", "director.after-acts")


def whole(machine: Machine, script: str, seconds: int, **keys: Any) -> dict[str, Any]:
    """A task that needs all cores of the machine for so many seconds at most."""
    cores = machine.ask(lambda client: client.nodes())[0].amounts["core"]
    shape = {"type": "slot", "count": 1, "with": [{"type": "core", "count": int(cores)}]}
    return machine.ledger.task(script, resources=shape, attributes={"duration": f"{seconds}s"}, **keys)


def occupy(machine: Machine, seconds: int = 600, **keys: Any) -> str:
    """A job that holds the machine until it is told to end."""
    script = f"until_told {machine.folder}/go; end 0"
    job = machine.submit(whole(machine, script, seconds), **keys)
    machine.wait_until_running(job)
    return job


def free(machine: Machine) -> None:
    (machine.folder / "go").touch()


def promised(machine: Machine) -> dict[str, float | None]:
    """What is stored of everybody's promise, by job."""
    with machine.store() as store:
        return {each.job: each.guaranteed_by for each in store.promises()}


def estimated(machine: Machine, job: str) -> float | None:
    """What somebody is told who asks."""
    estimate = machine.ask(lambda client: client.why(job)).estimate
    return None if estimate is None else estimate.guaranteed_by


def told_later(machine: Machine, job: str) -> list[str]:
    events = machine.ask(lambda client: list(client.events(job)))
    return [event.message for event in events if event.kind == "promise-moved"]


def test_promises_are_the_same_after_any_number_of_deaths(either: Machine) -> None:
    occupy(either)
    waiting = [either.submit(whole(either, "end 0", seconds)) for seconds in (60, 40, 20)]
    before = promised(either)
    assert set(before) == set(waiting)
    assert None not in before.values()
    for _ in range(3):
        either.restart()
        assert promised(either) == before
        assert [estimated(either, job) for job in waiting] == [before[job] for job in waiting]
    late = either.submit(whole(either, "end 0", 10))
    assert estimated(either, late) == pytest.approx((before[waiting[-1]] or 0) + 20 + 5 + 10, abs=0.01)
    free(either)
    for job in (*waiting, late):
        assert either.wait(job).state == "succeeded"
        assert told_later(either, job) == []
    started = [either.attempts(job)[0].started_at or 0 for job in waiting]
    assert all(start <= (before[job] or 0) for start, job in zip(started, waiting, strict=True))
    assert promised(either) == {}
    either.leaves_nothing()


@pytest.mark.parametrize("point", POINTS)
def test_what_a_submission_was_promised_holds_wherever_the_service_dies_around_it(
    machine: Machine, point: str
) -> None:
    occupy(machine)
    first = machine.submit(whole(machine, "end 0", 60))
    # A submission that only waits has no acts: what brings the service there is another job's end of hold.
    held = machine.submit(whole(machine, "end 0", 30), hold=True)
    wanted = Submission(
        document=machine.ledger.document(whole(machine, "end 0", 20)), cwd=str(machine.folder)
    )
    machine.arm(f"{point}=kill")
    with suppress(Unreachable):  # it may die before it answers
        machine.client.submit(wanted, key="again")
    answer: Submitted = machine.ask(lambda client: client.submit(wanted, key="again"))
    job = answer.jobs[0].id
    assert len(list(machine.ask(lambda client: list(client.jobs())))) == 4
    by = until(lambda: promised(machine).get(job), "the promise")
    machine.restart()
    assert (promised(machine)[job] or 0) <= by
    assert (estimated(machine, job) or 0) <= by
    machine.arm("")
    machine.ask(lambda client: client.cancel(held))
    free(machine)
    for each in (first, job):
        assert machine.wait(each).state == "succeeded"
    machine.leaves_nothing()


def test_more_time_that_was_granted_is_counted_on_afterwards(either: Machine) -> None:
    running = occupy(either, 60)
    either.ask(lambda client: client.extend(running, 600))
    first = either.submit(whole(either, "end 0", 60))
    by = promised(either)[first]
    assert by is not None
    either.restart()
    second = either.submit(whole(either, "end 0", 60))
    assert promised(either)[first] == by
    assert (promised(either)[second] or 0) >= by + 60
    free(either)
    for job in (running, first, second):
        assert either.wait(job).state == "succeeded"
    either.leaves_nothing()


def test_no_promise_moves_later_while_the_service_is_killed_again_and_again(either: Machine) -> None:
    chance = random.Random(7)
    either.start()
    enough = threading.Event()

    def kill_services() -> None:
        client = either.new_client()
        while not enough.wait(chance.uniform(0.0, 0.8)):
            for victim in either.victims.services():
                kill(victim)
            either.ask(lambda client: client.health(), client)  # one that was not there could keep no promise

    killer = threading.Thread(target=kill_services, daemon=True)
    killer.start()
    told: dict[str, float] = {}
    broken: list[str] = []
    try:
        jobs = []
        for number in range(25):
            limit = chance.choice([20, 60, 300])
            make = whole if number % 3 else _core
            jobs.append(either.submit(make(either, f"sleep {chance.uniform(0, 0.4):.2f}; end 0", limit)))
            for job, by in promised(either).items():
                if by is not None:
                    if by > told.get(job, by) + 0.001:
                        broken.append(f"{job} was told {told[job]}, then {by}")
                    told[job] = by
        enough.set()
        killer.join()
        for job in jobs:
            assert either.wait(job, 120).state == "succeeded"
    finally:
        enough.set()
        killer.join()
    assert broken == []
    late = [job for job in told if (either.attempts(job)[0].started_at or 0) > told[job]]
    assert late == []
    assert promised(either) == {}
    either.leaves_nothing()


def _core(machine: Machine, script: str, seconds: int) -> dict[str, Any]:
    return machine.ledger.task(script, attributes={"duration": f"{seconds}s"})


@pytest.mark.parametrize("point", POINTS[:2])
def test_a_queue_is_closed_or_open_wherever_the_service_dies(machine: Machine, point: str) -> None:
    running = occupy(machine)
    waiting = machine.submit(whole(machine, "end 0", 60))
    machine.arm(f"{point}=kill")
    with suppress(Unreachable):  # it may die before it answers
        machine.client.set_queue_state("batch", "closed")
    machine.ask(lambda client: client.set_queue_state("batch", "closed"))
    assert {each.name: each.state for each in machine.ask(lambda client: client.queues())}[
        "batch"
    ] == "closed"
    machine.restart()
    free(machine)
    machine.wait(running)
    machine.restart()
    assert machine.state(waiting) == "waiting"
    assert machine.ledger.entries(job=waiting) == []
    machine.ask(lambda client: client.set_queue_state("batch", "open"))
    assert machine.wait(waiting).state == "succeeded"
    machine.leaves_nothing()


@pytest.mark.parametrize("point", ["director.after-commit", "director.before-acts", "director.after-acts"])
def test_what_maintenance_displaces_runs_again_wherever_the_service_dies(
    machine: Machine, point: str
) -> None:
    job = machine.submit(
        whole(machine, f"[ $JOBMAN_ATTEMPT = 2 ] || until_told {machine.folder}/go; end 0", 600)
    )
    machine.wait_until_running(job)
    start = datetime.now(UTC) + timedelta(seconds=3)
    window = NewEntry(kind="maintenance", name="disk", start=start)
    machine.ask(lambda client: client.add_calendar(window))
    with machine.dies_at(point):
        until(lambda: not machine.victims.services() or _was_displaced(machine, job), "its displacement")
    until(lambda: _was_displaced(machine, job), "its displacement")
    until(lambda: not machine.victims.copies(), "the end of the first attempt")
    machine.restart()
    assert len(machine.ledger.entries(job=job)) == 1
    machine.ask(lambda client: client.remove_calendar("disk"))
    assert machine.wait(job).state == "succeeded"
    assert [entry.attempt for entry in machine.ledger.entries(job=job)] == [1, 2]
    events = machine.ask(lambda client: list(client.events(job)))
    assert [event.kind for event in events].count("displaced") == 1
    machine.leaves_nothing()


def _was_displaced(machine: Machine, job: str) -> bool:
    events = machine.ask(lambda client: list(client.events(job)))
    return any(event.kind == "displaced" for event in events)
