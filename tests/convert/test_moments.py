"""Moments are read from where somebody stands: 4 March 2031, 12:15, an hour ahead of UTC."""

from datetime import timedelta

import pytest

from jobman.convert.moments import moment_of
from jobman.convert.values import Wrong
from tests.convert.scripts import NOW


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "+0s"),
        ("now+60", "+60s"),
        ("now+1hour", "+3600s"),
        ("now + 2 days", "+172800s"),
        ("16:00", "2031-03-04T16:00:00+01:00"),
        ("9:30", "2031-03-05T09:30:00+01:00"),
        ("4:30:10PM", "2031-03-04T16:30:10+01:00"),
        ("12:00 AM", "2031-03-05T00:00:00+01:00"),
        ("noon", "2031-03-05T12:00:00+01:00"),
        ("teatime", "2031-03-04T16:00:00+01:00"),
        ("today", "2031-03-04T00:00:00+01:00"),
        ("tomorrow", "2031-03-05T00:00:00+01:00"),
        ("2031-05-06", "2031-05-06T00:00:00+01:00"),
        ("2031-05-06T07:08", "2031-05-06T07:08:00+01:00"),
        ("2031-05-06T07:08:09", "2031-05-06T07:08:09+01:00"),
        ("05/06", "2031-05-06T00:00:00+01:00"),
        ("01/02", "2032-01-02T00:00:00+01:00"),
        ("01/20/33-10:00", "2033-01-20T10:00:00+01:00"),
        ("012033", "2033-01-20T00:00:00+01:00"),
    ],
)
def test_a_moment_in_all_its_forms(text, moment):
    assert moment_of(text, NOW) == moment


def test_a_moment_may_be_asked_for_earlier():
    assert moment_of("now+1hour", NOW, timedelta(minutes=10)) == "+3000s"
    assert moment_of("16:00", NOW, timedelta(hours=1)) == "2031-03-04T15:00:00+01:00"


@pytest.mark.parametrize("text", ["", "soon", "25:00", "2031-13-01", "now+3 moons", "12", "2031-05-06T"])
def test_what_is_no_moment(text):
    with pytest.raises(Wrong):
        moment_of(text, NOW)
