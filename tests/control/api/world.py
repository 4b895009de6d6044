"""A service in this process: real sockets and a real store, around a director that a test leads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvloop

from jobman.client import Client
from jobman.client.link import Link, Trials
from jobman.client.transport import Address, UnixAddress
from jobman.control.api.app import create_app
from jobman.control.api.call import Desk
from jobman.control.api.identity import Door, SocketDoor, TokenDoor, Tokens
from jobman.control.broadcast import Broadcast
from jobman.control.listening import Listener, tcp_sockets, unix_socket
from jobman.control.places import Places
from jobman.control.serving import ServeOptions
from tests.control.api.director import ScriptedDirector

T = TypeVar("T")
ME = "ada"
DOCUMENT = """\
version: 1
gates: [data]
tasks:
- name: main
  command: echo hello
  resources: {type: slot, count: 1, with: [{type: core, count: 1}]}
"""
DEADLINE = 20.0


class World:
    """A service on a Unix socket. With `shared` it asks for tokens, as one on TCP does."""

    def __init__(
        self,
        folder: Path,
        *,
        shared: bool = False,
        keep_alive: float = 15.0,
        broadcast_limit: int = 1_000,
        uid: int | None = None,
        tcp: bool = False,
    ) -> None:
        self.folder = folder
        self.socket = folder / "api.sock"
        self.admin = ""
        self._shared, self._keep_alive, self._uid = shared, keep_alive, uid
        self._limit = broadcast_limit
        self._tcp = tcp
        self.url = ""
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> World:
        self._thread.start()
        self._ready.result(DEADLINE)
        self.http = self.caller(self.admin or None)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        with contextlib.suppress(RuntimeError):  # it has stopped already
            self.loop.call_soon_threadsafe(lambda: self.desk.begin_stop(farewell=True))
        self._thread.join(DEADLINE)

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    # -- callers ---------------------------------------------------------------------------------------

    def caller(self, token: str | None = None) -> httpx.Client:
        """Somebody who speaks plain HTTP."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx.HTTPTransport(uds=str(self.socket))
        return httpx.Client(
            transport=transport, base_url="http://localhost", headers=headers, timeout=DEADLINE
        )

    def client(self) -> Client:
        """Our own client."""
        return Client(LocalLink(str(self.socket), self.admin))

    def token(self, user: str, role: str = "user") -> str:
        """A new token of a user."""
        made = self.http.post("/v1/tokens", json={"name": f"of-{user}", "user": user, "role": role})
        return str(made.json()["token"])

    # -- jobs ------------------------------------------------------------------------------------------

    def submit(self, name: str = "train", caller: httpx.Client | None = None, **more: Any) -> str:
        """Submit a job; returns its id."""
        document = more.pop("document", DOCUMENT)
        answer = (caller or self.http).post("/v1/jobs", json={"document": document, "name": name, **more})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["jobs"][0]["id"])

    def let(self, act: Callable[..., T], *arguments: Any) -> T:
        """Have something happen where the service lives."""

        async def now() -> T:
            return act(*arguments)

        return asyncio.run_coroutine_threadsafe(now(), self.loop).result(DEADLINE)

    # -- life ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._live())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    async def _live(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.director = ScriptedDirector(self.folder, Broadcast(self._limit))
        await self.director.start()
        tokens = Tokens(self.director.store) if self._shared else None
        if tokens is not None:
            self.admin = tokens.make("admin", ME, "admin")[1]
        door: Door = SocketDoor(ME, self._uid) if tokens is None else TokenDoor(tokens)
        self.desk = Desk(
            self.director,  # type: ignore[arg-type]
            door,
            mode="shared" if self._shared else "embedded",
            tokens=tokens,
            folder=str(self.folder),
            socket=str(self.socket),
            since=time.time(),
            keep_alive=self._keep_alive,
            stop=lambda: self.listener.stop(),
        )
        options = ServeOptions(Places(self.folder))
        sockets = [unix_socket(self.socket)]
        if self._tcp:
            sockets += tcp_sockets("127.0.0.1:0")
            self.url = f"http://127.0.0.1:{sockets[-1].getsockname()[1]}"
        self.listener = Listener(create_app(self.desk), sockets, options)
        self.listener.on_listening = lambda: self._ready.set_result(None)
        await self.listener.listen()
        self.desk.close()
        await self.director.stop()


class LocalLink(Link):
    """To a service that is there already, without a look for others."""

    def __init__(self, path: str, token: str = "") -> None:
        super().__init__()
        self.path = path
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def _address(self) -> Address:
        return UnixAddress(self.path)

    def _trials(self) -> Trials:
        return Trials(self, DEADLINE, ("Nobody answers: {error}.", ""))


def until(condition: Callable[[], T], seconds: float = DEADLINE) -> T:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found
