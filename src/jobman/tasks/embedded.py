"""The broker of a user, found or started by whichever program needs it first.

It lives in the background in the folder `tasks` of the state, with workers on this machine, and ends when
nothing was to be done for a while. What it has accepted is on disk: the next one goes on with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from jobman.control.background import detach, idle_seconds, say_ready
from jobman.control.embedded import Running, Unreachable, ensure_service, take_pid_file, write_running
from jobman.control.log_file import keep_small
from jobman.control.places import Places, find_places
from jobman.tasks.local_types import LocalTypes

BROKER = ("-m", "jobman.tasks.embedded")
_TAKE_OVER = 30.0
__all__ = ["Unreachable", "ensure_broker", "functions_of", "places_of_tasks", "types_of"]


def places_of_tasks(state: Path | None = None) -> Places:
    """Where the broker of this user, or of a state folder, has its things."""
    return Places((find_places().state if state is None else state) / "tasks")


def ensure_broker(places: Places | None = None) -> Path:
    """The socket of this user's broker, which is started if there is none; raises Unreachable."""
    return Path(ensure_service(places or places_of_tasks(), BROKER))


def types_of(places: Places) -> LocalTypes:
    """The types of tasks that its workers execute."""
    return LocalTypes(places.state / "types.json")


def functions_of(places: Places) -> Path:
    """The folder of functions that programs have made types of."""
    return places.state / "functions"


# -- the process ---------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Be the broker of a user; programs start it, not people."""
    if list(arguments[:1]) != ["--embedded"] or len(arguments) != 5:
        print("jobman starts this itself: `jobman task broker` is for people", file=sys.stderr)
        return 2
    given = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    places = Places(Path(given["--state"]), Path(given["--socket"]))
    if not detach():
        return 0
    descriptor = take_pid_file(places, _TAKE_OVER)
    if descriptor is None:
        print(f"another broker is using {places.state}", file=sys.stderr)
        return 5
    try:
        _run(places, descriptor)
    finally:
        write_running(descriptor, None)
        os.close(descriptor)
    return 0


def _run(places: Places, descriptor: int) -> None:
    from jobman.tasks.broker_process import BrokerOptions, run_broker

    os.umask(0o077)
    keep_small(places.log)
    places.socket.unlink(missing_ok=True)

    def ready(_: int) -> None:
        write_running(descriptor, Running(pid=os.getpid(), socket=str(places.socket)))
        say_ready()

    options = BrokerOptions(
        listen=str(places.socket),
        store=f"sqlite:///{places.state}/tasks.sqlite",
        types=places.state / "types.json",
        idle=idle_seconds(os.environ.get("JOBMAN_IDLE")),
    )
    run_broker(options, ready)
    places.socket.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
