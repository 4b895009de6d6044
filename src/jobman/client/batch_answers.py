"""What a manager of batch jobs and its scripts tell, in the answers of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from jobman.client.task_rows import task_row
from jobman.control import answers
from jobman.control.admission import flavor_of
from jobman.engines.endings import how_it_ended
from jobman.engines.scripts.delegate import NodeAt, QueueRowAt, Waiting
from jobman.engines.scripts.found import BatchJob, ReplicaAt
from jobman.engines.scripts.records import Line

_MOST_RESULTS = 1000
_TOLD = (
    *("started", "frozen", "thawed", "ready", "not-ready", "unhealthy", "stopping", "retrying"),
    *("succeeded", "failed", "cancelled", "skipped"),
)


def job_answer(job: BatchJob) -> answers.Job:
    """A job at a glance."""
    return answers.Job(**_glance(job))


def _glance(job: BatchJob) -> dict[str, Any]:
    reason = job.reason
    if not job.is_whole and not job.is_over:
        reason = how_far(job)
    return {
        "id": job.id,
        "name": job.name,
        "owner": job.about.owner,
        "state": cast(answers.JobState, job.state),
        "held": job.is_held and not job.is_over,
        "reason": reason,
        "queue": job.plan.queue,
        "account": job.plan.account,
        "flavor": flavor_of(job.plan),
        "labels": dict(job.plan.labels),
        "priority": job.about.priority,
        "submitted_at": job.about.submitted_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "exit_code": job.exit_code,
        "counts": job.counts,
    }


def how_far(job: BatchJob) -> str:
    """What is to be said of a job of which not all is submitted."""
    if job.folder.is_busy:
        return "it is being submitted"
    done = f"`jobman release {job.id}` completes it, `jobman cancel {job.id}` gives it up"
    return f"its submission was interrupted: {done}"


def details_answer(job: BatchJob) -> answers.Details:
    """A job with everything about it."""
    plan = job.plan
    return answers.Details(
        **_glance(job),
        tasks=[task_row(row.unit, plan, row.scope, row.outcome, row.counts) for row in job.rows],
        conditions=list(_conditions(job)),
        document=job.about.document,
        digest=plan.digest,
        cwd=str(job.about.options.get("cwd", "")),
        annotations=dict(plan.annotations),
        managed_by=plan.managed_by,
        belongs_to=plan.owner,
        gates=job.gates,
        options={
            **{key: value for key, value in job.about.options.items() if key != "settings"},
            "native": job.ids,
            "folder": str(job.folder.path),
        },
        results=dict(_results(job)),
    )


def _conditions(job: BatchJob) -> Iterator[answers.Condition]:
    since = job.about.submitted_at
    yield answers.Condition(type="Submitted", status=True, since=since, message=f"by {job.about.owner}")
    closed = [gate for gate, is_open in job.gates.items() if not is_open]
    for kind, status, message in (
        ("Held", job.is_held, ""),
        ("GatesClosed", bool(closed), ", ".join(closed)),
        ("Started", job.started_at is not None, ""),
        ("Suspended", job.folder.has("suspended"), ""),
    ):
        holds = status and (kind == "Started" or not job.is_over)
        at = job.started_at if kind == "Started" and job.started_at is not None else since
        yield answers.Condition(type=kind, status=holds, since=at, message=message if holds else "")
    if job.ended_at is not None:
        kind = {"succeeded": "Complete", "failed": "Failed", "cancelled": "Cancelled"}[job.state]
        message = "" if job.state == "cancelled" else job.reason
        yield answers.Condition(type=kind, status=True, since=job.ended_at, message=message)
    if job.counts.get("failed") and job.state != "failed":
        message = f"{job.counts['failed']} replicas failed"
        yield answers.Condition(type="PartiallyFailed", status=True, since=since, message=message)


def _results(job: BatchJob) -> Iterator[tuple[str, str]]:
    found = 0
    for replica in job.replicas:
        for attempt in replica.attempts:
            result = job.folder.result(replica.key, attempt.number)
            if result is not None and found < _MOST_RESULTS:
                found += 1
                yield replica.key, result


def replica_answer(replica: ReplicaAt) -> answers.Replica:
    last = replica.last
    return answers.Replica(
        key=replica.key,
        unit=replica.unit,
        index=replica.index,
        state=cast(answers.ReplicaState, replica.state),
        attempt=last.number if last is not None else 0,
        since=replica.since,
        exit_code=last.exit_code if last is not None else None,
        reason=last.reason if last is not None else "",
    )


def attempt_answers(job: BatchJob, replica: ReplicaAt) -> Iterator[answers.Attempt]:
    for attempt in replica.attempts:
        yield answers.Attempt(
            replica=replica.key,
            attempt=attempt.number,
            granted_at=attempt.started_at or replica.since,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            exit_code=attempt.exit_code,
            signal=attempt.signal,
            reason=attempt.reason,
            message=attempt.message,
            result=job.folder.result(replica.key, attempt.number),
            nodes=list(attempt.nodes),
        )


def event_answers(job: BatchJob) -> Iterator[answers.Event]:
    """Everything that happened, numbered from 1."""
    number = 1
    yield answers.Event(number=number, job=job.id, at=job.about.submitted_at, kind="submitted")
    for line in job.lines:
        if line.kind in _TOLD or (not line.key and line.kind != "task"):
            number += 1
            yield _event(job, number, line)
    for key in _skipped(job):
        number += 1
        at, message = job.ended_at or job.about.submitted_at, "what it waits for will not happen"
        yield answers.Event(number=number, job=job.id, at=at, kind="skipped", replica=key, message=message)
    if job.ended_at is not None:
        number += 1
        yield answers.Event(
            number=number, job=job.id, at=job.ended_at, kind=f"job-{job.state}", message=job.reason
        )


def _skipped(job: BatchJob) -> list[str]:
    """What the manager itself took out of its queue, and no script could tell of."""
    if job.ended_at is None:
        return []
    told = {line.key for line in job.lines}
    skipped = [row.unit.name for row in job.rows if not row.scope and row.outcome == "skipped"]
    return [f"{name}.0" for name in skipped if f"{name}.0" not in told]


def _event(job: BatchJob, number: int, line: Line) -> answers.Event:
    message = line.message
    if line.kind == "started":
        again = f" (attempt {line.attempt})" if line.attempt > 1 else ""
        message = f"runs on {line.nodes or 'its nodes'}{again}"
    elif line.kind in ("failed", "retrying") and line.reason:
        message, _, rest = line.message.partition("; it is tried again")
        message = how_it_ended(line.reason, line.exit_code, line.signal, message)
        message += f"; it is tried again{rest}" if line.kind == "retrying" else ""
    return answers.Event(
        number=number,
        job=job.id,
        at=line.at,
        kind=line.kind,
        replica=line.key or None,
        attempt=line.attempt or None,
        message=message,
    )


def why_answer(job: BatchJob, told: Sequence[Waiting]) -> answers.Why:
    """Why a job is where it is."""
    blockers = [
        answers.Blocker(kind=cast(answers.BlockerKind, each.kind), replica=each.replica, message=each.message)
        for each in told
    ]
    starts = min((each.starts_at for each in told if each.starts_at is not None), default=None)
    estimate = None
    if starts is not None:
        estimate = answers.Estimate(
            job=job.id, expected_at=starts, unpromised="the manager only estimates it"
        )
    return answers.Why(
        job=job.id,
        state=cast(answers.JobState, job.state),
        summary=_summary(job, told),
        blockers=blockers,
        estimate=estimate,
        suggestion=_suggestion(job, told),
    )


def _suggestion(job: BatchJob, told: Sequence[Waiting]) -> str:
    """What would let it go on."""
    for each in told:
        if each.kind == "gate":
            closed = next(gate for gate, is_open in job.gates.items() if not is_open)
            return f"jobman gate open {job.id} {closed}"
        if each.kind == "hold":
            return f"jobman release {job.id}"
    return ""


def _summary(job: BatchJob, told: Sequence[Waiting]) -> str:
    if not job.is_whole and not job.is_over:
        return how_far(job)
    if job.state in ("succeeded", "cancelled"):
        return {"succeeded": "it succeeded", "cancelled": "it was cancelled"}[job.state]
    if job.state == "failed":
        return f"it failed: {job.reason}" if job.reason else "it failed"
    if told:
        return f"it waits: {told[0].message}" if job.state == "waiting" else told[0].message
    return "it runs" if job.state == "running" else "it waits: the manager has not looked at it yet"


def node_answer(node: NodeAt) -> answers.Node:
    return answers.Node(
        name=node.name,
        state=node.state,
        reason=node.reason,
        amounts=dict(node.amounts),
        used=dict(node.used),
        facts={"partitions": ",".join(node.partitions)} if node.partitions else {},
        labels=dict.fromkeys(node.facts, "yes"),
    )


def row_answer(row: QueueRowAt) -> answers.QueueRow:
    return answers.QueueRow(
        flavor=row.name,
        resources={},
        waiting=row.waiting,
        running=row.running,
        yours_waiting=row.yours_waiting,
        yours_running=row.yours_running,
    )
