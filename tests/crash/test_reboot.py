"""A reboot, as it looks afterwards: nobody lives any more, and the records are of another boot."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jobman.engines.local.records import boot_id
from jobman.engines.local.trees import Process, facts
from tests.crash.machine import Machine, until

pytestmark = pytest.mark.slow

EARLIER = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.fixture
def stranger() -> Iterator[Process]:
    """A process that has nothing to do with jobs, and has the pid that one of them had before."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        known = facts(process.pid)
        assert known is not None
        yield Process(process.pid, known.ticks)
        assert process.poll() is None, "nobody harmed it"
        process.kill()


def reboot(machine: Machine, stranger: Process) -> None:
    """All processes end at once, and their pids are given to others."""
    machine.kill_everybody()
    for path, started in machine.victims.on_record().items():
        assert started.boot == boot_id()
        _, _, more = path.read_bytes().partition(b"\n")
        earlier = msgspec.structs.replace(
            started, boot=EARLIER, pid=stranger.pid, ticks=stranger.ticks, shim=stranger
        )
        path.write_bytes(msgspec.json.encode(earlier) + b"\n" + more)


def test_what_ran_is_lost_and_tried_again_without_counting(machine: Machine, stranger: Process) -> None:
    # It may not be retried for any failure of its own.
    script = "echo $JOBMAN_ATTEMPT; [ $JOBMAN_ATTEMPT = 2 ] || sleep 600; end 0"
    job = machine.submit(machine.ledger.task(script, replicas=2), virtual="1x2")
    machine.wait_until_running(job, 2)
    reboot(machine, stranger)
    assert machine.wait(job).state == "succeeded"
    for key in ("main.0", "main.1"):
        first, second = machine.attempts(job, key)
        assert (first.reason, first.exit_code) == ("node-lost", None)
        assert "restarted" in first.message
        assert second.exit_code == 0
        assert machine.output(job, replica=key) == ["1", "2"]
    machine.leaves_nothing()


def test_a_retry_that_was_counted_before_still_counts(machine: Machine, stranger: Process) -> None:
    script = "[ $JOBMAN_ATTEMPT != 2 ] || sleep 600; end 7"
    job = machine.submit(machine.ledger.task(script, retries={"limit": 2, "delay": "0.1s"}))
    until(lambda: len(machine.ledger.entries(job=job)) == 2, "the second attempt")
    reboot(machine, stranger)
    assert machine.wait(job).state == "failed"
    found = [(one.attempt, one.reason, one.exit_code) for one in machine.attempts(job)]
    assert found == [(1, "exit", 7), (2, "node-lost", None), (3, "exit", 7), (4, "exit", 7)]
    machine.leaves_nothing()


def test_what_ended_before_stays_as_it_was(machine: Machine, stranger: Process) -> None:
    job = machine.submit(
        machine.ledger.task("echo done; end 0", name="first"),
        machine.ledger.task(
            "[ $JOBMAN_ATTEMPT = 2 ] || sleep 600; end 5", name="second", depends_on=["first"]
        ),
    )
    until(lambda: len(machine.ledger.entries(job=job)) == 2, "the second task")
    machine.kill_service()
    reboot(machine, stranger)
    assert machine.wait(job).exit_code == 5
    assert machine.codes(job) == {"first.0": [0], "second.0": [None, 5]}
    assert machine.output(job, task="first") == ["done"]
    machine.leaves_nothing()


def test_a_service_is_started_again_with_its_group(
    machine: Machine, stranger: Process, tmp_path: Path
) -> None:
    # Its second attempt is on record before the work that it serves ends, and with it the group.
    second = shlex.quote(str(tmp_path / "server.2"))
    group = {
        "name": "pair",
        "tasks": [
            machine.ledger.task(
                f"[ $JOBMAN_ATTEMPT = 1 ] || touch {second}; sleep 600", name="server", service=True
            ),
            machine.ledger.task(
                f"[ $JOBMAN_ATTEMPT = 2 ] || sleep 600; until [ -e {second} ]; do sleep 0.1; done; end 0",
                name="work",
                depends_on=[{"name": "server", "when": "started"}],
            ),
        ],
    }
    job = machine.submit(groups=[group], virtual="1x2")
    machine.wait_for_start(job, 2)
    reboot(machine, stranger)
    assert machine.wait(job).state == "succeeded"
    assert len(machine.ledger.entries(job=job)) == 4
    machine.leaves_nothing()


@pytest.mark.parametrize("act", ["cancel", "hold"])
def test_what_was_decided_before_holds_after_it(machine: Machine, stranger: Process, act: str) -> None:
    job = machine.submit(machine.ledger.task("sleep 600"), hold=act == "hold")
    if act == "cancel":
        machine.wait_until_running(job)
        with machine.dies_at("director.before-acts"):
            machine.ask(lambda client: client.cancel(job))
        reboot(machine, stranger)
        assert machine.wait(job).state == "cancelled"
        assert len(machine.attempts(job)) == 1
    else:
        reboot(machine, stranger)
        assert machine.details(job).held
        assert machine.attempts(job) == []
    assert machine.ledger.twice() == []
