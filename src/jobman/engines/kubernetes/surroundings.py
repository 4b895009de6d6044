"""What surrounds a task: the groups it stands in, from the inside out."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.plan.model import Plan, Unit


class _Groups:
    """The groups of the plan that was asked about last: all questions of a compilation are about one."""

    def __init__(self) -> None:
        self._kept: tuple[Plan, dict[str, Unit]] | None = None

    def of(self, plan: Plan) -> dict[str, Unit]:
        kept = self._kept
        if kept is None or kept[0] is not plan:
            kept = plan, {unit.id: unit for unit in plan.units if unit.kind == "group"}
            self._kept = kept
        return kept[1]


_GROUPS = _Groups()


def groups_around(plan: Plan, unit: Unit) -> Iterator[Unit]:
    """The groups of a task, the nearest first."""
    groups = _GROUPS.of(plan)
    parent = unit.parent
    while parent is not None:
        yield groups[parent]
        parent = groups[parent].parent
