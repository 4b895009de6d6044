"""Jobs as they are found again, from what a real cluster told of theirs."""

from datetime import datetime

import msgspec
import pytest

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.found import (
    ACTS,
    OPTIONS,
    FoundJob,
    closed_gates,
    is_held,
    is_stopped,
    replica_key,
)
from jobman.engines.kubernetes.milestones import Happening, happenings
from jobman.engines.kubernetes.objects import Event, Gate, Involved
from tests.engines.kubernetes.objects_of import plan_of, task
from tests.engines.kubernetes.recorded import changed, recorded


def found(name, *, marks=None, labels=None, replicas=1, **changes):
    """The job of a situation, as if it had been submitted by us."""
    situation = recorded(name)
    unit = situation.job.metadata.labels.get(names.TASK, "a")
    plan = plan_of(task(f"replicas: {replicas}").replace("name: a,", f"name: {unit},"))
    annotations = {
        names.DOCUMENT: "version: 1",
        names.PLAN: plan.to_json().decode(),
        names.SUBMITTED_BY: "Ada Lovelace",
        names.UNIT: unit,
        OPTIONS: msgspec.json.encode({"name": "A name", "file": "job.yaml"}).decode(),
        **(marks or {}),
    }
    own = {**situation.job.metadata.labels, names.JOB: "0123456789ab", **(labels or {})}
    job = changed(situation.job, metadata__annotations=annotations, metadata__labels=own, **changes)
    return FoundJob(job, [job], situation.pods), situation.events


@pytest.mark.parametrize(
    ("name", "state", "code"),
    [
        ("done", "succeeded", 0),
        ("exit-3", "failed", 3),
        ("too-large", "waiting", None),
        ("turns", "running", None),
    ],
)
def test_a_job_says_where_it_stands_and_how_it_ended(name, state, code):
    job, _ = found(name)
    assert (job.state, job.exit_code) == (state, code)
    assert (job.ended_at is not None) == (state in ("succeeded", "failed"))
    assert job.ended_at is None or job.submitted_at <= job.ended_at


def test_what_was_submitted_is_read_from_the_anchor():
    job, _ = found("done", labels={"team": "blue"})
    assert (job.id, job.name, job.owner) == ("0123456789ab", "A name", "Ada Lovelace")
    assert job.labels["team"] == "blue"
    assert not any(key.startswith(names.PREFIX) for key in job.labels)
    assert (job.document, job.options["file"]) == ("version: 1", "job.yaml")


def test_a_job_that_failed_says_which_task_and_why():
    job, _ = found("exit-3")
    assert "exit code 3" in job.reason


def test_options_that_somebody_spoiled_are_none():
    job, _ = found("done", marks={OPTIONS: "{"})
    assert job.options == {}
    assert job.name


def test_replicas_without_pods_are_told_too():
    job, _ = found("turns", replicas=5)
    replicas = list(job.replicas())
    assert [one.index for one in replicas] == [0, 1, 2, 3, 4]
    assert [one.stands.state for one in replicas].count("waiting") == 3


def test_a_cancelled_job_ends_when_its_pods_are_gone():
    job, _ = found("suspended", marks={CANCELLED: "2026-01-31T12:00:00+00:00"})
    assert job.state == "cancelled"
    assert job.ended_at is not None
    assert not job.is_held
    running, _ = found("turns", marks={CANCELLED: "2026-01-31T12:00:00+00:00"})
    assert (running.state, is_stopped(running.jobs[0])) == ("running", False)


def test_a_job_at_a_gate_is_not_held_unless_somebody_holds_it():
    gates = [Gate(name=names.GATE + "data")]
    job, _ = found("suspended", spec__template__spec__scheduling_gates=gates)
    assert (job.gates, job.is_held) == (["data"], False)
    held, _ = found("suspended", marks={names.HOLD: "true"}, spec__template__spec__scheduling_gates=gates)
    assert (closed_gates(held.jobs[0]), is_held(held.jobs[0])) == (["data"], True)


def test_what_happened_is_told_in_order_with_the_replica():
    job, events = found("exit-3")
    told = happenings(job, events)
    assert [int(one.at) for one in told] == sorted(int(one.at) for one in told)
    kinds = [one.kind for one in told]
    own = [kind for kind in kinds if kind in ("submitted", "started", "failed", "job-failed")]
    assert own == ["submitted", "started", "failed", "job-failed"]
    assert len({one.key for one in told}) == len(told)


@pytest.mark.parametrize(("unit", "key"), [("train", "train.2"), ("publish/page", "publish.0/page.2")])
def test_a_replica_is_named_with_the_groups_around_it(unit, key):
    assert replica_key(unit, 2) == key


def test_a_failure_that_is_tried_again_is_told_as_such():
    job, events = found("retried")
    kinds = [one.kind for one in happenings(job, events) if one.kind in ("started", "retrying", "failed")]
    assert kinds == ["started", "retrying", "started", "retrying", "started", "failed"]


def test_a_job_that_failed_names_the_replica():
    job, _ = found("exit-3")
    assert job.reason == f"{job.failure.task}.0: exit code 3"


def test_what_people_did_is_told():
    acts = [[1_800_000_000.5, "held", "by ada"], [1_800_000_001.5, "released", "by ada"]]
    job, events = found("turns", marks={ACTS: msgspec.json.encode(acts).decode()})
    told = [(one.kind, one.message) for one in happenings(job, events) if one.kind in ("held", "released")]
    assert told == [("held", "by ada"), ("released", "by ada")]
    spoiled, _ = found("turns", marks={ACTS: "{"})
    assert spoiled.acts == []


def test_of_a_pod_that_is_gone_events_still_tell_when_it_started_and_was_stopped():
    job, _ = found("suspended", marks={CANCELLED: "2026-01-31T12:00:05+00:00"})
    name = f"{job.jobs[0].metadata.name}-0-abcde"
    about = Involved(kind="Pod", name=name, uid="gone", field_path="spec.containers{main}")
    events = [
        Event(involved_object=about, reason=reason, last_timestamp=datetime.fromisoformat(at))
        for reason, at in (("Started", "2026-01-31T12:00:01+00:00"), ("Killing", "2026-01-31T12:00:06+00:00"))
    ]
    task = job.standings[0].task
    told = [(one.kind, one.replica) for one in happenings(job, events)]
    own = [
        kind for kind, replica in told if replica == f"{task}.0" or kind in ("cancelling", "job-cancelled")
    ]
    assert own == ["started", "cancelling", "stopping", "cancelled", "job-cancelled"]


def test_what_happens_within_a_second_comes_in_the_order_in_which_it_can_have_happened():
    moments = [
        Happening(at=5.0, kind="job-succeeded"),
        Happening(at=5.0, kind="started", replica="b.0", of=4.0),
        Happening(at=5.0, kind="succeeded", replica="a.0", of=3.0),
        Happening(at=5.9, kind="released"),
        Happening(at=5.0, kind="started", replica="a.0", of=3.0),
    ]
    told = [(one.kind, one.replica) for one in sorted(moments, key=lambda one: one.place)]
    assert told == [
        ("released", None),
        ("started", "a.0"),
        ("succeeded", "a.0"),
        ("started", "b.0"),
        ("job-succeeded", None),
    ]
