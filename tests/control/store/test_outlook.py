"""What the scheduler keeps is read back as it was: promises, revisions, the calendar, states, past runs."""

import pytest

from jobman import loads
from jobman.control.store.records import Changes
from jobman.control.store.rows import Batch, batch_of
from jobman.plan.model import plan_from_json
from tests.control.store.builders import (
    NOON,
    allocation,
    attempt,
    changes,
    event,
    job,
    promise,
    replica,
    revision,
    slice_of,
    state,
    submission,
    window,
)

# -- promises -----------------------------------------------------------------------------------------------


def test_a_promise_is_read_back_as_it_was_given(store):
    a = job()
    full = promise(
        a,
        guaranteed_by=NOON + 3600,
        expected_at=NOON + 600,
        expected_p90=NOON + 1200,
        first_expected_at=NOON + 900,
        position=3,
        planned={"nodes": ["n1", "n2"], "alternative": 1},
    )
    bare = promise(a, key="train.1")
    store.write(changes(a, full, bare))
    assert store.promises() == store.promises(a.id) == [full, bare]


def test_promises_are_those_of_one_job_or_of_all(store):
    a, b = job(1), job(2)
    store.write(changes(a, b, promise(a), promise(b), promise(b, key="train.1")))
    assert [one.job for one in store.promises()] == [a.id, b.id, b.id]
    assert store.promises(b.id) == [promise(b), promise(b, key="train.1")]
    assert store.promises("nothing") == []


def test_a_promise_is_given_anew_and_taken_back_when_the_replica_starts(store):
    a = job()
    store.write(changes(a, promise(a, position=2), promise(a, key="train.1")))
    store.write(changes(promise(a, position=1)))
    assert store.promises(a.id)[0].position == 1
    store.write(Changes(promises={(a.id, "train.0"): None}))
    assert store.promises(a.id) == [promise(a, key="train.1")]
    store.write(Changes(promises={(a.id, "train.0"): None}))


def test_promises_and_revisions_go_with_their_job_and_a_late_removal_does_no_harm(store):
    a, b = job(1), job(2)
    store.write(changes(a, b, promise(a), revision(a), promise(b), revision(b)))
    store.write(changes(deleted=[a.id]))
    store.write(Changes(promises={(a.id, "train.0"): None}))
    assert store.promises() == [promise(b)]
    assert store.revisions(a.id) == []
    assert store.revisions(b.id) == [revision(b)]


@pytest.mark.parametrize("last", [None, "given"])
def test_of_several_writes_that_share_a_transaction_the_last_counts(store, last):
    a = job()
    given = Changes(promises={(a.id, "train.0"): promise(a)})
    taken = Changes(promises={(a.id, "train.0"): None})
    merged = Batch()
    for one in (changes(a), *((taken, given) if last else (given, taken))):
        merged.merge(batch_of(one))
    store.write_batch(merged)
    assert store.promises() == ([promise(a)] if last else [])


# -- revisions ----------------------------------------------------------------------------------------------


def test_the_last_revisions_of_a_job_come_in_their_order(store):
    a, b = job(1), job(2)
    made = [revision(a, number, key=f"train.{number % 2}", after=None) for number in range(1, 8)]
    store.write(changes(a, b, *made, revision(b, 9)))
    assert store.revisions(a.id) == made
    assert store.revisions(a.id, limit=3) == made[-3:]


def test_a_revision_never_changes(store):
    a = job()
    store.write(changes(a, revision(a)))
    store.write(changes(revision(a, cause="something else")))
    assert store.revisions(a.id) == [revision(a)]


# -- what administrators say --------------------------------------------------------------------------------


def test_the_calendar_can_be_written_changed_and_crossed_out(store):
    upgrade, course = window(), window("course", kind="reservation", definition={"count": 4, "every": "week"})
    store.write(changes(upgrade, course))
    assert store.calendar() == [course, upgrade]
    later = window(definition={"nodes": ["n2"]})
    store.write(Changes(calendar={"upgrade": later, "course": None}))
    assert store.calendar() == [later]


def test_states_of_queues_and_nodes_are_kept_apart_until_they_are_lifted(store):
    store.write(
        Changes(queue_states={"batch": state()}, node_states={"batch": state(state="down", reason="fan")})
    )
    assert store.queue_states() == {"batch": state()}
    assert store.node_states() == {"batch": state(state="down", reason="fan")}
    store.write(Changes(queue_states={"batch": None}))
    assert store.queue_states() == {}
    assert len(store.node_states()) == 1


def test_names_no_database_can_keep_can_be_taken_away_again(store):
    store.write(changes(window("half \udc80")))
    store.write(Changes(calendar={"half \udc80": None}))
    assert store.calendar() == []


# -- since when something is held ---------------------------------------------------------------------------


def test_since_when_something_is_held_is_written_once(store):
    a = job()
    store.write(changes(a, allocation(a, given_at=NOON)))
    store.write(changes(allocation(a, given_at=NOON + 50, returned_at=NOON + 60)))
    assert store.allocations(a.id) == [allocation(a, given_at=NOON, returned_at=NOON + 60)]


# -- past runs ----------------------------------------------------------------------------------------------


def limited(name="train", duration=None):
    """The plan of a document whose one unit has a time limit."""
    policies = f"attributes: {{duration: {duration}}}" if duration else ""
    resources = "resources: {type: slot, count: 1}"
    return (
        loads(f"version: 1\ntasks:\n- {{name: {name}, command: x, {resources}}}\n{policies}\n")
        .plan()
        .to_json()
    )


def run(job, index=0, seconds=100.0, reason="", unit="train"):
    """An attempt that is over, with what it held."""
    key = f"{unit}.{index}"
    return (
        attempt(job, key=key, started_at=NOON + 1, ended_at=NOON + seconds, reason=reason),
        allocation(job, key=key, returned_at=NOON + seconds + 1),
    )


def test_past_runs_tell_who_ran_what_for_how_long_and_how_it_ended(store):
    a = job(1, plan=limited(duration=600.0), account="physics", flavor="small")
    b = job(2, owner="bob", name="sim")
    store.write(changes(a, b, *run(a), *run(b, seconds=30.0, reason="node-lost")))
    newest, oldest = store.past_runs()
    assert (newest.job, newest.owner, newest.name, newest.seconds) == (b.id, "bob", "sim", 30.0)
    assert (newest.reason, newest.limit) == ("node-lost", None)
    assert (oldest.account, oldest.flavor, oldest.unit) == ("physics", "small", "train")
    assert (oldest.limit, oldest.reason, oldest.ended_at) == (600.0, "", NOON + 101)


def test_past_runs_know_the_shape_that_was_asked_for(store):
    a = job(1, plan=limited(duration=600.0))
    store.write(changes(a, *run(a)))
    (only,) = store.past_runs()
    assert only.parts == plan_from_json(a.plan).units[0].alternatives[0]
    assert only.grace is None


def test_what_somebody_cancelled_says_nothing_of_how_long_it_would_have_run(store):
    a, b = job(1, state="cancelled"), job(2, state="failed")
    store.write(changes(a, b, *run(a), *run(b)))
    assert [one.job for one in store.past_runs()] == [b.id]


def test_a_group_counts_with_what_it_held_and_what_runs_inside_not_at_all(store):
    a = job(plan=limited("pair", 60.0))
    held = allocation(a, key="pair.0", returned_at=NOON + 40)
    inside = run(a, unit="pair.0/main")
    store.write(changes(a, held, *inside))
    (only,) = store.past_runs()
    assert (only.key, only.unit, only.seconds, only.reason, only.limit) == (
        "pair.0",
        "pair",
        40.0,
        None,
        60.0,
    )


def test_what_is_still_held_or_took_no_time_is_no_history(store):
    a = job()
    store.write(changes(a, allocation(a), allocation(a, 2, returned_at=NOON), *run(a, 1, seconds=0.0)))
    assert store.past_runs() == []


def test_one_large_job_does_not_hide_the_others(store):
    large, small = job(3), [job(number) for number in (1, 2)]
    many = [record for index in range(1200) for record in run(large, index)]
    few = [record for one in small for record in run(one)]
    store.write(changes(large, *small, *many, *few))
    found = store.past_runs(limit=40, each=25)
    assert [sum(one.job == each.id for one in found) for each in (large, *small)] == [25, 1, 1]
    assert len(store.past_runs(limit=10, each=25)) == 10


def test_past_runs_of_many_jobs_are_all_found_once(store):
    all_of_them = [job(number) for number in range(1, 301)]
    store.write(
        changes(*all_of_them, *(record for one in all_of_them for i in (0, 1) for record in run(one, i)))
    )
    found = store.past_runs()
    assert len(found) == len({(one.job, one.key) for one in found}) == 600
    assert [one.job for one in found[:2]] == [all_of_them[-1].id] * 2


def test_a_plan_that_cannot_be_read_has_no_limits(store):
    a = job(plan=b"not a plan")
    store.write(changes(a, *run(a)))
    assert [one.limit for one in store.past_runs()] == [None]


# -- changes ------------------------------------------------------------------------------------------------


def test_changes_are_empty_until_there_is_something_of_any_kind():
    a = job()
    assert Changes().is_empty
    for one in (a, promise(a), revision(a), slice_of(a), window(), event(1), submission()):
        assert not changes(one, new=False).is_empty
    assert not Changes(promises={(a.id, "train.0"): None}).is_empty
    assert not changes(deleted=[a.id]).is_empty


def test_all_that_is_about_a_job_can_be_taken_back():
    a, b = job(1), job(2)
    made = changes(
        a, b, replica(a), promise(a), revision(a), slice_of(a), event(1, a), submission(jobs=(a.id,))
    )
    made.promises[b.id, "train.0"] = None
    assert made.take_back({a.id}) == [event(1, a)]
    left = changes(b)
    left.promises[b.id, "train.0"] = None
    assert made == left
