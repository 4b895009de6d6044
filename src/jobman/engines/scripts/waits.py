"""What parts of a job wait for, as far as that is jobman's own doing and not the manager's."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.engines.scripts.delegate import Waiting
from jobman.engines.scripts.found import BatchJob, Native
from jobman.plan.model import Edge, Unit
from jobman.spec.quantities import format_size

_WAITS_FOR = {
    "success": "to succeed",
    "failure": "to fail",
    "any": "to end",
    "started": "to start",
    "ready": "to be ready",
}


def inside(job: BatchJob) -> Iterator[Waiting]:
    """What scripts that run wait for."""
    if job.folder.has("held") and not any(native.state == "held" for native in job.natives):
        yield Waiting(kind="hold", replica="", message="the job is held")
    for replica in job.replicas:
        if replica.state == "resting":
            message = f"{replica.key} is tried again in a while"
            yield Waiting(kind="retry", replica=replica.key, message=message)
        elif replica.state == "frozen":
            yield Waiting(kind="hold", replica=replica.key, message=f"{replica.key} is frozen")


def held(native: Native, job: BatchJob) -> tuple[str, str]:
    """Why jobman holds a piece."""
    unit = unit_of(native, job)
    for who, gates in (("", job.plan.policies.gates), (f"{native.piece}: ", _gates(unit))):
        for gate in gates:
            if not job.gates[gate]:
                return "gate", f"{who}the gate {gate} is closed"
    if not job.is_whole:
        return "hold", f"its submission was interrupted: `jobman release {job.id}` completes it"
    if job.folder.has("held") or (job.plan.policies.hold and not job.folder.has("released")):
        return "hold", "the job is held"
    if unit is not None and unit.policies.hold and not job.folder.has("released"):
        return "hold", f"{unit.id} is held"
    before = [edge for edge in _edges(unit, job) if edge.when == "ready"]
    if unit is not None and before:
        return "dependency", _waits_for(unit, before)
    return "hold", "it is held: `jobman release` lets it go"


def dependency(native: Native, job: BatchJob) -> tuple[str, str]:
    """Whom a piece waits for: another, or in its own task one before it."""
    unit = unit_of(native, job)
    if unit is not None and (before := _edges(unit, job)):
        return "dependency", _waits_for(unit, before)
    if unit is not None and native.element and unit.policies.parallelism:
        return "parallelism", f"{unit.id}: at most {unit.policies.parallelism} run at once"
    return "dependency", f"{native.piece} waits for the other tasks of the job to end"


def asked(unit: Unit) -> str:
    """What a unit asks for, in words."""
    total = unit.totals[0] if unit.totals else None
    if total is None:
        return "a place"
    nodes = [_count(total.nodes, "node")] if total.nodes else []
    sizes = {"memory", "storage"}
    amounts = [
        f"{format_size(amount)} of {kind}" if kind in sizes else _count(amount, kind)
        for kind, amount in total.amounts.items()
    ]
    return ", ".join([*nodes, *amounts]) or "a place"


def _count(amount: float, kind: str) -> str:
    return f"{amount:g} {kind}{'' if amount == 1 else 's'}"


def unit_of(native: Native, job: BatchJob) -> Unit | None:
    """None for the piece that ends services."""
    return next((unit for unit in job.plan.children() if unit.name == native.piece), None)


def _gates(unit: Unit | None) -> tuple[str, ...]:
    return () if unit is None else unit.policies.gates


def _edges(unit: Unit | None, job: BatchJob) -> list[Edge]:
    return [edge for edge in job.plan.edges if unit is not None and edge.unit == unit.id]


def _waits_for(unit: Unit, before: list[Edge]) -> str:
    return f"{unit.id} waits for {' and '.join(f'{edge.after} {_WAITS_FOR[edge.when]}' for edge in before)}"
