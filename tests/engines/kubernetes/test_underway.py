"""A driven job as it is found again: its course says where it stands, and what it waits for."""

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.course import Course, Driver, ReplicaStands, TaskAt, course_data, driver_note
from jobman.engines.kubernetes.driven import DrivenCompiler
from jobman.engines.kubernetes.objects import ConfigMap, Job
from jobman.engines.kubernetes.underway import DrivenJob
from jobman.engines.kubernetes.waits import acts_to_come, turns
from tests.engines.kubernetes.objects_of import ID, SMALL, plan_of, target

NOW = 1_000_000.0
TEXT = f"""
version: 1
name: graph
tasks:
- {{name: a, command: [a], retries: 2, resources: {SMALL}}}
- {{name: b, command: [b], depends_on: [a], replicas: 2, gates: [go], resources: {SMALL}}}
- {{name: tidy, command: [t], when: always, resources: {SMALL}}}
"""


def driven(course, *, text=TEXT, renewed=None, jobs=(), **notes):
    """A job that is this far; `renewed` is when somebody last said that they drive it."""
    made = DrivenCompiler(plan_of(text), target()).compiled().anchor
    anchor = msgspec.convert(made, ConfigMap)
    anchor.metadata.annotations.update({f"{names.PREFIX}{key}": value for key, value in notes.items()})
    driver = None if renewed is None else Driver(who="ada", token="t", renewed=renewed)
    marks = {names.COURSE: "1", **({names.DRIVER: driver_note(driver)} if driver else {})}
    config = msgspec.convert({"metadata": {"annotations": marks}, "data": course_data(course)}, ConfigMap)
    return DrivenJob(anchor, config, jobs, (), ())


def under_way(**a):
    return Course(
        state="running",
        started_at=NOW - 5,
        job={"held": False},
        tasks=[
            TaskAt(unit="a", counts={"running": 1}),
            TaskAt(unit="b", counts={"waiting": 2}),
            TaskAt(unit="tidy", counts={"waiting": 1}),
        ],
        replicas=[ReplicaStands(**{"key": "a.0", "unit": "a", "state": "running", "attempt": 2, **a})],
    )


def messages(found):
    return [blocker.message for _, blocker in found]


def test_a_job_that_nobody_has_driven_yet_waits():
    job = driven(Course())
    assert (job.state, job.counts, job.is_over) == ("waiting", {"waiting": 4}, False)
    assert messages(acts_to_come(job, NOW)) == ["nobody drives it now, so nothing new of it starts"]


def test_who_spoke_a_moment_ago_drives():
    assert driven(under_way(), renewed=NOW - 3).is_driven(NOW)
    assert not driven(under_way(), renewed=NOW - 30).is_driven(NOW)


def test_the_way_out_is_the_command_that_goes_on():
    (blocker,) = [each for _, each in acts_to_come(driven(under_way()), NOW)]
    assert blocker.advice == f"jobman -e kubernetes run --resume {ID}"


def test_every_replica_is_told_also_those_that_were_only_counted():
    job = driven(under_way())
    assert [(each.key, each.stands.state) for each in job.replicas()] == [
        ("a.0", "running"),
        ("b.0", "waiting"),
        ("b.1", "waiting"),
        ("tidy.0", "waiting"),
    ]


def test_what_waits_says_for_what():
    job = driven(under_way(), renewed=NOW)
    assert list(acts_to_come(job, NOW)) == []
    assert messages(turns(job)) == [
        "b: the gate go is closed",
        "b waits for a to succeed",
        "tidy runs when everything else is over",
    ]


def test_a_gate_that_somebody_opened_is_open():
    assert driven(under_way()).gates == ["go"]
    assert driven(under_way(), **{"gate-go": "open"}).gates == []


def test_a_wish_to_hold_counts_before_it_is_heard():
    job = driven(under_way(), renewed=NOW, hold="true")
    assert job.is_held
    assert messages(acts_to_come(job, NOW)) == ["the job is held"]
    assert list(turns(job)) == []


def test_a_replica_that_rests_says_until_when():
    job = driven(under_way(state="resting", life={"due": NOW + 20}), renewed=NOW)
    assert messages(acts_to_come(job, NOW)) == ["a.0 is tried again in 20 s"]


def test_a_failure_is_told_with_the_replica_and_its_code():
    course = under_way(state="failed", reason="exit", exit_code=3)
    course.state, course.failure, course.ended_at = "failed", ("a.0", "exit", 3), NOW
    job = driven(course)
    assert (job.exit_code, job.reason, job.ended_at) == (3, "a.0: exit code 3", NOW)
    assert list(acts_to_come(job, NOW)) == list(turns(job)) == []


def test_an_attempt_that_was_stopped_is_no_cancelled_job():
    mark = {CANCELLED: "2026-01-31T12:00:00+00:00"}
    meta = {"name": "x", "annotations": {names.KEY: "a.0", **mark}, "labels": {names.ATTEMPT: "1"}}
    stopped = msgspec.convert({"metadata": meta}, Job)
    assert driven(under_way(), jobs=[stopped]).cancelled_at is None
    assert driven(under_way(), cancelled=mark[CANCELLED]).cancelled_at is not None


def test_only_the_jobs_of_attempts_that_matter_are_looked_at():
    def attempt(number):
        labels = {names.ATTEMPT: str(number), names.REPLICA: "0"}
        meta = {"name": f"a{number}", "annotations": {names.KEY: "a.0"}, "labels": labels}
        return msgspec.convert({"metadata": meta}, Job)

    assert driven(under_way(), jobs=[attempt(1), attempt(2)]).current_jobs() == {"a2"}


def test_a_course_that_cannot_be_read_is_that_of_a_job_nobody_drove():
    job = driven(Course())
    job._config.data.clear()
    assert job.state == "waiting"
