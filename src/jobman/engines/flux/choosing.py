"""What can ever be had: of `a|b` the leftmost that is feasible, and nothing that never will be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jobman.engines.flux.compile import needs
from jobman.engines.scripts.alternatives import only, settled
from jobman.engines.scripts.commands import Failed, Said
from jobman.plan.model import Plan, Unit
from jobman.settings.flux import FluxSite

Ask = Callable[[Sequence[Sequence[str]]], list[str]]
"""Options of several requests in, and of each what is against it: nothing, or words."""
PROGRAM = """
import json, sys, flux
handle = flux.Flux()
for line in sys.stdin:
    try:
        handle.rpc("feasibility.check", {"jobspec": json.loads(line)}).get()
        print("")
    except OSError as error:
        silent = error.errno in (1, 13, 38, 93, 95)
        print("" if silent else " ".join((error.strerror or str(error)).split()))
"""
"""Asks its scheduler; one that knows no such question, or answers owners only, has nothing against it."""


def choose(plan: Plan, site: FluxSite, ask: Ask, within: Sequence[str] = ()) -> tuple[Plan, list[str]]:
    """The plan with one alternative for each unit, and what was chosen, in words.

    Flux takes what it can never run, and fails it later: so it is asked before. `within` are the properties
    of the nodes of its queue, of which the question knows nothing. Raises Failed.
    """
    tops = list(plan.children())
    requests = [
        (unit, number, _limited(needs(only(unit, number), site), within))
        for unit in tops
        for number in range(max(1, len(unit.alternatives)))
    ]
    against = dict(zip(((u.id, n) for u, n, _ in requests), ask([w for _, _, w in requests]), strict=True))
    chosen = {unit.id: _leftmost(unit, against) for unit in tops}
    if all(len(unit.alternatives) <= 1 for unit in plan.units):
        return plan, []
    return settled(plan, chosen), [_note(unit, chosen[unit.id]) for unit in tops if chosen[unit.id]]


def _limited(words: list[str], within: Sequence[str]) -> list[str]:
    mark = "--requires="
    asked = [word.removeprefix(mark) for word in words if word.startswith(mark)]
    rest = [word for word in words if not word.startswith(mark)]
    return [*rest, f"{mark}{'&'.join((*asked, *within))}"] if asked or within else rest


def _leftmost(unit: Unit, against: dict[tuple[str, int], str]) -> int:
    count = max(1, len(unit.alternatives))
    for number in range(count):
        if not against[unit.id, number]:
            return number
    raise Failed(Said(1, "", f"{unit.id}: {against[unit.id, count - 1]}{_asked(unit)}"), "flux")


def _asked(unit: Unit) -> str:
    """The facts it asks for: of these Flux only says that too few nodes have them all."""
    placement = unit.policies.placement
    facts = {
        key: value for parts in unit.alternatives for part in parts for key, value in part.requires.items()
    }
    facts |= dict(placement.labels) if placement is not None else {}
    return f"; it requires {', '.join(f'{key}={value}' for key, value in facts.items())}" if facts else ""


def _note(unit: Unit, number: int) -> str:
    many = len(unit.alternatives)
    return (
        f"{unit.id}: alternative {number + 1} of {many} is asked for; those before it can never be had here"
    )
