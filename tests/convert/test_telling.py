"""What a script finds in its environment, tried in real shells: outside Slurm, and with what Slurm sets."""

import subprocess

import pytest

from tests.convert.scripts import SRUN_INSIDE, part

JOBMAN = {
    "JOBMAN_JOB_ID": "0f3a91c2d4e5",
    "JOBMAN_ATTEMPT": "1",
    "JOBMAN_REPLICA": "2",
    "JOBMAN_RANK": "5",
    "JOBMAN_SIZE": "8",
    "JOBMAN_NODE_RANK": "1",
    "JOBMAN_NNODES": "2",
    "JOBMAN_NODELIST": "n1,n2",
}


@pytest.fixture
def run(tmp_path):
    """Run what a script became; returns the variables of Slurm that it has."""

    def run(*lines, body="env", more=(), shell=None, **options):
        command = part(*lines, body=body, **options)["command"]
        if shell:
            command = [shell, *command[1:]]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "JOBMAN_SCRATCH": str(tmp_path), **JOBMAN, **dict(more)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        pairs = (line.partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in pairs if name.startswith("SLURM")}

    return run


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_script_is_told_what_it_asked_for(run, tmp_path, shell):
    found = run("-J abc -N 1 -n 4 -c 2 --mem=1G -p debug", shell=shell)
    assert found["SLURM_JOB_ID"] == found["SLURM_JOBID"] == "0f3a91c2d4e5"
    assert (found["SLURM_NTASKS"], found["SLURM_NPROCS"], found["SLURM_CPUS_PER_TASK"]) == ("4", "4", "2")
    assert (found["SLURM_CPUS_ON_NODE"], found["SLURM_MEM_PER_NODE"]) == ("8", "1024")
    assert (found["SLURM_JOB_NAME"], found["SLURM_JOB_PARTITION"]) == ("abc", "debug")
    assert (found["SLURM_SUBMIT_DIR"], found["SLURM_JOB_NODELIST"]) == (str(tmp_path), "n1,n2")
    assert (found["SLURM_PROCID"], found["SLURM_RESTART_COUNT"]) == ("0", "0")


def test_what_was_not_asked_for_is_not_told(run):
    found = run("-n 2")
    assert [name for name in found if name.startswith(("SLURM_CPUS_PER", "SLURM_ARRAY", "SLURM_GPU"))] == []


def test_where_slurm_runs_it_what_slurm_says_holds(run):
    slurm = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "c[1-2]", "SLURM_PROCID": "3"}
    found = run("-n 2", more=slurm.items())
    assert {name: found[name] for name in slurm} == slurm


def test_the_numbers_of_one_node_are_those_of_the_script_on_slurm_too(run):
    found = run("-N 1 -n 4", more={"SLURM_JOB_ID": "17", "SLURM_NTASKS": "1"}.items())
    assert found["SLURM_NTASKS"] == "4"


def test_steps_inside_a_step_share_its_cores(run):
    slurm = {"SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0", "SLURM_CPU_BIND": "mask_cpu:0x1"}
    found = run("-N 1 -n 4", body=f"env\nexit\n{SRUN_INSIDE}", more=slurm.items())
    assert found["SLURM_OVERLAP"] == "1"
    assert {"SLURM_STEP_ID", "SLURM_CPU_BIND"} & set(found) == set()


@pytest.mark.parametrize(
    ("array", "replica", "number"),
    [
        ("0-9", 2, 2),
        ("5-9", 2, 7),
        ("0-20:5", 2, 10),
        ("1,3,7", 2, 7),
        ("1,3,7", 0, 1),
        ("1-3,10-30:10", 4, 20),
    ],
)
def test_a_replica_has_the_number_of_the_array(run, array, replica, number):
    found = run(f"-a {array}", more=[("JOBMAN_REPLICA", str(replica)), ("SLURM_ARRAY_TASK_ID", "99")])
    assert found["SLURM_ARRAY_TASK_ID"] == str(number)


def test_an_array_tells_its_bounds(run):
    found = run("-a 1-7:3,20")
    told = {name.removeprefix("SLURM_ARRAY_"): value for name, value in found.items() if "ARRAY" in name}
    assert told == {
        "JOB_ID": "0f3a91c2d4e5",
        "TASK_COUNT": "4",
        "TASK_ID": "7",
        "TASK_MAX": "20",
        "TASK_MIN": "1",
        "TASK_STEP": "1",
    }


def test_a_copy_knows_its_rank(run):
    found = run("-N 2 -n 8", body="srun env")
    assert (found["SLURM_PROCID"], found["SLURM_NTASKS"]) == ("5", "8")
    assert (found["SLURM_NODEID"], found["SLURM_LOCALID"], found["SLURM_NNODES"]) == ("1", "1", "2")


def test_the_folder_of_submission_is_told_where_it_is_known(run, tmp_path):
    assert run("-D /", submit_dir="/home/ada")["SLURM_SUBMIT_DIR"] == "/home/ada"
    assert "SLURM_SUBMIT_DIR" not in run("-D /")


def test_output_goes_to_the_file_of_the_jobs_number(run, tmp_path):
    run("-o 'out of %j_%a.txt' -a 5-7", body="echo here; echo there >&2")
    assert (tmp_path / "out of 0f3a91c2d4e5_7.txt").read_text() == "here\nthere\n"


def test_input_comes_from_a_file(run, tmp_path):
    (tmp_path / "in.txt").write_text("SLURM_IN=here\n")
    assert run("-i in.txt", body="cat")["SLURM_IN"] == "here"
