"""A job that is a JobSet, as it is found again: tasks whose turn has not come have no Job yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import seconds
from jobman.engines.kubernetes.blockers import Blocker
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.found import FoundJob
from jobman.engines.kubernetes.objects import Condition, Event, Job, JobSet, Pod
from jobman.engines.kubernetes.sets import Graph
from jobman.engines.kubernetes.states import FINAL, Standing, by_task
from jobman.engines.kubernetes.waits import WAITS_FOR
from jobman.plan.model import PlanError, Unit

_ENDS = {"Completed": "succeeded", "Failed": "failed"}


class SetJob(FoundJob):
    """Everything a cluster knows of a job that is a JobSet."""

    anchor: JobSet

    def __init__(
        self, anchor: JobSet, jobs: Iterable[Job], pods: Iterable[Pod], events: Iterable[Event] = ()
    ) -> None:
        super().__init__(anchor, jobs, pods, events)
        self._known: dict[str, Standing] | None = None

    @property
    def state(self) -> str:
        if (end := self._end) is not None:
            return _ENDS[end.type]
        states = {one.state for one in self.standings}
        if CANCELLED in self._notes and "running" not in states:
            return "cancelled"
        return "running" if states - {"waiting"} else "waiting"

    @property
    def is_held(self) -> bool:
        return self.anchor.spec.suspend and not self.is_over and CANCELLED not in self._notes

    @property
    def ended_at(self) -> float | None:
        return seconds(self._end.last_transition_time) if self._end is not None else super().ended_at

    @property
    def tasks(self) -> dict[str, Standing]:
        if self._known is None:
            self._known = self._stand()
        return self._known

    def turns(self) -> Iterator[tuple[str, Blocker]]:
        """Which tasks wait for which."""
        if self.is_over:
            return
        if self.is_held:
            advice = f"jobman release {self.id}"
            yield "", Blocker(kind="hold", message="the job is held", advice=advice)
            return
        graph = Graph(self.plan)
        made = {one.task: one.state for one in self.standings}
        for unit in (each for each in graph.tasks if each.id not in made):
            for edge in graph.awaited(unit):
                if edge.when != "success" or made.get(edge.after) != "succeeded":
                    message = f"{unit.name} waits for {edge.after} {WAITS_FOR[edge.when]}"
                    yield unit.id, Blocker(kind="dependency", message=message)

    @property
    def _end(self) -> Condition | None:
        found = (each for each in self.anchor.status.conditions if each.type in _ENDS)
        return next((each for each in found if each.status == "True"), None)

    def _stand(self) -> dict[str, Standing]:
        made = by_task(self.standings)
        try:
            graph = Graph(self.plan)
        except PlanError:
            return made
        return {
            unit.id: self._seen(unit, made[unit.id]) if unit.id in made else self._unseen(unit, graph, made)
            for unit in graph.tasks
        }

    def _seen(self, unit: Unit, stands: Standing) -> Standing:
        """A Job that is not over when its set is will be deleted."""
        if stands.state in FINAL or not self.is_over:
            return stands
        return _standing(unit, "cancelled")

    def _unseen(self, unit: Unit, graph: Graph, made: dict[str, Standing]) -> Standing:
        """One whose turn has not come, or whose Job is deleted because the set is over."""
        if not self.is_over:
            return _standing(unit, "waiting")
        awaited = [edge.after for edge in graph.awaited(unit) if edge.when == "success"]
        had_its_turn = all(task in made and made[task].state == "succeeded" for task in awaited)
        if self.state == "failed" and not had_its_turn:
            return _standing(unit, "skipped")
        return _standing(unit, "cancelled")


def _standing(unit: Unit, state: str) -> Standing:
    return Standing(
        job="", task=unit.id, state=state, counts={state: unit.replicas}, replicas={}, flavor=_flavor(unit)
    )


def _flavor(unit: Unit) -> str:
    found = (part.flavor for parts in unit.alternatives[:1] for part in parts)
    return next((names.label_value(each.name) for each in found if each is not None), "")
