"""An overview of the floor: nodes and what is used of them, and the queue by flavor."""

from __future__ import annotations

from math import inf

from jobman.control import answers
from jobman.control.floor import Floor
from jobman.control.live import LiveJob
from jobman.plan.model import Plan, Unit
from jobman.sched.allocation import Allocation
from jobman.sched.placement import Pool


def nodes(floor: Floor) -> list[answers.Node]:
    """The nodes with what is used of them, and the emulated ones of jobs that have their own."""
    jobs: dict[str, set[str]] = {}
    for job in floor.jobs.values():
        for key, (_, allocation) in job.allocations.items():
            if "/" not in key and job.line is None:
                for held in allocation.held:
                    jobs.setdefault(held.node, set()).add(job.id)
    free = floor.line.pool.free()
    return [
        answers.Node(
            name=node.name,
            amounts=dict(node.amounts),
            used={kind: amount - free[node.name].get(kind, 0) for kind, amount in node.amounts.items()},
            facts=node.facts,
            labels=node.labels,
            jobs=sorted(jobs.get(node.name, ())),
        )
        for node in floor.nodes.values()
    ]


def queue(floor: Floor, owner: str) -> list[answers.QueueRow]:
    """Live jobs by flavor."""
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
    for kind, row in rows.items():
        row.next_start = _next_start(floor, examples[kind])
    return sorted(rows.values(), key=lambda row: (row.flavor or "~", -row.waiting))


def _next_start(floor: Floor, job: LiveJob) -> str:
    """When another job like this could start, in words; by the limits of what runs now."""
    unit = next((unit for unit in job.plan.units if unit.parent is None and unit.alternatives), None)
    if unit is None:
        return "now"
    ahead = len(floor.line)
    behind = f", behind {ahead} that wait" if ahead else ""
    if any(floor.line.pool.fits_now(parts) for parts in unit.alternatives):
        return f"now{behind}"
    moment = _when_it_fits(floor, unit)
    if moment is None:
        return f"when something without a time limit ends{behind}"
    return f"in at most {_in_words(max(0.0, moment - floor.clock()))}{behind}"


def _when_it_fits(floor: Floor, unit: Unit) -> float | None:
    """When there is room for a unit at the latest, if everything that runs uses all of its time."""
    pool = Pool(floor.nodes.values())
    ends: list[tuple[float, int, Allocation]] = []
    for job in floor.jobs.values():
        for key, (_, allocation) in job.allocations.items():
            if "/" not in key and job.line is None and key not in job.untaken:
                due = job.conductor.replica(key).due
                pool.take(allocation)
                ends.append((inf if due is None else due, len(ends), allocation))
    for due, _, allocation in sorted(ends):
        if due == inf:
            return None
        pool.give_back(allocation)
        if any(pool.fits_now(parts) for parts in unit.alternatives):
            return due
    return None


def _in_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


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
