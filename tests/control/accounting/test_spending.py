"""Spending: sums by account and owner, up the tree, and what fades."""

import pytest

from jobman.control.accounting.spending import Spending
from jobman.sched.accounts import Account, AccountTree
from tests.control.store.builders import NOON, balance, job, refund_of, slice_of

TREE = AccountTree(
    [
        Account(name="science"),
        Account(name="physics", parent="science", users={"ada": 1, "bob": 1}),
        Account(name="biology", parent="science", users={"ada": 1}),
    ]
)
WEEK = 7 * 86400.0


def charge(owner="ada", account="physics", units=1.0, **values):
    return slice_of(job(owner=owner, account=account), units=units, **values)


def test_what_is_used_counts_for_the_account_and_all_above_it():
    spending = Spending(TREE)
    spending.add([charge(), charge("bob", units=2.0), charge(account="biology", units=4.0)])
    assert [spending.used(name) for name in ("physics", "biology", "science")] == [3.0, 4.0, 7.0]
    assert [spending.used("science", user) for user in ("ada", "bob", "eve")] == [5.0, 2.0, 0.0]


def test_balances_that_changed_are_told_as_they_are_now():
    before = balance(units=10.0, seconds=600.0, at=NOON)
    spending = Spending(TREE, [before, balance(owner="bob", units=1.0)])
    changed = spending.add([charge(units=2.0), charge(units=3.0, number=1)])
    assert list(changed) == [("physics", "ada", "")]
    (now,) = changed.values()
    assert (now.units, now.seconds, now.at) == (15.0, 720.0, NOON + 120)
    assert before.units == 10.0


def test_queues_have_balances_of_their_own_and_count_together():
    spending = Spending(TREE)
    changed = spending.add([charge(queue="night"), charge(queue="day", number=1)])
    assert list(changed) == [("physics", "ada", "night"), ("physics", "ada", "day")]
    assert spending.used("physics") == 2.0


def test_sums_are_the_same_after_a_restart():
    first = Spending(TREE)
    kept = first.add([charge(), charge("bob", units=2.0)])
    again = Spending(TREE, kept.values())
    assert [again.used("science", user) for user in ("", "ada", "bob")] == [3.0, 1.0, 2.0]
    assert again.faded(NOON + 60) == first.faded(NOON + 60)


def test_accounts_that_move_take_what_they_used_with_them():
    spending = Spending(TREE)
    spending.add([charge()])
    spending.group(AccountTree([Account(name="arts"), Account(name="physics", parent="arts")]))
    assert (spending.used("arts"), spending.used("science")) == (1.0, 0.0)


def test_a_refund_leaves_nothing():
    spending = Spending(TREE)
    one = charge(units=3.0)
    spending.add([one, refund_of(job(account="physics"), one)])
    assert spending.used("science") == 0.0
    assert spending.faded(NOON + 60) == {("physics", "ada"): 0.0}


def test_usage_counts_half_after_half_its_life():
    spending = Spending(TREE, half_life=WEEK)
    spending.add([charge(units=8.0)])
    assert spending.faded(NOON + 30 + WEEK) == {("physics", "ada"): pytest.approx(4.0, rel=1e-3)}
    spending.add([charge(units=8.0, number=1, start=NOON + 2 * WEEK)])
    assert spending.faded(NOON + 2 * WEEK + 60) == {("physics", "ada"): pytest.approx(10.0, rel=1e-3)}


def test_without_an_end_of_its_life_usage_is_never_forgotten():
    spending = Spending(TREE, half_life=float("inf"))
    spending.add([charge(units=8.0)])
    assert spending.faded(NOON + 1000 * WEEK) == {("physics", "ada"): 8.0}


def test_a_clock_that_is_put_back_brings_nothing_back():
    spending = Spending(TREE)
    spending.add([charge(units=8.0)])
    assert spending.faded(NOON - WEEK) == {("physics", "ada"): pytest.approx(8.0, rel=1e-3)}
