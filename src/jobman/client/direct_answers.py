"""What a cluster tells, in the answers of a service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from jobman.client.task_rows import task_row
from jobman.control import answers
from jobman.engines.kubernetes.blockers import Blocker
from jobman.engines.kubernetes.copies import Copy
from jobman.engines.kubernetes.engine import NodeUse
from jobman.engines.kubernetes.found import FoundJob, ReplicaAt, replica_key
from jobman.engines.kubernetes.keeper import KEEPER
from jobman.engines.kubernetes.kept_logs import kept_logs
from jobman.engines.kubernetes.milestones import Happening
from jobman.engines.kubernetes.outputs import Line, Output
from jobman.engines.kubernetes.queueing import QueueRow, gpus_of
from jobman.engines.kubernetes.states import FINAL
from jobman.engines.kubernetes.streams import container_of
from jobman.engines.kubernetes.underway import DrivenJob
from jobman.plan.model import Plan

_KINDS: dict[str, answers.BlockerKind] = {
    "image": "start",
    "volume": "start",
    "configuration": "start",
    "refused": "limit",
    "health": "retry",
    "failed": "never",
}
"""What a service has no word for."""
_NAMES = {"cpu": "core", "memory": "memory", "ephemeral-storage": "storage"}
_UNTOLD = ("pods",)
_OUTCOMES = (*FINAL, "skipped")
_MOST_RESULTS = 1000


def job_answer(job: FoundJob) -> answers.Job:
    """A job at a glance."""
    return answers.Job(**_glance(job))


def _glance(job: FoundJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "owner": job.owner,
        "state": cast(answers.JobState, job.state),
        "held": job.is_held,
        "reason": job.reason,
        "flavor": job.flavor,
        "labels": job.labels,
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "exit_code": job.exit_code,
        "counts": job.counts,
    }


def details_answer(job: FoundJob) -> answers.Details:
    """A job with everything about it."""
    plan = job.plan
    replicas = list(job.replicas())
    return answers.Details(
        **_glance(job),
        tasks=_tasks(job, plan),
        conditions=list(_conditions(job)),
        document=job.document,
        digest=plan.digest,
        cwd=str(job.options.get("cwd", "")),
        annotations=dict(plan.annotations),
        managed_by=plan.managed_by,
        belongs_to=plan.owner,
        gates=_gates(job, plan),
        options={key: value for key, value in job.options.items() if key != "settings"},
        results=_results(replicas),
    )


def _tasks(job: FoundJob, plan: Plan) -> list[answers.Task]:
    if isinstance(job, DrivenJob):
        return [task_row(plan.unit(row.unit), plan, row.scope, row.outcome, row.counts) for row in job.rows]
    stand = job.tasks
    found = []
    for unit in plan.units:
        own = stand.get(unit.id)
        outcome = own.state if own is not None and own.state in _OUTCOMES else None
        if unit.kind == "group" and job.is_over:
            outcome = job.outcome_of(unit)
        scope = "/".join(f"{part}.0" for part in unit.id.split("/")[:-1])
        found.append(task_row(unit, plan, scope, outcome, {} if own is None else own.counts))
    return found


def _conditions(job: FoundJob) -> Iterator[answers.Condition]:
    yield answers.Condition(type="Submitted", status=True, since=job.submitted_at, message=f"by {job.owner}")
    if job.is_held:
        yield answers.Condition(type="Held", status=True, since=job.submitted_at)
    if job.gates:
        message = ", ".join(job.gates)
        yield answers.Condition(type="GatesClosed", status=True, since=job.submitted_at, message=message)
    if job.started_at is not None:
        yield answers.Condition(type="Started", status=True, since=job.started_at)
    if job.ended_at is not None:
        kind = {"succeeded": "Complete", "failed": "Failed", "cancelled": "Cancelled"}[job.state]
        message = "" if job.state == "cancelled" else job.reason
        yield answers.Condition(type=kind, status=True, since=job.ended_at, message=message)


def _gates(job: FoundJob, plan: Plan) -> dict[str, bool]:
    closed = set(job.gates)
    policies = (plan.policies, *(unit.policies for unit in plan.units))
    return {name: name not in closed for name in sorted({gate for each in policies for gate in each.gates})}


def _results(replicas: Sequence[ReplicaAt]) -> dict[str, str]:
    found = (
        (replica.key, attempt.result)
        for replica in replicas
        for attempt in replica.stands.attempts
        if attempt.result is not None
    )
    return dict(pair for pair, _ in zip(found, range(_MOST_RESULTS), strict=False))


def replica_answer(replica: ReplicaAt) -> answers.Replica:
    stands = replica.stands
    return answers.Replica(
        key=replica.key,
        unit=replica.unit,
        index=replica.index,
        state=cast(answers.ReplicaState, stands.state),
        attempt=stands.attempts[-1].number if stands.attempts else 0,
        since=_since(stands),
        exit_code=stands.exit_code,
        reason=stands.reason,
    )


def _since(stands: Copy) -> float:
    if not stands.attempts:
        return 0.0
    last = stands.attempts[-1]
    return last.ended_at or last.started_at or last.created_at or 0.0


def attempt_answers(replica: ReplicaAt) -> Iterator[answers.Attempt]:
    """The attempts of which the cluster still has pods."""
    copies: Sequence[Copy] = getattr(replica.stands, "copies", ()) or (replica.stands,)
    for place, attempt in enumerate(replica.stands.attempts):
        own = [copy.attempts[place].node for copy in copies if place < len(copy.attempts)]
        if attempt.earlier is not None and attempt.restarts:
            yield answers.Attempt(
                replica=replica.key,
                attempt=attempt.number + attempt.restarts - 1,
                granted_at=attempt.created_at or 0.0,
                exit_code=attempt.earlier.exit_code,
                signal=attempt.earlier.signal,
                reason=attempt.earlier.reason,
                message=attempt.earlier.message,
                nodes=[attempt.node] if attempt.node else [],
            )
        yield answers.Attempt(
            replica=replica.key,
            attempt=attempt.number + attempt.restarts,
            granted_at=attempt.created_at or 0.0,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            exit_code=attempt.exit_code,
            signal=attempt.signal,
            reason=attempt.reason,
            message=attempt.message,
            result=attempt.result,
            nodes=[node for node in dict.fromkeys(own) if node],
        )


def why_answer(job: FoundJob, told: Sequence[tuple[str, Blocker]]) -> answers.Why:
    """Why a job is where it is."""
    advice = next((blocker.advice for _, blocker in told if blocker.advice), "")
    return answers.Why(
        job=job.id,
        state=cast(answers.JobState, job.state),
        summary=_summary(job, [blocker for _, blocker in told]),
        blockers=[
            answers.Blocker(
                kind=_KINDS.get(blocker.kind) or cast(answers.BlockerKind, blocker.kind),
                replica=replica_key(unit, blocker.replicas[0]) if blocker.replicas else "",
                message=blocker.message,
            )
            for unit, blocker in told
        ],
        suggestion=advice,
    )


def _summary(job: FoundJob, told: Sequence[Blocker]) -> str:
    if job.state == "succeeded":
        return "it succeeded"
    if job.state == "cancelled":
        return "it was cancelled"
    if told:
        return f"it waits: {told[0].message}" if job.state == "waiting" else told[0].message
    if job.state == "failed":
        return f"it failed: {job.reason}" if job.reason else "it failed"
    return "it runs" if job.state == "running" else "it waits: the cluster has not looked at it yet"


def event_answer(job: str, number: int, happened: Happening) -> answers.Event:
    return answers.Event(
        number=number,
        job=job,
        at=happened.at,
        kind=happened.kind,
        replica=happened.replica,
        attempt=happened.attempt,
        message=happened.message,
    )


def line_answer(job: FoundJob, line: Line) -> answers.LogLine:
    """A line of a copy; of a step or helper the name says so. The keeper writes no output of the job."""
    output = line.output
    key = output_key(job, output)
    is_ours = output.container == KEEPER
    return answers.LogLine(
        at=line.seconds,
        replica=key if output.is_main else f"{key}:{output.container}",
        attempt=output.attempt + output.restart,
        copy=output.copy,
        node=output.node,
        stream="note" if line.is_note or is_ours else "stdout",
        text=f"{KEEPER}: {line.text}" if is_ours else line.text,
    )


def kept_note(job: FoundJob) -> answers.LogLine | None:
    """Where the output of pods is that are gone, if it is kept."""
    text = job.options.get("keep_logs")
    is_gone = not job.pods or any(replica.stands.state == "cancelled" for replica in job.replicas())
    if not isinstance(text, str) or not is_gone or job.state == "waiting":
        return None
    words = f"its pods are gone; what they wrote is in {kept_logs(text).words(job.id)}"
    return answers.LogLine(at=0.0, replica="", attempt=0, copy=0, stream="note", text=words)


def output_key(job: FoundJob, output: Output) -> str:
    return output.whose or replica_key(job.unit_of(output.task), output.replica)


def copies_answer(job: FoundJob) -> list[answers.Copy]:
    """The pods that run, each as `connect` finds it."""
    found = []
    for replica in job.replicas():
        copies: Sequence[Copy] = getattr(replica.stands, "copies", ()) or (replica.stands,)
        for number, copy in enumerate(copies):
            if copy.state != "running" or not copy.attempts:
                continue
            last = copy.attempts[-1]
            namespace = job.anchor.metadata.namespace
            found.append(
                answers.Copy(
                    replica=replica.key,
                    attempt=last.number,
                    copy=number if len(copies) > 1 else 0,
                    node=last.node,
                    container=container_of(namespace, last.pod),
                )
            )
    return found


def node_answer(use: NodeUse) -> answers.Node:
    """A node: what it gives is `allocatable`, what is used is what pods asked for."""
    node = use.node
    ready = next((one for one in node.status.conditions if one.type == "Ready"), None)
    info = node.status.node_info
    state, reason = "up", ""
    if ready is None or ready.status != "True":
        state, reason = "down", (ready.message if ready else "") or "it is not ready"
    elif node.spec.unschedulable:
        state, reason = "draining", "it is cordoned"
    elif taints := [
        f"{one.key}:{one.effect}" for one in node.spec.taints if one.effect != "PreferNoSchedule"
    ]:
        reason = f"only for pods that tolerate {', '.join(taints)}"
    facts = {"arch": info.architecture, "os": info.operating_system, "kernel": info.kernel_version}
    return answers.Node(
        name=node.metadata.name,
        state=state,
        reason=reason,
        amounts=amounts(use.amounts),
        used=amounts(use.used),
        facts={name: value for name, value in facts.items() if value},
        labels=dict(node.metadata.labels),
        jobs=list(use.jobs),
    )


def row_answer(row: QueueRow) -> answers.QueueRow:
    return answers.QueueRow(
        flavor=row.flavor or None,
        resources=amounts(row.requests) | {f"gpu.{maker}": float(each) for maker, each in row.gpus.items()},
        waiting=row.waiting,
        running=row.running,
        yours_waiting=row.yours_waiting,
        yours_running=row.yours_running,
    )


def amounts(found: Mapping[str, Fraction]) -> dict[str, float]:
    """Resources by the names of the language; GPUs of all makers together."""
    told: dict[str, float] = {}
    for name, amount in found.items():
        if name in _UNTOLD or name.startswith("hugepages-"):
            continue
        kind = "gpu" if gpus_of({name: amount}) else _NAMES.get(name, name)
        told[kind] = told.get(kind, 0.0) + float(amount)
    return told
