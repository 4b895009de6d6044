"""Following delivers the past, then each line as it comes, and ends when all is over."""

import asyncio
import time

import msgspec
import pytest

from jobman.control.logs.cursor import LogCursor
from jobman.control.logs.feed import LogFeed
from jobman.control.logs.following import follow
from jobman.control.logs.merging import merge, start
from jobman.control.logs.streams import LogLine, LogStream
from jobman.control.logs.times import MarkWriter, times_beside
from jobman.control.logs.watching import LogWatcher
from tests.control.logs.copies import DEADLINE, append, copy, ended
from tests.control.logs.writing import Scribe, stream, texts

WATCHERS = {
    "inotify": lambda: LogWatcher(inotify=True),
    "polling": lambda: LogWatcher(inotify=False),
}
BOTH = pytest.mark.parametrize("make", WATCHERS.values(), ids=WATCHERS.keys())


class Reader:
    """Somebody who follows, line by line."""

    def __init__(self, feed, **more):
        self.follower = follow(feed, **more)
        self._lines = self.follower.__aiter__()

    async def next(self):
        async with asyncio.timeout(DEADLINE):
            return await anext(self._lines)

    async def texts(self, count):
        return [(await self.next()).text for _ in range(count)]

    async def rest(self):
        async with asyncio.timeout(DEADLINE):
            return [line async for line in self._lines]

    async def close(self):
        await self._lines.aclose()


def over(stream: LogStream) -> LogStream:
    return msgspec.structs.replace(stream, ended=True)


@BOTH
def test_first_comes_the_past_and_then_what_is_written(tmp_path, make):
    path = tmp_path / "0.out"
    path.write_text("one\ntwo\n")

    async def scene():
        async with make() as watcher:
            watcher.watch("a", path)
            feed = LogFeed([stream(path)])
            reader = Reader(feed, watcher=watcher)
            assert await reader.texts(2) == ["one", "two"]
            append(path, "three\n")
            assert await reader.texts(1) == ["three"]
            append(path, "four\nfive")
            feed.finish()
            assert [(line.text, line.partial) for line in await reader.rest()] == [
                ("four", False),
                ("five", False),
            ]

    asyncio.run(scene())


def test_without_a_watcher_files_are_looked_at(tmp_path):
    path = tmp_path / "0.out"

    async def scene():
        feed = LogFeed([stream(path)])
        reader = Reader(feed)
        append(path, "one\n")
        assert await reader.texts(1) == ["one"]
        append(path, "two\n")
        assert await reader.texts(1) == ["two"]
        feed.finish()
        assert await reader.rest() == []

    asyncio.run(scene())


def test_the_past_may_be_bounded(tmp_path):
    scribe = Scribe(tmp_path, ended=False)
    for moment in range(1, 7):
        scribe.say(moment % 2, f"{moment}\n", float(moment))

    async def scene(**bounds):
        feed = LogFeed(scribe.streams())
        feed.finish()
        return texts(await Reader(feed, **bounds).rest())

    assert asyncio.run(scene()) == ["1", "2", "3", "4", "5", "6"]
    assert asyncio.run(scene(tail=2)) == ["5", "6"]
    assert asyncio.run(scene(since=4.0)) == ["4", "5", "6"]
    assert asyncio.run(scene(since=2.0, tail=10)) == ["2", "3", "4", "5", "6"]


@BOTH
def test_streams_may_come_later_and_end_before_the_rest(tmp_path, make):
    first, second = tmp_path / "0.out", tmp_path / "1.out"

    async def scene():
        async with make() as watcher:
            watcher.watch("a", first)
            feed = LogFeed([stream(first)])
            reader = Reader(feed, watcher=watcher, tail=10)
            append(first, "a\nlast")
            watcher.unwatch("a")
            feed.put(over(stream(first)))
            assert await reader.texts(2) == ["a", "last"]
            append(second, "b\n")
            watcher.watch("b", second)
            feed.put(stream(second, 1), over(stream(first)))
            line = await reader.next()
            assert (line.replica, line.text) == ("train.1", "b")
            feed.finish()
            assert await reader.rest() == []
            assert watcher.followers == {}

    asyncio.run(scene())


def test_a_line_is_held_back_until_it_is_finished(tmp_path):
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            feed = LogFeed([stream(path)])
            reader = Reader(feed, watcher=watcher)
            append(path, "ab")
            append(path, "cd\n")
            line = await reader.next()
            assert (line.text, line.partial) == ("abcd", False)
            await reader.close()

    asyncio.run(scene())


def test_a_prompt_that_waits_is_delivered_as_a_partial_line(tmp_path):
    path = tmp_path / "0.out"

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            feed = LogFeed([stream(path)])
            reader = Reader(feed, watcher=watcher)
            append(path, "name? ")
            line = await reader.next()
            assert (line.text, line.partial) == ("name? ", True)
            append(path, "Ada\n")
            line = await reader.next()
            assert (line.text, line.partial) == ("Ada", False)
            await reader.close()

    asyncio.run(scene())


def test_moments_in_the_future_do_not_stop_the_flow(tmp_path):
    path = tmp_path / "0.out"
    path.write_text("from tomorrow\nhalf")
    MarkWriter(times_beside(path)).mark(18, time.time() + 86400)

    async def scene():
        async with LogWatcher() as watcher:
            watcher.watch("a", path)
            reader = Reader(LogFeed([stream(path)]), watcher=watcher)
            assert await reader.texts(2) == ["from tomorrow", "half"]
            await reader.close()

    asyncio.run(scene())


def test_a_stream_that_is_gone_is_noted_once(tmp_path):
    here, gone = tmp_path / "0.out", tmp_path / "1.out"
    here.write_text("here\n")
    notes: list[str] = []

    async def scene():
        feed = LogFeed([stream(here), stream(gone, 1, ended=True)])
        reader = Reader(feed, note=notes.append)
        assert await reader.texts(1) == ["here"]
        append(here, "still\n")
        assert await reader.texts(1) == ["still"]
        feed.finish()
        assert await reader.rest() == []

    asyncio.run(scene())
    assert [note.partition(" cannot")[0] for note in notes] == ["The stdout of train.1 (attempt 1, copy 0)"]


def test_who_was_cut_off_goes_on_without_loss_or_doubles(tmp_path):
    paths = [tmp_path / f"{number}.out" for number in range(3)]
    for path in paths[:2]:
        path.write_text("".join(f"{path.stem}.{number}\n" for number in range(10)))
    streams = [stream(path, number) for number, path in enumerate(paths)]

    async def scene():
        async with LogWatcher() as watcher:
            for path in paths:
                watcher.watch(path.name, path)
            position = start(streams, tail=5)
            first = Reader(LogFeed(streams), watcher=watcher, cursor=position)
            read = [await first.next() for _ in range(3)]
            await first.close()
            for line in read:
                position.advance(line)
            append(paths[0], "0.10\n")
            append(paths[2], "2.0\n")
            feed = LogFeed(streams)
            feed.finish()
            second = Reader(feed, watcher=watcher, cursor=LogCursor.decode(position.encode()))
            return read + await second.rest()

    lines = asyncio.run(scene())
    whole = texts(merge([over(each) for each in streams]))
    assert sorted(texts(lines)) == sorted(whole[whole.index(lines[0].text) :])
    assert len(lines) == 7


def test_the_follower_knows_how_far_it_is(tmp_path):
    path = tmp_path / "0.out"
    path.write_text("one\ntwo\n")

    async def scene():
        feed = LogFeed([stream(path)])
        feed.finish()
        follower = follow(feed)
        async for batch in follower.batches():
            assert texts(batch) == ["one", "two"]
        return follower.cursor

    assert asyncio.run(scene()) == LogCursor({("train.0", 1, 0, "stdout"): 8})


def test_lines_of_copies_that_take_turns_come_in_turn(tmp_path):
    paths = [tmp_path / f"{number}.out" for number in range(2)]

    async def scene():
        async with LogWatcher() as watcher:
            streams = [stream(path, number) for number, path in enumerate(paths)]
            for path in paths:
                watcher.watch(path.name, path)
            feed = LogFeed(reversed(streams))
            reader = Reader(feed, watcher=watcher)
            reading = asyncio.create_task(reader.texts(20))
            for turn in range(20):
                waiting = asyncio.create_task(watcher.wait_for_growth(paths, DEADLINE))
                await asyncio.sleep(0)
                append(paths[turn % 2], f"{turn}\n")
                await waiting
            assert await reading == [str(turn) for turn in range(20)]
            await reader.close()

    asyncio.run(scene())


@pytest.mark.slow
@BOTH
def test_all_that_busy_processes_write_arrives_once_and_in_order(tmp_path, make):
    paths = [tmp_path / f"{number}.out" for number in range(4)]
    script = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; printf end"

    async def scene():
        async with make() as watcher:
            feed = LogFeed()
            reader = Reader(feed, watcher=watcher)
            reading = asyncio.create_task(reader.rest())
            processes = []
            for number, path in enumerate(paths):
                watcher.watch(path.name, path)
                feed.put(stream(path, number))
                processes.append(copy(script, path))
            for number, (process, path) in enumerate(zip(processes, paths, strict=True)):
                await ended(process)
                watcher.unwatch(path.name)
                feed.put(over(stream(path, number)))
            feed.finish()
            return await reading

    lines = asyncio.run(scene())
    expected = [*map(str, range(3000)), "end"]
    for number in range(4):
        mine = [line for line in lines if line.replica == f"train.{number}"]
        whole = "".join(line.text if line.partial else line.text + "\n" for line in mine)
        assert whole.split() == expected


def test_who_is_cut_off_again_and_again_reads_everything_once(tmp_path):
    paths = [tmp_path / f"{number}.out" for number in range(2)]
    streams = [stream(path, number) for number, path in enumerate(paths)]
    script = "i=0; while [ $i -lt 500 ]; do echo $i; i=$((i+1)); done; printf end"

    async def scene():
        async with LogWatcher() as watcher:
            for path in paths:
                watcher.watch(path.name, path)
            processes = [copy(script, path) for path in paths]
            cursor = LogCursor()
            lines: list[LogLine] = []
            for patience in range(1, 100, 7):
                reader = Reader(LogFeed(streams), watcher=watcher, cursor=LogCursor.decode(cursor.encode()))
                for _ in range(min(patience, 1002 - len(lines))):
                    lines.append(await reader.next())
                    cursor.advance(lines[-1])
                await reader.close()
            for process in processes:
                await ended(process)
            feed = LogFeed(streams)
            feed.finish()
            return lines + await Reader(feed, watcher=watcher, cursor=cursor).rest()

    lines = asyncio.run(scene())
    for number in range(2):
        mine = [line for line in lines if line.replica == f"train.{number}"]
        whole = "".join(line.text if line.partial else line.text + "\n" for line in mine)
        assert whole.split() == [*map(str, range(500)), "end"]
