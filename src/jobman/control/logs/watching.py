"""Watching files grow: marks are taken, and those who follow are told."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType

from jobman.control.logs.growth import Followers, Growth
from jobman.control.logs.inotify import APPEARED, MODIFIED, Heard, Inotify, Key
from jobman.control.logs.times import MarkWriter, times_beside

_PAUSE = 0.005
"""After the kernel spoke, what it says next is left to gather for so long: a mark is not finer than this."""
_COARSE = 0.01
"""The clock that files take their times from may be so much behind."""
_SHARE = 4
"""The watcher rests so many times as long as it worked, however fast files grow."""
_POLL = 0.1
_SWEEP = 5.0
"""Now and then every file is looked at: a file may have been replaced, or a watch may be had again."""
_SOME = 200

_log = logging.getLogger(__name__)


class _Watched:
    """A file, for the streams that are written into it."""

    def __init__(self, path: Path, times: Path) -> None:
        self.path = path
        self.streams: set[str] = set()
        self.writer = MarkWriter(times)
        self.size = 0
        self.inode: int | None = None
        self.key: Key | None = None
        """How the kernel speaks of it; None while we look ourselves."""
        self.troubled = False


class LogWatcher:
    """Takes marks of the files of running copies. Lives in one event loop, as an async context.

    Where the kernel cannot watch a file (no inotify, too many watches), it is looked at ten times a second.
    """

    def __init__(self, *, inotify: bool = True, clock: Callable[[], float] = time.time) -> None:
        self.followers: Followers = {}
        self._wants_inotify = inotify
        self._clock = clock
        self._inotify: Inotify | None = None
        self._files: dict[Path, _Watched] = {}
        self._by_stream: dict[str, _Watched] = {}
        self._by_key: dict[Key, set[_Watched]] = {}
        self._uses: Counter[int] = Counter()
        self._polled: set[_Watched] = set()
        self._late: set[_Watched] = set()
        self._round: Iterator[_Watched] = iter(())
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def __aenter__(self) -> LogWatcher:
        self._loop = asyncio.get_running_loop()
        if self._wants_inotify:
            try:
                self._inotify = Inotify()
            except OSError as problem:
                _log.warning("Output of copies is looked at ten times a second, without inotify: %s", problem)
        self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take last marks and let go of everything; copies may go on writing."""
        for stream in tuple(self._by_stream):
            self.unwatch(stream)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.descriptor)
            self._inotify.close()
            self._inotify = None

    def watch(self, stream: str, path: Path, times: Path | None = None) -> None:
        """Take marks of a file from now on, for a stream; the file need not exist yet.

        What it holds already gets one mark, with the time of its last change. A stream is watched once,
        however often this is said.
        """
        if stream in self._by_stream:
            return
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _Watched(path, times or times_beside(path))
            self._attach(file)
            self._look(file)
            self._after("round", _SWEEP, self._begin_round)
        file.streams.add(stream)
        self._by_stream[stream] = file

    def unwatch(self, stream: str) -> int | None:
        """Take a last mark; returns the size of the file, or None for a stream that is not watched."""
        file = self._by_stream.pop(stream, None)
        if file is None:
            return None
        self._look(file, final=True)
        file.streams.discard(stream)
        if not file.streams:
            self._detach(file)
            self._polled.discard(file)
            self._late.discard(file)
            del self._files[file.path]
        return file.size

    def following(self, paths: Iterable[Path] = ()) -> Growth:
        """What tells of the growth of files, until it is closed."""
        growth = Growth(self.followers)
        for path in paths:
            growth.add(path)
        return growth

    async def wait_for_growth(self, paths: Iterable[Path], timeout: float | None) -> set[Path]:
        """Wait until at least one of the files grows; which did, or none within the time."""
        growth = self.following(paths)
        try:
            async with asyncio.timeout(timeout):
                await growth.event.wait()
        except TimeoutError:
            pass
        finally:
            growth.close()
        return growth.take()

    # -- being told ----------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._inotify is not None:
            self._loop.add_reader(self._inotify.descriptor, self._hear)

    def _hear(self) -> None:
        """Take marks of what changed, then leave the kernel alone for a while: it gathers what comes."""
        assert self._inotify is not None
        began = self._loop.time()
        self._loop.remove_reader(self._inotify.descriptor)
        try:
            self._look_where(self._inotify.read())
        finally:
            self._after("listen", max(_PAUSE, _SHARE * (self._loop.time() - began)), self._listen)

    def _look_where(self, heard: Heard) -> None:
        for key in heard.changed:
            for file in tuple(self._by_key.get(key, ())):
                if key in heard.ended:
                    file.inode = None  # which may be given to another file
                self._look(file)
        if heard.lost:
            self._begin_round()

    def _attach(self, file: _Watched) -> None:
        """Have the kernel tell of a file's growth, or first of its coming into being."""
        key = self._key_of(file.path)
        if key is None:
            self._polled.add(file)
            self._after("poll", _POLL, self._poll)
        else:
            self._polled.discard(file)
        if key == file.key:
            return
        self._detach(file)
        file.key = key
        if key is not None:
            self._by_key.setdefault(key, set()).add(file)
            self._uses[key[0]] += 1

    def _detach(self, file: _Watched) -> None:
        key, file.key = file.key, None
        if key is None:
            return
        self._by_key[key].discard(file)
        if not self._by_key[key]:
            del self._by_key[key]
        self._uses[key[0]] -= 1
        if not self._uses[key[0]]:
            del self._uses[key[0]]
            assert self._inotify is not None
            self._inotify.remove(key[0])

    def _key_of(self, path: Path) -> Key | None:
        if self._inotify is None:
            return None
        try:
            return self._watch_of_file(path) or self._watch_of_folder(path)
        except OSError:
            return None

    def _watch_of_file(self, path: Path) -> Key | None:
        assert self._inotify is not None
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError("It is no file that grows.")  # of a device, everybody's use would be told
            return (self._inotify.add(path, MODIFIED), b"")
        except FileNotFoundError:
            return None

    def _watch_of_folder(self, path: Path) -> Key:
        assert self._inotify is not None
        watch = self._inotify.add(path.parent, APPEARED)
        # It may have come while we turned to the folder.
        found = self._watch_of_file(path)
        if found is not None and not self._uses[watch]:
            self._inotify.remove(watch)
        return found or (watch, os.fsencode(path.name))

    # -- looking -------------------------------------------------------------------------------------

    def _look(self, file: _Watched, *, final: bool = False) -> None:
        """Take a mark if a file has grown, and tell those who follow it."""
        status = _status(file.path)
        if status is not None and status.st_ino != file.inode:
            file.inode = status.st_ino
            self._attach(file)
            status = _status(file.path)
        if status is None:
            return
        grown, file.size = status.st_size > file.size, status.st_size
        self._mark(file, self._moment(status.st_mtime), final)
        if grown:
            for growth in self.followers.get(file.path, ()):
                growth.notice(file.path)

    def _moment(self, changed: float) -> float:
        """By when a file that says it changed then had surely changed."""
        return min(self._clock(), changed + _COARSE)

    def _mark(self, file: _Watched, at: float, final: bool) -> None:
        try:
            marked = file.writer.mark(file.size, at, final=final)
        except OSError as problem:
            if not file.troubled:
                _log.warning(
                    "The times of %s cannot be written, its lines may be out of order: %s", file.path, problem
                )
            file.troubled = True
            return
        file.troubled = False
        if not marked:
            self._late.add(file)
            self._after("poll", _POLL, self._poll)

    def _poll(self) -> None:
        began = self._loop.time()
        late, self._late = self._late, set()
        for file in self._polled | late:
            self._look(file)
        if self._polled or self._late:
            self._after("poll", max(_POLL, _SHARE * (self._loop.time() - began)), self._poll)

    def _begin_round(self) -> None:
        """Look at every file, some at a time."""
        self._round = iter(tuple(self._files.values()))
        self._sweep()

    def _sweep(self) -> None:
        some = list(islice(self._round, _SOME))
        for file in some:
            if file.key is None and file.streams:
                self._attach(file)
            if file.streams:
                self._look(file)
        if some:
            self._after("sweep", _POLL, self._sweep)
        elif self._files:
            self._after("round", _SWEEP, self._begin_round)

    def _after(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Do something later, unless it is to be done already."""
        if name not in self._timers:
            self._timers[name] = self._loop.call_later(seconds, self._fire, name, act)

    def _fire(self, name: str, act: Callable[[], None]) -> None:
        del self._timers[name]
        act()


def _status(path: Path) -> os.stat_result | None:
    """The state of a file that can grow."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None
