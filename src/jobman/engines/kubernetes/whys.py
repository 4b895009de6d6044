"""Why a job is where it is, in plain words and with what to do, from everything the cluster tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import index_of, pod_state
from jobman.engines.kubernetes.blockers import Blocker, Trouble, gathered
from jobman.engines.kubernetes.copies import Copy
from jobman.engines.kubernetes.endings import concerns
from jobman.engines.kubernetes.indexes import is_over, pods_of, replica_of, width
from jobman.engines.kubernetes.objects import Event, Job, Node, Pod, Quota, VolumeClaim
from jobman.engines.kubernetes.refusals import why_refused
from jobman.engines.kubernetes.states import Standing, standing
from jobman.engines.kubernetes.troubles import why_not_running
from jobman.engines.kubernetes.unschedulable import why_unschedulable

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_DEFAULT_SCHEDULER = ("", "default-scheduler")
_DEFAULT_CONTROLLER = ("", "kubernetes.io/job-controller")
_PLAIN = ("", "exit", "signal", "timeout", "out-of-memory", "stage-failed")
"""Reasons that the words of a failure tell by themselves."""
_AFTER_FAILURE = {
    "exit": "`jobman logs` shows what it said",
    "signal": "`jobman logs` shows what it said",
    "timeout": "give it more time with `duration`",
    "out-of-memory": "ask for more memory under `resources`",
    "unhealthy": "look at `checks`, and at what it says in `jobman logs`",
    "launch-failed": "check the command, and that the image has it",
    "stage-failed": "look at its `steps`; `jobman logs` shows what they said",
    "node-lost": "run it once more",
    "preempted": "run it once more",
}


def why(
    job: Job,
    pods: Iterable[Pod],
    events: Iterable[Event] = (),
    quotas: Sequence[Quota] = (),
    claims: Sequence[VolumeClaim] = (),
    nodes: Sequence[Node] = (),
) -> list[Blocker]:
    """What stands in the way of a Job, the most telling first; nothing where all is well.

    What one may not look at is left out: then the words say less.
    """
    own = pods_of(job, pods)
    told = sorted(events, key=_moment)
    stands = standing(job, own, told)
    if is_over(job):
        return list(_failures(stands))
    if job.spec.suspend:
        return [_held(job)]
    found = [
        *_refusals(job, own, told, quotas),
        *gathered(_of_pods(job, own, told, claims, nodes)),
        *_resting(stands, own),
        *_turns(job, own, stands),
    ]
    return found if found or own else [_not_begun(job)]


def _not_begun(job: Job) -> Blocker:
    if job.spec.managed_by not in _DEFAULT_CONTROLLER:
        message = f"the controller {job.spec.managed_by} has not made its pods yet"
        return Blocker(kind="start", message=message, advice="see that this controller runs")
    return Blocker(kind="start", message="the cluster has not made its pods yet")


def _held(job: Job) -> Blocker:
    name = job.metadata.labels.get(names.JOB) or job.metadata.name
    return Blocker(kind="hold", message="it is held: the Job is suspended", advice=f"`jobman release {name}`")


def _refusals(
    job: Job, pods: Sequence[Pod], events: Sequence[Event], quotas: Sequence[Quota]
) -> list[Blocker]:
    """Only the last word counts, and only as long as no pod was made after it."""
    said = [event for event in events if event.involved_object.uid == job.metadata.uid]
    refused = [event for event in said if event.reason == "FailedCreate"]
    youngest = max((pod.metadata.creation_timestamp or _EARLIEST for pod in pods), default=_EARLIEST)
    if not refused or _moment(refused[-1]) < youngest or not _wants_more(job):
        return []
    return gathered([(None, why_refused(refused[-1].message, quotas))])


def _wants_more(job: Job) -> bool:
    """Whether a Job has fewer pods than it may."""
    left = width(job) - job.status.succeeded
    return job.status.active < min(left, job.spec.parallelism if job.spec.parallelism is not None else 1)


def _of_pods(
    job: Job,
    pods: Sequence[Pod],
    events: Sequence[Event],
    claims: Sequence[VolumeClaim],
    nodes: Sequence[Node],
) -> Iterator[tuple[int | None, Trouble]]:
    replica = replica_of(job)
    by_name = {node.metadata.name: node for node in nodes}
    for pod in pods:
        if trouble := _of_pod(pod, events, claims, by_name):
            yield index_of(pod) if replica is None else replica, trouble


def _of_pod(
    pod: Pod, events: Sequence[Event], claims: Sequence[VolumeClaim], nodes: dict[str, Node]
) -> Trouble | None:
    state = pod_state(pod)
    if state in ("succeeded", "failed"):
        return None
    if state == "waiting":
        return _gated(pod)
    if state == "queued":
        return _queued(pod, events, claims, list(nodes.values()))
    return (
        _on_a_bad_node(pod, nodes.get(pod.spec.node_name))
        or (_stopping(pod) if state == "stopping" else None)
        or why_not_running(pod, events)
    )


def _gated(pod: Pod) -> Trouble:
    gates = [gate.name.removeprefix(names.GATE) for gate in pod.spec.scheduling_gates]
    job = pod.metadata.labels.get(names.JOB) or pod.metadata.name
    closed = "a closed gate" if len(gates) == 1 else "closed gates"
    return Trouble(
        "gate", f"it waits at {closed}: {', '.join(gates)}", f"`jobman gate open {job} {' '.join(gates)}`"
    )


def _queued(
    pod: Pod, events: Sequence[Event], claims: Sequence[VolumeClaim], nodes: Sequence[Node]
) -> Trouble:
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False":
            used = {
                volume.persistent_volume_claim.claim_name
                for volume in pod.spec.volumes
                if volume.persistent_volume_claim
            }
            own = [claim for claim in claims if claim.metadata.name in used]
            if pod.status.nominated_node_name:
                return _making_room(pod)
            if _grows_for(pod, events):
                return Trouble("resources", "no node can take it now, and the cluster is adding one for it")
            return why_unschedulable(pod, one.message, nodes, own, events)
    if pod.spec.scheduler_name not in _DEFAULT_SCHEDULER:
        message = f"the scheduler {pod.spec.scheduler_name} has not looked at it"
        return Trouble("queue", message, "see that this scheduler runs, or leave out `scheduler`")
    return Trouble("queue", "the scheduler has not looked at it yet")


def _grows_for(pod: Pod, events: Sequence[Event]) -> bool:
    """Whether an autoscaler has answered."""
    return any(event.reason == "TriggeredScaleUp" and concerns(event, pod) for event in events)


def _making_room(pod: Pod) -> Trouble:
    node = pod.status.nominated_node_name
    return Trouble("resources", f"others of lower priority are being stopped on {node} to make room for it")


def _on_a_bad_node(pod: Pod, node: Node | None) -> Trouble | None:
    if node is None:
        return None
    ready = next((one for one in node.status.conditions if one.type == "Ready"), None)
    if ready is None or ready.status == "True":
        return None
    name = node.metadata.name
    message = f"its node {name} {'is not ready' if ready.status == 'False' else 'does not answer'}"
    if pod.metadata.deletion_timestamp is None:
        return Trouble("node", message, "wait: the cluster tries it on another node by itself")
    advice = f"once you know that {name} is off: `kubectl delete pod {pod.metadata.name} --force`"
    return Trouble("node", f"{message}, so that nobody can tell when its pod has ended", advice)


def _stopping(pod: Pod) -> Trouble:
    grace = pod.spec.termination_grace_period_seconds
    return Trouble("start", f"it is being stopped{f' and has {grace} s for it' if grace else ''}")


def _resting(stands: Standing, pods: Sequence[Pod]) -> list[Blocker]:
    """Those between a failed pod and the next; a pod that starts its command again tells of it itself."""
    ended = {pod.metadata.name for pod in pods if pod.status.phase == "Failed"}
    resting = [
        (replica.index, Trouble("retry", f"it {_how(replica)} and is tried again after a pause"))
        for replica in stands.replicas.values()
        if replica.state == "resting" and replica.attempts[-1].pod in ended
    ]
    return gathered(resting)


def _turns(job: Job, pods: Sequence[Pod], stands: Standing) -> list[Blocker]:
    waiting = stands.counts.get("waiting", 0) - sum(
        one.state == "waiting" for one in stands.replicas.values()
    )
    if replica_of(job) is not None or not waiting or not pods or _wants_more(job):
        return []
    message = f"{stands.task}: at most {job.spec.parallelism} run at once"
    return [Blocker(kind="parallelism", message=message, advice="raise `parallelism` to run more at once")]


def _failures(stands: Standing) -> Iterator[Blocker]:
    failed = [one for one in stands.replicas.values() if one.state == "failed"]
    told = [
        (one.index, Trouble("failed", f"it {_how(one)}", _advice(one.reason, one.message))) for one in failed
    ]
    if stands.state != "failed":
        return
    yield from gathered(told)
    if not told:
        advice = _AFTER_FAILURE.get(stands.reason, "")
        yield Blocker(
            kind="failed", message=f"it failed: {stands.message or 'the Job says no more'}", advice=advice
        )


def _how(copy: Copy) -> str:
    """How a copy failed, as the end of a sentence."""
    reason = "" if copy.reason in _PLAIN else f" ({copy.reason})"
    if copy.message:
        return f"failed{reason}: {copy.message}"
    if copy.exit_code is not None:
        return f"failed with exit code {copy.exit_code}{reason}"
    return f"failed{reason}"


def _advice(reason: str, message: str) -> str:
    if "ephemeral local storage" in message:
        return "ask for more `storage` under `resources`"
    return _AFTER_FAILURE.get(reason, "")


def _moment(event: Event) -> datetime:
    return (
        event.last_timestamp
        or event.event_time
        or event.first_timestamp
        or event.metadata.creation_timestamp
        or _EARLIEST
    )
