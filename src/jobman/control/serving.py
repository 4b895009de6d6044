"""Serving: the process of a service, from its start to its end.

`python -m jobman.control.serving --embedded …` is a user's own service, on a Unix socket and in the
background; `serve` is a shared one, on TCP and in the foreground. Heavy imports wait until they are needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobman.control.background import detach, idle_seconds, say_ready
from jobman.control.embedded import Running, read_running, take_pid_file, write_running
from jobman.control.places import Places, find_places
from jobman.garbage import collector_paused

if TYPE_CHECKING:
    from jobman.control.director import Director
    from jobman.control.leading import LeaseOptions

_TAKE_OVER_SECONDS = 30.0
_USAGE, _UNREACHABLE = 2, 5


class ServeOptions(NamedTuple):
    """How a service is run. Without `listen` it is a user's own, on the socket of its places."""

    places: Places
    listen: str | None = None
    """HOST:PORT."""
    database: str | None = None
    """A URL; a file in the state folder by default."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    """Whether to listen to other machines without TLS."""
    idle: float | None = None
    """Stop after so many seconds without work and connections."""
    engine: str = "local"
    """Who runs what is placed: local or kubernetes."""
    kubeconfig: Path | None = None
    """Where the cluster is, and that of the lease; by default as kubectl finds it."""
    context: str | None = None
    """Of the kubeconfig; the current one by default."""
    namespace: str | None = None
    """Where the objects of jobs are; that of the context by default."""
    lease: LeaseOptions | None = None
    """Wait for a Lease before anything is done, so that several servers can run and one leads."""
    guard: Callable[[], None] | None = None
    """Raises where another server may lead: whoever acts on a cluster asks it right before each act."""

    @property
    def mode(self) -> str:
        return "embedded" if self.listen is None else "shared"


Build = Callable[[ServeOptions], Awaitable["Director"]]


async def build_usual(options: ServeOptions) -> Director:
    """The director as it is built outside of tests."""
    from jobman.control.building import build_director

    return await build_director(options)


def serve(options: ServeOptions, build: Build = build_usual) -> int:
    """Run a shared service until it is stopped; returns the exit code."""
    from jobman.control.listening import Unsafe, check_safety

    try:
        check_safety(options)
    except Unsafe as error:
        return _complain(error.message, error.advice, _USAGE)
    try:
        options.places.make()
        if options.lease is not None:
            return _with_lease(options, build)
        return _with_pid_file(options, build)
    except OSError as error:
        return _complain(f"The service cannot start: {error}.", "", _UNREACHABLE)


def run_embedded(places: Places, build: Build = build_usual) -> int:
    """Run a user's own service in the background until it is stopped or has nothing to do."""
    if not detach():
        return 0
    with collector_paused():
        options = ServeOptions(places, idle=idle_seconds(os.environ.get("JOBMAN_IDLE")))
        return _with_pid_file(options, build)


def _with_pid_file(options: ServeOptions, build: Build) -> int:
    descriptor = take_pid_file(options.places, _TAKE_OVER_SECONDS if options.listen is None else 2.0)
    if descriptor is None:
        other = read_running(options.places)
        who = "Another service" if other is None else f"Another service (process {other.pid})"
        return _complain(f"{who} is using {options.places.state}.", "Stop it first.", _UNREACHABLE)
    try:
        from jobman.control.running import run

        return run(options, build, lambda listen: _announce(options, descriptor, listen))
    finally:
        write_running(descriptor, None)
        os.close(descriptor)


def _with_lease(options: ServeOptions, build: Build) -> int:
    """The Lease is what keeps two servers apart: their folder may be one that both mount."""
    from jobman.control.running import run

    return run(options, build, lambda _listen: None)


def _announce(options: ServeOptions, descriptor: int, listen: str) -> None:
    """Say that the service listens: to commands that look for one, and to the one that waits for it."""
    path = str(options.places.socket) if options.listen is None else ""
    write_running(descriptor, Running(pid=os.getpid(), socket=path, listen=listen))
    if options.listen is None:
        say_ready()


def _complain(message: str, advice: str, code: int) -> int:
    print("\n".join(filter(None, (message, advice))), file=sys.stderr, flush=True)
    return code


def main(arguments: Sequence[str], build: Build = build_usual) -> int:
    """The entry of a user's own service; commands start it, not people."""
    if list(arguments[:1]) != ["--embedded"] or len(arguments) % 2 == 0:
        return _complain("jobman starts this itself.", "jobman server starts a shared service.", _USAGE)
    given = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    places = find_places()
    if "--state" in given:
        socket = Path(given["--socket"]) if "--socket" in given else None
        places = Places(Path(given["--state"]), socket)
    return run_embedded(places, build)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
