"""Taking up work after a restart: from records to jobs on the floor, and what the host is told again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from jobman.control import happenings as h
from jobman.control import keeping
from jobman.control.batch import Act, Batch
from jobman.control.floor import Floor
from jobman.control.live import LiveJob
from jobman.control.runs import Replica
from jobman.control.states import State
from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    JobRecord,
    PromiseRecord,
    ReplicaRecord,
    TaskRecord,
)
from jobman.control.store.views import Charged, Unfinished
from jobman.engines import base
from jobman.plan.model import PlanError, plan_from_json
from jobman.sched.allocation import Allocation
from jobman.sched.placement import PlacementError

log = logging.getLogger("jobman.resuming")


class Resumption(msgspec.Struct):
    """What follows from taking up work."""

    orders: list[base.Order] = []
    """Attempts that were begun, or may have been."""
    acts: list[Act] = []
    """Calls of the host that may have been lost; each may be made again."""
    broken: list[tuple[JobRecord, str]] = []
    """Jobs that cannot go on, and why."""


class Known(NamedTuple):
    """What is known besides the jobs themselves."""

    promises: Sequence[PromiseRecord] = ()
    charged: Mapping[base.Address, Charged] = {}


def take_up(floor: Floor, found: Unfinished, known: Known) -> Resumption:
    """Bring back every job that is not over."""
    resumption = Resumption()
    tables = [_by_job(table) for table in (found.tasks, found.replicas, found.attempts, found.allocations)]
    promised = _by_job(known.promises)
    jobs = []
    for record in found.jobs:
        kept = _Kept(*(table.get(record.id, []) for table in tables))  # type: ignore[arg-type]
        try:
            jobs.append(_bring_back(floor, record, kept, promised.get(record.id, []), known))
        except (PlanError, PlacementError, ValueError, KeyError) as error:
            log.exception("the job %s cannot be taken up", record.id)
            if record.id in floor.jobs:
                floor.forget(floor.jobs[record.id])
            resumption.broken.append((record, f"it could not be taken up after a restart: {error}"))
    # Orders name the peers of a job, so all jobs have to be back before the first is made.
    for job in jobs:
        running = [replica for replica in job.conductor.live() if replica.run.unit.kind == "task"]
        for replica in running:
            resumption.orders.append(floor.order(job, replica.key))
            resumption.acts += _acts(job, replica)
        if running:
            partners = tuple(partner.id for partner in floor.connections.partners(job))
            resumption.acts.append(Act("connect", job.id, (partners,)))
    return resumption


def _bring_back(
    floor: Floor, record: JobRecord, kept: _Kept, promises: Sequence[PromiseRecord], known: Known
) -> LiveJob:
    plan = plan_from_json(record.plan)
    conductor = keeping.restore(plan, record, kept.tasks, kept.replicas)
    virtual = record.options.get("virtual")
    nodes = list(floor.host.nodes(virtual)) if virtual else list(floor.nodes.values())
    job = floor.add(record, plan, conductor, nodes)
    job.retried = record.counts.get("retried", 0)
    for allocation in sorted(kept.allocations, key=lambda each: each.key.count("/")):
        _hold_again(floor, job, allocation, known.charged)
    for attempt in kept.attempts:
        job.attempts[attempt.key] = attempt
    job.promises = {promise.key: promise for promise in promises}
    for replica in conductor.queued():
        floor.do(job, h.Ask(replica.key), Batch())
    return job


def _hold_again(
    floor: Floor, job: LiveJob, record: AllocationRecord, charged: Mapping[base.Address, Charged]
) -> None:
    """What runs on a machine that has become smaller runs on; it takes nothing from what is left."""
    allocation = msgspec.convert(record.allocation, Allocation)
    floor.hold_for(job, record.key, record.attempt, allocation)
    line = floor.line_of(job, record.key)
    if line is None:
        floor.held_before(job, record.key, allocation, record.given_at)
        grant = floor.grant(job, record.key, record.attempt, allocation, record.given_at)
        floor.book.resumed(grant._replace(price=record.allocation.get("price")), charged)
    try:
        (floor.planning if line is None else line).pool.take(allocation)
    except PlacementError as error:
        log.warning("%s of %s holds more than there is: %s", record.key, job.id, error)
        job.untaken.add(record.key)
    ports = record.allocation.get("ports")
    if ports:
        job.peers[record.key] = floor.peer(job, record.key, ports)


def _acts(job: LiveJob, replica: Replica) -> list[Act]:
    """What the host was asked to do with an attempt, once more."""
    address = (job.id, replica.key, replica.attempt)
    if replica.state is State.STOPPING:
        return [Act("stop", address, (replica.stopping_for or "again",))]
    acts: list[Act] = []
    if replica.run.unit.policies.suspend == "freeze":
        acts.append(Act("freeze" if replica.frozen else "thaw", address))
    if replica.extended:
        acts.append(Act("prolong", address, (replica.extended,)))
    return acts


class _Kept(NamedTuple):
    """What is kept of one job besides its own record."""

    tasks: list[TaskRecord]
    replicas: list[ReplicaRecord]
    attempts: list[AttemptRecord]
    allocations: list[AllocationRecord]


class _OfJob(Protocol):
    job: str


R = TypeVar("R", bound=_OfJob)


def _by_job(records: Sequence[R]) -> dict[str, list[R]]:
    found: dict[str, list[R]] = {}
    for record in records:
        found.setdefault(record.job, []).append(record)
    return found
