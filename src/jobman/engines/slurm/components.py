"""Shapes of several parts: components of a heterogeneous job, or steps side by side in equal nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from jobman.engines.scripts import program
from jobman.engines.slurm import shape
from jobman.engines.slurm.options import displaced
from jobman.plan.model import Plan, Unit
from jobman.spec.shapes import Alternative, Part

SEPARATOR = "#SBATCH hetjob"
NO_ARRAYS = "Slurm has no arrays of heterogeneous jobs; put the task in a group"
NO_STEPS = "in a group all parts of a task must be nodes; say on how many nodes its slots are"
EVERYWHERE = """\
everywhere=(on_components)
# Slurm sends a file to the nodes of one component: what goes to all of them is read by the steps.
send() { return 1; }
"""
"""How something is run on all nodes of a heterogeneous job."""


def components(unit: Unit, plan: Plan) -> Sequence[Alternative]:
    """What each component of a job asks for: a heterogeneous job has several, any other has one."""
    parts = program.chosen(unit)
    return [(part,) for part in parts] if is_split(unit, parts, plan) else [parts]


def is_split(unit: Unit, parts: Alternative, plan: Plan) -> bool:
    """Whether it is a heterogeneous job; the nodes of a group are of one kind, as any task may need any."""
    if len(parts) <= 1 or unit.parent is not None:
        return False
    if unit.kind == "task":
        return not _share(parts)
    return unit.replicas == 1 and all(child.local for child in plan.children(unit.id))


def is_array_of_several(unit: Unit, plan: Plan) -> bool:
    """Whether replicas of it would each have to be a heterogeneous job."""
    return unit.replicas > 1 and any(is_split(unit, parts, plan) for parts in unit.alternatives)


def may_get_stuck(unit: Unit) -> bool:
    """Whether its parts could take each other's place in the nodes of a group."""
    if unit.kind != "task" or unit.local or unit.parent is None:
        return False
    return any(len(parts) > 1 and not _have_nodes(parts) and not _share(parts) for parts in unit.alternatives)


def are_beside(unit: Unit, plan: Plan) -> bool:
    """Whether parts of a task, or of one in a group, are steps side by side."""
    if unit.kind == "group":
        return any(are_beside(child, plan) for child in plan.children(unit.id))
    return len(program.chosen(unit)) > 1 and not unit.local


def _have_nodes(parts: Alternative) -> bool:
    return all(part.nodes is not None for part in parts)


def _share(parts: Alternative) -> bool:
    """Two parts of slots that differ in cores and memory alone: where the larger have room, the others do."""
    return len(parts) == 2 and parts[0].requires == parts[1].requires and all(map(_is_plain, parts))


def _is_plain(part: Part) -> bool:
    cores = part.each.get("core", 0)
    has_cores = cores >= 1 and cores == int(cores)
    return part.nodes is None and not part.beside and has_cores and part.each.keys() <= {"core", "memory"}


def disputed(unit: Unit, plan: Plan) -> list[str]:
    """Facts of which the nodes of one job would have to have several values."""
    if unit.parent is not None:
        return []
    shared = [parts for parts in unit.alternatives if not is_split(unit, parts, plan)]
    return sorted({fact for parts in shared for fact in _with_several_values(parts)})


def _with_several_values(parts: Alternative) -> Iterator[str]:
    values: dict[str, str] = {}
    for part in parts:
        yield from (key for key, value in part.requires.items() if values.setdefault(key, value) != value)


def step(parts: Alternative, common: Sequence[str]) -> list[str]:
    """The words before a command that is one step on all components, which are numbered as the parts are."""
    options = [[*common, f"--het-group={number}", *shape.step((part,))] for number, part in enumerate(parts)]
    return _words("together", _told(parts), options)


def steps(parts: Alternative, common: Sequence[str], given: Sequence[str]) -> list[str]:
    """The words before a command that is a step for each part; those that fit in fewer places come first."""
    order = sorted(range(len(parts)), key=lambda number: -_cores(parts[number]))
    told = _told(parts)
    options = [[*displaced([*common, *shape.step((parts[number],))], given), *given] for number in order]
    return _words("beside", [told[number] for number in order], options)


def _words(function: str, told: Sequence[str], options: Sequence[Sequence[str]]) -> list[str]:
    first, *others = options
    return [function, *told, "--", *first, *(word for each in others for word in (":", *each)), "--"]


def _told(parts: Alternative) -> list[str]:
    """The first copy of each part, how many there are, and what each has; no cores mean all of a node."""
    found, first = [], 0
    for part in parts:
        cores = _cores(part) if "core" in part.each or not part.is_whole else ""
        found.append(f"{first}:{part.copies}:{cores}:{ceil(part.each.get('gpu', 0))}")
        first += part.copies
    return found


def _cores(part: Part) -> int:
    return max(1, ceil(part.each.get("core", 1)))
