"""This terminal, lent to a command that runs elsewhere: keys go there, what it writes comes here."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from jobman.client.sessions import Session

_AT_ONCE = 64 * 1024
_IN, _OUT, _ERR = 0, 1, 2
_BROKEN_PIPE = 128 + signal.SIGPIPE
_TERMINATED = 128 + signal.SIGTERM


def is_here() -> bool:
    """Whether keys come from a terminal and output goes to one."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def size() -> tuple[int, int]:
    """Rows and columns; 0 where nobody knows."""
    try:
        columns, rows = os.get_terminal_size(_OUT)
    except OSError:
        return 0, 0
    return rows, columns


def lend(session: Session, *, raw: bool) -> int | None:
    """Until the command ends: its exit code; None where `session.trouble` says why there is none.

    With `raw`, every key goes to the command, Ctrl-C too.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with _Feeder(session) as feeder, _raw(feeder) if raw else _plain():
        try:
            for stream, data in session.output():
                _write(_ERR if stream == "stderr" else _OUT, data)
        except BrokenPipeError:
            return _BROKEN_PIPE
        finally:
            session.close()
    return session.exit_code


def _write(where: int, data: bytes) -> None:
    while data:
        data = data[os.write(where, data) :]


class _Feeder:
    """Passes on what is typed, and the size of the window, in a thread of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ear, self._mouth = os.pipe()
        self._thread = threading.Thread(target=self._feed, name="jobman-keys", daemon=True)

    def __enter__(self) -> _Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # One that is stuck in a request holds up nobody: it ends with the process.
        os.write(self._mouth, b"q")
        self._thread.join(1.0)

    def resized(self, _signal: int, _frame: FrameType | None) -> None:
        os.write(self._mouth, b"r")

    def _feed(self) -> None:
        # What cannot be put in any more is told by the end of what comes out.
        with suppress(Exception):
            ears = [self._ear, _IN]
            if sys.stdin is None:  # something else may have this number by now
                ears.remove(_IN)
                self._session.end_input()
            while True:
                heard = select.select(ears, [], [])[0]
                if self._ear in heard:
                    if b"q" in os.read(self._ear, _AT_ONCE):
                        return
                    self._session.resize(*size())
                if _IN in heard and not self._pass_on():
                    ears.remove(_IN)

    def _pass_on(self) -> bool:
        """Whether there may be more."""
        data = os.read(_IN, _AT_ONCE)
        if data:
            self._session.write(data)
        else:
            self._session.end_input()
        return bool(data)


@contextmanager
def _raw(feeder: _Feeder) -> Iterator[None]:
    import termios
    import tty

    before = termios.tcgetattr(_IN)
    resized = signal.signal(signal.SIGWINCH, feeder.resized)
    terminated = signal.signal(signal.SIGTERM, _leave)
    try:
        tty.setraw(_IN, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(_IN, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, resized)
        signal.signal(signal.SIGTERM, terminated)


@contextmanager
def _plain() -> Iterator[None]:
    yield


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)
