"""Building a director out of its parts: the store, the engine and the watch over logs."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from jobman.control.director import Director
from jobman.control.logs.watching import LogWatcher
from jobman.control.store.store import Store
from jobman.engines.local.engine import LocalEngine

if TYPE_CHECKING:
    from jobman.control.serving import ServeOptions


async def build_director(options: ServeOptions) -> Director:
    """The director of a service on this machine."""
    store = Store.open(options.database or f"sqlite:///{options.places.database}")
    store.claim(f"{socket.gethostname()}:{os.getpid()}")
    logs = LogWatcher()
    return Director(store, LocalEngine(options.places.state), logs=logs)
