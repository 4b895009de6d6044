"""Pods as a cluster shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobman.engines.kubernetes.objects import (
    Condition,
    ContainerState,
    ContainerStatus,
    Gate,
    Meta,
    Pod,
    PodSpec,
    PodStatus,
    Running,
    Terminated,
)

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
GRACE = 30


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def a_pod(
    *,
    gated: bool = False,
    node: str = "n1",
    started: int | None = None,
    code: int | None = None,
    ended: int = 0,
    deleted: int | None = None,
    done: int | None = None,
    known: bool | None = None,
    taken_by: str = "",
) -> Pod:
    """A pod that waits, runs since `started` or ended with `code`.

    `deleted` is when that was asked for, and `done` when its node was done with it. `known` is whether its
    node knew that it is deleted when it told last how it is: clusters before 1.34 do not tell.
    """
    state = ContainerState()
    phase = "Pending"
    if started is not None:
        phase, state = "Running", ContainerState(running=Running(started_at=at(started)))
    if code is not None:
        began = None if started is None else at(started)
        over = Terminated(exit_code=code, started_at=began, finished_at=at(ended))
        phase, state = "Failed" if code else "Succeeded", ContainerState(terminated=over)
    conditions = [Condition(type="DisruptionTarget", status="True", reason=taken_by)] if taken_by else []
    grace = None if deleted is None else GRACE if done is None else 0
    due = None if deleted is None else at(deleted + GRACE) if done is None else at(done)
    generation = 1 if deleted is None else 2
    observed = 0 if known is None else 2 if known else 1
    return Pod(
        metadata=Meta(
            name="p",
            uid="u",
            generation=generation,
            deletion_timestamp=due,
            deletion_grace_period_seconds=grace,
        ),
        spec=PodSpec(node_name="" if gated else node, scheduling_gates=[Gate(name="g")] if gated else []),
        status=PodStatus(
            phase=phase,
            observed_generation=observed,
            container_statuses=[ContainerStatus(name="main", state=state)],
            conditions=conditions,
        ),
    )
