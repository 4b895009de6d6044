"""The database goes away and comes back: the copies go on, and nothing of them is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Refused, Unreachable
from tests.crash.machine import Machine, machine_at, until
from tests.lab.test_postgres import Server

pytestmark = [pytest.mark.slow, pytest.mark.component("postgres")]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A PostgreSQL of this test's own, which may be mistreated."""
    made = Server(tmp_path / "postgres")
    assert made("up").returncode == 0
    yield made
    assert made("down").returncode == 0


@pytest.fixture
def machine(server: Server, tmp_path: Path) -> Iterator[Machine]:
    with machine_at(server("status").stdout.strip().partition("=")[2], tmp_path) as made:
        yield made


def test_what_happens_while_it_is_gone_is_written_down_when_it_is_back(
    server: Server, machine: Machine
) -> None:
    go = machine.folder / "go"
    job = machine.submit(machine.ledger.task(f"until_told {go}; end 6"))
    machine.wait_until_running(job)
    os.kill(server.pid(), signal.SIGKILL)
    go.touch()
    until(lambda: machine.ledger.entries("end"), "the end of the copy")
    with pytest.raises(Refused) as raised:
        machine.client.submit(machine.submission(machine.ledger.task("end 0")))
    assert (raised.value.code, raised.value.exit_code) == ("store", 5)
    assert server("up").returncode == 0
    after = submit_when_it_is_back(machine)
    assert machine.wait(job).exit_code == 6
    assert machine.codes(job) == {"main.0": [6]}
    assert machine.wait(after).state == "succeeded"
    assert len(machine.ledger.entries(job=after)) == 1
    machine.leaves_nothing()


def test_a_service_that_starts_while_it_is_gone_says_so_and_the_next_goes_on(
    server: Server, machine: Machine
) -> None:
    go = machine.folder / "go"
    job = machine.submit(machine.ledger.task(f"until_told {go}; end 6"))
    machine.wait_until_running(job)
    assert server("down").returncode == 0
    machine.kill_service()
    go.touch()
    with pytest.raises(Unreachable, match="could not start") as raised:
        machine.start()
    assert "cannot be reached" in raised.value.advice
    assert server("up").returncode == 0
    assert machine.wait(job).exit_code == 6
    machine.leaves_nothing()


def submit_when_it_is_back(machine: Machine) -> str:
    wanted = machine.submission(machine.ledger.task("end 0"))

    def taken() -> str:
        try:
            return machine.ask(lambda client: client.submit(wanted, key="one")).jobs[0].id
        except Refused:
            return ""

    return until(taken, "an acknowledgement")
