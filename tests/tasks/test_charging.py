"""What tenants used, in slices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.control.store.database import open_database
from jobman.control.store.schema import slices
from jobman.control.store.usage import UsageReads
from jobman.control.store.views import UsageFilter
from jobman.tasks.charging import JOB, Meter, charged_upto, cores_of, seconds_in, write_slices
from jobman.tasks.entries import Entry
from jobman.tasks.model import Ends

DESK, FARM = ("desk", "price:1"), ("farm", "price:1")


def a_meter(**cores: float) -> Meter:
    return Meter(2.0, lambda image: cores.get(image.partition(":")[0], 1.0), now=0.0)


def test_a_slice_has_the_seconds_cores_and_units_since_the_last():
    meter = a_meter(price=4)
    meter.close({DESK: 100.0}, 5, now=60.0)
    (second,) = meter.close({DESK: 460.0, FARM: 0.0}, 9, now=120.0)
    assert (second.start, second.end, second.seconds, second.upto) == (60.0, 120.0, 360.0, 9)
    assert second.units == pytest.approx(2.0 * 4 * 0.1, abs=1e-6)


@given(
    st.lists(st.dictionaries(st.sampled_from([DESK, FARM]), st.floats(0, 1e4)), max_size=8), st.integers(0, 8)
)
def test_nothing_is_charged_twice_or_left_out_whenever_it_is_begun_anew(steps, crash):
    """A broker that takes over counts from nothing, and reads what was not charged from the journal."""
    total: Counter[Any]
    charged: Counter[Any]
    counted: Counter[Any]
    total, charged, counted = Counter(), Counter(), Counter()
    meter = a_meter()
    for number, more in enumerate(steps):
        total.update(more)
        counted.update(more)
        if number == crash:
            meter, counted = a_meter(), Counter()
            meter.begin(counted, {key: total[key] - charged[key] for key in total})
        elif number % 2:
            charged.update({(each.tenant, each.image): each.seconds for each in meter.close(counted, 1, 1.0)})
    charged.update({(each.tenant, each.image): each.seconds for each in meter.close(counted, 2, 2.0)})
    assert charged == pytest.approx({key: seconds for key, seconds in total.items() if seconds})


def test_what_the_journal_tells_is_counted_for_the_owner_of_each_batch():
    def ends(seq: int, batch: int, *seconds: float) -> Entry:
        body = Ends(indexes=list(range(len(seconds))), status=3, seconds=list(seconds))
        return Entry(seq, batch, 1, msgspec.msgpack.encode(body))

    entries = [ends(1, 7, 0.5, 0.25), ends(2, 8, 1.0), ends(3, 7, 0.25), ends(4, 99, 50.0)]
    assert seconds_in(entries, {7: DESK, 8: FARM}) == {DESK: 1.0, FARM: 1.0}


@pytest.mark.parametrize(("asked", "cores"), [({}, 1.0), ({"cpu": "2"}, 2.0), ({"cpu": "500m"}, 0.5)])
def test_cores_are_read_as_mappers_write_them(asked, cores):
    assert cores_of(asked) == cores


def test_they_stand_among_the_slices_of_jobs_and_in_their_statements(url):
    database = open_database(url)
    try:
        with database.write() as connection:
            slices.create(connection)
            assert charged_upto(connection) == 0
            meter = a_meter(price=2)
            write_slices(connection, meter.close({DESK: 1800.0, FARM: 900.0}, (3 << 32) | 41, now=60.0))
            write_slices(connection, meter.close({DESK: 3600.0, FARM: 900.0}, (3 << 32) | 77, now=120.0))
            assert charged_upto(connection) == (3 << 32) | 77
        reads = UsageReads(database)
        told = {
            each.account: (each.seconds, each.units, each.core_seconds)
            for each in reads.usage(UsageFilter(), "account")
        }
        assert told == {"desk": (3600.0, 4.0, 7200.0), "farm": (900.0, 1.0, 1800.0)}
        assert {each.job_id for each in reads.usage(UsageFilter(), "job")} == {JOB}
    finally:
        database.close()
