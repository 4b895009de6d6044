"""Lines are read as the real sbatch reads them: what it tells of a held job is what we found."""

import re

import pytest

from jobman.convert.allocation import read_allocation
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch import merged
from jobman.convert.sbatch_lines import read_script
from jobman.convert.values import indexes_of, seconds_of
from tests.convert.scripts import converted, script
from tests.convert.slurm import slurm

pytestmark = pytest.mark.component("slurm")
LINES = [
    "--comment=a#b",
    '--comment="a#b c" # -n 4',
    r"--comment='a\'b' -n 3",
    r"--comment=a\#c\\d",
    r'--comment="a\ b"',
    "-N2-4",
    "--nodes 2-4 -n 3",
    "-N2 -n3",
    "-N3 -n1",
    "-n 5 --ntasks-per-node=2",
    "--ntasks-per-node=2 -N2",
    "--tasks-per-node=3",
    "-Hn4",
    "-c2 -N 1 --mem 2G",
    "--mem-per-cpu=512K",
    "--mem=100",
    '-t 1-2:3 -J"a b"',
    "--time=1-",
    "-t 90:00",
    "-t UNLIMITED",
    "-t 0",
    "--array=1-3,7%2",
    "--array=1-3,7%2,9",
    "--array=3,1,1",
    "--array=0-20:5",
]
WRONG = [
    "-n x",
    "--wat=3",
    "-J",
    "--ntask=4",
    '--comment "un',
    "-n 4 foo",
    r"--comment=a\ b",
    "--hold=yes",
    "--mem=4.5G",
    "--array=5-1",
    "-t 1h",
]


@pytest.fixture
def sbatch(tmp_path):
    def run(line):
        (tmp_path / "job.sh").write_text(script(line))
        return slurm("sbatch", "--hold", "--parsable", "--output=/dev/null", "job.sh", cwd=tmp_path)

    return run


def told(job):
    """What Slurm knows of a job, which is then gone."""
    shown = slurm("scontrol", "show", "job", job).stdout
    assert slurm("scancel", job).returncode == 0
    return dict(re.findall(r"(?:^|\s)([A-Z][\w/:]*)=((?:(?!\s[A-Z][\w/:]*=).)*)", shown, re.MULTILINE))


def limit_of(text):
    return None if text == "UNLIMITED" else seconds_of(text)


@pytest.mark.parametrize("line", LINES)
def test_slurm_understands_the_same(sbatch, line):
    done = sbatch(line)
    assert done.returncode == 0, done.stderr
    job = told(done.stdout.strip())
    remarks = Remarks()
    given = merged(read_script("job.sh", script(line), remarks).parts[0])
    allocation = read_allocation(given, remarks, lambda one: None)
    assert not remarks.have_errors()

    assert int(job["NumTasks"]) == allocation.tasks
    assert int(job["CPUs/Task"]) == (allocation.cpus_per_task or 1)
    if allocation.nodes is not None:
        assert int(job["NumNodes"].split("-")[0]) == allocation.node_count
    assert job.get("Comment", "").strip() == (given["comment"].value if "comment" in given else "")
    assert job["JobName"].strip() == (given["job-name"].value if "job-name" in given else "job.sh")
    assert limit_of(job["TimeLimit"]) == (seconds_of(given["time"].value or "") if "time" in given else None)
    if "array" in given:
        found = indexes_of(given["array"].value or "")
        assert indexes_of(job["ArrayTaskId"]) == found
    for key, size in (("MinMemoryNode", allocation.mem), ("MinMemoryCPU", allocation.mem_per_cpu)):
        if size is not None:
            assert job[key] == {2048: "2G"}.get(size, f"{size}M")


@pytest.mark.parametrize("line", WRONG)
def test_slurm_refuses_the_same(sbatch, line):
    done = sbatch(line)
    if done.stdout.strip():
        told(done.stdout.strip())
    assert (done.returncode != 0, converted(line).ok) == (True, False)
