"""Many streams become one text, in the order in which it was written."""

import os
import resource
from pathlib import Path

import pytest

from jobman.control.logs import files, sources
from jobman.control.logs.cursor import LogCursor
from jobman.control.logs.merging import chunk_for, merge, start
from jobman.control.logs.streams import LogStream
from tests.control.logs.writing import Scribe, rows, stream, texts


@pytest.fixture
def scribe(tmp_path):
    return Scribe(tmp_path)


def test_lines_of_two_copies_come_in_the_order_of_writing(scribe):
    scribe.say(0, "first\n", 1.0)
    scribe.say(1, "second\nthird\n", 2.0)
    scribe.say(0, "fourth\n", 3.0)
    assert texts(merge(scribe.streams())) == ["first", "second", "third", "fourth"]


def test_a_line_says_where_it_is_from_and_when(tmp_path):
    path = tmp_path / "3.err"
    path.write_bytes(b"oops\n")
    os.utime(path, (5.0, 5.0))
    (line,) = merge([LogStream("a.1/b.2", 4, 3, "n7", "stderr", path, ended=True)])
    assert (line.at, line.replica, line.attempt, line.copy, line.node) == (5.0, "a.1/b.2", 4, 3, "n7")
    assert (line.stream, line.text, line.partial, line.end) == ("stderr", "oops", False, 5)


def test_lines_of_the_same_moment_come_in_the_order_of_their_streams(scribe):
    for number in (2, 0, 1):
        scribe.say(number, f"{number}a\n{number}b\n", 1.0)
    assert texts(merge(scribe.streams())) == ["0a", "0b", "1a", "1b", "2a", "2b"]


def test_a_line_belongs_to_the_moment_it_was_finished(scribe):
    scribe.say(0, "slow ", 1.0)
    scribe.say(1, "quick\n", 2.0)
    scribe.say(0, "line\n", 3.0)
    assert texts(merge(scribe.streams())) == ["quick", "slow line"]


def test_what_has_no_mark_has_the_time_of_the_file(scribe):
    scribe.say(0, "marked\n", 1.0)
    scribe.write(0, b"behind\n", at=4.0)
    scribe.say(1, "between\n", 2.0)
    assert [(line.at, line.text) for line in merge(scribe.streams())] == [
        (1.0, "marked"),
        (2.0, "between"),
        (4.0, "behind"),
    ]


def test_text_is_kept_as_it_was_written(scribe):
    scribe.write(0, b" 10%\r 20%\r 30%\n\0nul\n\xff\xfebad\n\n  spaces  \r\n\xe2\x82\xac\nno newline")
    assert texts(merge(scribe.streams())) == [
        " 10%\r 20%\r 30%",
        "\0nul",
        "\ufffd\ufffdbad",
        "",
        "  spaces  \r",
        "€",
        "no newline",
    ]


def test_the_last_line_of_a_running_copy_is_partial(tmp_path):
    running = Scribe(tmp_path, ended=False)
    running.say(0, "done\nhalf", 1.0)
    assert [(line.text, line.partial) for line in merge(running.streams())] == [
        ("done", False),
        ("half", True),
    ]


def test_a_very_long_line_comes_in_pieces(scribe):
    scribe.write(0, b"a" * 300_000 + b"\nshort\n")
    lines = list(merge(scribe.streams()))
    assert "".join(line.text for line in lines[:-1]) == "a" * 300_000
    assert [line.partial for line in lines] == [True] * (len(lines) - 2) + [False, False]
    assert max(len(line.text) for line in lines) <= 128 * 1024


def test_a_file_that_is_gone_is_left_out_with_a_note(scribe):
    scribe.say(0, "here\n", 1.0)
    scribe.say(1, "gone\n", 2.0)
    scribe.path(1).unlink()
    notes: list[str] = []
    assert texts(merge(scribe.streams(), note=notes.append)) == ["here"]
    assert notes == [
        "The stdout of train.1 (attempt 1, copy 0) cannot be read: No such file or directory: "
        f"{scribe.path(1)}"
    ]


def test_a_file_that_goes_while_it_is_read_is_noted(scribe):
    scribe.write(0, b"x" * 70 * 1024 + b"\nrest\n")
    notes: list[str] = []
    lines = merge(scribe.streams(), note=notes.append)
    scribe.path(0).unlink()
    assert (texts(lines), len(notes)) == ([], 1)


def test_a_path_that_is_a_folder_is_noted(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    notes: list[str] = []
    assert texts(merge([stream(folder, ended=True)], tail=5, note=notes.append)) == []
    assert "Is a directory" in notes[0]


def test_a_copy_that_has_not_written_yet_is_no_trouble(tmp_path):
    notes: list[str] = []
    assert texts(merge([stream(tmp_path / "0.out")], note=notes.append)) == []
    assert notes == []


def test_attempts_share_a_file_by_their_offsets(tmp_path):
    path = tmp_path / "out.txt"
    path.write_bytes(b"try 1\nhalftry 2\ntry 3\n")
    streams = [
        LogStream("a.0", 1, 0, None, "stdout", path, None, 0, 10, ended=True),
        LogStream("a.0", 2, 0, None, "stdout", path, None, 10, 16, ended=True),
        LogStream("a.0", 3, 0, None, "stdout", path, None, 16, None, ended=True),
    ]
    assert [(line.attempt, line.text) for line in merge(streams)] == [
        (1, "try 1"),
        (1, "half"),
        (2, "try 2"),
        (3, "try 3"),
    ]
    assert texts(merge(streams, tail=2)) == ["try 2", "try 3"]


def test_marks_may_be_kept_elsewhere(tmp_path, scribe):
    scribe.say(0, "a\n", 3.0)
    elsewhere = tmp_path / "marks"
    (tmp_path / "0.out.times").rename(elsewhere)
    os.utime(scribe.path(0), (9.0, 9.0))
    assert [line.at for line in merge([stream(scribe.path(0), times=elsewhere)])] == [3.0]


def test_the_tail_is_of_all_streams_together(scribe):
    for moment in range(10):
        scribe.say(moment % 2, f"{moment}\n", float(moment))
    assert texts(merge(scribe.streams(), tail=3)) == ["7", "8", "9"]
    assert texts(merge(scribe.streams(), tail=0)) == []
    assert texts(merge(scribe.streams(), tail=99)) == [str(moment) for moment in range(10)]


def test_the_tail_of_many_streams_looks_only_at_the_latest(scribe, monkeypatch):
    for number in range(20):
        scribe.say(number, "a\nb\nc\n", float(number + 1))
    looked = []

    def last_lines(path, *rest):
        looked.append(path)
        return files.last_lines(path, *rest)

    monkeypatch.setattr(sources, "last_lines", last_lines)
    assert rows(merge(scribe.streams(), tail=2)) == [
        (20.0, "train.19", "b", False, 4),
        (20.0, "train.19", "c", False, 6),
    ]
    assert looked == [scribe.path(19)]


def test_since_begins_with_the_line_that_was_finished_then(scribe):
    scribe.say(0, "old\nlong ", 1.0)
    scribe.say(1, "older\n", 0.5)
    scribe.say(0, "line\n", 2.0)
    scribe.say(1, "new\n", 3.0)
    assert texts(merge(scribe.streams(), since=2.0)) == ["long line", "new"]
    assert texts(merge(scribe.streams(), since=2.5)) == ["new"]
    assert texts(merge(scribe.streams(), since=4.0)) == []
    assert texts(merge(scribe.streams(), since=0.6, tail=2)) == ["long line", "new"]


def test_a_start_names_streams_whose_lines_it_leaves_out(scribe):
    scribe.say(0, "old\n", 1.0)
    scribe.say(1, "new\n", 2.0)
    begin = start(scribe.streams(), tail=1)
    assert begin == LogCursor({("train.0", 1, 0, "stdout"): 4, ("train.1", 1, 0, "stdout"): 0})
    scribe.say(0, "later\n", 3.0)
    assert texts(merge(scribe.streams(), cursor=begin)) == ["new", "later"]


def test_damaged_marks_cost_the_times_and_not_the_lines(scribe):
    for moment in range(1, 6):
        scribe.say(0, f"{moment}\n", float(moment))
    times = scribe.folder / "0.out.times"
    times.write_bytes(times.read_bytes()[40:] + b"\x80" * 33)
    lines = list(merge(scribe.streams()))
    assert texts(lines) == ["1", "2", "3", "4", "5"]
    assert [line.at for line in lines] == sorted(line.at for line in lines)


def test_more_streams_than_a_process_may_open_can_be_merged(scribe):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in range(60):
        scribe.write(number, b"x\n")
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 8, hard))
    try:
        assert len(list(merge(scribe.streams()))) == 60
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_many_streams_share_the_memory():
    assert [chunk_for(count) for count in (1, 256, 1024, 100_000)] == [65536, 65536, 16384, 4096]
