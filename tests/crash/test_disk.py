"""A disk that is full for a while, and folders that may not be written: said plainly, and overcome."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Refused
from jobman.engines.local.kernel import CAPBSET_DROP, prctl
from tests.crash.machine import Machine, until

pytestmark = pytest.mark.slow

UNREACHABLE = 5
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2


@pytest.mark.slow
class TestFullDisk:
    def test_a_submission_is_refused_and_the_next_one_taken(self, either: Machine) -> None:
        either.arm("store.before-commit=disk-full@1")
        with pytest.raises(Refused, match=r"nothing was submitted: .* is full") as raised:
            either.submit(either.ledger.task("end 0"))
        assert (raised.value.code, raised.value.exit_code) == ("store", UNREACHABLE)
        job = either.submit(either.ledger.task("end 0"))
        assert either.wait(job).state == "succeeded"
        assert [one.id for one in either.client.jobs()] == [job]
        assert len(either.ledger.entries()) == 1
        either.leaves_nothing()

    def test_what_runs_goes_on_and_its_end_is_written_when_there_is_room(self, machine: Machine) -> None:
        go = machine.folder / "go"
        job = machine.submit(machine.ledger.task(f"until_told {go}; end 6"))
        machine.wait_until_running(job)
        machine.arm("store.before-commit=disk-full")
        go.touch()
        until(lambda: not machine.client.status().healthy, "the trouble")
        assert machine.client.health().status == "degraded"
        assert "is full" in machine.client.status().trouble
        with pytest.raises(Refused, match="is full") as raised:
            machine.submit(machine.ledger.task("end 0"))
        assert raised.value.exit_code == UNREACHABLE
        with pytest.raises(Refused, match="is full"):
            machine.client.cancel(job)
        assert machine.details(job).state == "running"
        machine.arm("")
        assert machine.wait(job).exit_code == 6
        until(lambda: machine.client.status().healthy, "the end of the trouble")
        assert machine.wait(machine.submit(machine.ledger.task("end 0"))).state == "succeeded"
        machine.leaves_nothing()

    def test_a_service_that_dies_while_it_is_full_loses_nothing(self, machine: Machine) -> None:
        go = machine.folder / "go"
        job = machine.submit(machine.ledger.task(f"until_told {go}; end 6"))
        machine.wait_until_running(job)
        machine.arm("store.before-commit=disk-full")
        go.touch()
        until(lambda: not machine.client.status().healthy, "the trouble")
        machine.restart("store.before-commit=disk-full@1-3")
        assert machine.wait(job).exit_code == 6
        assert machine.codes(job) == {"main.0": [6]}
        machine.leaves_nothing()

    def test_a_submission_whose_commit_succeeded_after_all_is_led(self, either: Machine) -> None:
        """The answer of the database was lost, not the commit."""
        either.arm("store.after-commit=error@1")
        wanted = either.submission(either.ledger.task("end 0"))
        try:
            job = either.ask(lambda client: client.submit(wanted, key="one")).jobs[0].id
        except Refused:
            job = either.ask(lambda client: client.submit(wanted, key="one")).jobs[0].id
        assert either.wait(job).state == "succeeded"
        assert len(either.ledger.entries()) == 1
        assert [one.id for one in either.client.jobs()] == [job]

    def test_a_cancellation_whose_commit_succeeded_after_all_is_carried_out_once(
        self, machine: Machine
    ) -> None:
        job = machine.submit(machine.ledger.task("sleep 600"))
        machine.wait_until_running(job)
        machine.arm("store.after-commit=error@1-3")
        machine.ask(lambda client: client.cancel(job))
        assert machine.wait(job).state == "cancelled"
        kinds = [event.kind for event in machine.client.events(job)]
        assert kinds.count("cancelling") == 1
        assert kinds.count("job-cancelled") == 1

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        disk = tmp_path / "disk"
        disk.mkdir()
        if os.geteuid() or os.system(f"mount -t tmpfs -o size=8m none {disk} 2>/dev/null"):
            pytest.skip("a small disk cannot be mounted here")
        yield disk
        os.system(f"umount -l {disk}")

    def test_a_disk_that_is_really_full_is_overcome(self, small_disk: Path, tmp_path: Path) -> None:
        go = tmp_path / "go"
        machine = Machine(small_disk)
        try:
            job = machine.submit(machine.ledger.task(f"until_told {go}; end 6"))
            machine.wait_until_running(job)
            os.system(f"dd if=/dev/zero of={small_disk}/filler bs=4k status=none 2>/dev/null")
            with pytest.raises(Refused) as raised:
                submit_until_refused(machine)
            assert raised.value.exit_code == UNREACHABLE
            assert "full" in str(raised.value) or "space" in str(raised.value)
            go.touch()
            (small_disk / "filler").unlink()
            assert machine.wait(job).exit_code == 6
            after = machine.submit(machine.ledger.task("end 0"))
            assert machine.wait(after).state in ("succeeded", "failed")
            assert machine.wait(machine.submit(machine.ledger.task("end 0"))).state == "succeeded"
        finally:
            machine.close()


def submit_until_refused(machine: Machine) -> None:
    """What the store had set aside before may hold some."""
    for _ in range(100):
        machine.submit(machine.ledger.task("end 0"), hold=True)


def obey_permissions() -> None:
    """Let root be as powerless as everybody else."""
    if os.geteuid() == 0:
        prctl(CAPBSET_DROP, _DAC_OVERRIDE)
        prctl(CAPBSET_DROP, _DAC_READ_SEARCH)


def jobman(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command, as a person without special rights gives it."""
    return subprocess.run(
        [sys.executable, "-m", "jobman.cli.main", *arguments],
        env={**os.environ, "JOBMAN_STATE": str(state)},
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=obey_permissions,
    )


class TestFolders:
    """The command says what is wrong and what to do, and its exit code is that of a service out of reach."""

    @pytest.fixture
    def state(self, tmp_path: Path) -> Iterator[Path]:
        folder = tmp_path / "state"
        folder.mkdir(mode=0o700)
        yield folder
        folder.chmod(0o700)
        Machine(tmp_path).close()

    def said(self, result: subprocess.CompletedProcess[str]) -> str:
        assert result.returncode == UNREACHABLE, result
        assert "Traceback" not in result.stderr
        assert result.stdout == ""
        return result.stderr

    def test_one_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        words = self.said(jobman(tmp_path / "file" / "state", "list"))
        assert f"{tmp_path}/file" in words
        assert "JOBMAN_STATE" in words

    def test_one_that_may_not_be_written_is_named(self, state: Path) -> None:
        state.chmod(0o500)
        words = self.said(jobman(state, "list"))
        assert str(state) in words
        assert "Permission denied" in words

    def test_a_store_that_may_not_be_written_is_named(self, state: Path) -> None:
        assert jobman(state, "list").returncode == 0
        assert jobman(state, "service", "stop").returncode == 0
        for path in state.glob("jobman.db*"):
            path.chmod(0o400)
        state.chmod(0o500)
        words = self.said(jobman(state, "list"))
        assert str(state) in words

    def test_a_store_that_is_none_is_named(self, state: Path) -> None:
        (state / "jobman.db").write_text("a letter, not a store" * 1000)
        words = self.said(jobman(state, "list"))
        assert f"{state}/jobman.db is not a store of jobman" in words

    @pytest.mark.slow
    def test_an_attempt_that_finds_no_room_for_its_records_fails_with_the_reason(
        self, tmp_path: Path
    ) -> None:
        machine = Machine(tmp_path)
        machine.start()
        (machine.places.state / "jobs").write_text("a file in the way")
        try:
            job = machine.submit(machine.ledger.task("end 0"))
            assert machine.wait(job).state == "failed"
            [attempt] = machine.attempts(job)
            assert attempt.reason == "launch-failed"
            assert str(machine.places.state / "jobs") in attempt.message
            machine.leaves_nothing()
        finally:
            machine.close()
