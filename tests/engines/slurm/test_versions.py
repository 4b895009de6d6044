"""Clusters of several versions: what is asked of them, what is refused, and what holds for all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobman.client.batch import BatchClient
from jobman.client.failures import Refused
from jobman.control.answers import Submission, Submitted
from jobman.engines.slurm import cluster
from jobman.engines.slurm.cluster import Cluster, read_config, recall, remember
from jobman.engines.slurm.engine import Slurm
from tests.engines.scripts.running import plan_of, run_script, scripts_of
from tests.engines.slurm.ground import Ground

CONFIG = """\
Configuration data as of 2026-01-01T00:00:00
AccountingStorageTRES   = cpu,mem,energy,node
AccountingStorageType   = {accounting}
AccountingStoreFlags    = (null)
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = {version}
"""
DOCUMENT = "version: 1\nname: job\ntasks: [{name: t, command: ['true'], resources: {type: slot, count: 1}}]\n"


def config(version: str = "22.05.8", accounting: str = "accounting_storage/slurmdbd") -> str:
    return CONFIG.format(version=version, accounting=accounting)


class Stand:
    """Commands of a Slurm that is not there; they write down how they are called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self.environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder)}
        self.command("sbatch", "echo 7")
        self.command("squeue", ":")
        self.command("scancel", ":")
        self.is_of("22.05.8")

    def command(self, name: str, does: str) -> None:
        place = self.folder / "bin" / name
        place.write_text(f'#!/bin/bash\necho "{name} $*" >>{self.folder}/calls\n{does}\n')
        place.chmod(0o755)

    def is_of(self, version: str) -> None:
        (self.folder / "config").write_text(config(version))
        self.command("scontrol", f"cat {self.folder}/config")

    def submit(self, key: str = "key") -> Submitted:
        """As a process of its own would."""
        client = BatchClient(
            Slurm(self.environment),
            root=self.folder / "jobs",
            database=self.folder / "batch.sqlite",
            owner="ada",
        )
        submission = Submission(document=DOCUMENT, cwd=str(self.folder), environment=self.environment)
        return client.submit(submission, key=key)

    def called(self, name: str) -> int:
        lines = (self.folder / "calls").read_text().splitlines()
        return sum(line.startswith(f"{name} ") for line in lines)


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


# -- what a cluster says of itself --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "is_too_old"),
    [
        ("19.05.5", True),
        ("20.02.7", True),
        ("20.11.2", True),
        ("20.11.3", False),
        ("20.11.9", False),
        ("21.08.8-2", False),
        ("22.05.8", False),
        ("24.11.0-0rc1", False),
        ("25.05.3", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, is_too_old: bool) -> None:
    assert read_config(config(version)).is_too_old == is_too_old


@pytest.mark.parametrize(
    ("kind", "has_accounting"),
    [
        ("accounting_storage/slurmdbd", True),
        ("accounting_storage/none", False),
        ("(null)", False),
        ("", False),
    ],
)
def test_accounts_are_kept_or_not_in_the_words_of_each_version(kind: str, has_accounting: bool) -> None:
    assert read_config(config(accounting=kind)).has_accounting == has_accounting


@pytest.mark.component("slurm")
def test_a_real_one_is_of_the_version_that_its_commands_say(tmp_path: Path) -> None:
    ground = Ground("", Path(os.environ["JOBMAN_LAB_SLURM_CONF"]), tmp_path)
    try:
        ground.submit('- {name: work, command: ["true"]}', hold=True)
        kept = recall(tmp_path / "jobs", ground.environment["SLURM_CONF"])
        assert kept is not None
        assert kept.version
        assert ground.slurm("sbatch", "--version").endswith(f" {kept.version}")
        assert (kept.is_too_old, kept.has_accounting) == (False, False)
        assert [job.held for job in ground.client.jobs()] == [True]
    finally:
        ground.end()


# -- who may be submitted to --------------------------------------------------------------------------------


def test_one_that_is_too_old_is_refused_and_nothing_is_left_behind(stand: Stand) -> None:
    stand.is_of("20.02.7")
    with pytest.raises(Refused) as told:
        stand.submit()
    assert (told.value.code, told.value.exit_code) == ("cannot", 4)
    assert str(told.value) == "slurm: version 20.02.7 is too old; jobman needs 20.11.3 or later"
    assert told.value.failure.advice == "ask whoever runs the cluster, or choose another engine"
    assert stand.called("sbatch") == 0
    assert not [place for place in (stand.folder / "jobs").iterdir() if place.is_dir()]


def test_it_is_asked_once_and_others_need_not_ask_again(stand: Stand) -> None:
    for number in range(3):
        assert stand.submit(f"key {number}").jobs
    assert (stand.called("scontrol"), stand.called("sbatch")) == (1, 3)


def test_one_that_was_too_old_may_be_new_by_now(stand: Stand) -> None:
    stand.is_of("20.02.7")
    with pytest.raises(Refused):
        stand.submit()
    stand.is_of("24.05.4")
    assert stand.submit().jobs


def test_one_that_does_not_say_is_not_refused(stand: Stand) -> None:
    stand.command("scontrol", "echo 'Access denied' >&2; exit 1")
    assert stand.submit().jobs
    assert not (stand.folder / "jobs" / ".clusters.json").exists()


def test_what_is_remembered_is_of_one_cluster_and_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Cluster(version="22.05.8", has_accounting=True)
    remember(tmp_path, "/etc/one.conf", told)
    remember(tmp_path, "", Cluster(version="24.11.1"))
    assert recall(tmp_path, "/etc/one.conf") == told
    assert recall(tmp_path, "/etc/other.conf") is None
    monkeypatch.setattr(cluster, "_FRESH", 0.0)
    assert recall(tmp_path, "/etc/one.conf") is None


def test_what_is_remembered_may_be_broken(tmp_path: Path) -> None:
    (tmp_path / ".clusters.json").write_text("{")
    assert recall(tmp_path, "") is None
    remember(tmp_path, "", Cluster(version="22.05.8"))
    assert recall(tmp_path, "") == Cluster(version="22.05.8")


# -- steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "cores"),
    [
        ("{type: node, count: 2}", ""),
        ("{type: node, count: 2, exclusive: true, with: [{type: core, count: 3}]}", "3"),
    ],
)
def test_steps_of_whole_nodes_have_all_of_them_in_every_version(
    tmp_path: Path, shape: str, cores: str
) -> None:
    """Before 22.05, and again from 23.11 on, srun takes the cores of the job for those of a step."""
    stand = Stand(tmp_path)
    does = f'echo "${{SLURM_CPUS_PER_TASK-none}} ${{SRUN_CPUS_PER_TASK-none}}" >{tmp_path}/seen'
    copies = 'for SLURM_PROCID in 0 1; do SLURM_PROCID=$SLURM_PROCID SLURM_STEP_ID=0 "$@" || exit; done'
    stand.command("srun", f"{does}\nwhile [[ $1 == --* ]]; do shift; done\n{copies}")
    plan = plan_of(f"- {{name: t, command: [env], resources: {shape}}}")
    (script,) = scripts_of(plan, tmp_path)
    job = {"SLURM_CPUS_PER_TASK": "3", "SRUN_CPUS_PER_TASK": "3", "SLURM_JOB_ID": "7"}
    run_script(script, tmp_path, {**stand.environment, **job})
    assert (tmp_path / "seen").read_text() == "none none\n"
    options = (tmp_path / "calls").read_text().partition(" bash -c ")[0].split()
    assert not {"--exact", "--cpus-per-task"} & {word.partition("=")[0] for word in options}
    found = (tmp_path / "out" / "t.0" / "1" / "0.out").read_text().splitlines()
    own = [line.partition("=")[2] for line in found if line.startswith("SLURM_CPUS_PER_TASK=")]
    assert own == ([cores] if cores else [])
