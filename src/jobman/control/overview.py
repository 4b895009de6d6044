"""An overview of the floor: nodes and what is used of them, and the queue by flavor."""

from __future__ import annotations

from jobman.control import answers
from jobman.control.floor import Floor
from jobman.control.live import LiveJob
from jobman.plan.model import Plan


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
    """When another job like this could start, in words."""
    unit = next((unit for unit in job.plan.units if unit.parent is None and unit.alternatives), None)
    if unit is None:
        return "now"
    ahead = len(floor.line)
    fits = any(floor.line.pool.fits_now(parts) for parts in unit.alternatives)
    if fits and not ahead:
        return "now"
    ends = [r.due for other in floor.jobs.values() for r in other.conductor.live() if r.due is not None]
    said = f"behind {ahead} waiting" if ahead else "when something that runs ends"
    if ends:
        said += f"; the next limit is in {max(0.0, min(ends) - floor.clock()):.0f} s"
    return said


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
