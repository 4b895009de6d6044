"""Lines are found forwards and backwards, in files of any size and any content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.control.logs import files
from tests.control.logs.writing import boundaries, pieces

CONTENT = st.lists(
    st.sampled_from(
        [b"a", b"bcdefgh", b"\n", b"\r", b"\0", "é".encode(), "€".encode(), "𝄞".encode(), b"\xff", b"\xf0"]
    ),
    max_size=60,
).map(b"".join)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(files, "WINDOW", 8)


@pytest.fixture
def write(tmp_path):
    def write(data):
        path = tmp_path / "0.out"
        path.write_bytes(data)
        return path

    return write


@given(content=CONTENT, begin=st.integers(0, 40), chunk=st.sampled_from([4, 8]))
def test_blocks_hold_everything_and_end_where_lines_end(tmp_path_factory, content, begin, chunk):
    path = tmp_path_factory.mktemp("files") / "f"
    path.write_bytes(content)
    begin = min(begin, len(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "WINDOW", 8)
        found = list(files.blocks(path, begin, len(content), chunk))
        assert b"".join(block.data for block in found) == content[begin:]
        ends = {end for end, _ in pieces(content, begin)}
        assert all(block.offset + len(block.data) in ends for block in found)
        assert all(block.data.endswith(b"\n") or b"\n" not in block.data for block in found)
        assert all(len(block.data) < 3 * 8 for block in found)


@given(content=CONTENT, begin=st.integers(0, 20), before=st.integers(0, 80))
def test_boundaries_are_the_same_from_behind(tmp_path_factory, content, begin, before):
    path = tmp_path_factory.mktemp("files") / "f"
    path.write_bytes(content)
    begin = min(begin, len(content))
    before = max(begin, min(before, len(content)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "WINDOW", 8)
        ends = boundaries(content, begin)
        expected = [end for end in reversed(ends) if begin < end <= before] + [begin]
        assert list(files.boundaries(path, begin, len(content), before)) == expected


def test_a_long_line_is_cut_between_characters(small, write):
    path = write("aé€éa€bc\n".encode())
    assert [block.data.decode() for block in files.blocks(path, 0, 16)] == ["aé€é", "a€bc\n"]


def test_a_file_that_shrank_gives_what_is_left(small, write):
    assert list(files.blocks(write(b"ab\nc"), 0, 1000)) == [(0, b"ab\n", True), (3, b"c", False)]


@pytest.mark.parametrize(
    ("content", "count", "expected"),
    [
        (b"a\nb\nc\n", 2, (2, 2)),
        (b"a\nb\nc", 2, (2, 2)),
        (b"a\nb\nc", 0, (5, 0)),
        (b"a\nb\n", 5, (0, 2)),
        (b"", 3, (0, 0)),
        (b"\n\n\n", 1, (2, 1)),
        (b"\n\n\n", 3, (0, 3)),
        (b"x" * 24, 1, (16, 1)),
        (b"x" * 25, 1, (24, 1)),
    ],
)
def test_the_last_lines_are_found_from_behind(small, write, content, count, expected):
    assert files.last_lines(write(content), 0, len(content), count) == expected


def test_the_end_of_a_large_file_is_found_without_reading_it(tmp_path, monkeypatch):
    path = tmp_path / "0.out"
    with path.open("wb") as file:
        file.truncate(1 << 33)
        file.seek(0, 2)
        file.write(b"\nlast but one\nlast\n")
    read, sizes = files.read_at, []

    def read_at(path, offset, size):
        sizes.append(size)
        return read(path, offset, size)

    monkeypatch.setattr(files, "read_at", read_at)
    assert files.last_lines(path, 0, path.stat().st_size, 2) == ((1 << 33) + 1, 2)
    assert sum(sizes) <= files.WINDOW
