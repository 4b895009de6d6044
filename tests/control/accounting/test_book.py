"""The book: what the floor tells of becomes slices and balances, and who may not run on is told once."""

import pytest

from jobman.control.accounting.book import Book
from jobman.control.accounting.paths import Inspection
from jobman.control.store.records import Changes
from jobman.control.store.views import Charged
from jobman.sched.accounts import Account, AccountTree
from jobman.sched.allocation import Allocation
from jobman.sched.queues import Limits
from jobman.settings.accounting import Accounting
from tests.control.accounting.builders import grant, part
from tests.control.store.builders import NOON, balance, job

ADA = job(account="physics", cwd="/home/ada")
TREE = AccountTree([Account(name="physics", users={"ada": 1.0, "bob": 1.0})])


@pytest.fixture
def book():
    return Book(Accounting(), TREE)


def returned(book, record=ADA, at=NOON + 90.0, reason="", key="train.0"):
    changes = Changes()
    book.returned(record.id, key, 1, at, reason, changes)
    return changes


def rung(book, now):
    changes = Changes()
    lost = book.ring(now, changes)
    return changes, lost


def test_what_is_given_and_returned_is_charged_with_all_that_is_known_of_it(book):
    record = job(account="physics", name="sim", queue="night")
    book.given(grant(record, parts=(part(2, "small", core=2),)))
    changes = returned(book, record)
    assert [one.seconds for one in changes.slices] == [60.0, 30.0]
    first = changes.slices[0]
    assert (first.account, first.owner, first.queue, first.flavor) == ("physics", "ada", "night", "small")
    assert (first.job, first.job_name) == (record.id, "sim")
    assert first.amounts == {"core": 4, "node": 1.0, "load": 4.0}
    (now,) = changes.balances.values()
    assert now.units == sum(one.units for one in changes.slices) == pytest.approx(0.1, abs=1e-5)


def test_the_queue_it_waited_in_counts_where_the_job_names_none(book):
    book.given(grant(ADA, queue="batch"))
    assert [one.queue for one in returned(book).slices] == ["batch", "batch"]


def test_prices_are_those_of_the_settings():
    book = Book(Accounting(price=10.0, prices={"small": 1.0}), TREE)
    book.given(grant(ADA))
    book.given(grant(job(2), parts=(part(3, "small"),)))
    assert sum(one.units for one in returned(book, at=NOON + 3600).slices) == 10.0
    assert sum(one.units for one in returned(book, job(2), at=NOON + 3600).slices) == 3.0


@pytest.mark.parametrize(
    "made",
    [
        grant(ADA, key="pair.0/train.0"),
        grant(job(account="physics", options={"virtual": "4x4"})),
        grant(ADA, allocation=Allocation(0)),
    ],
)
def test_what_is_inside_a_group_emulated_or_nothing_is_not_charged(book, made):
    book.given(made)
    assert book.next_due(NOON) is None
    assert returned(book, key=made.key).is_empty


def test_a_local_task_without_a_shape_that_holds_something_is_charged(book):
    made = grant(ADA)
    book.given(made._replace(unit=made.unit.__class__(id="train", name="train")))
    assert len(returned(book).slices) == 2


def test_a_tick_charges_everything_in_one_go(book):
    for number in range(1, 101):
        book.given(grant(job(number, account="physics", owner=("ada", "bob")[number % 2])))
    assert book.next_due(NOON) == NOON - NOON % 60 + 60
    changes, lost = rung(book, NOON + 200)
    assert (len(changes.slices), len(changes.balances), lost) == (300, 2, {})
    assert rung(book, NOON + 201) == (Changes(), {})


def test_after_a_restart_only_what_is_missing_is_charged(book):
    charged = {(ADA.id, "train.0", 1): Charged(1, NOON + 60, 1 / 60)}
    book.resumed(grant(ADA), charged)
    book.resumed(grant(job(2)), charged)
    changes, _ = rung(book, NOON + 130)
    assert sorted((one.job, one.number) for one in changes.slices) == [
        (ADA.id, 1),
        (job(2).id, 0),
        (job(2).id, 1),
    ]


def test_a_job_that_never_was_leaves_nothing(book):
    book.given(grant(ADA))
    book.forget(ADA.id)
    assert book.inspections() == []
    assert returned(book).is_empty


# -- permissions --------------------------------------------------------------------------------------------


def test_paths_of_what_is_held_are_to_be_looked_at(book):
    book.given(grant(ADA))
    book.given(grant(ADA, key="train.1"))
    assert book.inspections() == [Inspection(ADA.id, None, ("/home/ada",))]
    returned(book)
    returned(book, key="train.1")
    assert book.inspections() == []


def test_a_job_that_lost_its_paths_is_told_of_once(book):
    book.given(grant(ADA))
    book.given(grant(job(2)))
    assert book.lost({}) == {}
    assert book.lost({ADA.id: ["/home/ada"]}) == {ADA.id: "ada may no longer read /home/ada"}
    assert book.lost({ADA.id: ["/home/ada"]}) == {}


def test_a_job_whose_account_was_closed_is_told_of_at_the_next_slice(book):
    book.given(grant(ADA))
    book.set(Accounting(), AccountTree([Account(name="physics", users={"ada": 1.0}, active=False)]))
    assert rung(book, NOON + 120)[1] == {ADA.id: "account physics is not active"}
    assert rung(book, NOON + 240)[1] == {}


def test_a_job_that_uses_up_the_budget_is_told_of_with_that_very_slice():
    tree = AccountTree([Account(name="physics", users={"ada": 1.0}, limits=Limits(budget=10.03))])
    book = Book(Accounting(), tree, [balance(units=10.0)])
    book.given(grant(ADA))
    assert rung(book, NOON + 60)[1] == {}
    assert rung(book, NOON + 120)[1] == {ADA.id: "the budget of physics is used up: 10.033 of 10.03 units"}


def test_new_prices_count_for_what_begins_from_then_on(book):
    book.given(grant(ADA))
    book.set(Accounting(price=5.0), TREE)
    book.given(grant(job(2, account="physics")))
    assert sum(one.units for one in returned(book, at=NOON + 3600).slices) == 1.0
    assert sum(one.units for one in returned(book, job(2), at=NOON + 3600).slices) == 5.0
