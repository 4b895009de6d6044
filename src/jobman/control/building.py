"""Building a director out of its parts: the store, the engine and the watch over logs."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from jobman.control.admission import SettingsShelf
from jobman.control.director import Director
from jobman.control.hosting import open_host
from jobman.control.logs.watching import LogWatcher
from jobman.control.refusals import Refusal
from jobman.control.store.store import Store

if TYPE_CHECKING:
    from jobman.control.serving import ServeOptions


async def build_director(options: ServeOptions) -> Director:
    """The director of a service."""
    store = Store.open(options.database or f"sqlite:///{options.places.database}")
    _check_folder(store, options.places.state)
    store.claim(f"{socket.gethostname()}:{os.getpid()}:{options.places.state}")
    logs = LogWatcher()
    shelf = SettingsShelf()
    engine = await open_host(options, store, shelf)
    return Director(store, engine, settings=shelf, logs=logs, state=options.places.state)


def _check_folder(store: Store, state: Path) -> None:
    """Refuse a state folder that does not hold the attempts which the store says are under way."""
    folder = store.holder().owner.split(":", 2)[2:]
    if folder and folder != [str(state)] and store.unfinished().attempts:
        raise Refusal(
            "wrong-state",
            f"attempts of this database run in the state folder {folder[0]}",
            f"start the service with --state {folder[0]}, or wait until they are over",
        )
