"""The graph of a job: which unit waits for which, and that it has an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jobman.spec.model import Dependency, Task
from jobman.spec.reading import Reading, child
from jobman.spec.suggest import listing

if TYPE_CHECKING:
    from jobman.spec.resolve import Unit

_DEFAULT_CONDITION = {"success": "success", "failure": "failure", "always": "any"}
_AT_START = ("started", "ready")
_MOST_CYCLES = 5
T = TypeVar("T")


class Link(NamedTuple):
    """A dependency: the unit waited for, the condition, and where it was written."""

    unit: Unit
    when: str
    node: Any


def connect(root: Unit, reading: Reading) -> None:
    """Resolve every dependency and report what is unknown or can never start."""
    forward = False
    order = {id(unit): number for number, unit in enumerate(root.walk())}
    index = _Inner(root)
    for unit in root.walk():
        for link in _links(unit, index, reading):
            unit.dependencies.append(link)
            forward = forward or order[id(link.unit)] >= order[id(unit)]
        forward = forward or is_cleanup(unit)
    # Where nothing waits for something further down there can be no cycle.
    if forward:
        _report_cycles(root, reading)


def blocks(unit: Unit) -> bool:
    """Whether what stands below it in its scope waits for its end: local tasks, and what is watched.

    Services are never waited for, and cleanup tasks come last anyway.
    """
    if unit.is_service or when_of(unit) != "success":
        return False
    watch = unit.context.attributes.get("watch")
    return bool(watch and watch.value) or (isinstance(unit.written, Task) and unit.written.local)


def when_of(unit: Unit) -> str:
    """When a unit runs at all; a reference to a group speaks before the group."""
    reference = unit.reference
    return (reference.when if reference else None) or unit.written.when or "success"


def is_cleanup(unit: Unit) -> bool:
    """Whether it waits for the rest of its scope: it runs on failure or always, and names no dependency."""
    return when_of(unit) != "success" and not unit.dependencies


def _links(unit: Unit, index: _Inner, reading: Reading) -> Iterator[Link]:
    condition = _DEFAULT_CONDITION[when_of(unit)]
    lists = [unit.reference.depends_on] if unit.reference is not None else []
    done: set[tuple[str, str]] = set()
    for dependency in _distinct([*lists, unit.written.depends_on], reading):
        wanted = (dependency.name, dependency.when or condition)
        if wanted in done:
            continue
        done.add(wanted)
        target = lookup(unit, dependency.name)
        if target is None:
            _report_unknown(unit, dependency, index, reading)
        elif _surrounds(target, unit):
            reading.report("JS318", dependency.node, name=dependency.name)
        else:
            link = Link(target, dependency.when or condition, dependency.node)
            _check_link(link, reading)
            yield link


def _distinct(lists: list[tuple[Dependency, ...]], reading: Reading) -> Iterator[Dependency]:
    """The dependencies of a reference and of its group; twice in one list is a mistake."""
    for written in lists:
        seen: set[str] = set()
        for dependency in written:
            if dependency.name in seen:
                reading.report("JS321", dependency.node, name=dependency.name)
            seen.add(dependency.name)
            yield dependency


def lookup(unit: Unit, name: str) -> Unit | None:
    """A name seen from a unit: among its siblings, then further out."""
    scope = unit.parent
    while scope is not None:
        found = scope.names.get(name)
        if found is not None:
            return found
        scope = scope.parent
    return None


def _surrounds(outer: Unit, inner: Unit) -> bool:
    parent = inner.parent
    while parent is not None:
        if parent is outer:
            return True
        parent = parent.parent
    return False


def _check_link(link: Link, reading: Reading) -> None:
    if link.unit.is_service and link.when not in _AT_START:
        reading.report("JS316", link.node, name=link.unit.name)
    elif link.when == "ready" and not any(map(_has_ready_check, [link.unit, *link.unit.walk()])):
        reading.report("JS317", link.node, name=link.unit.name)


def _has_ready_check(unit: Unit) -> bool:
    checks = unit.context.inherited.get("checks")
    return not unit.is_group and checks is not None and checks.value.ready is not None


class _Inner:
    """Finds units by name anywhere, for advice; built only when something is wrong."""

    def __init__(self, root: Unit) -> None:
        self.root = root
        self._names: dict[str, Unit] | None = None

    def find(self, name: str) -> Unit | None:
        if self._names is None:
            self._names = {}
            for unit in self.root.walk():
                self._names.setdefault(unit.name, unit)
        return self._names.get(name)


def _report_unknown(unit: Unit, dependency: Dependency, index: _Inner, reading: Reading) -> None:
    name = dependency.name
    inner = index.find(name.rsplit("/", 1)[-1])
    group = _visible_group(unit, inner) if inner is not None else None
    node = child(dependency.node, "name")
    if group is not None and inner is not None:
        reading.report("JS303", node, name=inner.name, group=group.name)
        return
    visible = list(_visible(unit)) if reading.may_guess else []
    meant = reading.closest(name, visible)
    if meant:
        hint = f"did you mean `{meant}`?"
    elif visible:
        hint = f"from here one can see {listing(visible)}"
    else:
        hint = "check the name, or give the other task one"
    reading.report("JS302", node, name=name, hint=hint)


def _visible(unit: Unit) -> Iterator[str]:
    scope = unit.parent
    while scope is not None:
        for name, sibling in scope.names.items():
            is_named = sibling.is_group or sibling.written.name
            if is_named and sibling is not unit and not _surrounds(sibling, unit):
                yield name
        scope = scope.parent


def _visible_group(unit: Unit, inner: Unit) -> Unit | None:
    """The group around `inner` that can be named from `unit`."""
    group = inner.surrounding
    while group is not None:
        if lookup(unit, group.name) is group and not _surrounds(group, unit):
            return group
        group = group.surrounding
    return None


# -- cycles -------------------------------------------------------------------------------------------------

_Event = tuple[str, int]


def _report_cycles(root: Unit, reading: Reading) -> None:
    units = {id(unit): unit for unit in root.walk()}
    waits, places = _waits(root)
    for _ in range(_MOST_CYCLES):
        cycle = find_cycle(waits)
        if cycle is None:
            return
        links = [(a, b) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True) if (a, b) in places]
        names = _names_on(cycle, units)
        first, *others = [places[link] for link in links]
        reading.report(
            "JS304",
            first,
            related=tuple((node, "also part of the cycle") for node in others),
            cycle=" → ".join(f"`{name}`" for name in [*names, names[0]]),
            hint=_way_out(cycle, units),
        )
        for a, b in links:
            waits[a].remove(b)


def _way_out(cycle: Sequence[_Event], units: Mapping[int, Unit]) -> str:
    """What to change, which depends on what besides dependencies makes somebody wait."""
    for event, follower in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if follower[0] == "settled":
            when = when_of(units[event[1]])
            return f"remove the dependency: a task with `when: {when}` waits for the rest of its scope"
        unit = units.get(follower[1])
        is_wait = event[0] == "start" and follower[0] == "end" and unit is not None
        if is_wait and unit is not None and blocks(unit) and not _depends(units[event[1]], unit):
            is_local = isinstance(unit.written, Task) and unit.written.local
            what = "a `local` task" if is_local else f"a {unit.kind} with `watch`"
            return f"remove the dependency, or move it up: what stands below {what} waits for its end"
    names = {units[key].id for kind, key in cycle if key in units}
    if len(names) == 1:
        unit = next(units[key] for _, key in cycle if key in units)
        hidden = unit.parent is not None and lookup(unit.parent, unit.name) is not None
        outer = f"; the outer `{unit.name}` is hidden by it, so rename one of them" if hidden else ""
        return f"remove it: a task cannot wait for itself{outer}"
    return "remove one of the dependencies"


def _depends(unit: Unit, other: Unit) -> bool:
    return any(link.unit is other for link in unit.dependencies)


def _names_on(cycle: Sequence[_Event], units: Mapping[int, Unit]) -> list[str]:
    names: list[str] = []
    for kind, key in cycle:
        if kind in ("start", "end") and key in units and (not names or names[-1] != units[key].id):
            names.append(units[key].id)
    while len(names) > 1 and names[0] == names[-1]:
        names.pop()
    return names


def _waits(root: Unit) -> tuple[dict[_Event, list[_Event]], dict[tuple[_Event, _Event], Any]]:
    """Which event waits for which: starts and ends of units, and the settling of scopes for cleanup tasks."""
    waits: dict[_Event, list[_Event]] = {}
    places: dict[tuple[_Event, _Event], Any] = {}
    for unit in root.walk():
        start, end = ("start", id(unit)), ("end", id(unit))
        waits[end] = [start]
        waits[start] = [("start", id(unit.parent))] if unit.parent and unit.parent.parent else []
        for link in unit.dependencies:
            event = ("start" if link.when in _AT_START else "end", id(link.unit))
            waits[start].append(event)
            places.setdefault((start, event), link.node)
    for scope in [root, *(unit for unit in root.walk() if unit.children)]:
        _order_scope(scope, waits)
    return waits, places


def _order_scope(scope: Unit, waits: dict[_Event, list[_Event]]) -> None:
    blocker: _Event | None = None
    settled: _Event = ("settled", id(scope))
    waits[settled] = []
    for unit in scope.children:
        start, end = ("start", id(unit)), ("end", id(unit))
        if blocker is not None:
            waits[start].append(blocker)
        if is_cleanup(unit):
            waits[start].append(settled)
        if blocks(unit):
            blocker = end
        if unit.is_service:
            continue
        if scope.parent is not None:
            waits[("end", id(scope))].append(end)
        if when_of(unit) == "success":
            waits[settled].append(end)


def find_cycle(waits: Mapping[T, Sequence[T]]) -> list[T] | None:
    """One cycle of a graph, in the direction of its edges; None where there is none."""
    done: set[T] = set()
    for origin in waits:
        if origin in done:
            continue
        path: list[T] = [origin]
        on_path = {origin: 0}
        steps = [iter(waits.get(origin, ()))]
        while steps:
            follower = next(steps[-1], None)
            if follower is None:
                steps.pop()
                finished = path.pop()
                del on_path[finished]
                done.add(finished)
            elif follower in on_path:
                return path[on_path[follower] :]
            elif follower not in done:
                on_path[follower] = len(path)
                path.append(follower)
                steps.append(iter(waits.get(follower, ())))
    return None
