"""Where a job stands, from the cluster's Jobs and Pods: replicas by state, and how they ended. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import seconds
from jobman.engines.kubernetes.copies import (
    CANCELLED,
    Copy,
    Replica,
    all_copies,
    copies_of,
    first_failure,
    joined,
    state_without_pods,
    together,
)
from jobman.engines.kubernetes.endings import too_long
from jobman.engines.kubernetes.indexes import (
    Indexes,
    condition,
    is_over,
    pods_of,
    ran_too_long,
    replica_of,
    width,
)
from jobman.engines.kubernetes.objects import Condition, Event, Job, Pod, SuccessRule

FINAL = ("succeeded", "failed", "cancelled")
BEGUN = ("running", "stopping", "resting")


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where one Job stands."""

    job: str
    task: str
    """The unit of the plan."""
    flavor: str = ""
    state: str
    """waiting, running, succeeded, failed or cancelled."""
    held: bool = False
    counts: dict[str, int]
    """Replicas by state; `retried` counts attempts beyond the first."""
    replicas: dict[int, Replica]
    """Those with pods or a failure. The others are only counted: there may be very many of them."""
    reason: str = ""
    exit_code: int | None = None
    message: str = ""
    started_at: float | None = None
    ended_at: float | None = None


def standing(job: Job, pods: Iterable[Pod], events: Iterable[Event] = ()) -> Standing:
    """Where a Job stands; of the pods only its own are looked at, of the events those about failed checks."""
    copies = copies_of(job, pods_of(job, pods), [event for event in events if event.reason == "Unhealthy"])
    others = state_without_pods(job, any(copy.state == "failed" for copy in copies.values()))
    replica = replica_of(job)
    if replica is not None:
        replicas = {replica: together(job, replica, all_copies(job, copies, others))}
        counts = Counter(one.state for one in replicas.values())
    else:
        replicas = {index: Replica(**msgspec.structs.asdict(copy)) for index, copy in copies.items()}
        counts = _counts(job, replicas, others)
    state = _state(job, counts)
    first = first_failure(replicas.values()) if state == "failed" else None
    over = condition(job, "Complete", "Failed")
    return Standing(
        job=job.metadata.name,
        task=job.metadata.annotations.get(names.UNIT) or job.metadata.labels.get(names.TASK, ""),
        flavor=job.metadata.labels.get(names.FLAVOR, ""),
        state=state,
        held=job.spec.suspend and state not in FINAL,
        counts={**{name: count for name, count in counts.items() if count}, **_retried(job, copies)},
        replicas=replicas,
        reason=first.reason if first else "timeout" if ran_too_long(over) else "",
        exit_code=_exit_code(state, first),
        message=first.message if first else _failure_words(job) if state == "failed" else "",
        started_at=seconds(job.status.start_time),
        ended_at=seconds(over.last_transition_time) if over else None,
    )


def standings(jobs: Iterable[Job], pods: Iterable[Pod], events: Iterable[Event] = ()) -> list[Standing]:
    """Where each of many Jobs stands; every pod is looked at once."""
    own: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        for owner in pod.metadata.owner_references:
            own[owner.uid].append(pod)
    told = [event for event in events if event.reason == "Unhealthy"]
    return [standing(job, own[job.metadata.uid], told) for job in jobs]


def by_task(standings: Iterable[Standing]) -> dict[str, Standing]:
    """Where each task stands, whose replicas, or parts of them, may be Jobs of their own."""
    tasks: defaultdict[str, list[Standing]] = defaultdict(list)
    for one in standings:
        tasks[one.task].append(one)
    return {task: own[0] if len(own) == 1 else _joined(own) for task, own in tasks.items()}


def overall(standings: Sequence[Standing]) -> str:
    """The state of a job that is several Jobs: over when all are, and failed if one of them is."""
    states = {one.state for one in standings}
    if not states <= set(FINAL):
        return "running" if states - {"waiting"} else "waiting"
    return next((state for state in ("failed", "cancelled", "succeeded") if state in states), "waiting")


def counted(standings: Iterable[Standing]) -> dict[str, int]:
    """The replicas of all tasks by state."""
    counts: Counter[str] = Counter()
    for one in standings:
        counts.update(one.counts)
    return dict(counts)


def _joined(standings: Sequence[Standing]) -> Standing:
    """A task from its Jobs: a replica that is several of them is as far as the least of them."""
    parts: defaultdict[int, list[Replica]] = defaultdict(list)
    for one in standings:
        for index, replica in one.replicas.items():
            parts[index].append(replica)
    replicas = {index: joined(own) for index, own in sorted(parts.items())}
    counts = Counter(replica.state for replica in replicas.values())
    counts["retried"] = sum(one.counts.get("retried", 0) for one in standings)
    state = overall(standings)
    first = first_failure(replicas.values()) if state == "failed" else None
    told = next((one for one in standings if one.state == "failed"), standings[0])
    begun = [one.started_at for one in standings if one.started_at is not None]
    ended = [one.ended_at for one in standings if one.ended_at is not None]
    return msgspec.structs.replace(
        told,
        state=state,
        held=any(one.held for one in standings),
        counts={name: count for name, count in counts.items() if count},
        replicas=replicas,
        reason=first.reason if first else told.reason,
        exit_code=_exit_code(state, first),
        message=first.message if first else told.message,
        started_at=min(begun, default=None),
        ended_at=max(ended) if len(ended) == len(standings) else None,
    )


def _counts(job: Job, replicas: Mapping[int, Copy], others: str) -> Counter[str]:
    counts = Counter(replica.state for replica in replicas.values())
    completed = Indexes(job.status.completed_indexes)
    forgotten = len(completed) - sum(index in completed for index in replicas)
    counts["succeeded"] += forgotten
    counts[others] += max(0, width(job) - len(replicas) - forgotten)
    return counts


def _retried(job: Job, copies: Mapping[int, Copy]) -> dict[str, int]:
    """Attempts beyond the first, from the pods or from the Job's own count, whichever knows of more."""
    tried = job.status.succeeded + job.status.failed + job.status.active
    ended = min(tried, width(job)) if is_over(job) else 0
    begun = max(len(copies), len(Indexes(job.status.completed_indexes)), ended, 1)
    retried = max(sum(copy.retried for copy in copies.values()), tried - begun)
    return {"retried": retried} if retried else {}


def _state(job: Job, counts: Mapping[str, int]) -> str:
    if over := condition(job, "Complete", "Failed"):
        return "succeeded" if over.type == "Complete" or _is_forgiven(job, over) else "failed"
    if any(counts.get(state) for state in BEGUN):
        return "running"
    if CANCELLED in job.metadata.annotations:
        return "cancelled"
    return "running" if counts.get("succeeded") or counts.get("failed") else "waiting"


def _is_forgiven(job: Job, failed: Condition) -> bool:
    """Whether all of a Job was tried, and its goal is met: then the cluster looks at its failures first."""
    if failed.reason != "FailedIndexes":
        return False
    most = job.metadata.annotations.get(names.MAX_FAILED, "")
    if most.isdecimal() and len(Indexes(job.status.failed_indexes)) <= int(most):
        return True
    done = Indexes(job.status.completed_indexes)
    return job.spec.success_policy is not None and any(
        _is_met(rule, done) for rule in job.spec.success_policy.rules
    )


def _is_met(rule: SuccessRule, done: Indexes) -> bool:
    named = None if rule.succeeded_indexes is None else list(Indexes(rule.succeeded_indexes))
    met = len(done) if named is None else sum(index in done for index in named)
    wanted = rule.succeeded_count if rule.succeeded_count is not None else len(named or ())
    return bool(wanted) and met >= wanted


def _failure_words(job: Job) -> str:
    """Why a Job failed of whose replicas nothing is left."""
    failed = condition(job, "Failed")
    if ran_too_long(failed):
        return too_long(job.spec.active_deadline_seconds)
    return failed.message if failed else ""


def _exit_code(state: str, first: Copy | None) -> int | None:
    if state == "failed":
        return (first.exit_code if first else None) or 1
    return 0 if state == "succeeded" else None
