"""An sbatch script becomes a pod of a real cluster; what a cluster does not know is told, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.commanding import Answer, Jobman, command_with, config_for
from tests.engines.kubernetes.cluster import a_namespace, image, kubeconfig, kubectl_json, on_a_real_cluster

pytestmark = [on_a_real_cluster, pytest.mark.slow]

TRAIN = """\
#!/bin/sh
#SBATCH --job-name=train
#SBATCH -N1 --ntasks=2 --cpus-per-task=1
#SBATCH --time=5
#SBATCH --output=/tmp/train.txt
echo "$SLURM_JOB_NAME of $1 has $SLURM_NTASKS tasks on $SLURM_NNODES node"
test -e /tmp/train.txt && echo "its output is in a file"
srun sh -c 'echo "rank $SLURM_PROCID of $SLURM_NTASKS"'
"""


@pytest.fixture
def namespace() -> Iterator[str]:
    with a_namespace() as name:
        yield name


@pytest.fixture
def jobman(namespace: str, tmp_path: Path) -> Jobman:
    return command_with(config_for(namespace, tmp_path, kubeconfig()), tmp_path)


def sbatch(jobman: Jobman, folder: Path, text: str, *arguments: str) -> Answer:
    """Submit a script, and wait for its end."""
    (folder / "script.sh").write_text(text)
    return jobman("sbatch", "--image", image(), "--wait", "--parsable", "script.sh", *arguments)


def test_a_script_runs_as_a_pod_that_has_what_its_lines_ask_for(
    jobman: Jobman, tmp_path: Path, namespace: str
) -> None:
    answer = sbatch(jobman, tmp_path, TRAIN, "nets")
    assert answer.code == 0, answer.err
    assert ": JC" not in answer.err
    job = answer.out.strip()
    details = jobman("details", job, "-o", "json").data
    assert (details["name"], details["state"]) == ("train", "succeeded")
    first, second, *ranks = jobman("logs", job).out.splitlines()
    assert (first, second) == ("train of nets has 2 tasks on 1 node", "its output is in a file")
    assert sorted(ranks) == ["rank 0 of 2", "rank 1 of 2"]
    (pod,) = kubectl_json("get", "pods", "-n", namespace, "-l", f"jobman.io/job={job}")["items"]
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["resources"]["requests"]["cpu"]) == (image(), "2")
    assert pod["spec"]["activeDeadlineSeconds"] == 300


def test_the_exit_code_is_that_of_the_script(jobman: Jobman, tmp_path: Path) -> None:
    assert sbatch(jobman, tmp_path, "#!/bin/sh\nexit 7\n").code == 7


def test_an_array_has_its_own_numbers(jobman: Jobman, tmp_path: Path) -> None:
    text = "#!/bin/sh\n#SBATCH -J many --array=2,5\necho $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT\n"
    answer = sbatch(jobman, tmp_path, text)
    assert (answer.code, ": JC" in answer.err) == (0, False), answer.err
    lines = jobman("logs", answer.out.strip()).out.splitlines()
    assert sorted(lines) == ["many.0 │ 2 of 2", "many.1 │ 5 of 2"]


def test_what_a_cluster_has_not_is_told_and_the_rest_runs(jobman: Jobman, tmp_path: Path) -> None:
    lines = ("--account=physics", "--partition=long", "--mail-type=END")
    text = "\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), "echo ran", ""])
    answer = sbatch(jobman, tmp_path, text)
    assert answer.code == 0, answer.err
    told = [line.split(": ")[:3] for line in answer.err.splitlines() if ": JC" in line]
    assert [(place, code) for place, code, _ in told] == [
        ("script.sh:2", "JC206"),
        ("script.sh:3", "JC206"),
        ("script.sh:4", "JC201"),
    ]
    assert jobman("logs", answer.out.strip()).out == "ran\n"
