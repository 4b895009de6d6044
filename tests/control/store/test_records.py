"""What is written is read back as it was, and a later record takes the place of an earlier one."""

import msgspec
import pytest

from jobman.control.store.errors import StoreError
from jobman.control.store.views import JobFilter
from tests.control.store.builders import (
    allocation,
    attempt,
    changes,
    event,
    job,
    log,
    replica,
    submission,
    task,
)

FULL_JOB = job(
    queue="gpu",
    priority=700,
    account="physics",
    flavor="small",
    labels={"team": "vision", "jobman.io/stage": ""},
    digest="abc",
    cwd="/home/ada/größe",
    environment="e0",
    options={"virtual": [4, 4], "parameters": {"seed": 3, "rate": 0.1}, "rerun_of": None},
    state="running",
    held=True,
    reason="one replica “ready” 🙂",
    exit_code=3,
    started_at=1.25,
    ended_at=2.5,
    counts={"running": 2},
    conductor={"verdict": None, "open_gates": ["a"], "root": [False, True]},
)


def without_document(job):
    return msgspec.structs.replace(job, document="", plan=b"")


def test_a_job_comes_back_whole(store):
    store.write(changes(FULL_JOB))
    assert store.job(FULL_JOB.id) == without_document(FULL_JOB)
    assert store.document(FULL_JOB.id) == (FULL_JOB.document, FULL_JOB.plan)


def test_a_job_of_which_little_is_known_comes_back_whole(store):
    store.write(changes(job()))
    assert store.job(job().id) == without_document(job())


def test_what_is_not_there_is_none(store):
    assert store.job("nothing") is None
    assert store.document("nothing") is None
    assert store.submission("ada", "nothing") is None
    assert store.token("nothing") is None


def test_only_the_life_of_a_known_job_is_written_again(store):
    store.write(changes(FULL_JOB))
    life = {"state": "succeeded", "held": False, "reason": "done", "exit_code": 0, "counts": {"succeeded": 2}}
    other = msgspec.structs.replace(FULL_JOB, **life, name="other", document="", plan=b"", labels={})
    store.write(changes(other, new=False))
    assert store.job(FULL_JOB.id) == msgspec.structs.replace(without_document(FULL_JOB), **life)
    assert store.document(FULL_JOB.id) == (FULL_JOB.document, FULL_JOB.plan)


def test_what_belongs_to_a_job_comes_back_whole(store):
    a = job()
    records = {
        "tasks": task(a, scope="group.0", verdict="stop", outcome="failed", counts={"failed": 1}),
        "replicas": replica(a, 7, attempt=2, since=3.5, exit_code=1, reason="exit 1", life={"retries": 1}),
        "attempts": attempt(
            a,
            2,
            started_at=1.0,
            ended_at=2.0,
            exit_code=137,
            signal=9,
            reason="killed",
            message="by the user",
            cpu_seconds=0.5,
            max_rss=2**40,
            result='{"loss": 0.1}',
            nodes=("n1", "n2"),
        ),
        "allocations": allocation(a, returned_at=4.0, allocation={"nodes": [{"name": "n1", "cores": [0]}]}),
        "logs": log(a, copy=3, stream="err", node="n2", start=5, size=2**40, ended=True),
    }
    store.write(changes(a, *records.values()))
    read = {
        "tasks": store.tasks(a.id),
        "replicas": store.replicas(a.id).items,
        "attempts": store.attempts(a.id).items,
        "allocations": store.allocations(a.id),
        "logs": store.logs(a.id).items,
    }
    assert read == {name: [record] for name, record in records.items()}


def test_a_later_record_takes_the_place_of_an_earlier_one(store):
    a = job()
    store.write(changes(a, task(a), replica(a), attempt(a), allocation(a), log(a), submission()))
    later = (
        task(a, verdict="stop", outcome="failed", counts={"failed": 1}),
        replica(a, state="failed", attempt=1, exit_code=2, reason="exit 2"),
        attempt(a, ended_at=9.0, exit_code=2),
        allocation(a, returned_at=9.0),
        log(a, size=12, ended=True),
    )
    store.write(changes(*later, submission(digest="d2")))
    read = [store.tasks(a.id), store.replicas(a.id).items, store.attempts(a.id).items]
    read += [store.allocations(a.id), store.logs(a.id).items]
    assert read == [[record] for record in later]
    assert store.submission("ada", "k1") == submission(digest="d2")


def test_a_submission_is_known_by_its_owner_and_key(store):
    store.write(changes(submission(), submission(owner="bob", jobs=("x", "y"))))
    assert store.submission("ada", "k1") == submission()
    assert store.submission("bob", "k1") == submission(owner="bob", jobs=("x", "y"))


def test_to_write_the_same_again_changes_nothing(store):
    a = job(labels={"team": "vision"})
    made = changes(
        a, task(a), replica(a), attempt(a), allocation(a), log(a), event(1, a), event(2), submission()
    )
    store.write(made)
    store.write(made)
    assert store.events() == made.events
    assert store.job(a.id) == without_document(a)
    assert len(store.jobs().items) == len(store.replicas(a.id).items) == 1


def test_all_of_a_transaction_is_written_or_nothing(store):
    a, stranger = job(1), job(2)
    with pytest.raises(StoreError, match="0002-job"):
        store.write(changes(a, event(1, a), replica(stranger)))
    assert store.job(a.id) is None
    assert store.events() == []


def test_a_change_of_a_job_that_is_not_there_is_refused(store):
    with pytest.raises(StoreError):
        store.write(changes(job(), new=False))


def test_a_number_is_never_given_to_two_jobs_or_two_events(store):
    a = job(1)
    store.write(changes(a, event(1, a)))
    with pytest.raises(StoreError):
        store.write(changes(job(1, id="other")))
    with pytest.raises(StoreError):
        store.write(changes(event(1, a, kind="ended")))
    with pytest.raises(StoreError):
        store.write(changes(event(2, a), event(2, a, kind="ended")))
    assert store.job(a.id) == without_document(a)
    assert store.events() == [event(1, a)]


def test_texts_no_database_can_keep_do_not_stand_in_the_way(store):
    a = job(
        reason="half \udc80 and \0 nothing",
        options={"file": "caf\udce9", "zero": "\0"},
        labels={"team": "\udc80\0"},
        queue="\0",
        document="\0",
    )
    store.write(changes(a, event(1, a, message="\ud83d\0")))
    read = store.job(a.id)
    assert store.jobs(JobFilter(labels={"team": "��"}, queue="\0", text="�")).items == [read]
    assert read.reason == "half � and � nothing"
    assert read.options == a.options


def test_events_come_in_order_after_a_number(store):
    a, b = job(1), job(2, owner="bob")
    events = [
        event(n, (a, b, None)[n % 3], kind=("started", "ended")[n % 2], data={"n": n}) for n in range(1, 13)
    ]
    store.write(changes(a, b, *events))
    assert store.events() == events
    assert store.events(after=5, limit=3) == events[5:8]
    assert store.events(after=5, limit=3, last=True) == events[-3:]
    assert store.events(job=a.id) == [one for one in events if one.job == a.id]
    assert store.events(owner="bob") == [one for one in events if one.job == b.id]
    assert store.events(kinds=["ended"], after=4) == [one for one in events[4:] if one.kind == "ended"]
    assert store.events(job="nothing") == []


def test_replicas_come_by_unit_and_index(store):
    a = job()
    made = [
        replica(a, index, unit=unit, state=state)
        for unit in ("b", "a")
        for index, state in enumerate(["failed", "running"] * 6)
    ]
    store.write(changes(a, *made))
    expected = sorted(made, key=lambda one: (one.unit, one.index))
    assert store.replicas(a.id).items == expected
    assert store.replicas(a.id, unit="b").items == expected[12:]
    assert store.replicas(a.id, states=["failed"]).items == expected[::2]
    assert store.replicas(a.id, key="a.3").items == [expected[3]]


def paged(read, limit):
    """All items of a list, page by page."""
    items, cursor = [], None
    while True:
        page = read(cursor=cursor, limit=limit)
        assert len(page.items) <= limit
        items += page.items
        cursor = page.cursor
        if cursor is None:
            return items


@pytest.mark.parametrize("limit", [1, 3, 4, 100])
def test_pages_of_what_belongs_to_a_job_leave_nothing_out(store, limit):
    a, other = job(1), job(2)
    replicas = [replica(a, index, unit=unit) for unit in ("a", "b") for index in range(6)]
    attempts = [attempt(a, number, key=f"train.{index}") for index in range(4) for number in (1, 2, 3)]
    logs = [log(a, copy=copy, stream=stream) for copy in range(6) for stream in ("err", "out")]
    store.write(changes(a, other, *replicas, *attempts, *logs, replica(other), attempt(other), log(other)))
    assert paged(lambda **page: store.replicas(a.id, **page), limit) == replicas
    assert paged(lambda **page: store.attempts(a.id, **page), limit) == attempts
    assert paged(lambda **page: store.logs(a.id, **page), limit) == logs
    assert store.attempts(a.id, "train.2").items == attempts[6:9]
    assert store.logs(a.id, key="train.0", attempt=1, copy=2, stream="out").items == [logs[5]]


def test_allocations_can_be_asked_for_that_are_still_held(store):
    a, b = job(1), job(2)
    held, returned = allocation(a), allocation(a, 2, returned_at=5.0)
    store.write(changes(a, b, held, returned, allocation(b)))
    assert store.allocations(open_only=True) == [held, allocation(b)]
    assert store.allocations(a.id) == [held, returned]
    assert store.allocations(a.id, open_only=True) == [held]


def test_unfinished_work_is_all_that_is_needed_to_go_on(store):
    over, alive, odd = job(1, state="succeeded"), job(2, state="running"), job(3, state="not known yet")
    kept = [
        task(alive),
        replica(alive),
        replica(alive, 1, state="succeeded"),
        attempt(alive),
        allocation(alive),
    ]
    history = [task(over), replica(over), attempt(over, ended_at=1.0), allocation(over, returned_at=1.0)]
    forgotten = [attempt(over, 2), allocation(over, 2)]
    ended = [attempt(alive, 2, ended_at=1.0), allocation(alive, 2, returned_at=1.0)]
    store.write(changes(over, alive, odd, *kept, *history, *ended, *forgotten))
    found = store.unfinished()
    assert found.jobs == [alive, odd]
    assert [*found.tasks, *found.replicas] == kept[:3]
    assert found.attempts == [forgotten[0], kept[3]]
    assert found.allocations == [forgotten[1], kept[4]]


def test_last_numbers_are_the_highest_ever_given(store):
    assert vars_of(store.last_numbers()) == (0, 0)
    a, b = job(3), job(8)
    store.write(changes(a, b, event(5, a), event(9, b)))
    assert vars_of(store.last_numbers()) == (8, 9)
    store.write(changes(deleted=[b.id]))
    assert vars_of(store.last_numbers()) == (8, 9)


def vars_of(struct):
    return msgspec.structs.astuple(struct)


def test_jobs_are_counted_by_state(store):
    states = ["running", "failed", "failed"]
    store.write(changes(*(job(n, state=state) for n, state in enumerate(states, 1)), job(9, owner="bob")))
    assert store.counts() == {"running": 1, "failed": 2, "waiting": 1}
    assert store.counts("bob") == {"waiting": 1}
