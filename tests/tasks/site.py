"""A broker with one agent and one worker, all in a thread of the test, for programs that use a grid."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from jobman.control.store.database import open_database
from jobman.tasks.agent import Agent
from jobman.tasks.calling import Worker
from jobman.tasks.mapper import Table, TypeLine
from jobman.tasks.serving import Service
from jobman.tasks.wire import TEXT, Answer, Connection, Request, Server

Execute = Callable[[bytes], Awaitable[bytes]]


async def squared(payload: bytes) -> bytes:
    return str(int(payload) ** 2).encode()


class Site:
    """`with Site(folder) as site: Grid(site.url)`; tasks of the type `square`, version 1 and 2."""

    def __init__(self, folder: Path, execute: Execute = squared, **more: Any) -> None:
        self._folder = folder
        self._execute = execute
        self._more = more
        self._loop = asyncio.new_event_loop()
        self.executed = 0

    @property
    def url(self) -> str:
        return str(self._folder / "broker")

    def __enter__(self) -> Site:
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.do(self._start_worker())
        self.do(self._start_broker())
        self.do(self._start_agent())
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _start_broker(self) -> None:
        self._database = open_database(f"sqlite:///{self._folder}/tasks.sqlite")
        entries = [TypeLine(type="square", versions=f"{version}.x", image="squares") for version in (1, 2)]
        self.service = Service(self._database, Table(entries), **self._more)
        await self.service.start()
        self._server = Server(self.service.handle)
        await self._server.listen(Path(self.url))

    async def _stop_broker(self) -> None:
        await self._server.close()
        await self.service.close()
        self._database.close()

    async def _start_worker(self) -> None:
        self._worker = Server(self._answer)
        await self._worker.listen(self._folder / "worker")

    async def _answer(self, request: Request) -> Answer:
        if request.path == "/execute":
            self.executed += 1
            try:
                place = request.headers.get("x-jobman-reference", "").encode()
                return Answer(200, await self._execute(place or request.body))
            except ValueError as error:
                return Answer(500, f"ValueError: {error}".encode(), TEXT)
        return Answer(200 if request.path == "/ping" else 404)

    async def _start_agent(self) -> None:
        place = Path(self.url)
        self._agent = Agent(
            "only",
            "squares",
            Worker(self._folder / "worker"),
            pulling=Connection(place),
            reporting=Connection(place),
            slots=8,
        )
        self._running = asyncio.create_task(self._agent.run())

    async def _end(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self._stop_broker()
        await self._worker.close()
