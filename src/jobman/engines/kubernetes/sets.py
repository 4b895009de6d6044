"""A graph as one JobSet, whose controller makes its Jobs in turn: what it can say, and the object. Pure.

A JobSet waits for the success or the readiness of Jobs, and as a whole it fails with the first of them that
does. So it says what we mean only where a failure disturbs nobody: where tasks come one after another, or
where their own rules let the job fail. All else is refused here, and driven by `jobman run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobman.engines.base import Refused
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.affinity import tasks_of
from jobman.engines.kubernetes.compile import Compiler, Outline, number_of_jobs
from jobman.engines.kubernetes.driving import needs_driver
from jobman.engines.kubernetes.failures import fails_the_job, limit_of
from jobman.engines.kubernetes.features import refusals
from jobman.engines.kubernetes.jobs import job
from jobman.engines.kubernetes.kinds import JOB_SETS
from jobman.engines.kubernetes.names import SetNaming
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.slices import Slice, chosen, slices
from jobman.engines.kubernetes.surroundings import groups_around
from jobman.engines.kubernetes.target import CannotCompile, Compiled, Target
from jobman.plan.model import Edge, Plan, Unit

_STATUS = {"success": "Complete", "started": "Ready", "ready": "Ready"}
_SAID = frozenset(
    (
        *(f"depends_on.{when}" for when in _STATUS),
        "service",
        "shape.both",
        "shape.slot",
        "on_failure.fail-job",
    )
)
"""What needs a driver elsewhere, and no driver here."""
_MOST_AWAITED = 5
_ONE_BY_ONE = "a JobSet stops the others when one of them fails"
_LET_IT_FAIL = "if that is meant, say `on_failure: [{exit_codes: [1-255], action: fail-job}]`"


def beyond_a_set(plan: Plan, target: Target) -> list[Refused]:
    """What of a plan a JobSet cannot say, or would do in another way."""
    driven = [each for each in needs_driver(plan, target) if each.feature not in _SAID]
    graph = Graph(plan)
    found = [*refusals(plan, target), *driven]
    pieces = {unit.id: slices(chosen(unit, target.chosen.get(unit.id, 0))) for unit in graph.tasks}
    for unit in graph.tasks:
        found += [Refused(feature, (unit.id,), note) for feature, note in _of(unit, plan, graph, pieces)]
    return found + list(_side_by_side(plan, graph))


def compile_set(plan: Plan, target: Target) -> Compiled:
    """The JobSet of a job, and what it needs; raises CannotCompile where it would not be the same job."""
    if found := beyond_a_set(plan, target):
        raise CannotCompile(found)
    return SetCompiler(plan, target).compiled()


class Graph:
    """Who waits for whom, among tasks: a group stands for all of its tasks."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.tasks = [unit for unit in plan.units if unit.kind == "task"]
        self._after = {unit.id: list(self._awaited_by(unit)) for unit in self.tasks}
        self._before: dict[str, set[str]] = {}

    def awaited(self, unit: Unit) -> list[Edge]:
        """What a task waits for itself; the edges lead to tasks."""
        return self._after[unit.id]

    def before(self, task: str) -> set[str]:
        """The tasks that have succeeded when one starts."""
        if task not in self._before:
            found = {edge.after for edge in self._after[task] if edge.when == "success"}
            self._before[task] = found.union(*(self.before(each) for each in found))
        return self._before[task]

    def in_turn(self) -> list[Unit]:
        """The tasks, each behind those that it waits for."""
        left, found = list(self.tasks), list[Unit]()
        while left:
            known = {unit.id for unit in found}
            ready = [unit for unit in left if all(edge.after in known for edge in self._after[unit.id])]
            found += ready
            left = [unit for unit in left if unit not in ready]
        return found

    def _awaited_by(self, unit: Unit) -> Iterator[Edge]:
        own = {unit.id, *(group.id for group in groups_around(self._plan, unit))}
        for edge in self._plan.edges:
            if edge.unit in own:
                yield from (Edge(unit.id, task, edge.when) for task in tasks_of(self._plan, edge.after))


def _of(
    unit: Unit, plan: Plan, graph: Graph, pieces: Mapping[str, tuple[Slice, ...]]
) -> Iterator[tuple[str, str]]:
    around = [unit, *groups_around(plan, unit)]
    if unit.service:
        yield "service", "a JobSet fails when it fails, and deletes it with what it wrote"
    if any(each.policies.hold for each in around):
        yield "hold", "a JobSet is held as a whole"
    if plan.policies.gates or any(each.policies.gates for each in around):
        yield "gates", "the Jobs of a JobSet have none"
    for key in ("max_failed", "completions", "success"):
        if getattr(unit.policies, key) is not None:
            yield key, "a JobSet looks at the end of a Job, not at its goal"
    if len(pieces[unit.id]) > 1 and limit_of(plan, unit):
        yield "retries", "a replica that is several Jobs is not tried again as one"
    awaited = graph.awaited(unit)
    others = [plan.unit(edge.after) for edge in awaited]
    if sum(number_of_jobs(other, pieces[other.id]) for other in others) > _MOST_AWAITED:
        yield "depends_on.success", f"a Job of a JobSet waits for {_MOST_AWAITED} others at most"
    for edge in awaited:
        if edge.when in ("started", "ready"):
            yield from _waits_for_a_start(plan.unit(edge.after), edge, plan)


def _waits_for_a_start(other: Unit, edge: Edge, plan: Plan) -> Iterator[tuple[str, str]]:
    has_check = other.policies.checks is not None and other.policies.checks.ready is not None
    feature = f"depends_on.{edge.when}"
    if edge.when == "started" and has_check:
        yield feature, f"a JobSet waits until the check of {other.name} succeeds; say `ready`"
    if other.policies.parallelism is not None or other.parent != plan.unit(edge.unit).parent:
        yield feature, f"a JobSet does not see when all of {other.name} has"


def _side_by_side(plan: Plan, graph: Graph) -> Iterator[Refused]:
    """Tasks that would be stopped by a failure that is none of theirs."""
    lenient = [unit for unit in graph.tasks if not fails_the_job(plan, unit)]
    for unit in lenient:
        if unit.replicas > 1 and (unit.matrix or max(unit.copies) > 1):
            note = f"its replicas are Jobs of their own, and {_ONE_BY_ONE}; {_LET_IT_FAIL}"
            yield Refused("matrix" if unit.matrix else "replicas", (unit.id,), note)
        others = [
            other.id
            for other in graph.tasks
            if other is not unit
            and other.id not in graph.before(unit.id)
            and unit.id not in graph.before(other.id)
        ]
        if others:
            note = f"{', '.join([unit.name, *others])} run side by side, and {_ONE_BY_ONE}; {_LET_IT_FAIL}"
            yield Refused("depends_on.success", (unit.id,), note)
            return


class SetCompiler(Compiler):
    """The compilation of a job that is one JobSet."""

    _names = SetNaming

    def compiled(self) -> Compiled:
        support = list(self._walls())
        graph = Graph(self._plan)
        members: list[Written] = []
        for unit in graph.in_turn():
            support.extend(self._support_of(unit))
            waits = self._waits(unit, graph)
            members += [self._member(job(piece), waits) for piece in self._pieces(unit, support)]
        annotations = self._annotations()
        spec: Written = {
            "replicatedJobs": members,
            "network": {"enableDNSHostnames": self._subdomain is not None},
        }
        if (found := self._plan.coordinator) is not None:
            spec["coordinator"] = self._coordinating(tasks_of(self._plan, found.unit)[0], found.replica)
        if self._plan.policies.hold:
            annotations[names.HOLD] = "true"
            spec["suspend"] = True
        metadata = {
            "name": self._naming.job,
            "namespace": self._target.namespace,
            "labels": self._labels(),
            "annotations": annotations,
        }
        anchor = {"apiVersion": JOB_SETS.api, "kind": JOB_SETS.kind, "metadata": metadata, "spec": spec}
        return Compiled(anchor=anchor, support=support, units={})

    def samples(self) -> dict[str, list[Written]]:
        """The Jobs as the controller will make them, for a cluster to look at."""
        return {unit.id: [job(piece) for piece in self._pieces(unit, [])] for unit in self._tasks}

    def _outline(self, unit: Unit, pieces: tuple[Slice, ...], is_only: bool) -> Iterator[Outline]:
        del is_only
        return super()._outline(unit, pieces, False)

    def _member_of(self, name: str) -> str:
        naming = self._naming
        assert isinstance(naming, SetNaming)
        return naming.member_of(name)

    def _called(self, task: str) -> list[str]:
        """What the Jobs of a task are called in the set."""
        return [self._member_of(outline.name) for outline in self._outlines[task]]

    def _waits(self, unit: Unit, graph: Graph) -> list[dict[str, str]]:
        found: dict[str, str] = {}
        for edge in graph.awaited(unit):
            for name in self._called(edge.after):
                found[name] = _STATUS["success"] if name in found else _STATUS[edge.when]
        return [{"name": name, "status": status} for name, status in found.items()]

    def _member(self, written: Written, waits: list[dict[str, str]]) -> Written:
        about = written["metadata"]
        # The set as a whole is held.
        notes = {key: value for key, value in about["annotations"].items() if key != names.HOLD}
        spec = {key: value for key, value in written["spec"].items() if key != "suspend"}
        member: dict[str, Any] = {
            "name": self._member_of(about["name"]),
            "replicas": 1,
            "template": {"metadata": {"labels": about["labels"], "annotations": notes}, "spec": spec},
        }
        return {**member, "dependsOn": waits} if waits else member

    def _coordinating(self, task: str, replica: int) -> dict[str, Any]:
        names_, outlines = self._called(task), self._outlines[task]
        at = next((at for at, outline in enumerate(outlines) if outline.replica == replica), 0)
        index = replica if outlines[at].replica is None else 0
        return {"replicatedJob": names_[at], "jobIndex": 0, "podIndex": index}
