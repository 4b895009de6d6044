import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jobman.engines.local.orders import Order
from jobman.engines.local.prepared import Copy
from jobman.engines.local.probes import Probes
from jobman.engines.local.trees import facts
from jobman.engines.local.tries import try_check
from jobman.spec.checks import Check, Checks, HttpCheck, TcpCheck
from tests.engines.local.workshop import eventually

FOR_EVER = 10_000


def make_copy(number: int = 0, cwd: str = "/", ports: dict[str, int] | None = None, **given: Any) -> Copy:
    order = Order(
        id=str(number), folder="/none", copy=number, cwd=cwd, environment={"PATH": "/usr/bin:/bin"}, **given
    )
    return Copy(order=order, node="node-0", ports=ports or {})


def check(**given: Any) -> Check:
    return Check(**{"exec": ("x",), "every": 0.001, **given})


# -- one try -----------------------------------------------------------------------------------------


def outcome(made: Check, copy: Copy | None = None) -> str:
    return asyncio.run(try_check(made, copy or make_copy()))


def test_a_command_succeeds_with_exit_code_0():
    assert outcome(check(exec=("true",))) == ""
    assert outcome(check(exec=("sh", "-c", "exit 3"))) == "sh ended with exit code 3"
    assert outcome(check(exec=("sh", "-c", "kill -9 $$"))) == "sh was ended by signal 9"


def test_a_command_runs_where_the_copy_runs_and_sees_what_it_sees(tmp_path):
    (tmp_path / "here").touch()
    copy = make_copy(cwd=str(tmp_path))
    assert outcome(check(exec=("sh", "-c", 'test -e here && test "$(env | grep -c HOME)" = 0')), copy) == ""


def test_a_command_that_cannot_be_run_is_a_failure():
    assert (
        outcome(check(exec=("./no-such-check",)))
        == "./no-such-check cannot be run: no such file or directory"
    )


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    script = f"sleep 600 & echo $! > {tmp_path}/pid; wait"
    said = outcome(check(exec=("sh", "-c", script), timeout=2.0))
    assert said == "no answer within 2 s"
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: (known := facts(pid)) is None or known.is_dead, "the end of what it started")


async def serving(
    answer: bytes, act: Callable[[int], Awaitable[str]], context: ssl.SSLContext | None = None
) -> tuple[str, list[bytes]]:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        return await act(server.sockets[0].getsockname()[1]), asked


def request(answer: bytes, context: ssl.SSLContext | None = None, **given: Any) -> tuple[str, list[bytes]]:
    async def act(port: int) -> str:
        probe = HttpCheck(**{"port": "web", **given})
        return await try_check(check(exec=(), http=probe, timeout=10.0), make_copy(ports={"web": port}))

    return asyncio.run(serving(answer, act, context))


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "302 Found", "399 Odd"])
def test_a_request_succeeds_with_200_to_399(status):
    assert request(f"HTTP/1.1 {status}\r\n\r\n".encode())[0] == ""


@pytest.mark.parametrize("status", [400, 404, 503, 100])
def test_a_request_fails_with_anything_else(status):
    said, _ = request(f"HTTP/1.1 {status} No\r\n\r\n".encode(), path="/health")
    assert said.startswith("/health on port ")
    assert said.endswith(f"was answered with {status}")


def test_a_request_carries_its_path_and_headers():
    _, (asked,) = request(
        b"HTTP/1.1 200 OK\r\n\r\n", path="/a?b=c", headers={"Accept": "text/plain", "Host": "me"}
    )
    lines = asked.decode().split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    assert {"Accept: text/plain", "Host: me"} <= set(lines)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"\x00\xff\r\n"])
def test_what_does_not_speak_http_fails_the_request(answer):
    assert "does not speak HTTP" in request(answer)[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", "-")
    made = subprocess.run([*command, "-subj", "/CN=elsewhere"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    path.write_bytes(made.stdout)
    return path


def test_a_certificate_of_nobody_is_good_enough(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    assert request(b"HTTP/1.1 200 OK\r\n\r\n", context, scheme="https")[0] == ""


def test_what_does_not_speak_tls_fails_the_request():
    async def act(port: int) -> str:
        return await try_check(
            check(exec=(), http=HttpCheck(port="web", scheme="https"), timeout=10.0),
            make_copy(ports={"web": port}),
        )

    async def scenario() -> str:
        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello, this is not TLS at all\r\n")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            return await act(server.sockets[0].getsockname()[1])

    assert asyncio.run(scenario()) != ""


def test_a_port_that_accepts_a_connection_succeeds():
    async def act(port: int) -> str:
        return await try_check(check(exec=(), tcp=TcpCheck(port=str(port)), timeout=10.0), make_copy())

    assert asyncio.run(serving(b"", act))[0] == ""


def test_a_port_where_nobody_listens_fails():
    assert outcome(check(exec=(), tcp=TcpCheck(port="1"))) == "port 1 takes no connection"


# -- over time ---------------------------------------------------------------------------------------


class Play:
    """Checks that end as a script says; after it, as its last entry."""

    def __init__(self, checks: Checks, script: dict[tuple[Check, int], str], copies: int = 1) -> None:
        self.checks = checks
        self.script = script
        self.copies = [make_copy(number) for number in range(copies)]
        self.told: list[tuple[str, bool]] = []
        self.tries: list[tuple[Check, int]] = []

    async def attempt(self, made: Check, copy: Copy) -> str:
        key = made, copy.order.copy
        done = self.tries.count(key)
        self.tries.append(key)
        script = self.script[key]
        return "" if script[min(done, len(script) - 1)] == "+" else "bad"

    def probes(self) -> Probes:
        return Probes(
            self.checks,
            self.copies,
            passed=lambda kind, good: self.told.append((kind, good)),
            unhealthy=lambda message: self.told.append((message, False)),
            attempt=self.attempt,
        )

    def run(self, until: Callable[[], bool]) -> list[tuple[str, bool]]:
        asyncio.run(self._run(until))
        return self.told

    async def _run(self, until: Callable[[], bool]) -> None:
        probes = self.probes()
        probes.start()
        async with asyncio.timeout(30):
            while not until():
                await asyncio.sleep(0.001)
        probes.end()


def test_ready_comes_and_goes_with_tries_in_a_row():
    ready = check(successes=2, failures=3)
    play = Play(Checks(ready=ready), {(ready, 0): "+-++--+---+"})
    assert play.run(lambda: len(play.tries) >= 11)[:2] == [("ready", True), ("ready", False)]


def test_an_attempt_is_ready_when_all_its_copies_are():
    ready = check(failures=1)
    play = Play(Checks(ready=ready), {(ready, 0): "+", (ready, 1): "---+"}, copies=2)
    assert play.run(lambda: bool(play.told)) == [("ready", True)]
    assert play.tries.count((ready, 1)) >= 4


def test_started_holds_the_others_back():
    started, ready, alive = check(failures=FOR_EVER), check(exec=("r",)), check(exec=("a",))
    script = {(started, 0): "---+", (ready, 0): "+", (alive, 0): "+"}
    play = Play(Checks(started=started, ready=ready, alive=alive), script)
    assert play.run(lambda: (alive, 0) in play.tries and len(play.told) == 2) == [
        ("started", True),
        ("ready", True),
    ]
    assert play.tries[:4] == [(started, 0)] * 4
    assert play.tries.count((started, 0)) == 4


def test_a_copy_that_never_starts_makes_the_attempt_unhealthy():
    started, ready = check(failures=3), check(exec=("r",))
    play = Play(Checks(started=started, ready=ready), {(started, 0): "-", (ready, 0): "+"})
    assert play.run(lambda: bool(play.told)) == [("the check `started` failed 3 times in a row: bad", False)]
    assert (ready, 0) not in play.tries


def test_a_copy_that_is_not_alive_is_named():
    alive = check(failures=1)
    play = Play(Checks(alive=alive), {(alive, 0): "+", (alive, 1): "+-"}, copies=2)
    assert play.run(lambda: bool(play.told)) == [("the check `alive` of copy 1 failed: bad", False)]


def test_nothing_is_tried_while_the_copies_stand_still():
    alive = check(failures=1)
    play = Play(Checks(alive=alive), {(alive, 0): "-"})

    async def scenario() -> None:
        probes = play.probes()
        probes.pause()
        probes.start()
        for _ in range(50):
            await asyncio.sleep(0)
        assert play.tries == []
        probes.resume()
        async with asyncio.timeout(30):
            while not play.told:
                await asyncio.sleep(0.001)
        probes.end()

    asyncio.run(scenario())


def test_a_try_that_was_overtaken_by_a_freeze_does_not_count():
    alive = check(failures=1)
    play = Play(Checks(alive=alive), {(alive, 0): "-+"})

    async def scenario() -> None:
        probes = play.probes()
        original = probes._try

        async def frozen_meanwhile(made: Check, copy: Copy) -> str:
            first = not play.tries
            said = await original(made, copy)
            if first:
                probes.pause()
                asyncio.get_running_loop().call_later(0.01, probes.resume)
            return said

        probes._try = frozen_meanwhile
        probes.start()
        async with asyncio.timeout(30):
            while len(play.tries) < 3:
                await asyncio.sleep(0.001)
        probes.end()

    asyncio.run(scenario())
    assert play.told == []


def test_the_delay_counts_from_the_start_of_the_copies():
    ready = check(delay=1000.0)
    play = Play(Checks(ready=ready), {(ready, 0): "+"})

    async def scenario() -> None:
        probes = play.probes()
        probes.start(since=0.0)
        async with asyncio.timeout(30):
            while not play.told:
                await asyncio.sleep(0.001)
        probes.end()

    asyncio.run(scenario())
