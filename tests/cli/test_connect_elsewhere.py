"""`jobman connect` into copies that run elsewhere: through a service, from a pipe and from a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.cli.forwards import forwarding
from tests.control.api.passages import COPY
from tests.control.api.world import World, until

DEADLINE = 30.0


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A shared service, and a job `train` that runs on a cluster."""
    with World(tmp_path, shared=True, tcp=True) as made:
        monkeypatch.setenv("JOBMAN_SERVER", made.url)
        monkeypatch.setenv("JOBMAN_TOKEN", made.admin)
        job = made.submit()
        made.let(made.director.begin, job)
        monkeypatch.setattr(made.director, "copies", lambda _job: [msgspec.to_builtins(COPY)])
        yield made


class Terminal:
    """A terminal of our own, in which a command runs."""

    def __init__(self, *words: str, rows: int = 30, columns: int = 90) -> None:
        self._ours, self.theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.shown = b""
        command = [sys.executable, "-m", "jobman.cli.main", *words]
        self.process = subprocess.Popen(
            command,
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def until_it_shows(self, text: bytes) -> None:
        deadline = time.monotonic() + DEADLINE
        while text not in self.shown:
            assert select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0], self.shown
            self.shown += os.read(self._ours, 4096)

    @property
    def echoes(self) -> bool:
        """Whether it shows what is typed by itself."""
        return bool(termios.tcgetattr(self.theirs)[3] & termios.ECHO)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self.theirs)


def test_input_output_and_the_exit_code_pass_through(real_jobman, world) -> None:
    answer = real_jobman("connect", "train", "--", "cat", stdin="one\ntwo\n")
    assert (answer.code, answer.out, answer.err) == (0, "one\ntwo\n", "")
    answer = real_jobman("connect", "train", "--", "fail")
    assert (answer.code, answer.out, answer.err) == (3, "", "no\n")


def test_what_goes_wrong_inside_is_told(real_jobman, world) -> None:
    answer = real_jobman("connect", "train", "--", "break")
    assert (answer.code, answer.err) == (4, "jobman: main.0/0: the cluster has gone\n")
    answer = real_jobman("connect", "train", "--", "unreachable")
    assert answer.code == 5
    assert "The cluster cannot be reached." in answer.err


def test_who_hears_no_more_ends_it(real_jobman, world) -> None:
    command = [sys.executable, "-m", "jobman.cli.main", "connect", "train", "--", "flood"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.read(1000) == bytes(1000)
        process.stdout.close()
        assert process.wait(DEADLINE) == 141
    (inside,) = world.director.host.opened
    until(lambda: inside.is_closed)


@pytest.mark.slow
def test_a_terminal_is_lent_key_by_key_and_given_back_as_it_was(world) -> None:
    terminal = Terminal("connect", "train")
    try:
        terminal.until_it_shows(b"this is main.0/0")
        until(lambda: not terminal.echoes)
        terminal.type(b"\x03")
        terminal.until_it_shows(b"\x03")  # Ctrl-C came there, and back
        (inside,) = world.director.host.opened
        assert inside.sizes == [(30, 90)]
        terminal.resize(40, 120)
        until(lambda: inside.sizes[-1] == (40, 120))
        terminal.type(b"\x04")
        assert terminal.process.wait(DEADLINE) == 0
        assert termios.tcgetattr(terminal.theirs) == terminal.before
    finally:
        terminal.close()


@pytest.mark.slow
def test_a_terminal_is_given_back_when_the_copy_ends(world) -> None:
    terminal = Terminal("connect", "train")
    try:
        terminal.until_it_shows(b"this is main.0/0")
        until(lambda: world.director.host.opened)
        world.let(world.director.finish, next(iter(world.director.live)))
        terminal.until_it_shows(b"main.0/0: the copy has ended")
        assert terminal.process.wait(DEADLINE) == 4
        assert termios.tcgetattr(terminal.theirs) == terminal.before
    finally:
        terminal.close()


def test_a_port_here_leads_to_a_port_there(world) -> None:
    with forwarding("connect", "train", "--port", "0:80") as here:
        for _ in range(2):
            with socket.create_connection(here, 20) as connection:
                connection.sendall(b"hello")
                assert connection.recv(100) == b"hello"
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100) == b""
