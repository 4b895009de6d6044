"""Resolution: the tree of units a document stands for, each with its effective values and their origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobman.spec import graph, rules
from jobman.spec.contexts import Context, Origin, site_context
from jobman.spec.expressions import MAX_ALTERNATIVES
from jobman.spec.model import Document, Group, Task
from jobman.spec.reading import Reading, child, key_node
from jobman.spec.records import has_key
from jobman.spec.resources import Shape
from jobman.spec.shapes import Alternative, Alternatives, add, misfit
from jobman.spec.shaping import Shapes, merge_requires
from jobman.spec.site import Profile, Site
from jobman.spec.suggest import closest, did_you_mean, listing

MAX_UNITS = 100_000
MAX_NESTING = 50
_BESIDE_A_GROUP = frozenset(("name", "group", "depends_on", "when"))


class Unit:
    """A task, or a run of a group, with everything it inherits."""

    __slots__ = (
        "alternatives",
        "children",
        "context",
        "dependencies",
        "id",
        "kind",
        "name",
        "names",
        "origin",
        "parent",
        "reference",
        "shape_origin",
        "written",
    )

    def __init__(
        self,
        written: Task | Group | Document,
        name: str,
        parent: Unit | None,
        context: Context,
        origin: Origin,
    ) -> None:
        self.written: Any = written
        self.kind = "group" if isinstance(written, Group) else "task"
        self.name = name
        self.id: str = f"{parent.id}/{name}" if parent is not None and parent.parent is not None else name
        self.parent: Unit | None = parent
        self.context = context
        self.origin = origin
        self.reference: Task | None = None
        self.children: list[Unit] = []
        self.names: dict[str, Unit] = {}
        self.alternatives: Alternatives = ()
        self.shape_origin: Origin | None = None
        self.dependencies: list[graph.Link] = []

    @property
    def given(self) -> dict[str, Any]:
        given: dict[str, Any] = self.written.given
        return given

    @property
    def is_group(self) -> bool:
        return self.kind == "group"

    @property
    def replicas(self) -> int:
        written = self.written
        if isinstance(written, Document):
            return self._inner_replicas
        if isinstance(written, Task) and written.matrix:
            total = 1
            for values in written.matrix.values():
                total *= len(values)
            return total
        return written.replicas or 1

    @property
    def title(self) -> str:
        """What to call it in a message: a name its author has given, or none."""
        return f"`{self.name}`" if self.is_group or self.written.name else "this task"

    @property
    def level(self) -> int:
        """How many groups are around its children."""
        return 0 if self.parent is None else self.parent.level + 1

    @property
    def is_service(self) -> bool:
        return isinstance(self.written, Task) and self.written.service

    @property
    def _inner_replicas(self) -> int:
        """Replicas of tasks in one run of it; a task is one itself."""
        if isinstance(self.written, Task):
            return 1
        return sum(unit.replicas * unit._inner_replicas for unit in self.children if not unit.is_service)

    @property
    def surrounding(self) -> Unit | None:
        """The group it runs in, if any."""
        return self.parent if self.parent is not None and self.parent.parent is not None else None

    def walk(self) -> Iterator[Unit]:
        """Its descendants, in the order written."""
        for unit in self.children:
            yield unit
            if unit.children:
                yield from unit.walk()


class Job:
    """A resolved document."""

    def __init__(self, document: Document, site: Site, root: Unit) -> None:
        self.document = document
        self.site = site
        self.root = root

    @property
    def units(self) -> list[Unit]:
        return list(self.root.walk())


def resolve(document: Document, site: Site, reading: Reading) -> Job:
    """Resolve a document; problems go to the reading, and what can be resolved is."""
    return _Resolver(document, site, reading).resolve()


class _Resolver:
    def __init__(self, document: Document, site: Site, reading: Reading) -> None:
        self.document = document
        self.site = site
        self.reading = reading
        self.shapes = Shapes(document.resources, site, reading)
        self.groups: dict[str, Group] = {}
        self.count = 0
        self._effective: dict[tuple[int, int], tuple[Any, Any, Alternatives]] = {}

    def resolve(self) -> Job:
        origin = Origin("document", "", self.document.node)
        profiles = self._profiles(self.document, label_bound=True)
        context = site_context(self.site).inside(self.document, origin, profiles)
        root = Unit(self.document, "", None, context, origin)
        for name, shape in self.document.resources.items():
            self._check_named(name, shape)
        self._index_groups()
        referenced = self._check_references()
        self._add_children(root, self.document.tasks)
        for group in self.document.groups:
            if group.name not in referenced and self.groups.get(group.name) is group:
                self._add_group(root, group, None)
        if not self.document.tasks and not self.document.groups and not self.reading.problems.has_errors:
            self.reading.report("JS114", self.document.node)
        rules.check_document(self.document, root, self.site, self.reading)
        if self.count <= MAX_UNITS:
            graph.connect(root, self.reading)
            self._shape_children(root)
        return Job(self.document, self.site, root)

    # -- the tree ---------------------------------------------------------------------------------

    def _index_groups(self) -> None:
        for group in self.document.groups:
            if group.name in self.groups:
                self.reading.report("JS309", child(group.node, "name"), name=group.name)
            else:
                self.groups[group.name] = group

    def _check_references(self) -> set[str]:
        """The names of groups that a task runs; unknown ones and circles are reported and cut."""
        referenced: set[str] = set()
        edges: dict[str, list[str]] = {}
        for owner, task in self._references():
            name = task.group or ""
            if name in self.groups:
                referenced.add(name)
                edges.setdefault(owner, []).append(name)
            else:
                meant = self.reading.closest(name, self.groups)
                known = (
                    f"the groups are {listing(self.groups)}" if self.groups else "define it under `groups`"
                )
                hint = did_you_mean(meant, known)
                self.reading.report("JS307", child(task.node, "group"), name=name, hint=hint)
        circle = graph.find_cycle({name: edges.get(name, []) for name in self.groups})
        if circle:
            node = child(self.groups[circle[0]].node, "name")
            self.reading.report("JS308", node, cycle=" → ".join(f"`{name}`" for name in [*circle, circle[0]]))
            referenced.update(self.groups)
        return referenced

    def _references(self) -> Iterator[tuple[str, Task]]:
        for task in self.document.tasks:
            if task.group is not None:
                yield "", task
        for group in self.document.groups:
            for task in group.tasks:
                if task.group is not None:
                    yield group.name, task

    def _add_children(self, parent: Unit, tasks: tuple[Task, ...]) -> None:
        taken = {task.name or task.group for task in tasks}
        if parent.parent is None:
            taken.update(self.groups)
        for position, task in enumerate(tasks, 1):
            if self.count > MAX_UNITS:
                return
            if task.group is not None and task.command is None:
                self._add_reference(parent, task)
            else:
                self._add_task(parent, task, task.name or _free_name(taken, position))

    def _add_reference(self, parent: Unit, task: Task) -> None:
        for key in task.given.keys() - _BESIDE_A_GROUP:
            self.reading.report("JS306", key_node(task.node, key), key=key, group=task.group)
        group = self.groups.get(task.group or "")
        if group is None or _is_inside(parent, group):
            return
        if parent.level >= MAX_NESTING:
            self.reading.report("JS323", child(task.node, "group"), limit=MAX_NESTING)
        else:
            self._add_group(parent, group, task)

    def _add_group(self, parent: Unit, group: Group, reference: Task | None) -> None:
        name = (reference.name if reference else None) or group.name
        origin = Origin("group", name, group.node)
        context = parent.context.inside(group, origin, self._profiles(group))
        unit = Unit(group, name, parent, context, origin)
        unit.reference = reference
        named_at = key_node(reference.node, "name" if reference.name else "group") if reference else None
        self._register(parent, unit, named_at or child(group.node, "name"))
        rules.check_unit(unit, self.site, self.reading)
        self._add_children(unit, group.tasks)

    def _add_task(self, parent: Unit, task: Task, name: str) -> None:
        origin = Origin("task", name, task.node)
        context = parent.context.inside(task, origin, self._profiles(task))
        unit = Unit(task, name, parent, context, origin)
        self._register(parent, unit, child(task.node, "name"))
        rules.check_unit(unit, self.site, self.reading)

    def _register(self, parent: Unit, unit: Unit, node: Any) -> None:
        self.count += 1
        if self.count == MAX_UNITS + 1:
            self.reading.report("JS315", node, limit=MAX_UNITS)
        if unit.name in parent.names:
            scope = f"the group `{parent.name}`" if parent.parent else "the document"
            refers = unit.reference is not None and unit.reference.name is None
            how = "give one of them a `name` of its own" if refers else "rename one of them"
            self.reading.report("JS301", node, name=unit.name, scope=scope, how=how)
        else:
            parent.names[unit.name] = unit
        parent.children.append(unit)

    def _profiles(self, written: Document | Group | Task, *, label_bound: bool = False) -> list[Profile]:
        names = list(written.given.get("profiles", ()))
        if label_bound:
            bound = [p.name for p in self.site.profiles.values() if _is_bound(p, self.document.labels)]
            names = bound + names
        found = []
        for name in dict.fromkeys(names):
            if name in self.site.profiles:
                found.append(self.site.profiles[name])
                continue
            meant = closest(name, self.site.profiles)
            known = (
                f"the settings have {listing(self.site.profiles)}"
                if self.site.profiles
                else "the settings have none"
            )
            hint = did_you_mean(meant, known)
            self.reading.report("JS805", child(written.node, "profiles"), culprit=name, name=name, hint=hint)
        return found

    # -- shapes -----------------------------------------------------------------------------------

    def _check_named(self, name: str, shape: Any) -> None:
        if isinstance(shape, Shape):
            self.shapes.of(shape)
        elif name in shape.names or self.shapes.of(shape) is None:
            self.shapes.name(name, shape.node)

    def _shape_children(self, parent: Unit) -> None:
        """Shapes from the inside out: a group without its own is the sum of its tasks'."""
        reported = parent.is_group and self._report_shapeless(parent)
        for unit in parent.children:
            if unit.is_group:
                self._shape_group(unit)
            elif not unit.written.local:
                self._shape_task(unit, silent=reported)

    def _shape_group(self, unit: Unit) -> None:
        own = unit.written.resources
        outer = unit.surrounding
        if own is not None:
            unit.alternatives = self._own_shape(unit, own)
            self._check_fit(unit)
        elif outer is not None and outer.alternatives and not _has_shapes(unit):
            unit.alternatives = self._inherited_shape(unit, outer)
            unit.shape_origin = outer.shape_origin
        self._shape_children(unit)
        if not unit.alternatives and own is None:
            unit.alternatives = self._sum(unit)
            unit.shape_origin = Origin("sum", unit.name, unit.written.node)
        tasks = [below.written for below in unit.children]
        if not unit.alternatives and tasks and all(isinstance(t, Task) and t.local for t in tasks):
            self._shape_task(unit, silent=has_key(unit.written.node, "resources"))

    def _shape_task(self, unit: Unit, *, silent: bool) -> None:
        own = unit.written.resources
        if own is not None:
            unit.alternatives = self._own_shape(unit, own)
            self._check_fit(unit)
            return
        source = unit.surrounding
        if source is not None and source.alternatives:
            if unit.is_service and len(source.children) > 1 and source.shape_origin is not None:
                self.reading.report(
                    "JS418", key_node(unit.written.node, "service"), name=unit.name, group=source.name
                )
            unit.alternatives = self._inherited_shape(unit, source)
            unit.shape_origin = source.shape_origin
            self._check_facts(unit, source)
        elif source is not None and has_key(source.written.node, "resources"):
            return  # The group's shape is wrong, which has been said.
        elif self.site.default_flavor:
            flavor = self.site.flavors.get(self.site.default_flavor)
            unit.alternatives = () if flavor is None else self._with_requires(unit, ((flavor,),))
            unit.shape_origin = Origin("default", self.site.default_flavor)
        elif not silent and not has_key(unit.written.node, "resources"):
            why = (
                f"the group `{source.name}` has none either"
                if source
                else "there is no group to inherit from"
            )
            what = f"the {unit.kind} `{unit.written.name}`" if unit.written.name else "this task"
            self.reading.report("JS411", unit.written.node, what=what, why=why)

    def _report_shapeless(self, group: Unit) -> bool:
        """One message for a group in which nothing has resources, instead of one per task."""
        if group.alternatives or has_key(group.written.node, "resources") or self.site.default_flavor:
            return False
        needing = [u for u in group.children if not u.is_group and not u.written.local]
        if not needing or any(has_key(u.written.node, "resources") for u in group.children):
            return False
        if any(u.is_group for u in group.children):
            return False
        self.reading.report(
            "JS411",
            child(group.written.node, "name"),
            what=f"the group `{group.name}`",
            why="none of its tasks has any",
        )
        return True

    def _own_shape(self, unit: Unit, own: Any) -> Alternatives:
        alternatives = self.shapes.of(own)
        where, text = self.shapes.origin(own)
        level: Any = {"flavor": "flavor", "named": "document"}.get(where, unit.kind)
        node = self.document.node if level == "document" else None if level == "flavor" else unit.written.node
        unit.shape_origin = Origin(level, text or unit.name, node)
        return () if alternatives is None else self._with_requires(unit, alternatives)

    def _inherited_shape(self, unit: Unit, group: Unit) -> Alternatives:
        own = _own_requires(unit)
        return merge_requires(group.alternatives, {}, own) if own else group.alternatives

    def _with_requires(self, unit: Unit, alternatives: Alternatives) -> Alternatives:
        """Document and groups, then the shape, then the task itself."""
        outer = unit.context.requires
        own = {} if unit.is_group else _own_requires(unit)
        key = (id(alternatives), id(outer))
        if not own and key in self._effective:
            return self._effective[key][2]
        before = {name: traced.value for name, traced in outer.items() if name not in own}
        merged = merge_requires(alternatives, before, own)
        if not own:
            # The keys are identities: what they identify is kept alive beside the answer.
            self._effective[key] = (alternatives, outer, merged)
        return merged

    def _sum(self, group: Unit) -> Alternatives:
        """The sum over the tasks; tasks with the same expression make the same choice."""
        choices: dict[Any, tuple[Alternatives, list[Alternatives]]] = {}
        for position, unit in enumerate(group.children):
            if not unit.alternatives:
                continue
            choice = getattr(unit.written.resources, "alternatives", position)
            choices.setdefault(choice, (unit.alternatives, []))[1].append(unit.alternatives)
        sums: list[list[Alternative]] = [[]]
        for first, members in choices.values():
            if len(sums) * len(first) > MAX_ALTERNATIVES:
                self.reading.report("JS415", child(group.written.node, "name"), limit=MAX_ALTERNATIVES)
                return ()
            sums = [chosen + [m[i] for m in members] for chosen in sums for i in range(len(first))]
        return tuple(add(chosen) for chosen in sums) if choices else ()

    def _check_facts(self, unit: Unit, group: Unit) -> None:
        found = _contradiction(unit.alternatives, group.alternatives)
        if found is not None:
            key, wanted, there = found
            self.reading.report(
                "JS420",
                key_node(unit.written.node, "requires"),
                child=unit.title,
                parent=f"the group `{group.name}`",
                key=key,
                wanted=wanted,
                found=there,
            )

    def _check_fit(self, unit: Unit) -> None:
        group = unit.surrounding
        if group is None or not group.alternatives or not unit.alternatives:
            return
        if group.shape_origin is not None and group.shape_origin.level == "sum":
            return
        self._check_facts(unit, group)
        for parent in group.alternatives:
            reasons = [misfit(parts, parent) for parts in unit.alternatives]
            if all(reasons):
                self.reading.report(
                    "JS414",
                    child(unit.written.node, "resources"),
                    related=((child(group.written.node, "resources"), f"what `{group.name}` has"),),
                    child=unit.title,
                    parent=f"the group `{group.name}`",
                    reason=reasons[0],
                )
                return


def _contradiction(inner: Alternatives, outer: Alternatives) -> tuple[str, str, str] | None:
    """A fact that every alternative inside requires otherwise than every alternative outside."""
    within = [part.requires for parts in inner for part in parts]
    around = [part.requires for parts in outer for part in parts]
    for key in within[0] if within else ():
        wanted = {facts.get(key) for facts in within}
        found = {facts.get(key) for facts in around}
        if len(wanted) == 1 and None not in found and not wanted & found:
            return key, str(within[0][key]), " or ".join(sorted(map(str, found)))
    return None


def _has_shapes(group: Unit) -> bool:
    """Whether anything inside a group says what it needs."""
    return any(has_key(unit.written.node, "resources") for unit in group.walk())


def _is_bound(profile: Profile, labels: dict[str, str]) -> bool:
    return any(
        labels.get(key) is not None and value in ("", labels[key]) for key, value in profile.labels.items()
    )


def _is_inside(parent: Unit | None, group: Group) -> bool:
    while parent is not None:
        if parent.written is group:
            return True
        parent = parent.parent
    return False


def _own_requires(unit: Unit) -> dict[str, str]:
    """The facts a unit adds to those around it."""
    outer = unit.parent.context.requires if unit.parent is not None else {}
    if unit.context.requires is outer:
        return {}
    return {
        name: traced.value for name, traced in unit.context.requires.items() if outer.get(name) is not traced
    }


def _free_name(taken: set[str | None], position: int) -> str:
    """A name for a task without one: its position, unless a named task is called so."""
    name = f"task-{position}"
    while name in taken:
        name += "x"
    return name
