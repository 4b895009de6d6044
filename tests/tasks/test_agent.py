"""An agent between a real broker and a real worker: all is executed and reported, whoever goes down."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobman.tasks.agent import Agent
from jobman.tasks.calling import Worker
from jobman.tasks.model import Ends
from jobman.tasks.wire import Connection, Request
from tests.tasks.test_serving import Somebody, broker, run, told

SQUARES = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Worker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body at once: halves would wait for each other

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if body == b"poison":
            os._exit(3)
        self.answer(str(int(body) ** 2).encode() if body else b"")

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

from socketserver import ThreadingMixIn

class Server(ThreadingMixIn, HTTPServer):
    daemon_threads = True
    allow_reuse_address = True

Server(("127.0.0.1", int(sys.argv[1])), Worker).serve_forever()
"""


class Workers:
    """A worker of the standard library alone, that is started again when it ends."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SQUARES, str(self._port)])

    async def keep(self) -> None:
        while True:
            if self._process.poll() is not None:
                self._process = self._start()
            await asyncio.sleep(0.02)

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def workers() -> Iterator[tuple[Workers, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = Workers(port)
    try:
        yield found, port
    finally:
        found.end()


def agent_of(broker_port: int, worker_port: int, slots: int = 2) -> Agent:
    here = ("127.0.0.1", broker_port)
    headers = {"x-jobman-tenant": "a"}
    return Agent(
        "x",
        "squares",
        Worker(("127.0.0.1", worker_port)),
        pulling=Connection(here, headers=headers),
        reporting=Connection(here, headers=headers),
        slots=slots,
    )


async def all_results(client: Somebody, count: int) -> dict[tuple[int, int], bytes]:
    found: dict[tuple[int, int], bytes] = {}
    place = 0
    while len(found) < count:
        some = await client.results(after=place, wait=5.0)
        new = told(some)
        assert not new.keys() & found.keys()
        found |= new
        place = some.place
    return found


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/tasks.sqlite"


def test_everything_is_executed_and_a_drained_agent_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        with workers() as (_, worker_port):
            async with broker(url_of(tmp_path)) as port:
                client = Somebody(port)
                batch = await client.submit(*(str(number).encode() for number in range(200)), estimates=0.001)
                agent = agent_of(port, worker_port)
                running = asyncio.create_task(agent.run())
                found = await all_results(client, 200)
                assert found == {(batch, number): str(number**2).encode() for number in range(200)}
                agent.drain()
                await running
                events = await Somebody(port, "default").get("GET", "/v1/tasks/events", None, dict[str, Any])
                assert [line["kind"] for line in events["events"]] == [
                    "broker-started",
                    "agent-came",
                    "agent-left",
                ]

    run(scenario)


def test_an_answer_to_nobody_is_told_as_something_that_happened(tmp_path: Path) -> None:
    async def scenario() -> None:
        with workers() as (_, worker_port):
            async with broker(url_of(tmp_path)) as port:
                client, agent = Somebody(port, "default"), agent_of(port, worker_port)
                running = asyncio.create_task(agent.run())
                refused = await agent.worker.handle(
                    Request("POST", "/complete", "id=1-0-1-1&status=completed")
                )
                assert refused.status == 409
                lines: list[dict[str, str]] = []
                while not lines:
                    found = await client.get("GET", "/v1/tasks/events?wait=1", None, dict[str, Any])
                    lines = [line for line in found["events"] if line["kind"] == "stray-answer"]
                assert "1-0-1-1" in lines[0]["words"]
                running.cancel()

    run(scenario)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        with workers() as (them, worker_port):
            async with broker(url_of(tmp_path)) as port:
                keeping = asyncio.create_task(them.keep())
                client = Somebody(port)
                await client.submit(*(str(number).encode() for number in range(1500)), estimates=0.001)
                running = asyncio.create_task(agent_of(port, worker_port).run())
                following = asyncio.create_task(all_results(client, 1500))
                for _ in range(2):
                    await asyncio.sleep(0.3)
                    them.kill()
                found = await following
                assert sorted(index for _, index in found) == list(range(1500))
                for task in (running, keeping):
                    task.cancel()

    run(scenario)


@pytest.mark.slow
def test_a_task_that_kills_its_worker_is_given_up_and_the_others_are_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        with workers() as (them, worker_port):
            async with broker(url_of(tmp_path)) as port:
                keeping = asyncio.create_task(them.keep())
                client = Somebody(port)
                await client.submit(b"1", b"poison", b"3", estimates=0.001)
                running = asyncio.create_task(agent_of(port, worker_port).run())
                found: list[tuple[int, Ends]] = []
                place = 0
                while sum(len(ends.indexes) for _, ends in found) < 3:
                    some = await client.results(after=place, wait=5.0)
                    found += some.ends
                    place = some.place
                by_index = {index: ends for _, ends in found for index in ends.indexes}
                assert by_index[1].reason == "worker-died"
                assert {by_index[index].status for index in (0, 2)} == {3}
                for task in (running, keeping):
                    task.cancel()

    run(scenario)
