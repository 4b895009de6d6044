"""Alternatives: a plan in which each of them is decided."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jobman.plan.model import Plan, Unit, digest


def leftmost(plan: Plan) -> Plan:
    """The first of all alternatives, where nobody can be asked which could be had."""
    return settled(plan, {})


def settled(plan: Plan, chosen: Mapping[str, int]) -> Plan:
    """The plan with one alternative for each unit: the number that is chosen for it, else the first."""
    units = tuple(only(unit, _number(unit, chosen, plan)) for unit in plan.units)
    found = msgspec.structs.replace(plan, units=units)
    return msgspec.structs.replace(found, digest=digest(found))


def only(unit: Unit, number: int) -> Unit:
    """The unit with this alternative alone."""
    if len(unit.alternatives) <= 1:
        return unit
    return msgspec.structs.replace(unit, alternatives=(unit.alternatives[number],))


def _number(unit: Unit, chosen: Mapping[str, int], plan: Plan) -> int:
    """What inherits the shape of its group has the same alternative of it."""
    above = unit
    while above.parent is not None:
        above = plan.unit(above.parent)
    number = chosen.get(above.id, 0)
    return number if number < len(unit.alternatives) else 0
