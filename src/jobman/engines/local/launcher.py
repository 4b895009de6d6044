"""The launcher: a small process that forks a shim for every copy and outlives the service that asks it to.

`python -m jobman.engines.local.launcher --socket PATH [--linger SECONDS]`
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import os
import selectors
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from jobman.engines.local import records
from jobman.engines.local.clients import Client, Clients
from jobman.engines.local.kernel import become_subreaper, name_process
from jobman.engines.local.orders import Order
from jobman.engines.local.records import Wanted
from jobman.engines.local.roster import Change, Charge, Roster
from jobman.engines.local.watch import NEWS, STOP
from jobman.engines.local.wire import EARLIER, LINGER, Answer, Named, Request, Status, decode_request, line
from jobman.version import __version__


class Launcher:
    """Clients on one side, copies on the other, and one loop around both."""

    def __init__(self, path: Path, linger: float) -> None:
        self._path = path
        self._linger = linger
        self._since = time.time()
        self._is_shut = False
        self._idle_since = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._notices, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._unfinished = b""
        self._selector.register(self._notices, selectors.EVENT_READ, lambda _: self._drain())
        self._signals = self._hear_signals()
        self._clients = Clients(path, self._selector, self._serve)
        self._roster = Roster(write_end, self._clients.say, self._watch, self._selector.unregister)

    def run(self) -> None:
        """Until nobody needs it any more."""
        while not self._is_over():
            pause = self._roster.fork_some()
            self._clients.flush()
            for key, events in self._selector.select(self._pause(pause)):
                if self._selector.get_map().get(key.fd) == key:  # not let go of by one before it
                    key.data(events)
        self._path.unlink(missing_ok=True)

    def _is_over(self) -> bool:
        if len(self._roster) or (len(self._clients) and not self._is_shut):
            self._idle_since = time.monotonic()
            return False
        return self._is_shut or time.monotonic() >= self._idle_since + self._linger

    def _pause(self, pause: float | None) -> float | None:
        if len(self._roster) or len(self._clients):
            return pause
        return max(0.0, self._idle_since + self._linger - time.monotonic())

    def _hear_signals(self) -> int:
        # What is ignored stays ignored in the copies, and somebody may have started us with nohup.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, {NEWS, STOP})
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        self._selector.register(read_end, selectors.EVENT_READ, lambda _: self._reap())
        return read_end

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._signals, 4096)
        self._roster.reap(self._drain)

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while content := os.read(self._notices, 1 << 16):
                *lines, self._unfinished = (self._unfinished + content).split(b"\n")
                for each in lines:
                    self._roster.notice(each + b"\n")

    def _watch(self, descriptor: int, charge: Charge) -> None:
        self._selector.register(
            descriptor, selectors.EVENT_READ, lambda _: self._roster.found_shim_ended(charge)
        )

    def _serve(self, content: bytes, client: Client) -> None:
        try:
            request = decode_request(content)
        except msgspec.MsgspecError as error:
            self._answer(client, Answer(error=f"not understood: {error}"))
            return
        try:
            self._carry_out(request, client)
        except OSError as error:
            self._answer(client, Answer(error=f"could not be done: {error}"))

    def _carry_out(self, request: Request, client: Client) -> None:
        for order in request.launch:
            self._take(order, client, may_start=not self._is_shut)
        for order in request.adopt:
            self._take(order, client, may_start=False)
        for id_, change in _changes(request):
            if not self._roster.want(id_, change):
                self._answer(client, Answer(unknown=Named(id_)))
        if request.known is not None:
            self._answer(client, Answer(known=self._roster.known(request.known)))
        if request.status:
            status = Status(os.getpid(), __version__, len(self._roster), self._since)
            self._answer(client, Answer(status=status))
        if request.shut:
            self._is_shut = not len(self._roster)
            self._answer(client, Answer(shut=self._is_shut))
            self._clients.flush()

    def _take(self, order: Order, client: Client, *, may_start: bool) -> None:
        if not self._roster.take(order, may_start=may_start):
            self._answer(client, Answer(unknown=Named(order.id)))

    def _answer(self, client: Client, answer: Answer) -> None:
        self._clients.say(line(answer), client)


def _changes(request: Request) -> list[tuple[str, Change]]:
    """What a request wants of which copies."""
    now = time.monotonic()

    def stop(wanted: Wanted, order: Order) -> None:
        wanted.stop(now, order.grace if request.grace is None else request.grace, request.why)

    asked: list[tuple[str | None, Change]] = [
        (request.stop, stop),
        (request.freeze, lambda wanted, _: wanted.freeze(now)),
        (request.thaw, lambda wanted, _: wanted.thaw(now)),
        (request.prolong, lambda wanted, _: wanted.prolong(request.duration)),
    ]
    return [(id_, change) for id_, change in asked if id_ is not None]


def hold_alone(path: Path) -> int | None:
    """Hold the lock beside a socket for as long as this process lives; None where another holds it."""
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def main(arguments: list[str] | None = None) -> int:
    """Serve until nobody needs it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="jobman-launcher", description="Runs copies for the jobman service."
    )
    parser.add_argument("--socket", type=Path, required=True, help="where to listen")
    parser.add_argument("--linger", type=float, default=LINGER, help="seconds to stay with nothing to do")
    options = parser.parse_args(arguments)
    path: Path = options.socket.absolute()
    lock = hold_alone(path)
    if lock is None:
        return EARLIER
    name_process("jobman-launcher")
    os.umask(0o077)
    os.chdir("/")
    become_subreaper()
    records.boot_id()
    launcher = Launcher(path, options.linger)
    # What is there now stays: the shims share its memory as long as nobody counts references in it.
    gc.collect()
    gc.freeze()
    _log(f"started, pid {os.getpid()}, version {__version__}")
    launcher.run()
    _log("nothing to do, ended")
    return 0


def _log(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} launcher: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
