"""Collecting output: what pods write is brought to the service, since a cluster forgets it with the pod.

Beside each file stands how far it is known to be whole, and up to which moment; whoever goes on after a crash
cuts off what is behind that and asks for the rest, so that no line is lost and none is there twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import KubernetesError, NotFound, TooEarly, Unreachable

log = logging.getLogger("jobman.kubernetes")
FOLLOWED = 200
"""Pods whose output is followed as it is written; that of others comes when they have ended."""
_PAUSE, _LONGEST_PAUSE = 0.3, 5.0
_KEEP = 1 << 20
"""Bytes after which is written down how far a file is whole."""
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\S+$")
_NOT_THERE = b"unable to retrieve container logs"
"""What a node writes in the place of output that it does not have."""


class Position(msgspec.Struct):
    """A file is whole up to `size`; the last line before that was written at `since`, as the cluster says."""

    size: int = 0
    since: str = ""
    same: int = 1
    """How many lines were written at that moment."""


class _Known:
    """What of a stream was brought before: the cluster counts from whole seconds, and so begins with that."""

    def __init__(self, position: Position) -> None:
        self._since = position.since
        self._same = position.same

    def has(self, stamp: str) -> bool:
        """Whether a line is known; all that comes behind the last of these is new, whatever clocks say."""
        if not self._since:
            return False
        if stamp == self._since:
            self._same -= 1
            if not self._same:
                self._since = ""
            return True
        if stamp > self._since:
            self._since = ""
            return False
        return True


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
        self._position = Position()
        self._unnoted = 0
        self._is_heard = False
        """Whether anything came of the last trial."""

    def prepare(self) -> None:
        """Make the file, or cut off what is not certain."""
        try:
            size = self.path.stat().st_size
        except OSError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.touch()
            return
        if size:
            self._position = _read(self._noted)
            with self.path.open("ab") as file:
                self._cut(file)

    def _cut(self, file: BinaryIO) -> None:
        if file.seek(0, os.SEEK_END) < self._position.size:
            # It lost some of what is known to have been there.
            self._position = Position()
        file.truncate(self._position.size)

    async def follow(self) -> None:
        """Bring what is written, until its container has ended, or its node ends the stream."""
        await self._bring(follow=True)

    async def complete(self, patience: float = 60.0) -> None:
        """Bring what is still missing of a container that has ended, within so many seconds."""
        self.lost = ""
        try:
            async with asyncio.timeout(patience) as limit:
                await self._bring(follow=False, limit=limit, patience=patience)
        except TimeoutError:
            self.lost = self.lost or "the end of its output could not be read in time"
        self._note()

    async def _bring(
        self, *, follow: bool, limit: asyncio.Timeout | None = None, patience: float = 0.0
    ) -> None:
        pause = _PAUSE
        while True:
            self._is_heard = False
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
                if _is_gone(str(error)):
                    self.lost = f"its node does not give its output: {error}"
                    return
                if limit is not None and isinstance(error, Unreachable) and not self._is_heard:
                    # While the cluster is away, nobody's time runs.
                    limit.reschedule(asyncio.get_running_loop().time() + patience)
            except OSError as error:
                log.warning("output of %s: %s", self._pod, error)
                self.lost = f"its output could not be kept: {error.strerror}"
                return
            else:
                return
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2) if follow else pause

    async def _read_on(self, *, follow: bool) -> None:
        known = _Known(self._position)
        parts = self._api.logs(
            self._pod,
            container=self._container,
            follow=follow,
            timestamps=True,
            since_time=self._position.since,
        )
        waiting = b""
        with self.path.open("ab", buffering=0) as file:
            self._cut(file)
            try:
                async for part in parts:
                    self._is_heard = True
                    *lines, waiting = (waiting + part).split(b"\n")
                    self._write(file.fileno(), [line + b"\n" for line in lines], known)
                # What a stream breaks off with may be half of a line, unless nothing can come any more.
                if waiting and not follow:
                    self._write(file.fileno(), [waiting], known)
            finally:
                await parts.aclose()
                self._note()

    def _write(self, file: int, lines: list[bytes], known: _Known) -> None:
        texts = []
        since, same = self._position.since, self._position.same
        for line in lines:
            moment, _, text = line.partition(b" ")
            if not _STAMP.match(moment):
                if line.startswith(_NOT_THERE):
                    self.lost = f"its node does not give its output: {line.decode(errors='replace').strip()}"
                elif not known.has(""):
                    texts.append(line)
                continue
            stamp = moment.decode()
            if known.has(stamp):
                continue
            texts.append(text)
            since, same = stamp, same + 1 if stamp == since else 1
        data = b"".join(texts)
        if data:
            _write_all(file, data)
            self._position = Position(self._position.size + len(data), since, same)
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


def _is_gone(words: str) -> bool:
    """Whether the node has forgotten the container: no patience brings its output back."""
    return "not found" in words or _NOT_THERE.decode() in words
