"""What a job that runs can lose, in sentences."""

from typing import Any

import pytest

from jobman.control.accounting.permissions import account_of, check
from jobman.control.accounting.spending import Spending
from jobman.sched.accounts import Account, AccountTree
from jobman.sched.queues import Limits
from tests.control.store.builders import job, slice_of

PHYSICS: dict[str, Any] = {"name": "physics", "users": {"ada": 1.0}}


def lost(*accounts, record=None, unreadable=(), spent=()):
    tree = AccountTree(Account(**values) for values in accounts)
    spending = Spending(tree)
    spending.add(slice_of(job(owner=owner, account=account), units=units) for owner, account, units in spent)
    return check(record or job(account="physics"), tree, spending, unreadable)


def test_a_job_whose_owner_may_do_what_they_could_goes_on():
    assert lost(PHYSICS) is None
    assert lost(record=job()) is None


def test_a_site_without_accounts_takes_any_name_for_one():
    assert lost() is None
    assert lost({"name": "default", "users": {}}) is None


def test_an_account_that_is_not_active_any_more():
    assert lost({**PHYSICS, "active": False}) == "account physics is not active"
    assert "because science is not" in lost(
        {"name": "science", "active": False}, {**PHYSICS, "parent": "science"}
    )


def test_an_account_that_is_not_there_any_more():
    assert "there is no account physics" in lost({"name": "biology", "users": {"ada": 1.0}})


def test_somebody_who_is_not_in_the_account_any_more():
    assert "user ada is not in account physics" in lost({**PHYSICS, "users": {"bob": 1.0}})


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["/data/set"], "ada may no longer read /data/set"),
        (["/data/set", "/home/ada", "/x"], "ada may no longer read /data/set and 2 more"),
    ],
)
def test_paths_that_cannot_be_read_any_more(paths, words):
    assert lost(PHYSICS, unreadable=paths) == words


def test_a_budget_is_used_up_when_more_is_used_than_it_has():
    budget = {**PHYSICS, "limits": Limits(budget=10.0)}
    assert lost(budget, spent=[("ada", "physics", 10.0)]) is None
    assert lost(budget, spent=[("bob", "physics", 10.5)]) == (
        "the budget of physics is used up: 10.5 of 10 units"
    )


def test_a_budget_above_counts_for_all_below():
    above = {"name": "science", "limits": Limits(budget=1000.0)}
    below = {**PHYSICS, "parent": "science"}
    found = lost(above, below, {"name": "biology", "parent": "science"}, spent=[("eve", "biology", 1234.5)])
    assert found == "the budget of science is used up: 1,234.5 of 1,000 units"


def test_a_budget_of_each_user_counts_for_that_user():
    each = {**PHYSICS, "each_user": Limits(budget=5.0)}
    assert lost(each, spent=[("bob", "physics", 6.0)]) is None
    assert lost(each, spent=[("ada", "physics", 6.0)]) == (
        "the budget of ada in physics is used up: 6.0 of 5 units"
    )


def test_a_job_is_charged_to_the_account_it_names_or_to_the_first_of_its_owner():
    tree = AccountTree([Account(**PHYSICS)])
    assert account_of(job(account="other"), tree) == "other"
    assert account_of(job(), tree) == "physics"
    assert account_of(job(owner="eve"), tree) == "default"
