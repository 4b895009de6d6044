"""Collecting output: no line is lost, and none is there twice, whatever breaks."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import ApiError, NotFound, ServerFault, TooEarly, Unreachable
from jobman.engines.kubernetes.managed import collecting
from jobman.engines.kubernetes.managed.collecting import Collector
from jobman.engines.kubernetes.objects import Status


def stamp(moment: int) -> str:
    """A moment in thousandths of a second, as nodes write it."""
    return f"2030-05-01T12:{moment // 60000:02}:{moment // 1000 % 60:02}.{moment % 1000:03}000000Z"


def answer(kind: type[ApiError], code: int, words: str = "") -> ApiError:
    return kind(code, Status(message=words))


class Node:
    """What a container wrote; `breaks` says after how many bytes the next streams break off."""

    def __init__(self, lines: list[tuple[int, bytes]]) -> None:
        self.lines = lines
        self.breaks: list[int] = []
        self.failures: list[Exception] = []
        self.size = 7
        """Bytes that come at a time."""
        self.asked: list[str] = []
        self.passed: Callable[[], None] = lambda: None
        self.ends_early = False
        """Whether a stream that breaks off looks like one that is over."""

    @property
    def text(self) -> bytes:
        return b"".join(text for _, text in self.lines)

    async def logs(self, _pod: str, *, since_time: str = "", **_options: Any) -> AsyncGenerator[bytes, None]:
        self.asked.append(since_time)
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        second = since_time[:19]  # The cluster counts from whole seconds.
        known = [(stamp(moment), text) for moment, text in self.lines]
        data = b"".join(f"{each} ".encode() + text for each, text in known if each[:19] >= second)
        end = self.breaks.pop(0) if self.breaks else None
        whole = data if end is None else data[:end]
        for start in range(0, len(whole), self.size):
            yield whole[start : start + self.size]
            self.passed()
        if end is not None and end < len(data) and not self.ends_early:
            raise Unreachable("it broke off")


def collector(node: Node, folder: Path) -> Collector:
    made = Collector(cast(Api, node), "pod", "main", folder / "0.out")
    made.prepare()
    return made


def kept(folder: Path) -> bytes:
    return (folder / "0.out").read_bytes()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_PAUSE", 0.0)


LINES = [(100, b"one\n"), (1500, b"two\n"), (1500, b"two again\n"), (1501, b"\n"), (61_000, b"the end")]


def test_what_a_container_wrote_is_kept_as_it_is(tmp_path: Path) -> None:
    node = Node(LINES)
    asyncio.run(collector(node, tmp_path).complete())
    assert kept(tmp_path) == b"one\ntwo\ntwo again\n\nthe end"


def test_who_follows_does_not_take_half_a_line_for_a_whole_one(tmp_path: Path) -> None:
    node = Node(LINES)
    node.ends_early = True
    node.breaks = [len(stamp(0)) + 3]
    made = collector(node, tmp_path)
    asyncio.run(made.follow())
    assert kept(tmp_path) == b""
    asyncio.run(made.complete())
    assert kept(tmp_path) == node.text


def test_a_position_that_is_torn_means_to_begin_anew(tmp_path: Path) -> None:
    node = Node(LINES)
    asyncio.run(collector(node, tmp_path).complete())
    note = tmp_path / "0.out.since"
    note.write_bytes(note.read_bytes()[:9])
    asyncio.run(collector(node, tmp_path).complete())
    assert kept(tmp_path) == node.text
    assert node.asked == ["", ""]


def test_a_file_that_lost_its_end_is_brought_anew(tmp_path: Path) -> None:
    node = Node(LINES)
    asyncio.run(collector(node, tmp_path).complete())
    (tmp_path / "0.out").write_bytes(b"one\nt")
    asyncio.run(collector(node, tmp_path).complete())
    assert kept(tmp_path) == node.text


def test_what_is_behind_the_position_is_not_trusted(tmp_path: Path) -> None:
    node = Node(LINES[:2])
    asyncio.run(collector(node, tmp_path).complete())
    with (tmp_path / "0.out").open("ab") as file:
        file.write(b"two ag")
    node.lines = LINES
    asyncio.run(collector(node, tmp_path).complete())
    assert kept(tmp_path) == node.text


def test_words_of_the_node_are_not_those_of_the_job(tmp_path: Path) -> None:
    node = Node([])
    node.lines = LINES[:1]
    made = collector(node, tmp_path)
    asyncio.run(made.complete())

    async def words(*_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
        yield b"unable to retrieve container logs for containerd://abc"

    node.logs = words  # type: ignore[method-assign]
    again = collector(node, tmp_path)
    asyncio.run(again.complete())
    assert kept(tmp_path) == b"one\n"
    assert again.lost.endswith("unable to retrieve container logs for containerd://abc")
    assert b"unable" not in (tmp_path / "0.out.since").read_bytes()


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (answer(NotFound, 404, "pods not found"), "its pod was gone before all of its output was read"),
        (
            answer(ServerFault, 500, 'container "main" not found'),
            'its node does not give its output: container "main" not found',
        ),
        (answer(TooEarly, 400), ""),
    ],
)
def test_what_cannot_be_had_is_told(tmp_path: Path, failure: Exception, words: str) -> None:
    node = Node(LINES)
    node.failures = [failure]
    made = collector(node, tmp_path)
    asyncio.run(made.complete())
    assert (made.lost, kept(tmp_path)) == (words, b"")


def test_a_node_has_so_much_time_to_give_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_PAUSE", 0.01)
    node = Node(LINES)
    node.failures = [answer(ServerFault, 502, "connection refused") for _ in range(1000)]
    made = collector(node, tmp_path)
    asyncio.run(made.complete(patience=0.1))
    assert made.lost == "the end of its output could not be read in time"


def test_a_cluster_that_is_away_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_PAUSE", 0.02)
    node = Node(LINES)
    node.failures = [Unreachable("nobody there") for _ in range(30)]
    made = collector(node, tmp_path)
    asyncio.run(made.complete(patience=0.3))
    assert (made.lost, kept(tmp_path)) == ("", node.text)


def test_a_disk_that_is_full_keeps_nobody_from_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    node = Node(LINES)
    made = collector(node, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(collecting, "_write_all", full)
        asyncio.run(made.follow())
        asyncio.run(made.complete())
        assert made.lost == "its output could not be kept: No space left on device"
    asyncio.run(made.complete())
    assert (made.lost, kept(tmp_path)) == ("", node.text)


# -- whatever breaks -----------------------------------------------------------------------------------------

texts = some.binary(max_size=12).map(lambda data: data.replace(b"\n", b"") + b"\n")
pauses = some.sampled_from([0, 1, 300, 999, 1000, 5000])


def _written(found: list[tuple[int, bytes]], *, has_end: bool) -> list[tuple[int, bytes]]:
    moments = accumulate(pause for pause, _ in found)
    lines = [(moment, text) for moment, (_, text) in zip(moments, found, strict=True)]
    if lines and not has_end:
        lines[-1] = lines[-1][0], lines[-1][1][:-1] or b"x"
    return lines


def written() -> some.SearchStrategy[list[tuple[int, bytes]]]:
    """Lines, of which the last may have no end."""
    found = some.lists(some.tuples(pauses, texts), max_size=12)
    return some.builds(_written, found, has_end=some.booleans())


@given(
    lines=written(),
    breaks=some.lists(some.integers(0, 400), max_size=5),
    size=some.integers(1, 60),
    noted_after=some.sampled_from([1, 10, 1 << 20]),
    ends_early=some.booleans(),
)
def test_no_line_is_lost_and_none_is_there_twice_when_streams_break(
    lines: list[tuple[int, bytes]], breaks: list[int], size: int, noted_after: int, *, ends_early: bool
) -> None:
    node = Node(lines)
    node.breaks, node.size, node.ends_early = list(breaks), size, ends_early
    with pytest.MonkeyPatch.context() as patched, TemporaryDirectory() as folder:
        patched.setattr(collecting, "_KEEP", noted_after)
        made = collector(node, Path(folder))

        async def all_of_it() -> None:
            while node.breaks:
                await made.follow()
            await made.complete()

        asyncio.run(all_of_it())
        assert (made.lost, kept(Path(folder))) == ("", node.text)


class Killed(BaseException):
    """Nobody catches it."""


@given(
    lines=written(),
    kills=some.lists(some.integers(0, 30), max_size=4),
    size=some.integers(1, 60),
    noted_after=some.sampled_from([1, 10, 1 << 20]),
)
def test_no_line_is_lost_and_none_is_there_twice_when_the_service_is_killed(
    lines: list[tuple[int, bytes]], kills: list[int], size: int, noted_after: int
) -> None:
    node = Node(lines)
    node.size = size
    with pytest.MonkeyPatch.context() as patched, TemporaryDirectory() as top:
        patched.setattr(collecting, "_KEEP", noted_after)
        here = Path(top) / "0"
        here.mkdir()
        for number, parts in enumerate(kills, start=1):
            here = _killed_after(parts, node, here, Path(top) / str(number))
        made = collector(node, here)
        asyncio.run(made.complete())
        assert (made.lost, kept(here)) == ("", node.text)


def _killed_after(parts: int, node: Node, here: Path, there: Path) -> Path:
    """A service reads from `here` and is killed after so many parts; `there` is what it left."""
    left = [parts]

    def passed() -> None:
        if left[0] == 0:
            # What it does on its way out, it does elsewhere.
            shutil.copytree(here, there)
            raise Killed
        left[0] -= 1

    node.passed = passed
    try:
        asyncio.run(collector(node, here).follow())
    except Killed:
        return there
    finally:
        node.passed = lambda: None
    return here
