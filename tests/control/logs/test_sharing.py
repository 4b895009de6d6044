"""Files that several write to."""

from pathlib import Path

from jobman.control.logs.sharing import apart
from jobman.control.logs.streams import LogStream


def stream(replica="a.0", attempt=1, copy=0, name="stdout", path="out", start=0, end=None):
    return LogStream(
        replica, attempt, copy, None, name, Path(path), start=start, end=end, ended=end is not None
    )


def test_streams_with_files_of_their_own_stay_as_they_are():
    streams = [stream(path="one"), stream(replica="b.0", path="two")]
    assert apart(streams) == streams


def test_an_attempt_that_goes_on_where_another_ended_stands_alone():
    streams = [stream(end=10), stream(attempt=2, start=10)]
    assert apart(streams) == streams


def test_copies_that_write_to_one_file_are_told_once():
    found = apart([stream(copy=copy) for copy in range(3)])
    assert found == [stream(copy=0)]


def test_who_speaks_for_others_speaks_until_the_last_of_them_ends():
    (one,) = apart([stream(end=10), stream(replica="b.0", start=5, end=20)])
    assert (one.replica, one.start, one.end, one.ended) == ("a.0", 0, 20, True)
    (one,) = apart([stream(end=10), stream(replica="b.0", start=5)])
    assert (one.end, one.ended) == (None, False)


def test_both_streams_of_a_copy_in_one_file_are_told_once():
    assert [each.stream for each in apart([stream(), stream(name="stderr")])] in (["stdout"], ["stderr"])
