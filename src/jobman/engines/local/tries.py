"""One try of a check: a command, a request or a connection, and what is wrong where it fails."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress

from jobman.engines.endings import why
from jobman.engines.local.limits import user_groups
from jobman.engines.local.ports import port_number
from jobman.engines.local.prepared import Copy
from jobman.spec.checks import Check, HttpCheck

ADDRESSES = ("127.0.0.1", "::1")
"""Where the copies of this machine listen."""
_GOOD = range(200, 400)


class Failed(Exception):
    """A try that failed; the text says how."""


async def try_check(check: Check, copy: Copy) -> str:
    """Try once, within the check's timeout; returns what is wrong, and nothing where all is well."""
    try:
        async with asyncio.timeout(check.timeout):
            await _attempt(check, copy)
    except TimeoutError:
        return f"no answer within {check.timeout:g} s"
    except Failed as failed:
        return str(failed)
    return ""


def _attempt(check: Check, copy: Copy) -> Awaitable[None]:
    if check.exec:
        return _run(copy.beside(check.exec), copy)
    if check.http is not None:
        return _request(check.http, port_number(check.http.port, copy.ports))
    assert check.tcp is not None
    return _knock(port_number(check.tcp.port, copy.ports))


async def _run(argv: tuple[str, ...], copy: Copy) -> None:
    order = copy.order
    is_other = order.uid is not None and os.geteuid() == 0
    gid, groups = user_groups(order) if is_other else (None, None)
    try:
        # Not the event loop's own way: uvloop takes neither user nor umask.
        process = subprocess.Popen(
            argv,
            cwd=order.cwd,
            env=order.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=order.uid if is_other else None,
            group=gid,
            extra_groups=groups,
            umask=-1 if order.umask is None else order.umask,
        )
    except OSError as error:
        raise Failed(f"{argv[0]} cannot be run: {why(error)}") from None
    try:
        await _end_of(process.pid)
        code = process.wait()
    finally:
        # Also what the command started and left behind.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if code:
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise Failed(f"{argv[0]} {ended}")


async def _end_of(pid: int) -> None:
    """Wait until a process has ended; it is not reaped by that."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _knock(port: int) -> None:
    _, writer = await _connect(port, None)
    await _close(writer)


async def _request(check: HttpCheck, port: int) -> None:
    reader, writer = await _connect(port, _trusting() if check.scheme == "https" else None)
    try:
        writer.write(_message(check, port))
        status = (await reader.readline()).split(None, 2)
    except (OSError, ValueError) as error:
        raise Failed(f"port {port} broke off: {error}") from None
    finally:
        await _close(writer)
    if len(status) < 2 or not status[0].startswith(b"HTTP/") or not status[1].isdigit():
        raise Failed(f"port {port} does not speak HTTP")
    if int(status[1]) not in _GOOD:
        raise Failed(f"{check.path} on port {port} was answered with {int(status[1])}")


def _message(check: HttpCheck, port: int) -> bytes:
    headers = {"Host": f"localhost:{port}", "User-Agent": "jobman", "Accept": "*/*", **check.headers}
    lines = [f"GET {check.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    text = "\r\n".join(line.replace("\r", " ").replace("\n", " ") for line in lines)
    return f"{text}\r\nConnection: close\r\n\r\n".encode()


async def _connect(
    port: int, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for address in ADDRESSES:
        try:
            return await asyncio.open_connection(address, port, ssl=context)
        except ssl.SSLError:
            raise Failed(f"port {port} does not speak TLS") from None
        except OSError:
            continue
    raise Failed(f"port {port} takes no connection")


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _trusting() -> ssl.SSLContext:
    """The certificate of a copy that is just starting proves nothing to anybody."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


Try = Callable[[Check, Copy], Awaitable[str]]
