"""The Slurms of the lab that come up on demand: to break, to ask for accounts, and a large one."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm_lab import lab_slurm, slurm_variant

pytestmark = [pytest.mark.component("slurm"), pytest.mark.slow]
PATIENCE = 120.0


class Slurm:
    """One of them, by the eyes of its own commands."""

    def __init__(self, conf: Path) -> None:
        self.conf = conf

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE)

    def __call__(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def submit(self, script: str, *options: str) -> str:
        return self("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}")

    def state(self, job: str) -> str:
        told = re.search(r"JobState=(\S+) Reason=(\S+)", self("scontrol", "show", "job", job))
        assert told
        return told[1] if told[2] == "None" else f"{told[1]} {told[2]}"

    def node(self, name: str) -> str:
        return self("sinfo", "-h", "-p", "main", "-n", name, "-o", "%t")

    def until(self, job: str, state: str) -> None:
        until(lambda: self.state(job) == state)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def saved(slurm: Slurm, job: str) -> None:
    """A killed controller knows what it wrote down before, as it does every few seconds."""
    slurm("scontrol", "update", f"job={job}", "comment=written-down")
    file = slurm.conf.parent / "state" / "job_state"
    until(lambda: b"written-down" in file.read_bytes())


def lives(pid: str) -> bool:
    """Whether there is more of a process than a number that nobody has asked after."""
    try:
        return Path("/proc", pid, "cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


class TestFaults:
    @pytest.fixture
    def slurm(self) -> Iterator[Slurm]:
        with slurm_variant("faults") as conf:
            yield Slurm(conf)

    def test_it_is_another_one_beside_the_usual(self, slurm: Slurm):
        assert str(slurm.conf) != os.environ["JOBMAN_LAB_SLURM_CONF"]
        assert slurm("sinfo", "-h", "-p", "main", "-o", "%D") == "4"

    def test_a_killed_controller_comes_back_and_jobs_run_on(self, slurm: Slurm, tmp_path: Path):
        go = tmp_path / "go"
        job = slurm.submit(f"until [ -e {go} ]; do sleep 0.1; done")
        slurm.until(job, "RUNNING")
        saved(slurm, job)
        lab_slurm("faults", "ctld", "stop")
        assert slurm.run("squeue").returncode == 1
        lab_slurm("faults", "ctld", "start")
        assert slurm.state(job) == "RUNNING"
        go.touch()
        slurm.until(job, "COMPLETED")

    def test_a_controller_that_is_told_to_end_forgets_nothing(self, slurm: Slurm):
        job = slurm.submit("true", "--hold")
        lab_slurm("faults", "ctld", "restart")
        assert slurm.state(job) == "PENDING JobHeldUser"

    def test_a_node_without_power_loses_what_it_ran_and_the_job_starts_again(
        self, slurm: Slurm, tmp_path: Path
    ):
        pid = tmp_path / "pid"
        wait = f'[ -n "$SLURM_RESTART_COUNT" ] || {{ echo $$ >{pid}.new; mv {pid}.new {pid}; sleep 1000; }}'
        job = slurm.submit(wait, "--nodelist=n2")
        until(pid.exists)
        lab_slurm("faults", "node", "stop", "n2")
        assert not lives(pid.read_text().strip())
        until(lambda: slurm.node("n2") == "down*")
        lab_slurm("faults", "node", "start", "n2")
        slurm.until(job, "COMPLETED")

    def test_a_node_with_a_full_spool_gives_the_job_back(self, slurm: Slurm):
        lab_slurm("faults", "node", "fill", "n3")
        job = slurm.submit("true", "--nodelist=n3")
        slurm.until(job, "PENDING launch_failed_requeued_held")
        lab_slurm("faults", "node", "clear", "n3")
        slurm("scontrol", "update", "node=n3", "state=resume")
        slurm("scontrol", "release", job)
        slurm.until(job, "COMPLETED")


class TestAccounting:
    @pytest.fixture
    def slurm(self) -> Iterator[Slurm]:
        with slurm_variant("accounting") as conf:
            yield Slurm(conf)

    def test_it_remembers_jobs_with_their_account_and_comment(self, slurm: Slurm):
        job = slurm.submit("exit 3", "--account=guests", "--qos=urgent", "--comment=a|b")
        ask = ("sacct", "-n", "-P", "-X", "-j", job, "-o", "State,ExitCode,Account,QOS,Comment")
        until(lambda: slurm(*ask) == "FAILED|3:0|guests|urgent|a|b")

    def test_it_refuses_accounts_that_nobody_has(self, slurm: Slurm):
        refused = slurm.run("sbatch", "--account=nobody", "--wrap=true")
        assert refused.returncode == 1
        assert "Invalid account" in refused.stderr


@pytest.mark.skipif(
    "JOBMAN_TEST_LARGE" not in os.environ,
    reason="a thousand daemons slow down everybody else: JOBMAN_TEST_LARGE=1 has them",
)
def test_a_thousand_nodes_can_have_one_job():
    with slurm_variant("large") as conf:
        slurm = Slurm(conf)
        job = slurm.submit("true", "--nodes=1000")
        slurm.until(job, "COMPLETED")
        assert "NodeList=n[1-1000]" in slurm("scontrol", "show", "job", job)
