"""Marks tell when what stands at an offset was written, whatever a crash left of them."""

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.control.logs import times
from jobman.control.logs.times import Mark, MarkWriter, Times


@pytest.fixture
def path(tmp_path):
    return tmp_path / "0.out.times"


def written(path, *marks):
    writer = MarkWriter(path)
    for offset, at in marks:
        assert writer.mark(offset, at, final=True)
    return writer


def test_a_mark_covers_what_stands_before_it(path):
    written(path, (10, 1.5), (20, 2.25))
    marks = Times(path)
    assert [marks.covering(end) for end in (1, 10, 11, 20, 21)] == [
        Mark(10, 1.5),
        Mark(10, 1.5),
        Mark(20, 2.25),
        Mark(20, 2.25),
        None,
    ]


def test_without_marks_there_are_no_times(path):
    marks = Times(path)
    assert (len(marks), marks.covering(1), marks.first_since(0.0), marks.last.offset) == (0, None, 0, 0)


def marks_taken(path, looks):
    """At which of many looks, two milliseconds apart, a file that grows all the time gets a mark."""
    look = 0
    writer = MarkWriter(path, clock=lambda: look / 512)
    for look in range(looks):
        if writer.mark(look + 1, 1000.0):
            yield look


def test_marks_come_with_a_pause_between_them(path):
    assert list(marks_taken(path, 10)) == [0, 3, 6, 9]
    assert Times(path).last == Mark(10, 1000.0)


def test_many_marks_lengthen_the_pause(path, monkeypatch):
    monkeypatch.setattr(times, "_PLENTY", 10)
    gaps = [after - before for before, after in pairwise(marks_taken(path, 1000))]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[-1]


def test_a_file_that_did_not_grow_gets_no_mark(path):
    writer = written(path, (10, 1.0))
    assert writer.mark(10, 2.0)
    assert writer.mark(4, 3.0)
    assert len(Times(path)) == 1


def test_a_clock_that_goes_back_does_not_take_the_marks_back(path):
    written(path, (10, 100.0), (20, 40.0))
    assert Times(path).last == Mark(20, 100.0)


def test_a_reader_sees_the_marks_that_are_added(path):
    writer = written(path, (10, 1.0))
    marks = Times(path)
    assert marks.covering(11) is None
    writer.mark(20, 2.0, final=True)
    marks.refresh()
    assert marks.covering(11) == Mark(20, 2.0)


def test_a_lost_file_of_marks_is_as_good_as_none(path, monkeypatch):
    monkeypatch.setattr(times, "_PAGE", 1)
    written(path, (10, 1.0), (20, 2.0), (30, 3.0))
    marks = Times(path)
    path.unlink()
    assert [marks.covering(end) for end in (5, 15)] == [None, None]


@given(
    gaps=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=40),
    page=st.integers(1, 8),
    order=st.randoms(),
)
def test_any_offset_and_moment_is_found_in_any_order(tmp_path_factory, gaps, page, order):
    path = tmp_path_factory.mktemp("marks") / "t"
    marks, offset, at = [], 0, 0
    for size, pause in gaps:
        offset, at = offset + size, at + pause
        marks.append(Mark(offset, float(at)))
    written(path, *marks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times, "_PAGE", page)
        read = Times(path)
        questions = list(range(offset + 3))
        order.shuffle(questions)
        for end in questions:
            assert read.covering(end) == next((mark for mark in marks if mark.offset >= end), None)
        for moment in range(at + 2):
            earlier = sum(mark.at < moment for mark in marks)
            assert read.first_since(moment) == earlier


@given(kept=st.integers(0, 160), zeros=st.integers(0, 100))
def test_a_torn_end_is_left_out_and_then_mended(tmp_path_factory, kept, zeros):
    path = tmp_path_factory.mktemp("marks") / "t"
    written(path, *((number * 10, float(number)) for number in range(1, 11)))
    path.write_bytes(path.read_bytes()[:kept] + bytes(zeros if kept % 16 == 0 else 0))
    whole = kept // 16
    assert [Times(path)[index] for index in range(len(Times(path)))] == [
        Mark(number * 10, float(number)) for number in range(1, whole + 1)
    ]
    MarkWriter(path).mark(1000, 1000.0)
    read = Times(path)
    assert (len(read), read.last) == (whole + 1, Mark(1000, 1000.0))


def test_a_mark_that_does_not_fit_on_the_disk_leaves_no_torn_record(path, monkeypatch):
    writer = written(path, (10, 1.0))
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    with pytest.raises(OSError, match="No space left"):
        writer.mark(20, 2.0, final=True)
    assert Times(path).last == Mark(10, 1.0)
    monkeypatch.setattr(os, "write", write)
    writer.mark(30, 3.0, final=True)
    assert [Times(path)[index] for index in range(2)] == [Mark(10, 1.0), Mark(30, 3.0)]
