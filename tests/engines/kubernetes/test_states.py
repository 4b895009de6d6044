"""Where jobs stand, on what a real cluster told of them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.kubernetes.attempts import pod_state
from jobman.engines.kubernetes.copies import CANCELLED, first_failure
from jobman.engines.kubernetes.endings import ending
from jobman.engines.kubernetes.indexes import Indexes
from jobman.engines.kubernetes.names import MAX_FAILED
from jobman.engines.kubernetes.objects import (
    Condition,
    ContainerState,
    Owner,
    Pod,
    Running,
    SuccessPolicy,
    SuccessRule,
)
from jobman.engines.kubernetes.states import by_task, counted, overall, standing, standings
from jobman.engines.kubernetes.whys import why
from jobman.spec.failures import REASONS
from tests.engines.kubernetes.recorded import NAMES, changed, recorded


def stands(name: str, **changes):
    """Where the Job of a situation stands, after changes to it."""
    situation = recorded(name)
    return standing(changed(situation.job, **changes), situation.pods, situation.events)


def holds(kind: str, reason: str = "") -> Condition:
    return Condition(type=kind, status="True", reason=reason)


@pytest.mark.parametrize(
    ("name", "state", "counts"),
    [
        ("suspended", "waiting", {"waiting": 1}),
        ("gated", "waiting", {"waiting": 1}),
        ("held", "waiting", {"waiting": 5}),
        ("too-large", "waiting", {"queued": 1}),
        ("no-image", "waiting", {"starting": 1}),
        ("init-runs", "waiting", {"starting": 1}),
        ("over-quota", "waiting", {"waiting": 1}),
        ("unready", "running", {"running": 1}),
        ("apart", "running", {"running": 2, "queued": 1}),
        ("turns", "running", {"running": 2, "waiting": 3}),
        ("crash-loop", "running", {"resting": 1, "retried": 6}),
        ("stopping", "running", {"stopping": 1}),
        ("preempted", "running", {"stopping": 1}),
        ("node-lost", "waiting", {"queued": 1, "retried": 1}),
        ("deleted-pod", "running", {"running": 1, "retried": 1}),
        ("done", "succeeded", {"succeeded": 2}),
        ("success-policy", "succeeded", {"succeeded": 1, "cancelled": 2}),
        ("exit-3", "failed", {"failed": 1}),
        ("deadline-job", "failed", {"failed": 1}),
        ("retried", "failed", {"failed": 1, "retried": 2}),
        ("mixed", "failed", {"succeeded": 3, "failed": 1, "retried": 1}),
        ("fail-job-policy", "failed", {"failed": 1, "cancelled": 1}),
        ("fail-index-policy", "failed", {"failed": 2}),
        ("max-failed", "failed", {"failed": 2, "cancelled": 4}),
        ("max-failed-stops", "running", {"failed": 1, "cancelled": 3}),
    ],
)
def test_replicas_are_counted_by_state(name, state, counts):
    found = stands(name)
    assert (found.state, found.counts) == (state, counts)


@pytest.mark.parametrize(
    ("most", "state", "code"), [("0", "failed", 9), ("1", "succeeded", 0), ("", "failed", 9)]
)
def test_a_job_in_which_as_many_failed_as_may_has_succeeded(most, state, code):
    found = stands("mixed", metadata__annotations={MAX_FAILED: most})
    assert (found.state, found.exit_code) == (state, code)
    assert found.counts["failed"] == 1


def test_a_job_that_was_given_up_is_not_forgiven():
    assert stands("max-failed", metadata__annotations={MAX_FAILED: "9"}).state == "failed"


def gave_up(reason="MaxFailedIndexesExceeded", later=0):
    """A Job that has stopped some of its pods, when it is over; `later` is in seconds."""
    (verdict,) = recorded("max-failed-stops").job.status.conditions
    assert verdict.last_transition_time is not None
    at = verdict.last_transition_time + timedelta(seconds=later)
    over = [
        Condition(type=kind, status="True", reason=reason, last_transition_time=at)
        for kind in ("FailureTarget", "Failed")
    ]
    return stands("max-failed-stops", status__conditions=over)


def test_what_a_job_stops_when_it_gives_up_has_not_failed():
    found = gave_up()
    assert (found.state, found.exit_code) == ("failed", 8)
    assert found.counts == {"failed": 1, "cancelled": 3}


def test_what_was_deleted_before_its_job_gave_up_has_failed():
    assert gave_up(later=60).counts == {"failed": 4}


def test_what_a_job_stops_whose_time_is_up_has_failed():
    assert gave_up("DeadlineExceeded").counts == {"failed": 4}


@pytest.mark.parametrize(
    ("name", "reason", "exit_code", "words"),
    [
        ("exit-3", "exit", 3, ""),
        ("sidecar", "exit", 6, ""),
        ("result", "exit", 2, ""),
        ("killed", "signal", 143, ""),
        ("oom", "out-of-memory", 137, "used more than the 24 MiB of memory it was given"),
        ("deadline-job", "timeout", 1, "ran longer than the 3 s it was given"),
        ("deadline-pod", "timeout", 137, "ran longer than the 3 s it was given"),
        ("unhealthy", "unhealthy", 137, "Liveness probe failed"),
        ("never-started", "unhealthy", 137, "Startup probe failed"),
        ("no-command", "launch-failed", 128, 'exec: "no-such-program": executable file not found in $PATH'),
        ("init-fails", "stage-failed", 5, "its step stage ended with exit code 5"),
        ("copies", "exit", 11, "copy 1: ended with exit code 11"),
        (
            "evicted-disk",
            "signal",
            137,
            "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi",
        ),
    ],
)
def test_a_failure_has_the_words_that_every_engine_uses(name, reason, exit_code, words):
    found = stands(name)
    assert (found.state, found.reason, found.exit_code, found.message) == ("failed", reason, exit_code, words)


@pytest.mark.parametrize("name", NAMES)
def test_whatever_happened_the_counts_are_all_of_the_replicas(name):
    job, found = recorded(name).job, stands(name)
    replicas = 1 if "jobman.io/replica" in job.metadata.labels else job.spec.completions
    assert sum(count for state, count in found.counts.items() if state != "retried") == replicas
    assert {replica.reason for replica in found.replicas.values()} <= {*REASONS, ""}


@pytest.mark.parametrize("name", NAMES)
def test_only_a_job_that_the_cluster_calls_complete_has_succeeded(name):
    complete = any(one.type == "Complete" for one in recorded(name).job.status.conditions)
    assert (stands(name).state == "succeeded") == complete


def test_what_the_infrastructure_did_is_told_apart_from_what_the_job_did():
    lost, preempted = stands("node-lost").replicas[0], stands("preempted").replicas[0]
    assert (lost.reason, lost.message) == ("node-lost", "its node was lost, or does not take it any more")
    assert (preempted.reason, preempted.message) == ("preempted", "it made room for a job of higher priority")


def test_attempts_are_numbered_in_order_and_keep_how_each_ended():
    attempts = stands("retried").replicas[0].attempts
    assert [(one.number, one.state, one.exit_code) for one in attempts] == [
        (1, "failed", 1),
        (2, "failed", 1),
        (3, "failed", 1),
    ]
    assert sorted(one.started_at for one in attempts) == [one.started_at for one in attempts]


def test_between_two_attempts_a_replica_rests_and_says_what_it_suffered():
    situation = recorded("resting")
    found = standing(situation.job, situation.pods)
    replica = found.replicas[0]
    assert (found.state, replica.state, replica.reason, replica.exit_code) == (
        "running",
        "resting",
        "exit",
        4,
    )


def test_a_pod_that_starts_its_command_again_tells_of_the_end_before():
    attempt = stands("crash-loop").replicas[0].attempts[-1]
    assert (attempt.state, attempt.reason, attempt.exit_code, attempt.restarts) == ("resting", "exit", 7, 6)


def test_what_a_command_left_in_its_result_file_is_kept():
    assert stands("result").replicas[0].attempts[-1].result == "42\n"
    assert stands("no-command").replicas[0].attempts[-1].result is None


def test_a_command_that_never_began_has_no_time_of_beginning():
    assert stands("no-command").replicas[0].attempts[-1].started_at is None


def test_a_job_for_one_replica_counts_its_indexes_as_copies():
    found = stands("copies")
    assert list(found.replicas) == [3]
    assert [copy.state for copy in found.replicas[3].copies] == ["cancelled", "failed"]


def test_copies_run_only_when_all_of_them_do():
    situation = recorded("apart")
    labels = {**situation.job.metadata.labels, "jobman.io/replica": "0"}
    assert stands("apart", metadata__labels=labels).counts == {"starting": 1}
    placed = [pod for pod in situation.pods if pod.spec.node_name]
    job = changed(situation.job, metadata__labels=labels, spec__completions=1, status__active=1)
    assert standing(job, placed[:1]).counts == {"running": 1}


def test_a_suspended_job_is_held_until_it_is_over():
    assert stands("suspended").held
    assert not stands("suspended", spec__suspend=False).held
    assert not stands("exit-3", spec__suspend=True).held


def test_a_cancelled_job_is_over_when_nothing_of_it_runs():
    marked = {CANCELLED: "ada"}
    assert stands("suspended", metadata__annotations=marked).state == "cancelled"
    assert stands("suspended", metadata__annotations=marked).counts == {"cancelled": 1}
    assert stands("running", metadata__annotations=marked).state == "running"


def test_replicas_whose_pods_were_deleted_are_still_counted_as_what_they_became():
    situation = recorded("mixed")
    found = standing(situation.job, [])
    assert found.counts == {"succeeded": 3, "failed": 1, "retried": 1}
    assert found.exit_code == 1


def test_a_failed_job_without_pods_has_a_failed_replica_all_the_same():
    situation = recorded("exit-3")
    found = standing(situation.job, [])
    assert (found.counts, found.message) == ({"failed": 1}, "Job has reached the specified backoff limit")


def test_many_jobs_are_told_apart_in_one_go():
    # `held` is the Job `turns` at another time.
    names = [name for name in NAMES if name != "held"]
    situations = [recorded(name) for name in names]
    pods = [pod for situation in situations for pod in situation.pods]
    events = [event for situation in situations for event in situation.events]
    found = standings([situation.job for situation in situations], pods, events)
    assert found == [stands(name) for name in names]


def test_a_failed_attempt_of_a_cancelled_job_is_not_tried_again():
    assert stands("resting", metadata__annotations={CANCELLED: "ada"}).counts["cancelled"] == 1


@st.composite
def muddles(draw):
    """A Job with pods of all kinds of other Jobs, as if they were its own."""
    job = recorded(draw(st.sampled_from(NAMES))).job
    owner = [Owner(kind="Job", name=job.metadata.name, uid=job.metadata.uid, controller=True)]
    pods = draw(st.lists(st.sampled_from([pod for name in NAMES for pod in recorded(name).pods]), max_size=6))
    own = []
    for number, pod in enumerate(pods):
        index = str(draw(st.integers(0, (job.spec.completions or 1) - 1)))
        own.append(
            changed(
                pod,
                metadata__owner_references=owner,
                metadata__name=f"p{number}",
                metadata__labels={"batch.kubernetes.io/job-completion-index": index},
            )
        )
    return (
        job,
        own,
        [event for name in draw(st.sets(st.sampled_from(NAMES))) for event in recorded(name).events],
    )


@given(muddles())
def test_whatever_the_pods_say_every_replica_is_counted_once_and_words_are_found(muddle):
    job, pods, events = muddle
    found = standing(job, pods, events)
    replicas = 1 if "jobman.io/replica" in job.metadata.labels else job.spec.completions
    assert sum(count for state, count in found.counts.items() if state != "retried") == replicas
    assert (found.exit_code == 0) == (found.state == "succeeded")
    assert found.counts.get("retried", 0) >= 0
    if found.state == "failed":
        assert found.exit_code
        assert found.counts.get("failed") or found.counts.get("succeeded") == replicas
    if found.state in ("succeeded", "failed"):
        assert found.counts.keys() <= {"succeeded", "failed", "cancelled", "retried"}
    assert all(blocker.message for blocker in why(job, pods, events))


def test_a_pod_of_somebody_else_changes_nothing():
    others = [*recorded("exit-3").pods, *recorded("retried").pods]
    situation = recorded("done")
    assert standing(situation.job, [*others, *situation.pods]) == stands("done")


def test_a_million_replicas_that_wait_are_only_counted():
    found = stands("turns", spec__completions=1_000_000)
    assert found.counts == {"running": 2, "waiting": 999_998}
    assert len(found.replicas) == 2


def test_the_first_that_failed_speaks_for_all():
    replicas = stands("fail-index-policy").replicas
    first = first_failure(replicas.values())
    assert first is not None
    assert first.attempts[-1].ended_at == min(one.attempts[-1].ended_at for one in replicas.values())


@pytest.mark.parametrize(
    ("names", "state"),
    [
        (("done", "exit-3"), "failed"),
        (("done", "success-policy"), "succeeded"),
        (("done", "gated"), "running"),
        (("gated", "suspended"), "waiting"),
        (("exit-3", "unready"), "running"),
    ],
)
def test_a_job_of_several_parts_is_over_when_all_are(names, state):
    assert overall([stands(name) for name in names]) == state


def part(name: str, replica: str, task: str = "train"):
    """Where the Job of a situation stands, as that of one replica."""
    labels = {"jobman.io/task": task, "jobman.io/replica": replica}
    return stands(name, metadata__labels=labels)


def test_jobs_for_one_replica_each_are_one_task():
    tasks = by_task([part("exit-3", "0"), part("done", "1"), part("gated", "2"), part("done", "0", "test")])
    assert tasks["train"].counts == {"failed": 1, "succeeded": 1, "waiting": 1}
    assert tasks["train"].state == "running"
    assert tasks["test"].counts == {"succeeded": 1}


@pytest.mark.parametrize(
    ("names", "state"),
    [
        (("done", "exit-3"), "failed"),
        (("done", "turns"), "starting"),
        (("unready", "gated"), "starting"),
        (("unready", "unready"), "running"),
        (("done", "done"), "succeeded"),
        (("unready", "stopping"), "stopping"),
        (("gated", "too-large"), "queued"),
    ],
)
def test_a_replica_that_is_several_jobs_is_as_far_as_the_least_of_them(names, state):
    task = by_task([part(name, "4") for name in names])["train"]
    assert task.counts.get(state) == 1
    replica = task.replicas[4]
    assert [copy.index for copy in replica.copies] == list(range(len(replica.copies)))


def test_a_task_fails_with_the_code_of_the_replica_that_failed_first():
    task = by_task([part("result", "0"), part("done", "1"), part("exit-3", "2")])["train"]
    assert (task.state, task.exit_code, task.reason) == ("failed", 3, "exit")
    assert task.ended_at is not None


def test_counts_of_several_parts_add_up():
    assert counted([stands("mixed"), stands("retried")]) == {"succeeded": 3, "failed": 2, "retried": 3}


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("TerminationByKubelet", "The node was low on resource: memory.", "preempted"),
        ("EvictionByEvictionAPI", "", "preempted"),
        ("DeletionByPodGC", "", "node-lost"),
    ],
)
def test_a_pod_that_is_taken_away_did_not_fail_by_itself(reason, message, expected):
    pod = changed(
        recorded("exit-3").pods[0],
        status__conditions=[holds("DisruptionTarget", reason)],
        status__message=message,
    )
    assert ending(pod).reason == expected
    assert ending(pod).message


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("OutOfcpu", "launch-failed"),
        ("UnexpectedAdmissionError", "launch-failed"),
        ("NodeShutdown", "node-lost"),
    ],
)
def test_a_node_that_turns_a_pod_away_is_heard(reason, expected):
    pod = changed(
        recorded("exit-3").pods[0],
        status__container_statuses=[],
        status__reason=reason,
        status__message="Pod was rejected",
    )
    assert (ending(pod).reason, ending(pod).message) == (expected, "Pod was rejected")


def test_a_pod_that_succeeded_although_it_was_to_be_taken_away_has_succeeded():
    pod = changed(
        recorded("done").pods[0], status__conditions=[holds("DisruptionTarget", "EvictionByEvictionAPI")]
    )
    assert ending(pod).reason == ""


def test_a_pod_with_one_of_two_containers_running_runs():
    pod: Pod = recorded("crash-loop").pods[0]
    (status,) = pod.status.container_statuses
    other = changed(status, name="other", state=ContainerState(running=Running()))
    assert pod_state(changed(pod, status__container_statuses=[status, other])) == "running"


def test_indexes_are_read_as_the_cluster_writes_them():
    indexes = Indexes("0,2-5,9")
    assert list(indexes) == [0, 2, 3, 4, 5, 9]
    assert len(indexes) == 6
    assert [index for index in range(-1, 12) if index in indexes] == list(indexes)
    assert list(Indexes("")) == []
    assert 0 not in Indexes("")


def test_a_pod_whose_container_has_just_ended_does_not_start_again():
    pod = recorded("done").pods[0]
    ended = changed(pod, status__phase="Running")
    assert all(status.state.terminated for status in ended.status.container_statuses)
    assert pod_state(ended) == "running"


def test_a_goal_that_is_met_by_the_last_replica_is_met_although_others_failed():
    rule = SuccessRule(succeeded_indexes="0")
    failed = Condition(type="Failed", status="True", reason="FailedIndexes")
    job = changed(
        recorded("mixed").job,
        spec__success_policy=SuccessPolicy(rules=[rule]),
        status__conditions=[failed],
        status__completed_indexes="0",
        status__failed_indexes="1-3",
    )
    assert standing(job, []).state == "succeeded"
    missed = changed(job, spec__success_policy=SuccessPolicy(rules=[SuccessRule(succeeded_count=2)]))
    assert standing(missed, []).state == "failed"
