"""kill -9 at the edges: while the store is made, between attempts, while checks run, and after the end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobman.client import Unreachable
from tests.crash.machine import PATIENCE, Machine, kill_all, until

pytestmark = pytest.mark.slow


def test_a_service_killed_while_it_makes_its_store_is_followed_by_one_that_works(either: Machine) -> None:
    chance = random.Random(1)
    for _ in range(6):
        starting = threading.Thread(target=start_in_vain, args=(either,))
        starting.start()
        # One that is still dying is waited for, and in the end in vain, before another is started.
        until(lambda: either.victims.services() or not starting.is_alive(), "a start", 2 * PATIENCE)  # noqa: B023
        time.sleep(chance.uniform(0, 0.8))
        kill_all(either.victims.services())  # the one that starts it may start another meanwhile
        starting.join()
    either.kill_service()
    assert either.wait(either.submit(either.ledger.task("end 3"))).exit_code == 3
    either.leaves_nothing()


def start_in_vain(machine: Machine) -> None:
    try:
        machine.start()
    except Unreachable:
        return  # it was killed before it was ready


def test_a_retry_that_rests_comes_after_the_restart(machine: Machine) -> None:
    retries = {"limit": 1, "delay": "3s"}
    job = machine.submit(machine.ledger.task("[ $JOBMAN_ATTEMPT = 2 ] || end 7; end 0", retries=retries))
    until(lambda: machine.states(job) == {"main.0": "resting"}, "the rest")
    machine.restart()
    assert machine.wait(job).state == "succeeded"
    assert machine.codes(job) == {"main.0": [7, 0]}


def test_a_group_whose_time_is_over_while_no_service_lives_is_ended_by_the_next(machine: Machine) -> None:
    group = {
        "name": "slow",
        "attributes": {"duration": "3s"},
        "tasks": [machine.ledger.task("exec sleep 600")],
    }
    job = machine.submit(groups=[group])
    machine.wait_until_running(job)
    machine.kill_service()
    until(lambda: machine.ledger.path.stat().st_mtime + 4 < time.time(), "the end of its time")
    assert machine.wait(job).state == "failed"
    machine.leaves_nothing()


def test_more_time_does_not_add_up_over_restarts(machine: Machine) -> None:
    job = machine.submit(machine.ledger.task("exec sleep 600", attributes={"duration": "6s"}))
    machine.wait_until_running(job)
    machine.ask(lambda client: client.extend(job, 2))
    machine.restart()
    machine.restart()
    assert machine.wait(job).state == "failed"
    [attempt] = machine.attempts(job)
    assert (attempt.reason, attempt.message) == ("timeout", "ran past its limit of 8 s")


def test_what_becomes_ready_after_the_restart_is_noticed(machine: Machine) -> None:
    ready = machine.folder / "ready"
    checks = {"ready": {"exec": ["test", "-e", str(ready)], "every": "1s", "failures": 600}}
    server = machine.ledger.task("exec sleep 600", name="server", service=True, checks=checks)
    work = machine.ledger.task("end 0", name="work", depends_on=[{"name": "server", "when": "ready"}])
    job = machine.submit(groups=[{"name": "pair", "tasks": [server, work]}], virtual="1x2")
    machine.wait_for_start(job)
    machine.restart()
    assert [one.task for one in machine.ledger.entries(job=job)] == ["server"]
    ready.touch()
    assert machine.wait(job).state == "succeeded"
    machine.leaves_nothing()


def test_what_was_ready_before_the_restart_still_is(machine: Machine) -> None:
    checks = {"ready": {"exec": ["true"], "every": "1s"}}
    server = machine.ledger.task("exec sleep 600", name="server", service=True, checks=checks)
    work = machine.ledger.task(
        f"until_told {machine.folder}/go-$JOBMAN_REPLICA; end 0",
        name="work",
        replicas=2,
        parallelism=1,
        depends_on=[{"name": "server", "when": "ready"}],
    )
    job = machine.submit(groups=[{"name": "pair", "tasks": [server, work]}], virtual="1x2")
    machine.wait_for_start(job, 2)
    machine.restart()
    (machine.folder / "go-0").touch()
    (machine.folder / "go-1").touch()
    assert machine.wait(job).state == "succeeded"
    assert [one.task for one in machine.ledger.entries(job=job)] == ["server", "work", "work"]


def test_a_cancellation_that_had_its_effect_before_the_answer_was_lost_is_no_error(machine: Machine) -> None:
    job = machine.submit(machine.ledger.task("end 0"), hold=True)
    with machine.dies_at("director.after-commit"):
        assert machine.ask(lambda client: client.cancel(job)).state == "cancelled"


def test_a_deleted_job_leaves_no_files_although_the_service_died_in_between(machine: Machine) -> None:
    job = machine.submit(machine.ledger.task("end 0"))
    machine.wait(job)
    with machine.dies_at("director.after-commit"), pytest.raises(Unreachable):
        machine.client.delete(job)
    assert list(machine.ask(lambda client: list(client.jobs()))) == []
    until(lambda: not (machine.places.jobs / job).exists(), "the end of its folder")


def test_a_service_that_is_told_to_stop_leaves_its_copies_running(machine: Machine) -> None:
    go = machine.folder / "go"
    job = machine.submit(machine.ledger.task(f"until_told {go}; end 3"))
    machine.wait_until_running(job)
    machine.client.stop(force=True)
    until(lambda: not machine.victims.services(), "the end of the service")
    go.touch()
    assert machine.wait(job).exit_code == 3
    assert machine.codes(job) == {"main.0": [3]}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
class TestSmallerMachine:
    """A service that finds fewer cores than the one before it."""

    @pytest.fixture
    def one_core(self) -> Iterator[Callable[[], None]]:
        before = os.sched_getaffinity(0)
        yield lambda: os.sched_setaffinity(0, {min(before)})
        os.sched_setaffinity(0, before)

    def task(self, machine: Machine, script: str) -> dict[str, Any]:
        pair = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 2}]}
        return machine.ledger.task(script, resources=pair)

    def test_what_runs_on_more_runs_to_its_end(self, machine: Machine, one_core: Callable[[], None]) -> None:
        go = machine.folder / "go"
        job = machine.submit(self.task(machine, f"until_told {go}; end 3"))
        machine.wait_until_running(job)
        machine.kill_service()
        one_core()
        machine.start()
        after = machine.submit(machine.ledger.task("end 0"))
        go.touch()
        assert machine.wait(job).exit_code == 3
        assert machine.codes(job) == {"main.0": [3]}
        assert machine.wait(after).state == "succeeded"
        machine.leaves_nothing()

    def test_what_waits_for_more_keeps_nobody_else_waiting_and_can_be_cancelled(
        self, machine: Machine, one_core: Callable[[], None]
    ) -> None:
        job = machine.submit(self.task(machine, "end 0"), hold=True)
        machine.kill_service()
        one_core()
        machine.ask(lambda client: client.release(job))
        after = machine.submit(machine.ledger.task("end 0"))
        assert machine.wait(after, seconds=15).state == "succeeded"
        machine.ask(lambda client: client.cancel(job))
        assert machine.wait(job).state == "cancelled"
        machine.leaves_nothing()


class TestFollowing:
    def test_every_event_is_told_once_over_many_services(self, machine: Machine) -> None:
        retries = {"limit": 5, "delay": "0.3s"}
        script = "[ $JOBMAN_ATTEMPT = 6 ] || end 7; end 0"
        job = machine.submit(machine.ledger.task(script, retries=retries))
        numbers: list[int] = []

        def follow() -> None:
            numbers.extend(event.number for event in machine.new_client().events(job, follow=True))

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        for attempt in (1, 3, 5):
            machine.wait_for_start(job, attempt)
            machine.kill_service()
        machine.wait(job)
        follower.join(60)
        assert numbers == [event.number for event in machine.client.events(job)]

    def test_a_command_that_runs_a_job_goes_on_over_the_death_of_the_service(self, machine: Machine) -> None:
        go = machine.folder / "go"
        document = machine.folder / "job.yaml"
        document.write_text(
            machine.ledger.document(machine.ledger.task(f"echo in; until_told {go}; echo out; end 4"))
        )
        with subprocess.Popen(
            [sys.executable, "-m", "jobman.cli.main", "run", str(document)],
            env={**os.environ, "JOBMAN_STATE": str(machine.places.state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            until(machine.ledger.entries, "the start of the copy")
            machine.kill_service()
            machine.kill_launcher()
            go.touch()
            output, words = command.communicate(timeout=120)
        assert command.returncode == 4, words
        assert [line.rpartition(" ")[2] for line in output.splitlines()] == ["in", "out"]
