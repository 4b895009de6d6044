"""Running a service: from what it is built of to the exit code of its process."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import uvloop

from jobman.control.log_file import write_lines
from jobman.garbage import collector_paused

if TYPE_CHECKING:
    from jobman.control.life import Life
    from jobman.control.serving import Build, ServeOptions

_UNREACHABLE = 5


def run(options: ServeOptions, build: Build, announce: Callable[[str], None]) -> int:
    """Live until told to stop, or idle for too long; returns the exit code."""
    write_lines()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_live(options, build, announce))
    except Exception as error:
        _complain(error)
        return _code_of(error)


async def _live(options: ServeOptions, build: Build, announce: Callable[[str], None]) -> int:
    if options.lease is not None:
        from jobman.control.leading import lead

        return await lead(options, build, announce)
    with ExitStack() as start:
        start.enter_context(collector_paused())
        director = await build(options)
        # An engine may start processes of its own; what the endpoints need is loaded meanwhile.
        starting = asyncio.ensure_future(director.start())
        try:
            life_of = await asyncio.to_thread(_load_endpoints)
            await starting
            start.close()
            return await life_of(options, director).lead(announce)
        finally:
            await asyncio.wait([starting])
            await director.stop()


def _load_endpoints() -> type[Life]:
    from jobman.control.life import Life

    return Life


def _code_of(error: Exception) -> int:
    """Of a cluster that cannot be used the reason matters: wrong files, no rights, nobody there."""
    is_engine = type(error).__module__.startswith("jobman.engines.")
    return getattr(error, "exit_code", _UNREACHABLE) if is_engine else _UNREACHABLE


def _complain(error: Exception) -> None:
    """Say why it ends. Our own errors say it in a sentence; of others the place is worth knowing."""
    if not type(error).__module__.startswith("jobman.") and not isinstance(error, OSError):
        traceback.print_exc()
    words = getattr(error, "message", f"The service cannot start: {error}.")
    print("\n".join(filter(None, (words, getattr(error, "advice", "")))), file=sys.stderr, flush=True)
