"""Laws of the merge, over random interleavings of writes and marks."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.control.logs import files
from jobman.control.logs.cursor import LogCursor
from jobman.control.logs.merging import merge, start
from jobman.control.logs.times import times_beside
from tests.control.logs.writing import Scribe, model, rows

STREAMS = 3
TEXTS = st.lists(
    st.sampled_from(
        [b"a", b"bcdefg", b"\n", b"\n", b"\r", b"\0", "é".encode(), "€".encode(), b"\xff", b"\xf0\x9f"]
    ),
    min_size=1,
    max_size=6,
).map(b"".join)
ACTS = st.lists(st.tuples(st.integers(0, STREAMS - 1), TEXTS, st.booleans(), st.integers(0, 2)), max_size=25)
"""Which stream, what it writes, whether a mark is taken, and how much later the next thing happens."""


@pytest.fixture(scope="module", autouse=True)
def _small_windows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "WINDOW", 8)
        yield


class Written:
    """A folder in which a history was written, with what a merge has to say of it."""

    def __init__(self, acts, ended=True):
        self._folder = TemporaryDirectory()
        self.scribe = Scribe(Path(self._folder.name), ended=ended)
        self.now = 100.0
        self.play(acts)

    def play(self, acts):
        for number, data, marked, pause in acts:
            self.scribe.write(number, data, self.now)
            if marked:
                self.scribe.mark(number, self.now)
            self.now += pause

    @property
    def expected(self):
        return model(self.scribe, STREAMS)

    @property
    def streams(self):
        return self.scribe.streams(STREAMS)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._folder.cleanup()


@given(acts=ACTS, ended=st.booleans())
def test_every_line_comes_once_and_in_order(acts, ended):
    with Written(acts, ended) as history:
        assert rows(merge(history.streams)) == history.expected


@given(acts=ACTS, ended=st.booleans(), count=st.integers(0, 12))
def test_a_tail_is_the_end_of_the_whole(acts, ended, count):
    with Written(acts, ended) as history:
        expected = history.expected
        assert rows(merge(history.streams, tail=count)) == expected[max(0, len(expected) - count) :]


@given(acts=ACTS, since=st.integers(99, 140))
def test_since_leaves_out_exactly_what_is_older(acts, since):
    with Written(acts) as history:
        assert rows(merge(history.streams, since=since)) == [
            row for row in history.expected if row[0] >= since
        ]


@given(acts=ACTS, since=st.integers(99, 120), count=st.integers(1, 5))
def test_a_tail_since_a_moment_is_both(acts, since, count):
    with Written(acts) as history:
        late = [row for row in history.expected if row[0] >= since]
        assert rows(merge(history.streams, since=since, tail=count)) == late[-count:]


@given(acts=ACTS, ended=st.booleans(), data=st.data())
def test_a_reader_that_was_cut_off_goes_on_exactly_there(acts, ended, data):
    with Written(acts, ended) as history:
        expected = history.expected
        stop = data.draw(st.integers(0, len(expected)))
        tail = data.draw(st.none() | st.integers(0, len(expected)))
        begin = 0 if tail is None else max(0, len(expected) - tail)
        cursor = start(history.streams, tail=tail)
        for line, _ in zip(merge(history.streams, cursor=cursor), range(stop), strict=False):
            cursor.advance(line)
        back = LogCursor.decode(cursor.encode())
        assert rows(merge(history.streams, cursor=back)) == expected[begin + stop :]


@given(before=ACTS, after=ACTS)
def test_what_is_written_while_a_reader_is_away_is_not_lost(before, after):
    with Written(before, ended=False) as history:
        cursor = LogCursor()
        read = dict.fromkeys(range(STREAMS), "")
        for ended in (False, True):
            for line in merge(history.scribe.streams(STREAMS), cursor=cursor):
                cursor.advance(line)
                end = "" if line.partial else "\n"
                read[int(line.replica.removeprefix("train."))] += line.text + end
            if not ended:
                history.play([(number, b"+" + data, marked, pause) for number, data, marked, pause in after])
                history.scribe.ended = True
        for number, text in read.items():
            raw = history.scribe.contents.get(number, b"")
            assert _ascii(text.removesuffix("\n")) == _ascii(
                raw.removesuffix(b"\n").decode("utf-8", "replace")
            )


def _ascii(text):
    """Without the replacements of broken characters: a line cut in mid-character may need one more."""
    return "".join(letter for letter in text if letter.isascii())


@given(acts=ACTS, number=st.integers(0, STREAMS - 1), kept=st.integers(0, 200))
def test_torn_marks_lose_no_line_and_no_order(acts, number, kept):
    with Written(acts) as history:
        times = times_beside(history.scribe.path(number))
        if times.exists():
            times.write_bytes(times.read_bytes()[:kept])
            history.scribe.marks[number] = history.scribe.marks[number][: kept // 16]
        assert rows(merge(history.streams)) == history.expected
