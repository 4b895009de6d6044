"""The meter: which slices there are, when they are charged, and what is taken back."""

from math import fsum
from typing import Any

import pytest

from jobman.control.accounting import meter as meters
from jobman.control.accounting.ledger import ENDED_EARLIER, OUR_FAULT
from jobman.control.accounting.units import units_of
from jobman.control.failures import INFRASTRUCTURE
from jobman.control.store.views import Charged
from jobman.spec.failures import REASONS
from tests.control.accounting.builders import metered
from tests.control.store.builders import NOON

TICK = NOON - NOON % 60 + 60
"""The first full minute after noon."""
ONE: Any = metered().address


def make_meter(length=60.0) -> Any:
    return meters.Meter(length)


def spans(slices):
    return [(one.number, one.start - NOON, one.end - NOON) for one in slices if one.kind == "use"]


# -- slices -------------------------------------------------------------------------------------------------


def test_what_is_held_is_charged_in_slices_and_the_last_is_shorter():
    meter = make_meter()
    meter.begin(metered())
    assert spans(meter.ring(NOON + 130)) == [(0, 0, 60), (1, 60, 120)]
    assert spans(meter.end(*ONE, NOON + 150.5)) == [(2, 120, 150.5)]
    assert len(meter) == 0


def test_a_slice_says_what_it_is_for():
    meter = make_meter()
    meter.begin(
        metered(
            price=2.0, account="physics", flavor="small", queue="batch", job_name="sim", amounts={"core": 2.0}
        )
    )
    (only,) = meter.end(*ONE, NOON + 45)
    assert (only.account, only.owner, only.flavor, only.queue) == ("physics", "ada", "small", "batch")
    assert (only.job_name, only.amounts, only.kind, only.reason) == ("sim", {"core": 2.0}, "use", "")
    assert only.seconds == 45.0
    assert only.units == pytest.approx(2.0 * 45 / 3600, abs=1e-6)


def test_what_took_no_time_costs_nothing():
    meter = make_meter()
    meter.begin(metered())
    assert meter.end(*ONE, NOON) == []
    meter.begin(metered())
    assert meter.end(*ONE, NOON - 5) == []


def test_an_end_at_the_end_of_a_slice_adds_no_empty_one():
    meter = make_meter()
    meter.begin(metered())
    assert spans(meter.end(*ONE, NOON + 120)) == [(0, 0, 60), (1, 60, 120)]


def test_the_end_of_something_unknown_is_no_charge():
    meter = make_meter()
    meter.begin(metered())
    assert meter.end("other", "train.0", 1, NOON + 60) == []
    assert meter.end(*ONE[:2], 2, NOON + 60) == []
    meter.end(*ONE, NOON + 60)
    assert meter.end(*ONE, NOON + 60) == []


def test_to_begin_twice_is_to_begin_once():
    meter = make_meter()
    meter.begin(metered())
    meter.ring(NOON + 120)
    meter.begin(metered())
    assert spans(meter.end(*ONE, NOON + 130)) == [(2, 120, 130)]


def test_a_job_that_never_was_is_not_charged():
    meter = make_meter()
    meter.begin(metered())
    meter.begin(metered(job="other"))
    meter.forget("other")
    assert meter.jobs() == [metered().job]
    assert meter.end("other", "train.0", 1, NOON + 60) == []


# -- ticks --------------------------------------------------------------------------------------------------


def test_everything_is_charged_at_the_same_ticks_whenever_it_began():
    meter = make_meter()
    for number in range(1000):
        meter.begin(metered(job=f"j{number}", start=NOON + 60 * number / 1000))
    now, moments, counts = NOON, [], []
    while (now := meter.next_due(now)) < NOON + 600:
        moments.append(now)
        counts.append(len(meter.ring(now)))
    assert moments == [TICK + 60 * number for number in range(10)]
    assert counts[2:] == [1000] * 8


def test_between_ticks_nothing_is_charged():
    meter = make_meter()
    meter.begin(metered())
    assert meter.next_due(NOON) == TICK
    assert meter.ring(TICK - 0.001) == []
    meter.ring(TICK)
    assert meter.next_due(TICK) == TICK + 60


def test_a_tick_that_was_missed_is_still_due():
    meter = make_meter()
    meter.begin(metered())
    assert meter.next_due(TICK + 30) == TICK
    assert len(meter.ring(NOON + 3600)) == 60


def test_nothing_is_due_while_nothing_is_held():
    meter = make_meter()
    assert meter.next_due(NOON) is None
    meter.begin(metered())
    meter.end(*ONE, NOON + 1)
    assert meter.next_due(NOON) is None
    assert meter.ring(NOON + 600) == []


def test_a_pause_in_which_nothing_was_held_leaves_no_tick_behind():
    meter = make_meter()
    meter.begin(metered())
    meter.end(*ONE, NOON + 1)
    meter.begin(metered(start=NOON + 3600))
    assert meter.next_due(NOON + 3600) == TICK + 3600


def test_a_clock_that_is_put_back_does_not_silence_the_meter():
    meter = make_meter()
    meter.begin(metered())
    meter.ring(NOON + 86400)
    assert meter.next_due(NOON + 200) == TICK + 180
    assert meter.ring(TICK + 180) == []  # it is charged up to tomorrow already


def test_the_length_of_slices_is_a_setting():
    meter = make_meter(300.0)
    meter.begin(metered())
    assert spans(meter.ring(NOON + 700)) == [(0, 0, 300), (1, 300, 600)]
    assert meter.next_due(NOON + 700) % 300 == 0


def test_after_a_long_time_away_slices_come_in_portions(monkeypatch):
    monkeypatch.setattr(meters, "_MOST", 100)
    meter = make_meter()
    for number in range(10):
        meter.resume(metered(job=f"j{number}"), None)
    now, portions = NOON + 3600.0, []
    while (due := meter.next_due(now)) <= now:
        portions.append(len(meter.ring(max(due, now))))
    assert sum(portions) == 600
    assert max(portions) <= 160


# -- after a crash ------------------------------------------------------------------------------------------


def test_what_is_missing_after_a_crash_is_charged_at_once():
    meter = make_meter()
    meter.resume(metered(), Charged(2, NOON + 120, 2 / 60))
    assert meter.next_due(NOON + 300) < NOON + 300
    assert spans(meter.ring(NOON + 300)) == [(2, 120, 180), (3, 180, 240), (4, 240, 300)]


def test_what_was_never_charged_begins_with_its_start():
    meter = make_meter()
    meter.resume(metered(), None)
    assert spans(meter.end(*ONE, NOON + 70)) == [(0, 0, 60), (1, 60, 70)]


def test_slices_of_another_length_go_on_where_the_last_one_ended():
    meter = make_meter(300.0)
    meter.resume(metered(), Charged(2, NOON + 120, 2 / 60))
    assert spans(meter.ring(NOON + 500)) == [(2, 120, 420)]


# -- refunds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", sorted(OUR_FAULT))
def test_a_failure_of_ours_is_refunded_with_one_entry(reason):
    meter = make_meter()
    meter.begin(metered(price=3.3))
    charged = meter.ring(NOON + 200) + meter.end(*ONE, NOON + 210, reason)
    *used, refund = charged
    assert (refund.kind, refund.number, refund.reason) == ("refund", 0, reason)
    assert (refund.start, refund.end) == (NOON, NOON + 210)
    assert fsum(one.seconds for one in charged) == fsum(one.units for one in charged) == 0.0
    assert len(used) == 4


@pytest.mark.parametrize("reason", sorted({"", *REASONS} - OUR_FAULT))
def test_a_failure_of_the_task_is_not(reason):
    meter = make_meter()
    meter.begin(metered())
    assert [one.kind for one in meter.end(*ONE, NOON + 10, reason)] == ["use"]


def test_reasons_of_ours_are_known_and_have_those_that_are_never_counted_among_them():
    assert set(REASONS) >= OUR_FAULT >= INFRASTRUCTURE


def test_a_refund_after_a_restart_takes_back_what_was_really_charged():
    """Prices may have changed meanwhile."""
    meter = make_meter()
    meter.resume(metered(price=10.0), Charged(2, NOON + 120, 0.5))
    *used, refund = meter.end(*ONE, NOON + 180, "node-lost")
    assert refund.units == -0.5 - sum(one.units for one in used)
    assert refund.seconds == -180.0


def test_what_ended_before_it_was_known_is_charged_until_it_ended():
    meter = make_meter()
    meter.begin(metered())
    charged = meter.ring(NOON + 180) + meter.end(*ONE, NOON + 100)
    refund = charged[-1]
    assert (refund.kind, refund.reason, refund.seconds) == ("refund", ENDED_EARLIER, -80.0)
    assert (refund.start, refund.end) == (NOON + 100, NOON + 180)
    assert fsum(one.seconds for one in charged) == 100.0
    assert fsum(one.units for one in charged) == pytest.approx(100 / 3600, abs=2**-20)


def test_a_launch_that_failed_at_once_leaves_no_entry():
    meter = make_meter()
    meter.begin(metered())
    assert meter.end(*ONE, NOON, "launch-failed") == []


# -- units --------------------------------------------------------------------------------------------------


def test_units_are_rounded_once_however_many_slices_there_are():
    meter = make_meter(1.0)
    meter.begin(metered(price=0.001))
    charged = meter.ring(NOON + 100_000)
    total = fsum(one.units for one in charged)
    assert total == units_of(0.001, float(len(charged)))
    assert total == pytest.approx(0.001 * len(charged) / 3600, abs=1e-6)
