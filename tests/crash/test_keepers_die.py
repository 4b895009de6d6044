"""kill -9 of those who look after copies, launcher and shims: the copies go on, and their ends are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobman.engines.local.trees import facts
from tests.crash.machine import Machine, kill_all, until

pytestmark = pytest.mark.slow

MANY = 20


class Crowd:
    """Twenty copies that run until they are told to end, each with an exit code of its own."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.go = machine.folder / "go"
        script = f"echo in; until_told {self.go}; echo out; end $JOBMAN_REPLICA"
        self.job = machine.submit(machine.ledger.task(script, replicas=MANY), virtual=f"1x{MANY}")
        machine.wait_until_running(self.job, MANY)

    def let_go(self) -> None:
        self.go.touch()
        until(lambda: len(self.machine.ledger.entries("end")) == MANY, "the ends of the copies")

    def has_ended_well(self) -> None:
        """Every copy was started once, and its exit code and output are known."""
        machine = self.machine
        assert machine.wait(self.job).state == "failed"
        assert machine.codes(self.job) == {f"main.{number}": [number] for number in range(MANY)}
        assert sorted(machine.output(self.job)) == ["in"] * MANY + ["out"] * MANY
        machine.leaves_nothing()


def the_launcher(machine: Machine) -> None:
    machine.kill_launcher()


def all_shims(machine: Machine) -> None:
    machine.kill_shims()


def the_launcher_twice(machine: Machine) -> None:
    machine.kill_launcher()
    until(machine.victims.launchers, "another launcher")
    machine.kill_launcher()


def service_and_launcher(machine: Machine) -> None:
    machine.kill_service()
    machine.kill_launcher()


def shims_twice(machine: Machine) -> None:
    first = machine.victims.shims()
    kill_all(first)
    kill_all(until(lambda: [each for each in machine.victims.shims() if each not in first], "other shims"))


def a_shim_while_no_service_lives(machine: Machine) -> None:
    machine.kill_service()
    kill_all(machine.victims.shims()[:1])


KILLS = (
    the_launcher,
    the_launcher_twice,
    all_shims,
    shims_twice,
    service_and_launcher,
    a_shim_while_no_service_lives,
)


@pytest.mark.parametrize("kill", KILLS)
def test_all_exit_codes_are_right_after_the_death_of(
    machine: Machine, kill: Callable[[Machine], None]
) -> None:
    crowd = Crowd(machine)
    kill(machine)
    crowd.let_go()
    crowd.has_ended_well()


def test_copies_of_which_nobody_is_left_but_themselves_are_taken_over(machine: Machine) -> None:
    crowd = Crowd(machine)
    machine.kill_service()
    machine.kill_launcher()
    machine.kill_shims()
    assert len(machine.victims.copies()) >= MANY
    machine.start()
    until(lambda: len(machine.victims.shims()) == MANY, "a shim for every copy")
    crowd.let_go()
    machine.wait(crowd.job)
    # How a stranger's process ended, only newer kernels tell. Where they do not, it is tried again.
    for attempts in machine.codes(crowd.job).values():
        assert len(attempts) in (1, 2)
    assert machine.ledger.twice() == []
    assert all(one.reason in ("", "exit", "node-lost") for one in machine.attempts(crowd.job))
    machine.leaves_nothing()


def test_a_copy_that_ends_while_nobody_lives_is_lost_and_tried_again_without_counting(
    machine: Machine,
) -> None:
    go = machine.folder / "go"
    job = machine.submit(machine.ledger.task(f"until_told {go}; end 0"))
    machine.wait_until_running(job)
    machine.kill_service()
    machine.kill_launcher()
    machine.kill_shims()
    go.touch()
    [ended] = until(lambda: machine.ledger.entries("end"), "the end of the copy")
    # As long as it is a zombie, the kernel can still be asked.
    until(lambda: facts(ended.pid) is None, "the end of its process")
    assert machine.wait(job).state == "succeeded"
    first, second = machine.attempts(job)
    assert (first.reason, first.exit_code) == ("node-lost", None)
    assert (second.reason, second.exit_code) == ("", 0)
    machine.leaves_nothing()


def test_a_copy_is_still_stopped_at_its_time_limit_by_the_shim_that_took_over(machine: Machine) -> None:
    job = machine.submit(machine.ledger.task("sleep 600", attributes={"duration": "4s"}))
    machine.wait_for_start(job)
    machine.kill_shims()
    assert machine.wait(job).state == "failed"
    [attempt] = machine.attempts(job)
    assert attempt.reason == "timeout"
    machine.leaves_nothing()


def test_what_a_copy_left_behind_is_ended_also_after_its_shim_died(machine: Machine) -> None:
    script = "setsid sh -c 'sleep 600' & say left; until_told go; end 0"
    job = machine.submit(machine.ledger.task(script))
    until(lambda: machine.ledger.entries("left"), "a process on its own")
    machine.kill_shims()
    (machine.folder / "go").touch()
    assert machine.wait(job).state == "succeeded"
    machine.leaves_nothing()


def test_a_job_is_cancelled_although_its_launcher_is_just_dead(machine: Machine) -> None:
    job = machine.submit(machine.ledger.task("sleep 600"))
    machine.wait_until_running(job)
    machine.kill_launcher()
    machine.ask(lambda client: client.cancel(job))
    assert machine.wait(job).state == "cancelled"
    machine.leaves_nothing()
