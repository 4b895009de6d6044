"""What was charged stays, is charged once, and adds up."""

from itertools import pairwise

import pytest

from jobman.control.store.records import Changes
from jobman.control.store.views import Charged, UsageFilter
from tests.control.store.builders import NOON, allocation, balance, changes, job, refund_of, slice_of

EVERYTHING = UsageFilter()
DAY = 86400.0


def test_a_slice_is_read_back_as_it_was(store):
    a = job(account="physics")
    full = slice_of(a, flavor="small", queue="batch", amounts={"core": 2.5, "node": 1.0}, attempt=3)
    store.write(changes(a, full))
    assert store.slices(a.id) == [full]
    assert store.slices("nothing") == []


def test_a_slice_is_charged_once_and_never_changes(store):
    a = job()
    store.write(changes(a, slice_of(a), slice_of(a, 1)))
    store.write(changes(slice_of(a, units=99.0), slice_of(a, 1), slice_of(a, 2)))
    assert store.slices(a.id) == [slice_of(a), slice_of(a, 1), slice_of(a, 2)]


def test_a_refund_stands_beside_what_it_takes_back(store):
    a = job()
    charged = [slice_of(a), slice_of(a, 1)]
    store.write(changes(a, *charged, refund_of(a, *charged)))
    assert store.usage_in_all(EVERYTHING).units == 0.0
    assert [one.kind for one in store.slices(a.id)] == ["refund", "use", "use"]


def test_what_was_charged_outlives_its_job(store):
    a = job(name="sim")
    store.write(changes(a, slice_of(a)))
    store.write(changes(deleted=[a.id]))
    assert store.job(a.id) is None
    assert store.slices(a.id) == [slice_of(a)]
    (line,) = store.usage(EVERYTHING, "job")
    assert (line.job_id, line.job_name, line.seconds) == (a.id, "sim", 60.0)


def test_slices_of_a_job_that_is_not_there_are_refused(store):
    with pytest.raises(Exception, match="not there"):
        store.write(changes(slice_of(job())))


# -- what is held now ---------------------------------------------------------------------------------------


def test_how_far_that_which_is_held_is_charged(store):
    a, b = job(1), job(2)
    held = [slice_of(a, number, charged=float(number)) for number in range(3)]
    before = slice_of(a, 7, attempt=9)
    store.write(
        changes(
            a,
            b,
            allocation(a),
            allocation(a, 9, returned_at=NOON + 9),
            allocation(b),
            *held,
            before,
        )
    )
    assert store.charged() == {(a.id, "train.0", 1): Charged(3, NOON + 180, 2.0)}


# -- balances -----------------------------------------------------------------------------------------------


def test_a_balance_takes_the_place_of_the_one_before(store):
    store.write(changes(balance(units=1.0), balance(owner="bob", units=5.0), balance(queue="night")))
    store.write(changes(balance(units=2.0, seconds=60.0, faded=0.5, at=NOON + 60)))
    assert store.balances() == [
        balance(units=2.0, seconds=60.0, faded=0.5, at=NOON + 60),
        balance(queue="night"),
        balance(owner="bob", units=5.0),
    ]


# -- statements ---------------------------------------------------------------------------------------------


@pytest.fixture
def month(store):
    """Two accounts, three users, two flavors, two days."""
    ada = job(1, owner="ada", account="physics", name="fit")
    bob = job(2, owner="bob", account="physics", name="sim")
    eve = job(3, owner="eve", account="biology", name="fold")
    slices = [
        slice_of(ada, flavor="small", amounts={"core": 2.0, "node": 1.0}, units=1.0),
        slice_of(ada, 1, flavor="small", amounts={"core": 2.0, "node": 1.0}, units=1.0),
        slice_of(bob, flavor="large", amounts={"core": 8.0, "gpu": 1.0, "node": 2.0}, units=10.0),
        slice_of(bob, 1, start=NOON + DAY, flavor="large", amounts={"core": 8.0, "gpu": 1.0}, units=10.0),
        slice_of(eve, start=NOON + DAY, flavor="small", amounts={"core": 1.0}, units=3.0),
    ]
    store.write(changes(ada, bob, eve, *slices, refund_of(bob, slices[2], flavor="large")))
    return store


def shown(store, by, wanted=EVERYTHING, **more):
    keys = {"account": "account", "user": "owner", "job": "job_name", "flavor": "flavor", "day": "day"}
    return {getattr(one, keys[by]): one.units for one in store.usage(wanted, by, **more)}


def test_sums_by_each_of_what_can_be_asked_for_the_largest_first(month):
    assert list(shown(month, "account").items()) == [("physics", 12.0), ("biology", 3.0)]
    assert list(shown(month, "user").items()) == [("bob", 10.0), ("eve", 3.0), ("ada", 2.0)]
    assert list(shown(month, "job").items()) == [("sim", 10.0), ("fold", 3.0), ("fit", 2.0)]
    assert list(shown(month, "flavor").items()) == [("large", 10.0), ("small", 5.0)]


def test_days_come_in_their_order(month):
    today = int(NOON // DAY)
    assert list(shown(month, "day").items()) == [(today, 2.0), (today + 1, 13.0)]


def test_a_line_has_jobs_time_cores_and_what_was_refunded(month):
    bob = next(one for one in month.usage(EVERYTHING, "user") if one.owner == "bob")
    assert (bob.jobs, bob.seconds, bob.refunded) == (1, 60.0, 10.0)
    assert bob.gpu_seconds == 60.0 + 60.0  # the refund of the test knows nothing of GPUs
    ada = next(one for one in month.usage(EVERYTHING, "user") if one.owner == "ada")
    assert (ada.core_seconds, ada.gpu_seconds, ada.node_seconds) == (240.0, 0.0, 120.0)


def test_only_what_fits_and_ends_within_the_time_is_counted(month):
    assert shown(month, "user", UsageFilter(accounts=("physics",))) == {"bob": 10.0, "ada": 2.0}
    assert shown(month, "account", UsageFilter(owner="eve")) == {"biology": 3.0}
    assert shown(month, "user", UsageFilter(since=NOON + DAY)) == {"bob": 10.0, "eve": 3.0}
    assert shown(month, "user", UsageFilter(until=NOON + 61)) == {"ada": 1.0, "bob": 0.0}
    assert shown(month, "user", UsageFilter(since=NOON + 60, until=NOON + 60)) == {}


def test_the_whole_is_the_sum_of_the_lines_also_of_those_left_out(month):
    whole = month.usage_in_all(EVERYTHING)
    assert (whole.jobs, whole.units, whole.refunded) == (3, 15.0, 10.0)
    assert list(shown(month, "user", limit=1)) == ["bob"]
    assert month.usage_in_all(UsageFilter(accounts=("chemistry",))).units == 0.0


def test_sums_of_slices_are_exact(store):
    """Moments of our days are multiples of 2**-22 s, so their differences add up without any error."""
    a = job()
    ends = [NOON + 0.1 * number for number in range(1001)]
    slices = [slice_of(a, number, start=start, end=end) for number, (start, end) in enumerate(pairwise(ends))]
    store.write(changes(a, *slices))
    assert store.usage_in_all(EVERYTHING).seconds == ends[-1] - ends[0]


def test_nothing_but_slices_is_still_something_to_write(store):
    a = job()
    store.write(changes(a))
    store.write(Changes(slices=[slice_of(a)], balances={("physics", "ada", ""): balance()}))
    assert len(store.slices(a.id)) == len(store.balances()) == 1
