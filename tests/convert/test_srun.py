"""The stand-in for srun, tried in a real shell."""

import signal
import subprocess
from importlib import resources

import pytest

SHIM = resources.files("jobman.convert").joinpath("srun.sh").read_text("utf-8")


@pytest.fixture(params=["dash", "bash"])
def srun(request, tmp_path):
    program = tmp_path / "srun"
    program.write_text(SHIM)

    def run(*arguments, stdin="", **environment):
        return subprocess.run(
            [request.param, str(program), *arguments],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "SLURM_NTASKS": "3", **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def lines(done):
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


ECHO = ("sh", "-c", 'echo "$SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID $1"', "sh", "a b")


def test_it_starts_as_many_copies_as_the_job_has_tasks(srun):
    assert lines(srun(*ECHO)) == ["0/3 0 a b", "1/3 1 a b", "2/3 2 a b"]


@pytest.mark.parametrize(
    "options",
    [("-n2",), ("-n", "2"), ("--ntasks=2",), ("--ntasks", "2"), ("-N1", "-c4", "--mpi=none", "-n2", "--")],
)
def test_or_as_many_as_it_is_told(srun, options):
    assert lines(srun(*options, *ECHO)) == ["0/2 0 a b", "1/2 1 a b"]


def test_one_copy_reads_what_it_is_given(srun):
    assert srun("-n1", "cat", stdin="hello").stdout == "hello"


def test_the_worst_code_is_the_steps(srun):
    assert srun("sh", "-c", "exit $SLURM_PROCID").returncode == 2
    assert srun("-l", "sh", "-c", "exit $SLURM_PROCID").returncode == 2
    assert srun("-n1", "sh", "-c", "exit 7").returncode == 7


def test_labels_tell_copies_apart(srun):
    assert lines(srun("--label", "-n", "2", "echo", "hi")) == ["0: hi", "1: hi"]


def test_every_copy_may_have_a_file_of_its_own(srun, tmp_path):
    assert lines(srun("-n2", "-o", "out.%t", "echo", "hi")) == []
    assert [(tmp_path / f"out.{rank}").read_text() for rank in range(2)] == ["hi\n", "hi\n"]


def test_it_goes_to_a_folder(srun, tmp_path):
    (tmp_path / "inside").mkdir()
    assert lines(srun("-n1", "-D", "inside", "pwd")) == [str(tmp_path / "inside")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--input=file", "true"),
        ("--export=NONE", "true"),
        (),
        ("--multi-prog", "x"),
        ("-n", "x", "true"),
        ("--wat", "true"),
        ("-n",),
    ],
)
def test_what_it_cannot_do_it_refuses(srun, arguments):
    done = srun(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("srun: ")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_stop_reaches_the_copies(tmp_path, shell):
    program = tmp_path / "srun"
    program.write_text(SHIM)
    copy = "trap 'echo stopped; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [shell, str(program), "-n2", "sh", "-c", copy], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "stopped\nstopped\n"
        assert process.wait(60) == 3
