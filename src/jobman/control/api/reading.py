"""From the records of the store to the answers of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import msgspec

from jobman.control.answers import (
    FINAL_STATES,
    Attempt,
    Condition,
    Details,
    Event,
    Job,
    JobState,
    Page,
    Replica,
    ReplicaState,
    Task,
)
from jobman.control.api.call import Call, Desk
from jobman.control.refusals import Refusal
from jobman.control.retention import Rule
from jobman.control.store import views
from jobman.control.store.records import AttemptRecord, EventRecord, JobRecord, ReplicaRecord, TaskRecord
from jobman.plan.model import Plan, Unit

R = TypeVar("R")
A = TypeVar("A")

_SAME_IN_JOB = (
    "id",
    "name",
    "owner",
    "held",
    "reason",
    "queue",
    "account",
    "flavor",
    "labels",
    "priority",
    "submitted_at",
    "started_at",
    "ended_at",
    "exit_code",
    "counts",
)


def find_job(call: Call, reference: str) -> JobRecord:
    """The one job that is meant; those of others are as good as not there."""
    # An administrator who says a name means their own job first.
    found = call.store.find(call.caller.user, reference)
    if not found and call.caller.is_admin:
        found = call.store.find(None, reference)
    if not found:
        raise Refusal("no-such-job", f"There is no job {reference!r}.", "jobman list shows those there are.")
    if len(found) > 1:
        meant = ", ".join(f"{record.id} ({record.name})" for record in found)
        raise Refusal("ambiguous", f"{reference!r} may mean several jobs.", f"Say more of the id: {meant}.")
    return found[0]


def job_answer(record: JobRecord) -> Job:
    """A job at a glance."""
    return Job(state=cast(JobState, record.state), **{name: getattr(record, name) for name in _SAME_IN_JOB})


def details_answer(record: JobRecord, document: str, plan: Plan, tasks: list[TaskRecord]) -> Details:
    """A job with everything about it."""
    gates = _gates(record, plan)
    return Details(
        state=cast(JobState, record.state),
        **{name: getattr(record, name) for name in _SAME_IN_JOB},
        tasks=_tasks(plan, tasks, over=is_over(record)),
        conditions=_conditions(record, gates),
        document=document,
        digest=record.digest,
        cwd=record.cwd,
        annotations=plan.annotations,
        managed_by=plan.managed_by,
        belongs_to=plan.owner,
        gates=gates,
        options={name: value for name, value in record.options.items() if name != "settings"},
    )


def decoded_plan(plan: bytes) -> Plan:
    """A plan from the store, which is trusted: no look at the digest."""
    return msgspec.json.decode(plan, type=Plan)


def replica_answer(record: ReplicaRecord) -> Replica:
    return Replica(
        key=record.key,
        unit=record.unit,
        index=record.index,
        state=cast(ReplicaState, "frozen" if record.life.get("frozen") else record.state),
        attempt=record.attempt,
        since=record.since,
        exit_code=record.exit_code,
        reason=record.reason,
    )


def attempt_answer(record: AttemptRecord) -> Attempt:
    fields = msgspec.structs.asdict(record)
    del fields["job"]
    return Attempt(replica=fields.pop("key"), nodes=list(fields.pop("nodes")), **fields)


def event_answer(record: EventRecord) -> Event:
    return Event(**msgspec.structs.asdict(record))


def page_answer(page: views.Page[R], answer: Callable[[R], A]) -> Page[A]:
    """A page of the store as a page of answers."""
    return Page(items=[answer(record) for record in page.items], cursor=page.cursor)


def is_over(record: JobRecord) -> bool:
    return record.state in FINAL_STATES


def removal_words(desk: Desk, record: JobRecord, removed_at: float) -> str:
    """What is said in the place of a job's output that was removed."""
    retention = getattr(desk.director, "retention", None)
    rule: Rule = Rule() if retention is None else retention.rule
    return rule.words(record.ended_at or removed_at, removed_at)


def output_condition(desk: Desk, record: JobRecord) -> Condition:
    """Whether output of a job was removed, and why."""
    removed_at = desk.store.output_removed_at(record.id) if is_over(record) else None
    return Condition(
        type="OutputRemoved",
        status=removed_at is not None,
        since=removed_at or record.submitted_at,
        message="" if removed_at is None else removal_words(desk, record, removed_at),
    )


# -- details -------------------------------------------------------------------------------------------


def _tasks(plan: Plan, records: list[TaskRecord], *, over: bool) -> list[Task]:
    """Units in the order of the document: as they ran in each scope, or as they are planned.

    What has no outcome although the job is over was given up.
    """
    runs: dict[str, list[TaskRecord | None]] = {}
    for record in records:
        runs.setdefault(record.unit, []).append(record)
    after: dict[str, list[str]] = {}
    for edge in plan.edges:
        after.setdefault(edge.unit, []).append(edge.after)
    return [
        _task(unit, record, after.get(unit.id, []), over=over)
        for unit in plan.units
        for record in runs.get(unit.id) or [None]
    ]


def _task(unit: Unit, record: TaskRecord | None, depends_on: list[str], *, over: bool) -> Task:
    outcome = None if record is None else record.outcome
    return Task(
        unit=unit.id,
        scope=unit.parent or "" if record is None else record.scope,
        name=unit.name,
        kind=unit.kind,
        service=unit.service,
        replicas=unit.replicas,
        copies=unit.copies[0] if unit.copies else 1,
        outcome=outcome or ("cancelled" if over else None),
        counts={} if record is None else record.counts,
        depends_on=depends_on,
        line=unit.line,
    )


def _gates(record: JobRecord, plan: Plan) -> dict[str, bool]:
    names = sorted(
        {gate for policies in (plan.policies, *(u.policies for u in plan.units)) for gate in policies.gates}
    )
    is_open = set(record.conductor.get("open_gates", ()))
    return {name: name in is_open for name in names}


def _conditions(record: JobRecord, gates: dict[str, bool]) -> list[Condition]:
    closed = [name for name, is_open in gates.items() if not is_open]
    over, count = is_over(record), record.counts.get
    began, ended = record.started_at, record.ended_at
    failed = count("failed", 0)
    table: list[tuple[str, bool, float | None, str]] = [
        ("Submitted", True, record.submitted_at, ""),
        ("Held", record.held and not over, None, "until jobman release"),
        ("GatesClosed", bool(closed) and not over, None, ", ".join(closed)),
        ("Started", began is not None, began, ""),
        ("Suspended", count("frozen", 0) > 0, None, ""),
        ("PartiallyFailed", failed > 0 and record.state != "failed", None, f"{failed} failed"),
        ("Complete", record.state == "succeeded", ended, ""),
        ("Failed", record.state == "failed", ended, record.reason),
        ("Cancelled", record.state == "cancelled", ended, record.reason),
    ]
    return [
        Condition(
            type=kind, status=status, since=since or record.submitted_at, message=words if status else ""
        )
        for kind, status, since, words in table
    ]
