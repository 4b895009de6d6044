"""Keeping what the conductor knows: from a conductor to records, and back after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobman.control.causes import Cause, Failure
from jobman.control.conductor import Conductor
from jobman.control.runs import Replica, Run, Scope
from jobman.control.states import State
from jobman.control.store.records import JobRecord, ReplicaRecord, TaskRecord
from jobman.plan.model import Plan

_JOB_FLAGS = ("held", "released", "cancelled", "restarts", "restart_at", "has_begun", "earliest", "latest")
_LIFE: dict[str, Any] = {
    "retries": 0,
    "restarts": 0,
    "begun": False,
    "ready": False,
    "frozen": False,
    "due": None,
    "left": None,
    "extended": 0.0,
    "stopping_for": None,
    "restarting": None,
}
"""What is remembered of a replica, with the values that need no remembering."""


def job_state(conductor: Conductor) -> dict[str, Any]:
    """What is known of the job as a whole."""
    state: dict[str, Any] = {name: getattr(conductor, name) for name in _JOB_FLAGS}
    state["open_gates"] = sorted(conductor.open_gates)
    state["verdict"] = conductor.verdict
    state["root"] = [conductor.root.failed, conductor.root.stopping]
    state["done"] = sorted(conductor.done)
    if conductor.root.failure is not None:
        state["failure"] = _plain(conductor.root.failure)
    return state


def task_record(run: Run, job: str) -> TaskRecord:
    """A run."""
    return TaskRecord(
        job=job,
        scope=run.scope.prefix.rstrip("/"),
        unit=run.unit.id,
        verdict=run.verdict,
        outcome=run.outcome,
        counts={
            **{str(state): count for state, count in run.tally.items() if count},
            **({"retried": run.retried} if run.retried else {}),
        },
    )


def replica_record(replica: Replica, job: str) -> ReplicaRecord:
    """A replica, with the flags of its scope if it has one."""
    life = {name: value for name, idle in _LIFE.items() if (value := getattr(replica, name)) != idle}
    if replica.scope is not None:
        life["scope"] = [replica.scope.failed, replica.scope.stopping, *_plain(replica.scope.failure)]
    return ReplicaRecord(
        job=job,
        key=replica.key,
        unit=replica.run.unit.id,
        index=replica.index,
        state=replica.state,
        attempt=replica.attempt,
        since=replica.since,
        exit_code=replica.exit_code,
        reason=replica.reason,
        life=life,
    )


def cleared_record(key: str, unit: str, attempt: int, job: str) -> ReplicaRecord:
    """A replica that is new again; its attempts go on counting."""
    index = int(key.rpartition(".")[2])
    return ReplicaRecord(job=job, key=key, unit=unit, index=index, state=State.WAITING, attempt=attempt)


def restore(
    plan: Plan, job: JobRecord, tasks: Iterable[TaskRecord], replicas: Iterable[ReplicaRecord]
) -> Conductor:
    """A conductor as it was when its records were written."""
    known = job.conductor
    conductor = Conductor(plan, done=known.get("done", ()))
    for name in _JOB_FLAGS:
        setattr(conductor, name, known.get(name, getattr(conductor, name)))
    conductor.open_gates = set(known.get("open_gates", ()))
    conductor.verdict = _state(known.get("verdict"))
    if "failure" in known:
        conductor.root.failure = _cause(known["failure"])
    if job.state in ("succeeded", "failed", "cancelled"):
        conductor.outcome = State(job.state)
    conductor.root.failed, conductor.root.stopping = known.get("root", (False, False))
    runs = {(record.scope, record.unit): record for record in tasks}
    _bring_back_runs(conductor.root, runs)
    for record in sorted(replicas, key=lambda record: record.key.count("/")):
        if record.attempt:
            conductor.attempts[record.key] = record.attempt
        _bring_back(conductor, record, runs)
    conductor.settle_in()
    return conductor


def _bring_back_runs(scope: Scope, records: Mapping[tuple[str, str], TaskRecord]) -> None:
    for run in scope.order:
        record = records.get((scope.prefix.rstrip("/"), run.unit.id))
        if record is not None:
            run.verdict, run.outcome = _state(record.verdict), _state(record.outcome)
            run.retried = record.counts.get("retried", 0)


def _bring_back(
    conductor: Conductor, record: ReplicaRecord, runs: Mapping[tuple[str, str], TaskRecord]
) -> None:
    try:
        run, index = conductor.run_of(record.key)
    except KeyError:
        return  # What is around it is not under way; it will be new when that starts.
    replica = conductor.make(run, index)
    replica.attempt = record.attempt
    replica.since = record.since
    replica.exit_code = record.exit_code
    replica.reason = record.reason
    was_done = replica.begun and record.key in conductor.done
    for name in _LIFE:
        if name in record.life:
            setattr(replica, name, record.life[name])
    run.begun -= was_done
    conductor.reinstate(replica, State(record.state))
    if replica.state is State.FAILED:
        run.failure = run.failure or (replica.key, Failure(replica.reason or "exit", replica.exit_code))
        conductor.first_failure = conductor.first_failure or run.failure
    if "scope" in record.life:
        replica.scope = conductor.open(replica)
        replica.scope.failed, replica.scope.stopping, *failure = record.life["scope"]
        replica.scope.failure = _cause(failure)
        _bring_back_runs(replica.scope, runs)


def _plain(cause: Cause | None) -> list[Any]:
    return [] if cause is None else [cause[0], cause[1].reason, cause[1].exit_code]


def _cause(known: Sequence[Any]) -> Cause | None:
    return (known[0], Failure(*known[1:])) if known else None


def _state(text: str | None) -> State | None:
    return None if text is None else State(text)
