"""Statements: lines, totals and CSV."""

import csv
import io
from contextlib import closing
from math import fsum

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.control.accounting.statements import Usage, UsageLine, as_csv, statement
from jobman.control.store.store import Store
from jobman.control.store.views import UsageFilter
from jobman.sched.accounts import Account, AccountTree
from tests.control.store.builders import NOON, changes, job, slice_of

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


# -- the tree of accounts -----------------------------------------------------------------------------------

TREE = AccountTree(
    [
        Account(name="science"),
        Account(name="physics", parent="science"),
        Account(name="optics", parent="physics"),
        Account(name="biology", parent="science"),
        Account(name="guests"),
    ]
)


@pytest.fixture
def tree(sqlite_url, opened):
    """What four accounts used, one of which the settings do not know; science itself used nothing."""
    store = opened(sqlite_url)
    store.claim("a test")
    for number, (account, units) in enumerate(
        [("optics", 4.0), ("physics", 1.0), ("biology", 2.0), ("gone", 3.0)], 1
    ):
        one = job(number, account=account)
        store.write(changes(one, slice_of(one, account=account, units=units)))
    return store


def in_tree(store, account=None, **wanted):
    meant = None if account is None else TREE.below(account)
    found = statement(store, UsageFilter(accounts=meant, **wanted), "account", 10, TREE)
    return [(one.account, one.parent, one.units, one.below, one.in_all) for one in found.items], found.total


def test_an_account_is_followed_by_those_below_it_with_what_each_used_itself_and_below(tree):
    lines, total = in_tree(tree)
    assert lines == [
        ("science", None, 0.0, 7.0, 7.0),
        ("physics", "science", 1.0, 4.0, 5.0),
        ("optics", "physics", 4.0, 0.0, 4.0),
        ("biology", "science", 2.0, 0.0, 2.0),
        ("gone", None, 3.0, 0.0, 3.0),
    ]
    assert total.units == 10.0


def test_an_account_is_asked_for_with_all_below_it(tree):
    lines, total = in_tree(tree, "physics")
    assert lines == [("physics", "science", 1.0, 4.0, 5.0), ("optics", "physics", 4.0, 0.0, 4.0)]
    assert total.units == 5.0
    assert in_tree(tree, "gone")[0] == [("gone", None, 3.0, 0.0, 3.0)]
    assert in_tree(tree, "guests")[0] == []
    by_job = statement(tree, UsageFilter(accounts=TREE.below("science")), "job", 10, TREE)
    assert [one.account for one in by_job.items] == ["optics", "biology", "physics"]


def test_the_tree_in_csv_says_who_is_above(tree):
    found = statement(tree, UsageFilter(accounts=TREE.below("physics")), "account", 10, TREE)
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert [(row["account"], row["parent"], row["units"], row["below"], row["in_all"]) for row in rows] == [
        ("physics", "science", "1.0", "4.0", "5.0"),
        ("optics", "physics", "4.0", "0.0", "4.0"),
    ]


def test_lines_of_the_tree_that_are_left_out_are_told_of(tree):
    found = statement(tree, UsageFilter(), "account", 2, TREE)
    assert ([one.account for one in found.items], found.more) == (["science", "physics"], True)
    assert found.total.units == 10.0


@st.composite
def trees(draw):
    """Accounts, each below one that came before it or at the top."""
    names = [f"a{number}" for number in range(draw(st.integers(1, 8)))]
    parents = [draw(st.sampled_from(["", *names[:number]])) for number in range(len(names))]
    return AccountTree([Account(name=name, parent=above) for name, above in zip(names, parents, strict=True)])


@pytest.mark.slow
@given(
    trees(),
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-(2**30), 2**30), st.integers(0, 9)), min_size=1, max_size=20
    ),
    st.integers(0, 9),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_statements_add_up_whatever_the_tree_and_wherever_time_is_cut(tmp_path_factory, tree, spent, cut):
    with closing(Store.open(tmp_path_factory.mktemp("store") / "jobman.db")) as store:
        store.claim("a test")
        one = job(1)
        slices = [
            slice_of(
                one, number, account=f"a{which}", units=units / 2**20, end=NOON + at, start=NOON + at - 1
            )
            for number, (which, units, at) in enumerate(spent)
        ]
        store.write(changes(one, *slices))
        whole = statement(store, UsageFilter(), "account", 100, tree)
        check_tree(whole, {}, tree)
        for name in tree.order:
            part = statement(store, UsageFilter(accounts=tree.below(name)), "account", 100, tree)
            check_tree(part, {line.account: line for line in whole.items}, tree)
        halves = [UsageFilter(until=NOON + cut), UsageFilter(since=NOON + cut)]
        for by in ("account", "user", "job", "flavor", "day"):
            parts = [statement(store, half, by, 100, tree) for half in halves]
            assert fsum(half.total.units for half in parts) == near(whole.total.units)
            assert all(fsum(line.units for line in half.items) == near(half.total.units) for half in parts)


def check_tree(found, known, tree):
    """Each account is itself and those below it, all of them are the total, and as in the whole."""
    shown = {line.account: line for line in found.items}
    assert len(shown) == len(found.items)
    for line in found.items:
        assert line.in_all == near(line.units + line.below)
        children = [shown[name] for name in tree.children(line.account) if name in shown]
        assert line.below == near(fsum(child.in_all for child in children))
        assert line == known.get(line.account, line)
    tops = [line for line in found.items if line.parent not in shown]
    assert fsum(line.in_all for line in tops) == near(found.total.units)
    assert fsum(line.units for line in found.items) == near(found.total.units)


def near(units):
    """Lines have six digits behind the point."""
    return pytest.approx(units, abs=2e-5)


def test_csv_of_nothing_is_its_head():
    assert as_csv(Usage(by="day", total=UsageLine())).startswith("day,jobs,hours")
