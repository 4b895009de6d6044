"""The watcher takes marks of what real processes write, with the kernel's help and without."""

import asyncio
import errno
import logging
import os
import time
from functools import partial
from pathlib import Path

import pytest

from jobman.control.logs import watching
from jobman.control.logs.inotify import Heard, Inotify
from jobman.control.logs.merging import merge
from jobman.control.logs.times import Times, times_beside
from jobman.control.logs.watching import LogWatcher
from tests.control.logs.copies import DEADLINE, append, copy, ended, tell, until
from tests.control.logs.writing import stream, texts

BOTH = pytest.mark.parametrize("inotify", [True, False], ids=["inotify", "polling"])


def marked(path) -> int:
    """Up to where the marks of a file reach."""
    return Times(times_beside(path)).last.offset


def all_marks(path):
    times = Times(times_beside(path))
    return [times[index] for index in range(len(times))]


async def until_marked(path, size):
    await until(lambda: marked(path) == size, f"a mark at {size} of {path.name}")


@BOTH
def test_marks_follow_what_a_process_writes(tmp_path, inotify):
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher(inotify=inotify) as watcher:
            began = time.time() - 0.1
            process = copy("for n in 1 2 3; do read go; echo $n; done", path)
            watcher.watch("a", path)
            for size in (2, 4, 6):
                tell(process, "go")
                await until_marked(path, size)
            await ended(process)
            moments = [mark.at for mark in all_marks(path)]
            assert len(moments) == 3
            assert moments == sorted(moments)
            assert began <= moments[0] <= moments[-1] <= time.time()

    asyncio.run(scene())


@BOTH
def test_the_order_among_processes_is_kept(tmp_path, inotify):
    paths = [tmp_path / f"{number}.out" for number in range(3)]

    async def scene():
        async with LogWatcher(inotify=inotify) as watcher:
            processes = [
                copy("while read line && [ $line != end ]; do echo $line; done", path) for path in paths
            ]
            for number, path in enumerate(paths):
                watcher.watch(str(number), path)
            for turn in range(9):
                number = turn * 2 % 3
                tell(processes[number], str(turn))
                await until_marked(paths[number], (turn // 3 + 1) * 2)
            for process in processes:
                tell(process, "end")
                await ended(process)

    asyncio.run(scene())
    lines = merge([stream(path, number, ended=True) for number, path in enumerate(paths)])
    assert texts(lines) == [str(turn) for turn in range(9)]


@BOTH
@pytest.mark.parametrize("place", ["0.out", "new/0.out"], ids=["file", "folder"])
def test_a_file_may_come_later(tmp_path, inotify, place):
    path = tmp_path / place

    async def scene():
        async with LogWatcher(inotify=inotify) as watcher:
            watcher.watch("a", path)
            path.parent.mkdir(exist_ok=True)
            await ended(copy("echo hello", path))
            await until_marked(path, 6)
            append(path, "more\n")
            await until_marked(path, 11)

    asyncio.run(scene())


def test_a_burst_gets_few_marks_and_loses_none_of_its_end(tmp_path):
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            await ended(copy("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", path))
            assert watcher.unwatch("a") == path.stat().st_size

    asyncio.run(scene())
    marks = all_marks(path)
    assert marks[-1].offset == path.stat().st_size
    assert len(marks) < 20000 / 2


def test_what_was_written_while_nobody_watched_has_the_time_of_the_file(tmp_path):
    path = tmp_path / "0.out"
    path.write_text("early\n")
    os.utime(path, (1000.0, 1000.0))

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
        append(path, "unseen\n")
        os.utime(path, (2000.0, 2000.0))
        async with LogWatcher() as watcher:
            watcher.watch("a", path)

    asyncio.run(scene())
    assert all_marks(path) == [(6, 1000.01), (13, 2000.01)]


def test_the_last_mark_is_taken_at_the_end(tmp_path):
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            append(path, "last words")
            assert watcher.unwatch("a") == 10
            assert watcher.unwatch("a") is None

    asyncio.run(scene())
    assert marked(path) == 10


def test_a_file_of_two_streams_is_watched_until_both_are_over(tmp_path):
    path = tmp_path / "both.txt"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            watcher.watch("b", path)
            watcher.watch("b", path)
            watcher.unwatch("a")
            append(path, "x\n")
            await until_marked(path, 2)
            watcher.unwatch("b")

    asyncio.run(scene())


def test_a_file_under_two_names_is_marked_under_both(tmp_path):
    path, name = tmp_path / "0.out", tmp_path / "link.out"
    path.touch()
    name.symlink_to(path)

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            watcher.watch("b", name)
            append(path, "x\n")
            await until_marked(path, 2)
            await until_marked(name, 2)
            watcher.unwatch("a")
            append(path, "y\n")
            await until_marked(name, 4)

    asyncio.run(scene())
    assert marked(path) == 2


def test_a_file_that_was_replaced_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "_SWEEP", 0.02)
    path = tmp_path / "0.out"
    path.write_text("a\n")

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            path.unlink()
            path.write_text("b\nc\n")
            await until_marked(path, 4)
            append(path, "d\n")
            await until_marked(path, 6)

    asyncio.run(scene())


def refuse(number, *arguments):
    raise OSError(number, os.strerror(number))


def test_files_are_polled_where_the_kernel_has_no_more_watches(tmp_path, monkeypatch):
    monkeypatch.setattr(Inotify, "add", partial(refuse, errno.ENOSPC))
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            append(path, "x\n")
            await until_marked(path, 2)

    asyncio.run(scene())


def test_files_are_polled_where_there_is_no_inotify(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(watching, "Inotify", partial(refuse, errno.EMFILE))
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            append(path, "x\n")
            await until_marked(path, 2)

    asyncio.run(scene())
    assert "without inotify: [Errno 24] Too many open files" in caplog.text


def test_polled_files_go_back_to_the_kernel_when_it_has_watches_again(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "_SWEEP", 0.02)
    path = tmp_path / "0.out"
    path.touch()

    async def scene():
        with monkeypatch.context() as patch:
            patch.setattr(Inotify, "add", partial(refuse, errno.ENOSPC))
            watcher = await LogWatcher().__aenter__()
            watcher.watch("a", path)
        monkeypatch.setattr(watching, "_POLL", 3600.0)
        await until(lambda: not watcher._polled, "a watch")
        append(path, "x\n")
        await until_marked(path, 2)
        watcher.close()

    asyncio.run(scene())


def test_events_that_the_kernel_lost_are_made_up_for(tmp_path, monkeypatch):
    read = Inotify.read
    monkeypatch.setattr(Inotify, "read", lambda self: (read(self), Heard([], set(), True))[1])
    paths = [tmp_path / f"{number}.out" for number in range(2)]

    async def scene():
        async with LogWatcher() as watcher:
            for path in paths:
                watcher.watch(path.name, path)
            for path in paths:
                append(path, "x\n")
            for path in paths:
                await until_marked(path, 2)

    asyncio.run(scene())


def test_a_device_is_let_alone(tmp_path):
    times = tmp_path / "times"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", Path("/dev/null"), times)
            assert watcher.unwatch("a") == 0

    asyncio.run(scene())
    assert not times.exists()


def test_marks_that_cannot_be_written_are_said_once_and_followers_are_told_all_the_same(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path, tmp_path / "no" / "such" / "folder")
            for _ in range(2):
                waiting = asyncio.create_task(watcher.wait_for_growth([path], DEADLINE))
                await asyncio.sleep(0)
                append(path, "x\n")
                assert await waiting == {path}

    asyncio.run(scene())
    assert caplog.text.count("cannot be written") == 1


@BOTH
def test_who_waits_for_growth_is_told_which_files_grew(tmp_path, inotify):
    paths = [tmp_path / f"{number}.out" for number in range(3)]

    async def scene():
        async with LogWatcher(inotify=inotify) as watcher:
            for path in paths:
                watcher.watch(path.name, path)
            waiting = asyncio.create_task(watcher.wait_for_growth(paths[:2], DEADLINE))
            await asyncio.sleep(0)
            append(paths[2], "not asked for\n")
            append(paths[1], "x\n")
            assert await waiting == {paths[1]}
            assert await watcher.wait_for_growth(paths[:1], 0.01) == set()
            assert watcher.followers == {}

    asyncio.run(scene())


def test_thousands_of_files_need_no_open_file_each(tmp_path):
    async def scene():
        async with LogWatcher() as watcher:
            for number in range(1500):
                watcher.watch(str(number), tmp_path / f"{number}.out")
            append(tmp_path / "7.out", "x\n")
            await until_marked(tmp_path / "7.out", 2)
            for number in range(1500):
                watcher.unwatch(str(number))
            return len(list(Path("/proc/self/fd").iterdir()))

    assert asyncio.run(scene()) < 200
