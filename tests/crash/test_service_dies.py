"""kill -9 of the service at one chosen moment: what it had promised happens, and happens once."""

from __future__ import annotations

import threading

import pytest

from jobman.client import Refused, Unreachable
from tests.crash.machine import Machine, until

pytestmark = pytest.mark.slow

POINTS = ("director.before-commit", "director.after-commit", "director.before-acts", "director.after-acts")
STEADY = 1.0
"""Seconds in which something that moves would have moved many times."""


@pytest.mark.parametrize("point", POINTS)
def test_an_attempt_runs_once_wherever_the_service_dies_around_its_launch(
    either: Machine, point: str
) -> None:
    with either.dies_at(point):
        job = either.submit(either.ledger.task("end 3"))
        assert either.wait(job).exit_code == 3
    assert either.codes(job) == {"main.0": [3]}
    assert len(either.ledger.entries(job=job)) == 1
    either.leaves_nothing()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("hit", [2, 3])
def test_the_news_of_an_attempt_is_taken_in_wherever_the_service_dies(
    machine: Machine, point: str, hit: int
) -> None:
    flaky = machine.ledger.task("echo line; [ $JOBMAN_ATTEMPT = 2 ] || end 7; end 0", retries=1)
    then = machine.ledger.task("end 0", name="then", depends_on=["main"])
    with machine.dies_at(point, hit):
        job = machine.submit(flaky, then)
        assert machine.wait(job).state == "succeeded"
    assert machine.codes(job) == {"main.0": [7, 0], "then.0": [0]}
    assert machine.output(job) == ["line", "line"]
    machine.leaves_nothing()


def test_copies_that_end_while_no_service_lives_are_told_right(either: Machine) -> None:
    go = either.folder / "go"
    script = f"echo before; until_told {go}; echo after; echo oops >&2; end $((JOBMAN_REPLICA + 3))"
    job = either.submit(either.ledger.task(script, replicas=4), virtual="1x4")
    either.wait_until_running(job, 4)
    either.kill_service()
    go.touch()
    until(lambda: len(either.ledger.entries("end")) == 4, "the ends of the copies")
    assert either.wait(job).state == "failed"
    assert either.codes(job) == {f"main.{number}": [number + 3] for number in range(4)}
    for number in range(4):
        assert sorted(either.output(job, replica=f"main.{number}")) == ["after", "before", "oops"]
    either.leaves_nothing()


def test_a_log_that_is_followed_has_every_line_once_over_many_services(machine: Machine) -> None:
    go = machine.folder / "go"
    script = f"n=0; while [ ! -e {go} ]; do n=$((n+1)); echo $n; sleep 0.01; done; echo last; end 0"
    job = machine.submit(machine.ledger.task(script))
    lines: list[str] = []

    def follow() -> None:
        lines.extend(line.text for line in machine.new_client().logs(job, follow=True))

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    for _ in range(3):
        machine.wait_until_running(job)
        machine.kill_service()
    go.touch()
    machine.wait(job)
    follower.join(60)
    assert lines == [*map(str, range(1, len(lines))), "last"]
    assert machine.output(job) == lines


class TestWhileStopping:
    def test_a_copy_keeps_its_grace(self, machine: Machine) -> None:
        go = machine.folder / "go"
        script = f"trap 'say asked; until_told {go}; end 9' TERM; say ready; while :; do sleep 0.05; done"
        job = machine.submit(machine.ledger.task(script), grace="60s")
        until(lambda: machine.ledger.entries("ready"), "the trap")
        machine.ask(lambda client: client.cancel(job))
        until(lambda: machine.ledger.entries("asked"), "the request to stop")
        machine.restart()
        machine.restart()
        assert machine.states(job) == {"main.0": "stopping"}
        go.touch()
        assert machine.wait(job).state == "cancelled"
        assert machine.codes(job) == {"main.0": [9]}
        assert len(machine.ledger.entries("asked")) == 1
        machine.leaves_nothing()

    @pytest.mark.parametrize("point", ["director.after-commit", "director.before-acts"])
    def test_a_cancellation_that_was_only_written_down_is_carried_out(
        self, machine: Machine, point: str
    ) -> None:
        job = machine.submit(machine.ledger.task("sleep 600"))
        machine.wait_until_running(job)
        with machine.dies_at(point):
            machine.ask(lambda client: client.cancel(job))
        assert machine.wait(job).state == "cancelled"
        machine.leaves_nothing()


class TestWhileFrozen:
    """A copy that counts in a file shows whether it moves."""

    def count(self, machine: Machine) -> str:
        script = (
            f"while [ ! -e {machine.folder}/go ]; do echo >> {machine.folder}/count; sleep 0.02; done; end 4"
        )
        job = machine.submit(machine.ledger.task(script, suspend="freeze"))
        machine.wait_until_running(job)
        return job

    def stands_still(self, machine: Machine) -> bool:
        count = machine.folder / "count"
        before = count.stat().st_size
        try:
            until(lambda: count.stat().st_size != before, "a step", STEADY)
        except AssertionError:
            return True
        return False

    def test_it_stands_still_over_restarts_and_goes_on_when_it_is_released(self, machine: Machine) -> None:
        job = self.count(machine)
        machine.ask(lambda client: client.hold(job))
        until(lambda: self.stands_still(machine), "standing still")
        machine.restart()
        assert machine.details(job).held
        assert self.stands_still(machine)
        machine.ask(lambda client: client.release(job))
        (machine.folder / "go").touch()
        assert machine.wait(job).exit_code == 4
        assert machine.codes(job) == {"main.0": [4]}

    def test_it_can_be_released_by_the_service_that_comes_after(self, machine: Machine) -> None:
        job = self.count(machine)
        machine.ask(lambda client: client.hold(job))
        until(lambda: self.stands_still(machine), "standing still")
        (machine.folder / "go").touch()
        machine.kill_service()
        machine.kill_launcher()
        assert self.stands_still(machine)
        machine.ask(lambda client: client.release(job))
        assert machine.wait(job).exit_code == 4

    def test_a_hold_that_was_only_written_down_is_carried_out(self, machine: Machine) -> None:
        job = self.count(machine)
        with machine.dies_at("director.before-acts"):
            machine.ask(lambda client: client.hold(job))
        assert machine.details(job).held
        until(lambda: self.stands_still(machine), "standing still")

    def test_a_release_that_was_only_written_down_is_carried_out(self, machine: Machine) -> None:
        job = self.count(machine)
        machine.ask(lambda client: client.hold(job))
        until(lambda: self.stands_still(machine), "standing still")
        with machine.dies_at("director.before-acts"):
            machine.ask(lambda client: client.release(job))
        (machine.folder / "go").touch()
        assert machine.wait(job).exit_code == 4


def test_more_time_that_was_only_written_down_is_given(machine: Machine) -> None:
    script = "n=0; while [ $n -lt 80 ]; do n=$((n+1)); sleep 0.1; done; end 0"
    job = machine.submit(machine.ledger.task(script, attributes={"duration": "6s"}))
    machine.wait_until_running(job)
    with (
        machine.dies_at("director.before-acts"),
        pytest.raises(Unreachable, match="before the answer came"),
    ):
        machine.client.extend(job, 600)
    kinds = [event.kind for event in machine.ask(lambda client: list(client.events(job)))]
    assert "extended" in kinds
    assert machine.wait(job).state == "succeeded"


class TestOneKey:
    def test_it_is_one_job_however_often_the_service_dies(self, either: Machine) -> None:
        wanted = either.submission(either.ledger.task("end 0"))
        with either.dies_at("store.after-commit"):
            first = either.ask(lambda client: client.submit(wanted, key="one"))
        either.restart()
        again = either.ask(lambda client: client.submit(wanted, key="one"))
        assert [job.id for job in first.jobs] == [job.id for job in again.jobs]
        assert len(list(either.client.jobs())) == 1
        either.wait(first.jobs[0].id)
        assert len(either.ledger.entries()) == 1

    def test_it_is_one_job_also_for_two_requests_at_once(self, machine: Machine) -> None:
        wanted = machine.submission(machine.ledger.task("end 0"))
        machine.start()
        found: list[str] = []
        start = threading.Barrier(8)

        def submit() -> None:
            client = machine.new_client()
            client.status()
            start.wait()
            found.append(client.submit(wanted, key="one").jobs[0].id)

        callers = [threading.Thread(target=submit) for _ in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)
        assert len(found) == 8
        assert len(set(found)) == 1
        assert len(list(machine.client.jobs())) == 1

    def test_it_belongs_to_one_document(self, machine: Machine) -> None:
        machine.submit(machine.ledger.task("end 0"), key="one")
        machine.restart()
        with pytest.raises(Refused, match="belongs to another submission"):
            machine.submit(machine.ledger.task("end 1"), key="one")


class TestPeers:
    """What depends on a task with ports finds it in its environment, whoever launches it."""

    def tasks(self, machine: Machine) -> list[dict[str, object]]:
        server = machine.ledger.task(
            f"until_told {machine.folder}/go; end 0",
            name="server",
            ports=[{"name": "data"}],
        )
        caller = machine.ledger.task(
            'echo "port $JOBMAN_PORT_SERVER_DATA"; end 0',
            name="caller",
            depends_on=[{"name": "server", "when": "started"}],
        )
        return [server, caller]

    def port_is_told(self, machine: Machine, job: str) -> bool:
        (machine.folder / "go").touch()
        assert machine.wait(job).state == "succeeded"
        [line] = machine.output(job, task="caller")
        return line.removeprefix("port ").isdigit()

    def test_by_the_service_that_comes_after_one_that_died_before_the_launch(self, machine: Machine) -> None:
        # The server runs, so the caller is to be launched.
        with machine.dies_at("director.before-acts", 2):
            job = machine.submit(*self.tasks(machine), virtual="1x2")
            machine.wait_for_start(job, 2)
        assert self.port_is_told(machine, job)

    def test_by_a_service_that_takes_the_job_up(self, machine: Machine) -> None:
        server, caller = self.tasks(machine)
        job = machine.submit(server, {**caller, "gates": ["go"]}, virtual="1x2")
        machine.wait_until_running(job)
        with machine.dies_at("director.after-commit"):
            machine.ask(lambda client: client.open_gate(job, "go"))
        machine.wait_for_start(job, 2)
        assert self.port_is_told(machine, job)
