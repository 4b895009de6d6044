"""Calls of a container runtime that end by themselves: to bring an image, and to remove what was left."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from jobman.engines.endings import why
from jobman.engines.local.containers import presence_argv, pull_argv, remove_argv
from jobman.engines.local.orders import CannotRun
from jobman.engines.local.runtimes import Runtime

_PATIENCE = 60.0


class Images:
    """Images brought to this machine, each once however many ask for it at a time."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def bring(self, runtime: Runtime, image: str, environment: Mapping[str, str]) -> None:
        """Make sure that an image is here; raises CannotRun with the runtime's own reason."""
        presence = presence_argv(runtime, image)
        if presence is None:
            return
        async with self._locks[image]:
            if (await _call(presence, environment))[0] == 0:
                return
            code, said = await _call(pull_argv(runtime, image), environment, patience=None)
        if code:
            raise CannotRun(f"the image {image} cannot be had: {_reason(said, runtime)}")


async def remove_container(runtime: Runtime, name: str, environment: Mapping[str, str]) -> None:
    """Remove a container, also one that runs; nothing where there is none."""
    argv = remove_argv(runtime, name)
    if argv is not None:
        await _call(argv, environment)


def _reason(said: str, runtime: Runtime) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{runtime.dialect}: {lines[-1].removeprefix('Error: ')}" if lines else f"{runtime.dialect} failed"


async def _call(
    argv: tuple[str, ...], environment: Mapping[str, str], patience: float | None = _PATIENCE
) -> tuple[int, str]:
    """The exit code of a command and what it said of its errors."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=environment,
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise CannotRun(f"{argv[0]} cannot be run: {why(error)}") from None
    try:
        async with asyncio.timeout(patience):
            _, said = await process.communicate()
    except TimeoutError:
        return 1, f"no answer within {patience:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, said.decode(errors="replace")
