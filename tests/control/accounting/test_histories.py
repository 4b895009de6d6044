"""Whatever happens, and wherever a service dies: slices of an allocation add up to the time it was held."""

from itertools import pairwise
from math import fsum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.control.accounting.ledger import OUR_FAULT
from jobman.control.accounting.units import units_of
from jobman.control.store.views import UsageFilter
from tests.control.accounting.histories import MemoryDisk, Service, StoreDisk, histories

slice_lengths = st.sampled_from([1.0, 7.3, 60.0, 300.0])
GRAIN = 2.0**-20


def check(service):
    """That everything adds up."""
    by_allocation: dict[Any, list[Any]] = {}
    for one in service.disk.slices():
        by_allocation.setdefault((one.job, one.key, one.attempt), []).append(one)
    assert by_allocation.keys() <= service.runs.keys()
    for address, (seconds, reason) in service.runs.items():
        _check_one(service, address, by_allocation.get(address, []), seconds, reason)
    _check_balances(service)


def _check_one(service, address, slices, seconds, reason):
    made, price = service.grants[address], service.prices[address]
    due = 0.0 if reason in OUR_FAULT else seconds
    assert fsum(one.seconds for one in slices) == due
    units = fsum(one.units for one in slices)
    assert units == pytest.approx(units_of(price, due), abs=2 * GRAIN) if due else units == 0.0
    used = sorted((one for one in slices if one.kind == "use"), key=lambda one: one.number)
    assert [one.number for one in used] == list(range(len(used)))
    assert all(one.end == after.start for one, after in pairwise(used))
    assert all(0 < one.seconds <= service.length * (1 + 1e-9) for one in used)
    assert all(one.seconds == one.end - one.start for one in used)
    assert all(one.charged + after.units == after.charged for one, after in pairwise(used))
    assert all(one.seconds >= service.length * (1 - 1e-6) for one in used[:-1])
    assert not used or used[0].start == made.at
    assert len(slices) - len(used) <= 1


def _check_balances(service):
    sums: dict[Any, tuple[float, float]] = {}
    for one in service.disk.slices():
        units, seconds = sums.get((one.account, one.owner), (0.0, 0.0))
        sums[one.account, one.owner] = units + one.units, seconds + one.seconds
    assert {(one.account, one.owner): (one.units, one.seconds) for one in service.disk.balances()} == sums
    assert service.book.spending.used("science") == sum(
        units for (account, _), (units, _) in sums.items() if account == "physics"
    )


@given(histories, slice_lengths)
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_slices_add_up_to_the_time_run_over_any_history_with_crashes(history, length):
    service = Service(MemoryDisk(), length)
    service.play(history)
    check(service)


@pytest.mark.slow
@given(histories, slice_lengths)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_the_same_on_a_store(tmp_path_factory, history, length):
    disk = StoreDisk(tmp_path_factory.mktemp("store") / "jobman.db")
    try:
        service = Service(disk, length)
        service.play(history)
        check(service)
        _check_statement(service)
    finally:
        disk.store.close()


def _check_statement(service):
    """A statement is exact to the last bit, whichever way it is grouped."""
    store, slices = service.disk.store, service.disk.slices()
    whole = store.usage_in_all(UsageFilter())
    assert (whole.units, whole.seconds) == (fsum(s.units for s in slices), fsum(s.seconds for s in slices))
    for by in ("account", "user", "job", "flavor", "day"):
        assert fsum(line.units for line in store.usage(UsageFilter(), by)) == whole.units
