"""`jobman connect`: into the folder and the environment of a running copy."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from jobman.control.answers import Copy
from tests.cli.forwards import forwarding
from tests.cli.stub import make_job


@pytest.fixture
def sleeper(tmp_path):
    """A process like a running copy, with a folder and an environment of its own."""
    folder = tmp_path / "copy"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "JOBMAN_TASK": "train", "TERM": "theirs"},
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def job(service, sleeper, tmp_path):
    found = service.add(make_job("sweep", identity="0f3a"))
    found.copies = [Copy(replica="train.0", attempt=1, copy=0, pid=sleeper.pid, cwd=str(tmp_path / "copy"))]
    return found


def answer(listener):
    """Say once what is said, louder."""
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(100):
            connection.sendall(data.upper())


def test_a_command_runs_where_the_copy_runs(real_jobman, job, tmp_path):
    answer = real_jobman(
        "connect", "sweep", "--", "sh", "-c", "pwd; echo $JOBMAN_TASK; echo $TERM", TERM="ours"
    )
    assert (answer.code, answer.out) == (0, f"{tmp_path}/copy\ntrain\nours\n")
    assert answer.err == ""


def test_without_a_command_it_is_the_users_shell(real_jobman, job, tmp_path):
    answer = real_jobman("connect", "-j", "sweep", stdin="pwd\nexit 7\n", SHELL="/bin/sh")
    assert (answer.code, answer.out) == (7, f"{tmp_path}/copy\n")
    assert "this is train.0/0" in answer.err


def test_of_several_copies_one_must_be_chosen(real_jobman, job):
    job.copies.append(Copy(replica="train.1", attempt=1, copy=0, pid=1, cwd="/"))
    answer = real_jobman("connect", "sweep")
    assert (answer.code, answer.out) == (2, "")
    assert "train.0/0, train.1/0" in answer.err
    assert real_jobman("connect", "sweep", "--replica", "0", "--", "true").code == 0
    assert real_jobman("connect", "sweep", "--replica", "train.0", "--copy", "0", "--", "true").code == 0


def test_a_copy_that_does_not_run_is_told(real_jobman, job):
    answer = real_jobman("connect", "sweep", "--replica", "5")
    assert answer.code == 1
    assert "running: train.0/0" in answer.err


def test_a_job_of_which_nothing_runs_is_told(real_jobman, job):
    job.copies = []
    answer = real_jobman("connect", "sweep")
    assert answer.code == 1
    assert "no copy of sweep runs now" in answer.err


def test_a_process_that_is_gone_is_told(real_jobman, job):
    job.copies[0].pid = 2**22 + 1
    answer = real_jobman("connect", "sweep")
    assert answer.code == 6
    assert "cannot look into train.0" in answer.err


def test_a_program_that_is_not_there_is_told(real_jobman, job):
    answer = real_jobman("connect", "sweep", "--", "no-such-program")
    assert answer.code == 4
    assert "cannot run no-such-program" in answer.err


@pytest.mark.parametrize(
    ("container", "wanted"),
    [
        ("box", ["podman", "exec", "-i", "box", "ls"]),
        ("docker:box", ["docker", "exec", "-i", "box", "ls"]),
    ],
)
def test_a_container_is_entered_by_its_runtime(real_jobman, job, tmp_path, container, wanted):
    program = tmp_path / "bin" / wanted[0]
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$(basename $0)" "$@"\n')
    program.chmod(0o755)
    job.copies[0].container = container
    answer = real_jobman("connect", "sweep", "--", "ls", PATH=f"{program.parent}:{os.environ['PATH']}")
    assert answer.out.split() == wanted


def test_a_port_here_leads_to_the_port_of_a_copy(job):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        there = listener.getsockname()[1]
        with (
            forwarding("connect", "sweep", "--port", f"0:{there}") as here,
            socket.create_connection(here, 20) as connection,
        ):
            connection.sendall(b"hello")
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100) == b"HELLO"


def test_a_port_at_which_nobody_listens_is_told(job):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = listener.getsockname()[1]
    with forwarding("connect", "sweep", "--port", f"0:{nobody}") as here:
        with socket.create_connection(here, 20) as connection:
            assert connection.recv(100) == b""
        assert f"nobody listens at port {nobody}" in here.said()


def test_a_port_that_is_taken_here_is_told(real_jobman, job):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        result = real_jobman("connect", "sweep", "--port", f"{taken}:80")
    assert result.code == 4
    assert f"cannot listen at port {taken}" in result.err
    assert "LOCAL:PORT" in result.err


@pytest.mark.parametrize("text", ["", "x", "0", "70000", "80:", "1:2:3", "-1", "80:0"])
def test_what_is_no_port_is_told(jobman, service, text):
    result = jobman("connect", "sweep", "--port", text)
    assert result.code == 2
    assert "LOCAL:PORT" in result.err


def test_a_command_and_a_port_are_two_things(jobman, service):
    result = jobman("connect", "sweep", "--port", "80", "--", "ls")
    assert result.code == 2
    assert "connect twice" in result.err
