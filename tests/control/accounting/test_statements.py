"""Statements: lines, totals and CSV."""

import csv
import io

import pytest

from jobman.control.accounting.statements import Usage, UsageLine, as_csv, statement
from jobman.control.store.views import UsageFilter
from tests.control.store.builders import changes, job, slice_of

DAY = 86400.0


@pytest.fixture
def used(sqlite_url, opened):
    """An hour of two cores of ada, and half of that the day after of bob."""
    store = opened(sqlite_url)
    store.claim("a test")
    ada, bob = job(1, account="physics", name="fit"), job(2, owner="bob", account="physics", name="=1+1")
    noon = DAY * 20_000
    amounts = {"core": 2.0, "node": 1.0}
    first = slice_of(ada, start=noon, end=noon + 3600, units=2.0, amounts=amounts, flavor="small")
    second = slice_of(bob, start=noon + DAY, end=noon + DAY + 1800, units=1.0, amounts=amounts)
    store.write(changes(ada, bob, first, second))
    return store


def lines(store, by, limit=10):
    return statement(store, UsageFilter(), by, limit).items


def test_a_line_says_what_it_is_told_apart_by_and_nothing_else(used):
    assert [(one.user, one.account, one.units) for one in lines(used, "user")] == [
        ("ada", None, 2.0),
        ("bob", None, 1.0),
    ]
    assert [(one.account, one.jobs) for one in lines(used, "account")] == [("physics", 2)]
    assert [one.flavor for one in lines(used, "flavor")] == ["small", ""]
    assert [one.day for one in lines(used, "day")] == ["2024-10-04", "2024-10-05"]
    (first, _) = lines(used, "job")
    assert (first.job, first.name, first.user, first.account) == (job(1).id, "fit", "ada", "physics")


def test_hours_are_told_for_time_and_for_what_was_held(used):
    whole = statement(used, UsageFilter(), "account", 10).total
    assert (whole.hours, whole.core_hours, whole.node_hours, whole.gpu_hours) == (1.5, 3.0, 1.5, 0.0)


def test_what_is_left_out_is_told_of_and_counts_in_the_total(used):
    found = statement(used, UsageFilter(), "user", 1)
    assert ([one.user for one in found.items], found.more, found.total.units) == (["ada"], True, 3.0)
    assert not statement(used, UsageFilter(), "user", 2).more


def test_csv_has_a_head_and_a_row_for_each_line(used):
    text = as_csv(statement(used, UsageFilter(), "user", 10))
    assert text.splitlines() == [
        "user,jobs,hours,core_hours,gpu_hours,node_hours,units,refunded",
        "ada,1,1.0,2.0,0.0,1.0,2.0,0.0",
        "bob,1,0.5,1.0,0.0,0.5,1.0,0.0",
    ]


def test_csv_has_no_formulas_whatever_a_job_is_called(used):
    text = as_csv(statement(used, UsageFilter(), "job", 10))
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == ["fit", "'=1+1"]


def test_csv_of_nothing_is_its_head():
    assert as_csv(Usage(by="day", total=UsageLine())).startswith("day,jobs,hours")
