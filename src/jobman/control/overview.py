"""An overview of the floor: nodes and what is used of them, and the queue by flavor."""

from __future__ import annotations

from collections.abc import Mapping

from jobman.control import answers
from jobman.control.floor import Floor
from jobman.control.live import LiveJob
from jobman.control.store.records import StateRecord
from jobman.control.switches import Switches
from jobman.control.time_limits import FAR
from jobman.plan.model import Plan
from jobman.plan.nodes import COPY
from jobman.plan.wording import format_duration
from jobman.sched.requests import Promise, Request
from jobman.spec.shapes import Amount


def nodes(floor: Floor, switches: Switches) -> list[answers.Node]:
    """The nodes with what is used of them, and the emulated ones of jobs that have their own."""
    jobs: dict[str, set[str]] = {}
    for job in floor.jobs.values():
        for key, (_, allocation) in job.allocations.items():
            if "/" not in key and job.line is None:
                for held in allocation.held:
                    jobs.setdefault(held.node, set()).add(job.id)
    free = floor.planning.pool.free()
    return [
        answers.Node(
            name=node.name,
            state=floor.ground.condition(node.name).state,
            reason=_reason(floor, node.name, switches.node(node.name)),
            amounts=_shown(node.amounts),
            used=_shown(
                {kind: amount - free[node.name].get(kind, 0) for kind, amount in node.amounts.items()}
            ),
            foreign=_shown(floor.ground.foreign(node.name)),
            facts=node.facts,
            labels=node.labels,
            jobs=sorted(jobs.get(node.name, ())),
        )
        for node in floor.nodes.values()
    ]


def _shown(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    return {kind: amount for kind, amount in amounts.items() if kind != COPY}


def _reason(floor: Floor, name: str, record: StateRecord | None) -> str:
    """Why a node is not up: as the host sees it, and as an administrator wants it."""
    words = [floor.ground.reason(name)]
    if record is not None and record.state != "up":
        words.append(f"by {record.by}" + (f": {record.reason}" if record.reason else ""))
    return "; ".join(filter(None, words))


def in_line(floor: Floor) -> list[int]:
    """The numbers of the jobs that wait, in the order of their queues; who waits for no nodes is last."""
    by_request = (
        floor.jobs.get(request_id.partition(":")[0]) for request_id in list(floor.planning.positions)
    )
    jobs = {job.id: job for job in by_request if job is not None}
    jobs |= {job.id: job for job in list(floor.jobs.values()) if job.id not in jobs}
    return [job.record.number for job in jobs.values() if job.record.state == "waiting"]


async def queue(floor: Floor, owner: str) -> list[answers.QueueRow]:
    """Live jobs by flavor, with when another of each kind could start."""
    rows: dict[tuple[str | None, str], answers.QueueRow] = {}
    examples: dict[tuple[str | None, str], LiveJob] = {}
    for job in floor.jobs.values():
        resources = _resources(job.plan)
        kind = (job.record.flavor, repr(sorted(resources.items())))
        row = rows.setdefault(
            kind, answers.QueueRow(flavor=job.record.flavor, resources=resources, waiting=0, running=0)
        )
        examples.setdefault(kind, job)
        state = "running" if job.record.state == "running" else "waiting"
        setattr(row, state, getattr(row, state) + 1)
        if job.record.owner == owner:
            setattr(row, f"yours_{state}", getattr(row, f"yours_{state}") + 1)
    starts = await _next_starts(floor, list(examples.values()))
    for kind, row in rows.items():
        row.next_start = starts[examples[kind].id]
    return sorted(rows.values(), key=lambda row: (row.flavor or "~", -row.waiting))


async def _next_starts(floor: Floor, jobs: list[LiveJob]) -> dict[str, str]:
    """When another job like each of these could start, in words, by the limits of what runs and waits now."""
    now = floor.clock()
    asked: dict[str, Request] = {}
    for job in jobs:
        unit = next(job.plan.askers(), None)
        if unit is not None and job.line is None:
            asked[job.id] = floor.outline(job.record, job.plan, unit)
    found = await floor.planning.ask(
        lambda planner: {each: planner.try_out(asked[each], now) for each in asked}
    )
    return {job.id: _in_words(found.get(job.id), now) for job in jobs}


def _in_words(promise: Promise | None, now: float) -> str:
    if promise is None or (promise.guaranteed_by is not None and promise.guaranteed_by <= now):
        return "now"
    if promise.guaranteed_by is None or promise.guaranteed_by - now > FAR:
        return "when something without a time limit ends"
    return f"in at most {format_duration(promise.guaranteed_by - now)}"


def _resources(plan: Plan) -> dict[str, float]:
    """What the largest unit at the top level asks for."""
    best: dict[str, float] = {}
    for unit in plan.units:
        if unit.parent is None and unit.totals:
            amounts = dict(unit.totals[0].amounts)
            if unit.totals[0].nodes:
                amounts["node"] = unit.totals[0].nodes
            if sum(amounts.values()) > sum(best.values()):
                best = amounts
    return best
