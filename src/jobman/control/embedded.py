"""The service of a user, found or started by whichever command needs it first.

The service holds a lock on `service.pid` for its life, so a pid or a socket that was left behind is known for
what it is. Commands that start one take turns by `service.lock`: any number of them start one service.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from jobman.control.places import Places, find_places
from jobman.version import __version__

START_SECONDS = 60.0
READY = b"ready"
READY_FD = 3
SERVING = ("-m", "jobman.control.serving")
"""What the interpreter is asked to run."""
_LAST_LINES = 12
_STOP = b"POST /v1/stop?force=true&restart=true HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


class Unreachable(Exception):
    """There is no service to ask, and why."""

    exit_code = 5

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class Running(msgspec.Struct, kw_only=True):
    """What a service writes about itself into `service.pid`."""

    pid: int
    socket: str = ""
    """Empty for a shared service."""
    listen: str = ""
    version: str = __version__
    prefix: str = sys.prefix
    host: str = os.uname().nodename

    @property
    def is_outdated(self) -> bool:
        """Whether this program replaces it: it was upgraded in place, or is newer than one from elsewhere."""
        if self.version == __version__:
            return False
        return self.prefix == sys.prefix or _age(self.version) < _age(__version__)


def ensure_service(places: Places | None = None, program: Sequence[str] = SERVING) -> str:
    """The socket of this user's service, which is started if there is none."""
    places = places or find_places()
    running = read_running(places)
    if answers(places, running) and not _is_outdated(running):
        return _socket_of(places, running)
    try:
        places.make()
        with _turn(places.lock):
            return _start_unless_there(places, program)
    except OSError as error:
        raise Unreachable(
            f"The service cannot be started: {_in_words(error)}.",
            "Make that folder writable for you, or name another one in JOBMAN_STATE.",
        ) from error


def read_running(places: Places) -> Running | None:
    """What the last service wrote about itself; it may be gone."""
    try:
        return msgspec.json.decode(places.pid.read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None


def answers(places: Places, running: Running | None) -> bool:
    """Whether somebody listens at its socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(_socket_of(places, running))
        except OSError:
            return False
    return True


def is_alive(places: Places) -> bool:
    """Whether a service lives, listening or not."""
    try:
        descriptor = os.open(places.pid, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def wait_until_gone(places: Places, seconds: float = 30.0) -> bool:
    """Wait for the end of a service that was asked to stop."""
    deadline = time.monotonic() + seconds
    while is_alive(places):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def take_pid_file(places: Places, seconds: float) -> int | None:
    """Take the lock of a service's life, waiting for one that is stopping; None if it does not stop."""
    descriptor = os.open(places.pid, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                return None
            time.sleep(0.01)
        else:
            return descriptor


def write_running(descriptor: int, running: Running | None) -> None:
    """Say in the pid file who the service is, or that it has left."""
    os.ftruncate(descriptor, 0)
    if running is not None:
        os.pwrite(descriptor, msgspec.json.encode(running), 0)


# -- starting ------------------------------------------------------------------------------------------


def _start_unless_there(places: Places, program: Sequence[str]) -> str:
    if _listens(places):
        running = read_running(places)
        if not _is_outdated(running):
            return _socket_of(places, running)
        _ask_to_stop(_socket_of(places, running))
    _start(places, program)
    return _socket_of(places, read_running(places))


def _listens(places: Places) -> bool:
    """Whether there is a service to speak to; one that is just starting or stopping is waited for."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        running = read_running(places)
        if answers(places, running):
            return True
        if not is_alive(places):
            return False
        if running is not None:
            _refuse_foreign(places, running)
        if time.monotonic() > deadline:
            who = "" if running is None else f" (process {running.pid})"
            raise Unreachable(
                f"The service{who} lives, but does not listen.",
                f"Look into {places.log}, and end the process.",
            )
        time.sleep(0.01)


def _refuse_foreign(places: Places, running: Running) -> None:
    if running.listen:
        raise Unreachable(
            f"{places.state} belongs to the shared service at {running.listen}.",
            f"Say JOBMAN_SERVER={running.listen}, or name another folder in JOBMAN_STATE.",
        )
    if running.host != os.uname().nodename:
        raise Unreachable(
            f"The service of {places.state} runs on {running.host}, and this is {os.uname().nodename}.",
            "Work there, or name a folder of this machine in JOBMAN_STATE.",
        )


def _ask_to_stop(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.settimeout(10)
        connection.connect(path)
        connection.sendall(_STOP)
        connection.recv(4096)


def _start(places: Places, program: Sequence[str]) -> None:
    log = os.open(places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    before = os.fstat(log).st_size
    ready, notify = os.pipe()
    try:
        # The service forks once more and is on its own, so this child ends at once.
        os.waitpid(_spawn(places, program, log, notify), 0)
    finally:
        os.close(log)
        os.close(notify)
    try:
        word = _await_word(ready)
    finally:
        os.close(ready)
    if word is None:
        raise Unreachable(
            f"The service was started, but is not ready after {START_SECONDS:.0f} s.",
            f"Look into {places.log}.",
        )
    if not word.startswith(READY):
        raise Unreachable("The service could not start.", _last_lines(places.log, before))


def _spawn(places: Places, program: Sequence[str], log: int, notify: int) -> int:
    import signal

    # -P keeps modules in the folder of the caller from being taken for those of Python.
    command = [sys.executable, "-P", *program, "--embedded"]
    command += ["--state", str(places.state), "--socket", str(places.socket)]
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        return os.posix_spawn(
            sys.executable,
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, notify, READY_FD),
            ],
            # A command in the background of a script ignores Ctrl-C; the jobs of the service must not.
            setsigmask=[],
            setsigdef=[signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD],
        )
    finally:
        os.close(null)


_NOT_PASSED_ON = frozenset(("JOBMAN_TOKEN", "JOBMAN_SERVER"))


def _await_word(ready: int) -> bytes | None:
    """What the service says when it listens; empty if it ended before, None if it takes too long."""
    poll = select.poll()
    poll.register(ready, select.POLLIN)
    if not poll.poll(START_SECONDS * 1000):
        return None
    return os.read(ready, 64)


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_outdated(running: Running | None) -> bool:
    return running is not None and running.is_outdated


def _socket_of(places: Places, running: Running | None) -> str:
    # A login session and a cron job of one user may differ in XDG_RUNTIME_DIR, but not in the service.
    return running.socket if running is not None else str(places.socket)


def _age(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _last_lines(log: Path, start: int) -> str:
    try:
        text = log.read_bytes()[start:].decode(errors="replace").rstrip()
    except OSError:
        text = ""
    if not text:
        return f"It left no word in {log}."
    lines = text.splitlines()[-_LAST_LINES:]
    return "\n".join([f"The end of {log}:", *(f"  {line}" for line in lines)])


def _in_words(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
