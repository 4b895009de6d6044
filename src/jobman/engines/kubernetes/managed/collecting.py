"""Collecting output: what pods write is brought to the service, since a cluster forgets it with the pod.

Beside each file stands how far it is known to be whole, and up to which moment; whoever goes on after a crash
cuts off what is behind that and asks for the rest, so that no line is lost and none is there twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import KubernetesError, NotFound, TooEarly

log = logging.getLogger("jobman.kubernetes")
FOLLOWED = 200
"""Pods whose output is followed as it is written; that of others comes when they have ended."""
_PAUSE, _LONGEST_PAUSE = 0.3, 5.0
_KEEP = 1 << 20
"""Bytes after which is written down how far a file is whole."""


class Position(msgspec.Struct):
    """A file is whole up to `size`; the last line before that was written at `since`, as the cluster says."""

    size: int = 0
    since: str = ""


class Collector:
    """The output of one copy."""

    def __init__(self, api: Api, pod: str, container: str, path: Path) -> None:
        self.path = path
        self.lost = ""
        """In words, why some of it could not be had."""
        self._api = api
        self._pod = pod
        self._container = container
        self._noted = path.with_name(path.name + ".since")
        self._position = _read(self._noted)
        self._unnoted = 0

    def prepare(self) -> None:
        """Make the file, or cut off what is not certain."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.truncate(min(self._position.size, file.seek(0, os.SEEK_END)))
            self._position.size = file.seek(0, os.SEEK_END)

    async def follow(self) -> None:
        """Bring what is written, until its container has ended."""
        await self._bring(follow=True, patience=None)

    async def complete(self, patience: float = 60.0) -> None:
        """Bring what is still missing of a container that has ended, within so many seconds."""
        try:
            await asyncio.wait_for(self._bring(follow=False, patience=patience), patience)
        except TimeoutError:
            self.lost = self.lost or "the end of its output could not be read in time"
        self._note()

    async def _bring(self, *, follow: bool, patience: float | None) -> None:
        pause = _PAUSE
        while True:
            try:
                await self._read_on(follow=follow)
            except TooEarly:
                if not follow:
                    return  # It has ended without ever starting.
            except NotFound:
                self.lost = "its pod was gone before all of its output was read"
                return
            except KubernetesError as error:
                log.info("output of %s: %s", self._pod, error)
                if _is_gone(error):
                    self.lost = f"its node does not give its output: {error}"
                    return
            else:
                return
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2) if patience is None else pause

    async def _read_on(self, *, follow: bool) -> None:
        since = self._position.since
        parts = self._api.logs(
            self._pod, container=self._container, follow=follow, timestamps=True, since_time=since
        )
        waiting = b""
        with self.path.open("ab", buffering=0) as file:
            try:
                async for part in parts:
                    *lines, waiting = (waiting + part).split(b"\n")
                    self._write(file.fileno(), [line + b"\n" for line in lines], since)
                if waiting:
                    self._write(file.fileno(), [waiting], since)
            finally:
                await parts.aclose()
                self._note()

    def _write(self, file: int, lines: list[bytes], since: str) -> None:
        texts = []
        for line in lines:
            moment, _, text = line.partition(b" ")
            stamp = moment.decode(errors="replace")
            # The cluster counts from whole seconds: what came before is known already.
            if since and stamp <= since:
                continue
            texts.append(text)
            self._position.since = stamp
        data = b"".join(texts)
        if data:
            _write_all(file, data)
            self._position.size += len(data)
            self._unnoted += len(data)
            if self._unnoted >= _KEEP:
                self._note()

    def _note(self) -> None:
        """Write down how far the file is whole."""
        fresh = self._noted.with_name(self._noted.name + ".new")
        with suppress(OSError):
            fresh.write_bytes(msgspec.json.encode(self._position))
            fresh.rename(self._noted)
            self._unnoted = 0

    @property
    def size(self) -> int:
        return self._position.size


def _read(path: Path) -> Position:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Position)
    except (OSError, msgspec.MsgspecError):
        return Position()


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _is_gone(error: KubernetesError) -> bool:
    """Whether the node has forgotten the container: no patience brings its output back."""
    return "not found" in str(error) or "unable to retrieve container logs" in str(error)
