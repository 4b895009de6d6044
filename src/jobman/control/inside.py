"""A service inside another program: a director and its endpoints on a socket, and no process of its own."""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Callable
from pathlib import Path

from jobman.control.api.app import create_app
from jobman.control.api.call import Desk
from jobman.control.api.identity import SocketDoor
from jobman.control.director import Director
from jobman.control.listening import Listener, unix_socket
from jobman.control.logs.watching import LogWatcher
from jobman.control.places import Places
from jobman.control.serving import ServeOptions
from jobman.control.store.store import Store
from jobman.engines.base import Host


async def serve_inside(
    folder: Path, host: Host, socket: Path, ready: Callable[[], None], stop: asyncio.Event
) -> None:
    """Serve jobs on a host until `stop` is set; everything that is kept is kept in the folder."""
    store = Store.open(f"sqlite:///{folder / 'jobman.db'}")
    store.claim("inside")
    director = Director(store, host, logs=LogWatcher())
    await director.start()
    listener: Listener | None = None
    desk = Desk(
        director,
        SocketDoor(getpass.getuser()),
        mode="embedded",
        folder=str(folder),
        socket=str(socket),
        since=time.time(),
        stop=lambda: listener.stop() if listener is not None else None,
    )
    listener = Listener(create_app(desk), [unix_socket(socket)], ServeOptions(Places(folder, socket)))
    listener.on_listening = ready
    serving = asyncio.create_task(listener.listen())
    await stop.wait()
    desk.begin_stop(farewell=True)
    await serving
    desk.close()
    await director.stop()
