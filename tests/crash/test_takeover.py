"""Two services where there should be one, and what a dead one leaves behind."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Client, Refused, Unreachable
from jobman.control.embedded import Running, read_running, wait_until_gone
from tests.crash.machine import Machine, machine_at, until

pytestmark = pytest.mark.slow


@pytest.fixture
def other(either: Machine, tmp_path: Path) -> Iterator[Machine]:
    """Another folder with a service of its own, on the same database and with the same ledger."""
    with machine_at(either.database, tmp_path / "other", either.ledger) as made:
        yield made


class TestOneDatabase:
    def test_the_older_of_two_services_is_fenced_and_stops(self, either: Machine, other: Machine) -> None:
        job = either.submit(either.ledger.task("end 0"))
        either.wait(job)
        other.start()
        [older] = either.victims.services()
        with pytest.raises((Refused, Unreachable)):
            Client.embedded(either.places, start=False).submit(either.submission(either.ledger.task("end 0")))
        until(lambda: older not in either.victims.services(), "the end of the older service")
        assert "taken over by another service" in either.places.log.read_text()
        assert other.details(job).state == "succeeded"
        assert len(list(other.client.jobs())) == 1

    def test_what_the_older_one_ran_is_not_run_again_by_the_other(
        self, either: Machine, other: Machine
    ) -> None:
        go = either.folder / "go"
        job = either.submit(either.ledger.task(f"until_told {go}; end 3"))
        either.wait_until_running(job)
        with pytest.raises(Unreachable) as raised:
            other.start()
        assert f"run in the state folder {either.places.state}" in raised.value.advice
        go.touch()
        until(lambda: either.ledger.entries("end"), "the end of the copy")
        assert either.wait(job).exit_code == 3
        assert either.ledger.twice() == []


class TestOneFolder:
    def remove_the_traces(self, machine: Machine) -> None:
        """As somebody does who believes that no service lives any more."""
        machine.places.pid.unlink()
        machine.places.socket.unlink()
        machine.client.close()

    def test_a_service_that_was_forgotten_ends_and_harms_nobody(self, machine: Machine) -> None:
        go = machine.folder / "go"
        job = machine.submit(machine.ledger.task(f"until_told {go}; end 3", replicas=2), virtual="1x2")
        machine.wait_until_running(job, 2)
        [forgotten] = machine.victims.services()
        self.remove_the_traces(machine)
        machine.start()
        go.touch()  # both hear of it
        assert machine.wait(job).state == "failed"
        assert machine.codes(job) == {"main.0": [3], "main.1": [3]}
        # By its fence, or because it noticed that nobody can reach it any more.
        until(lambda: forgotten not in machine.victims.services(), "the end of the forgotten service")
        assert machine.state(job) == "failed"
        machine.leaves_nothing()

    def test_a_service_whose_socket_was_swept_away_is_replaced(self, machine: Machine) -> None:
        go = machine.folder / "go"
        job = machine.submit(machine.ledger.task(f"until_told {go}; end 3"))
        machine.wait_until_running(job)
        machine.places.socket.unlink()
        machine.client.close()
        go.touch()
        assert machine.wait(job).exit_code == 3
        assert machine.codes(job) == {"main.0": [3]}


class TestTraces:
    """A pid and a socket of a service that is dead keep nobody from starting another."""

    def test_of_a_killed_service(self, machine: Machine) -> None:
        job = machine.submit(machine.ledger.task("end 0"))
        machine.wait(job)
        machine.kill_service()
        assert read_running(machine.places) is not None
        assert machine.places.socket.exists()
        assert wait_until_gone(machine.places)
        assert machine.details(job).state == "succeeded"

    @pytest.mark.parametrize("content", ["", "rubbish", '{"pid": 1, "socket": "/nowhere"}'])
    def test_that_are_wrong(self, machine: Machine, content: str) -> None:
        machine.places.make()
        machine.places.pid.write_text(content)
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(machine.places.socket))
        left.close()
        assert machine.client.status().pid in [one.pid for one in machine.victims.services()]

    def test_of_a_process_that_somebody_else_has_become(self, machine: Machine) -> None:
        machine.places.make()
        mine = Running(pid=os.getpid(), socket=str(machine.places.socket))
        machine.places.pid.write_text(f'{{"pid": {mine.pid}, "socket": "{mine.socket}"}}')
        assert machine.client.status().pid != os.getpid()

    def test_of_a_launcher_that_is_dead(self, machine: Machine) -> None:
        machine.start()
        machine.kill_everybody()
        assert (machine.places.state / "launcher.sock").exists()
        assert machine.wait(machine.submit(machine.ledger.task("end 4"))).exit_code == 4

    def test_of_half_written_records(self, machine: Machine) -> None:
        """Killed in the middle of writing a draft, and of the folder of an attempt."""
        with machine.dies_at("director.before-acts"):
            job = machine.submit(machine.ledger.task("end 4"))
        folder = machine.places.state / "jobs" / job / "main.0" / "1"
        machine.kill_everybody()
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("0.started.4242", "0.exit.4242", "0.wanted.4242", "attempt.draft"):
            (folder / name).write_text("{")
        assert machine.wait(job).exit_code == 4 or machine.ledger.entries()
        assert machine.ledger.twice() == []
