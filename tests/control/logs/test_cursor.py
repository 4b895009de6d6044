"""A cursor travels as a text, and a text that is none is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.control.logs.cursor import CursorError, LogCursor
from jobman.control.logs.streams import LogLine, StreamKey
from tests.control.logs.writing import stream

KEYS = st.tuples(
    st.text(min_size=1, max_size=8),
    st.integers(1, 9),
    st.integers(0, 9),
    st.sampled_from(["stdout", "stderr"]),
)


@given(st.dictionaries(KEYS, st.integers(0, 2**50)))
def test_a_cursor_survives_its_journey(offsets):
    assert LogCursor.decode(LogCursor(offsets).encode()) == LogCursor(offsets)


def test_the_text_needs_no_quoting_and_is_short():
    offsets: dict[StreamKey, int] = {
        (f"train.{number}", 1, 0, "stdout"): 40_000 + number * 37 for number in range(1000)
    }
    text = LogCursor(offsets).encode()
    assert text.replace("-", "").replace("_", "").isalnum()
    assert len(text) < 8_000


def test_a_line_moves_the_cursor_behind_it(tmp_path):
    cursor = LogCursor()
    cursor.advance(LogLine(1.0, "train.0", 1, 0, None, "stdout", "hello", False, 6))
    assert cursor.of(stream(tmp_path / "0.out")) == 6


def test_a_stream_that_is_not_known_begins_at_its_start(tmp_path):
    assert LogCursor().of(stream(tmp_path / "0.out", start=12)) == 12


GOOD = LogCursor({("train.0", 1, 0, "stdout"): 5}).encode()


@pytest.mark.parametrize(
    "text", ["", "1", "2abc", "1!!!!", "1abcd", GOOD[:-4], GOOD + "é", "1" + GOOD, GOOD[1:]]
)
def test_a_text_that_is_no_cursor_is_refused(text):
    with pytest.raises(CursorError, match="without a position"):
        LogCursor.decode(text)


@given(st.text(max_size=40) | st.text(max_size=40).map(lambda text: "1" + text))
def test_no_text_breaks_the_reader(text):
    with suppress(CursorError):
        LogCursor.decode(text)
