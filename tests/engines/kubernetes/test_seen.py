"""What a cluster shows of an attempt, on what a real one told."""

import pytest

from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.endings import OUT_OF_TIME, STOPPED
from jobman.engines.kubernetes.names import ATTEMPT, KEY, REPLICA
from jobman.engines.kubernetes.objects import Condition
from jobman.engines.kubernetes.seen import attempt_of, is_at_rest, seen
from jobman.engines.kubernetes.states import standing
from tests.engines.kubernetes.recorded import changed, recorded


def holds(kind, reason="", message=""):
    return Condition(type=kind, status="True", reason=reason, message=message)


def shown(name, *, pods=True, **changes):
    """A recorded Job as if it were the attempt of one replica."""
    situation = recorded(name)
    labels = {**situation.job.metadata.labels, REPLICA: "0"}
    job = changed(situation.job, metadata__labels=labels, **changes)
    return seen([job], situation.pods if pods else (), situation.events)


def test_an_attempt_that_runs_has_begun_and_is_not_over():
    found = shown("running")
    assert (found.begun, found.over, found.failing) == (True, False, False)


def test_an_attempt_that_is_not_ready_is_seen_not_to_be():
    found = shown("unready")
    assert (found.begun, found.ready) == (True, False)


def test_an_attempt_that_succeeded_had_begun_and_passed_its_check():
    found = shown("done")
    assert (found.over, found.reason, found.exit_code) == (True, "", 0)
    assert found.begun
    assert found.passed_start
    assert found.nodes
    assert shown("done", pods=False) == changed(found, nodes=())


@pytest.mark.parametrize(
    ("name", "reason", "code"),
    [
        ("exit-3", "exit", 3),
        ("oom", "out-of-memory", 137),
        ("killed", "signal", 143),
        ("no-command", "launch-failed", 128),
    ],
)
def test_a_failure_has_its_reason(name, reason, code):
    found = shown(name, status__conditions=[holds("Failed", "BackoffLimitExceeded")])
    assert (found.over, found.reason, found.exit_code) == (True, reason, code)


@pytest.mark.parametrize(
    ("message", "reason", "code"),
    [
        ("Container main for pod x/y failed with exit code 7 matching FailJob rule at index 1", "exit", 7),
        (
            "Container main for pod x/y failed with exit code 137 matching FailJob rule at index 1",
            "signal",
            137,
        ),
        ("Pod x/y has condition DisruptionTarget matching FailJob rule at index 0", "node-lost", None),
    ],
)
def test_a_failure_whose_pod_is_gone_is_told_by_the_job(message, reason, code):
    conditions = [holds("Failed", "PodFailurePolicy", message)]
    found = shown("exit-3", pods=False, status__conditions=conditions)
    assert (found.over, found.reason, found.exit_code) == (True, reason, code)


def test_a_failure_of_which_nobody_knows_anything_is_not_held_against_it():
    conditions = [holds("Failed", "BackoffLimitExceeded")]
    assert shown("exit-3", pods=False, status__conditions=conditions).reason == "node-lost"


def test_what_was_told_to_stop_is_over_when_the_cluster_has_heard_of_it_and_its_pods_have_ended():
    situation = recorded("running")
    ours = changed(situation.job, metadata__labels={REPLICA: "0"})
    told = changed(ours, metadata__annotations={CANCELLED: "now"}, spec__suspend=True)
    heard = changed(told, status__conditions=[holds("Suspended")], status__active=0, status__terminating=0)
    assert not is_at_rest(told, [])
    assert not is_at_rest(heard, situation.pods)
    assert is_at_rest(heard, [])
    found = seen([heard], [])
    assert (found.over, found.reason, found.halted) == (True, "signal", True)


def told_to_stop(code, **notes):
    """A Job that was stopped, and its pod, which is still there."""
    situation = recorded("exit-3")
    job = changed(
        situation.job,
        metadata__labels={REPLICA: "0"},
        metadata__annotations={CANCELLED: "now"},
        status__conditions=[holds("Failed", "BackoffLimitExceeded")],
    )
    (pod,) = situation.pods
    (status,) = pod.status.container_statuses
    ended = changed(status, state__terminated__exit_code=code, state__terminated__reason="")
    stopped = changed(
        pod,
        metadata__annotations={STOPPED: "now", **notes},
        status__reason="DeadlineExceeded",
        status__container_statuses=[ended],
    )
    return job, stopped


@pytest.mark.parametrize(("code", "reason", "told"), [(0, "", 0), (143, "signal", 143)])
def test_what_was_told_to_stop_and_kept_says_how_it_ended(code, reason, told):
    job, pod = told_to_stop(code)
    found = seen([job], [pod])
    assert (found.over, found.reason, found.exit_code) == (True, reason, told)


@pytest.mark.parametrize(("code", "told"), [(0, None), (143, 143)])
def test_what_was_told_to_stop_because_its_time_was_up_ran_too_long(code, told):
    job, pod = told_to_stop(code, **{OUT_OF_TIME: "7"})
    found = seen([job], [pod])
    assert (found.reason, found.exit_code) == ("timeout", told)
    assert found.message == "ran longer than the 7 s it was given"
    (attempt,) = standing(job, [pod]).replicas[0].attempts
    assert (attempt.reason, attempt.message) == ("timeout", found.message)


def test_an_attempt_of_two_jobs_is_failing_when_one_of_them_failed_and_over_when_both_are_at_rest():
    failed = recorded("exit-3")
    ended = changed(
        failed.job,
        metadata__labels={**failed.job.metadata.labels, REPLICA: "0"},
        status__conditions=[holds("Failed", "BackoffLimitExceeded")],
    )
    runs = recorded("running")
    pods = [*failed.pods, *runs.pods]
    found = seen([ended, runs.job], pods)
    assert (found.failing, found.over, found.halted) == (True, False, False)
    stopped = changed(
        runs.job,
        metadata__labels={**runs.job.metadata.labels, REPLICA: "0"},
        metadata__annotations={CANCELLED: "now"},
        spec__suspend=True,
        status__conditions=[holds("Suspended")],
        status__active=0,
    )
    over = seen([ended, stopped], failed.pods)
    assert (over.over, over.reason, over.exit_code) == (True, "exit", 3)


@pytest.mark.parametrize("decided", ["FailureTarget", "SuccessCriteriaMet"])
def test_what_the_cluster_ends_itself_needs_nobody_to_stop_it(decided):
    runs = recorded("running")
    ending = changed(runs.job, status__conditions=[holds(decided)])
    found = seen([ending], runs.pods)
    assert (found.over, found.halted) == (False, True)


def test_a_job_says_which_attempt_it_is():
    job = recorded("done").job
    assert attempt_of(job) is None
    marked = changed(job, metadata__annotations={KEY: "g.1/a.0"}, metadata__labels={ATTEMPT: "3"})
    assert attempt_of(marked) == ("g.1/a.0", 3)
