"""The scripts of examples/slurm run on a laptop, with arguments and exit codes as on a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.convert.scripts import NOW, complaints, convert
from tests.examples.laptop import Laptop
from tests.examples.test_examples import EXAMPLES

SCRIPTS = sorted((EXAMPLES / "slurm").glob("*.sh"))
slow = pytest.mark.slow


class Run(NamedTuple):
    """How a script is submitted, and what is in its log."""

    script: str
    out: tuple[str, ...]
    arguments: tuple[str, ...] = ()


RUNS = [
    Run(
        "serial.sh",
        (
            "serial has 2 cores and the arguments: a b c",
            *(f"step {number} of {{folder}}" for number in (1, 2, 3)),
        ),
        ("a b", "c"),
    ),
    Run(
        "array.sh",
        tuple(f"array.{n} │ number {number} of 4, from 1 to 10" for n, number in enumerate((1, 3, 5, 10))),
    ),
    Run("steps.sh", ("rank 0 of 2 prepares", "rank 1 of 2 prepares", "1 copy cleans up")),
    Run("copies.sh", tuple(f"copies.0/{rank} │ hello from rank {rank} of 2" for rank in (0, 1))),
]


def test_every_script_is_run():
    assert [path.name for path in SCRIPTS] == sorted(run.script for run in RUNS)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_nothing_that_cannot_be_carried_over(path):
    found = convert(path.name, path.read_text(encoding="utf-8"), NOW)
    assert (found.problems, complaints(found)) == ([], [])


@slow
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.script)
def test_a_script_does_what_it_shows(run: Run, laptop: Laptop, tmp_path: Path):
    script = str(EXAMPLES / "slurm" / run.script)
    answer = laptop.jobman("sbatch", "--wait", "--parsable", script, *run.arguments, cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    log = laptop.jobman("logs", answer.out.strip(), cwd=tmp_path)
    assert sorted(log.out.splitlines()) == sorted(line.format(folder=tmp_path.name) for line in run.out)
    assert list(tmp_path.iterdir()) == []


@slow
def test_the_exit_code_is_that_of_the_script(laptop: Laptop, tmp_path: Path):
    assert laptop.jobman("sbatch", "-W", "--wrap", "exit 5", cwd=tmp_path).code == 5


@slow
def test_several_nodes_run_a_script_that_leads_them(laptop: Laptop, tmp_path: Path):
    script = tmp_path / "lead.sh"
    script.write_text(
        "#!/bin/sh\nsrun sh -c 'echo \"$SLURM_PROCID of $SLURM_NTASKS\" >> out'\nsort out\nrm out\n"
    )
    options = ("--virtual", "2x1", "-N2", "--parsable", "-W")
    answer = laptop.jobman("sbatch", *options, "lead.sh", cwd=tmp_path)
    assert answer.code == 0
    assert "JC205: `-N 2`" not in answer.err
    assert "JC205" in answer.err
    log = laptop.jobman("logs", answer.out.strip(), cwd=tmp_path)
    assert [line.rpartition("│ ")[2] for line in log.out.splitlines()] == ["0 of 2", "1 of 2"]


@slow
def test_copies_spread_over_nodes(laptop: Laptop, tmp_path: Path):
    (tmp_path / "wide.sh").write_text(
        "#!/bin/bash\nsrun bash -c 'echo $SLURM_NODEID:$SLURM_PROCID:$SLURM_LOCALID'\n"
    )
    options = ("--virtual", "2x2", "-N2", "--ntasks-per-node=2", "--parsable", "-W")
    answer = laptop.jobman("sbatch", *options, "wide.sh", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    log = laptop.jobman("logs", answer.out.strip(), cwd=tmp_path)
    found = sorted(line.rpartition("│ ")[2] for line in log.out.splitlines())
    assert found == ["0:0:0", "0:1:1", "1:2:0", "1:3:1"]


@slow
def test_output_goes_to_the_file_that_sbatch_would_write(laptop: Laptop, tmp_path: Path):
    options = ("-o", "out-%x.txt", "-J", "abc", "-W", "--wrap", "echo here; echo there >&2")
    assert laptop.jobman("sbatch", *options, cwd=tmp_path).code == 0
    assert (tmp_path / "out-abc.txt").read_text() == "here\nthere\n"


# -- on the real Slurm --------------------------------------------------------------------------------------

LEAD = """\
#!/bin/bash
#SBATCH -J lead -N2 --ntasks-per-node=2 --mem-per-cpu=10M
srun bash -c 'echo "$SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"' > out
sort out
rm out
"""


@pytest.fixture
def on_slurm(laptop: Laptop, tmp_path: Path, monkeypatch):
    """Submit a script to Slurm and wait for its end; returns what it wrote."""

    def run(*words: str) -> list[str]:
        monkeypatch.setenv("SLURM_CONF", os.environ["JOBMAN_LAB_SLURM_CONF"])
        options = ("-e", "slurm", "sbatch", "--wait", "--parsable")
        answer = laptop.jobman(*options, *words, cwd=tmp_path)
        assert (answer.code, answer.err) == (0, "")
        return laptop.jobman("-e", "slurm", "logs", answer.out.strip(), cwd=tmp_path).out.splitlines()

    return run


@slow
@pytest.mark.component("slurm")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.script)
def test_a_script_does_the_same_through_jobman_on_slurm(run: Run, on_slurm, tmp_path: Path):
    found = on_slurm(str(EXAMPLES / "slurm" / run.script), *run.arguments)
    assert sorted(found) == sorted(line.format(folder=tmp_path.name) for line in run.out)


@slow
@pytest.mark.component("slurm")
def test_on_slurm_srun_reaches_all_nodes(on_slurm, tmp_path: Path):
    (tmp_path / "lead.sh").write_text(LEAD)
    found = [line.rpartition("│ ")[2].split(" on ") for line in on_slurm("lead.sh")]
    assert [rank for rank, _ in found] == [f"{rank} of 4" for rank in range(4)]
    assert len({node for _, node in found}) == 2


@slow
@pytest.mark.component("slurm")
def test_on_slurm_steps_may_share_what_a_script_has(on_slurm):
    found = on_slurm(
        "-N1", "-n2", "--mem=50M", "--wrap", "srun echo one; srun -n1 echo two; echo $SLURM_NTASKS"
    )
    assert found == ["one", "one", "two", "2"]
