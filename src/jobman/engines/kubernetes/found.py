"""A job as it is found again in a cluster: its anchor, its Jobs and its pods, and what they come to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from jobman.engines.endings import how_it_ended
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import Attempt, seconds
from jobman.engines.kubernetes.compile import unpacked
from jobman.engines.kubernetes.copies import CANCELLED, Copy, first_failure, state_without_pods
from jobman.engines.kubernetes.indexes import Indexes, condition, is_over, replica_of
from jobman.engines.kubernetes.kinds import CONFIG_MAPS, JOB_SETS, JOBS, Kind
from jobman.engines.kubernetes.objects import Event, Job, JobSet, Kept, Pod
from jobman.engines.kubernetes.states import FINAL, Standing, by_task, counted, overall, standings
from jobman.plan.model import Plan, PlanError, Unit, plan_from_json

OPTIONS = names.PREFIX + "options"
"""Annotation of the anchor: what was said at submission beside the document, as JSON."""
FINGERPRINT = names.PREFIX + "fingerprint"
"""Annotation of the anchor: what makes a submission that is repeated the same."""


ACTS = names.PREFIX + "acts"
"""Annotation of the anchor: what people did to a job, as JSON; see Act."""


class Act(msgspec.Struct, frozen=True, array_like=True):
    """Something that somebody did to a job; `kind` is a word of our events."""

    at: float
    kind: str
    message: str = ""


class ReplicaAt(msgspec.Struct, frozen=True, kw_only=True):
    """A replica of a task and where it stands."""

    unit: str
    index: int
    stands: Copy
    named: str = ""
    """Its key, where groups around it may have several replicas."""

    @property
    def key(self) -> str:
        return self.named or replica_key(self.unit, self.index)


class FoundJob:
    """Everything a cluster knows of one job."""

    def __init__(
        self, anchor: Kept, jobs: Iterable[Job], pods: Iterable[Pod], events: Iterable[Event] = ()
    ) -> None:
        self.anchor = anchor
        self.jobs = sorted(jobs, key=lambda job: job.metadata.name)
        self.pods = list(pods)
        self.standings = standings(self.jobs, self.pods, events)
        self._plan: Plan | None = None
        self._options: dict[str, Any] | None = None

    # -- what was submitted ----------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.anchor.metadata.labels[names.JOB]

    @property
    def _notes(self) -> dict[str, str]:
        return self.anchor.metadata.annotations

    @property
    def anchor_kind(self) -> Kind[Any]:
        """What holds all of it together: its only Job, a JobSet, or a ConfigMap."""
        if isinstance(self.anchor, Job):
            return JOBS
        return JOB_SETS if isinstance(self.anchor, JobSet) else CONFIG_MAPS

    @property
    def options(self) -> dict[str, Any]:
        if self._options is None:
            try:
                self._options = msgspec.json.decode(self._notes.get(OPTIONS, "{}"), type=dict[str, Any])
            except msgspec.MsgspecError:
                self._options = {}
        return self._options

    @property
    def plan(self) -> Plan:
        """Raises PlanError where somebody else wrote the annotation."""
        if self._plan is None:
            self._plan = plan_from_json(unpacked(self._notes.get(names.PLAN, "")))
        return self._plan

    @property
    def document(self) -> str:
        return unpacked(self._notes.get(names.DOCUMENT, ""))

    @property
    def name(self) -> str:
        return str(self.options.get("name") or self.anchor.metadata.labels.get(names.NAME, self.id))

    @property
    def owner(self) -> str:
        return self._notes.get(names.SUBMITTED_BY) or self.anchor.metadata.labels.get(names.OWNER, "")

    @property
    def labels(self) -> dict[str, str]:
        """Those of the document."""
        return {
            key: value
            for key, value in self.anchor.metadata.labels.items()
            if not key.startswith((names.PREFIX, "app.kubernetes.io/"))
        }

    @property
    def flavor(self) -> str | None:
        found = (job.metadata.labels.get(names.FLAVOR) for job in self.jobs)
        return next(filter(None, found), None)

    # -- where it stands -------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        return overall(self.standings) if self.standings else "waiting"

    @property
    def is_over(self) -> bool:
        return self.state in FINAL

    @property
    def is_held(self) -> bool:
        """Whether somebody holds it; a Job that waits at a gate is suspended, too."""
        return not self.is_over and any(is_held(job) for job in self.jobs)

    @property
    def gates(self) -> list[str]:
        """Those that are closed."""
        return list(dict.fromkeys(gate for job in self.jobs for gate in closed_gates(job)))

    @property
    def counts(self) -> dict[str, int]:
        return counted(self.tasks.values())

    @property
    def tasks(self) -> dict[str, Standing]:
        return by_task(self.standings)

    @property
    def submitted_at(self) -> float:
        return seconds(self.anchor.metadata.creation_timestamp) or 0.0

    @property
    def started_at(self) -> float | None:
        """When the first of its copies did."""
        begun = [attempt.started_at for attempt in self._attempts() if attempt.started_at is not None]
        counted = [
            one.started_at for one in self.standings if one.started_at and one.state not in ("waiting",)
        ]
        return min(begun or counted, default=None)

    @property
    def ended_at(self) -> float | None:
        if not self.is_over:
            return None
        ends = [one.ended_at for one in self.standings if one.ended_at is not None]
        ends += [at for job in self.jobs if not is_over(job) and (at := stopped_at(job)) is not None]
        return max(ends, default=self.submitted_at)

    @property
    def cancelled_at(self) -> float | None:
        """When somebody asked for its end."""
        marks = (self._notes, *(job.metadata.annotations for job in self.jobs))
        asked = [at for each in marks if (at := _moment(each.get(CANCELLED, ""))) is not None]
        return min(asked, default=None)

    @property
    def acts(self) -> list[Act]:
        """What people did to it, besides cancelling."""
        try:
            return msgspec.json.decode(self._notes.get(ACTS, "[]"), type=list[Act])
        except msgspec.MsgspecError:
            return []

    @property
    def failure(self) -> Standing | None:
        """The Job that failed first."""
        failed = [one for one in self.standings if one.state == "failed"]
        return min(failed, key=lambda one: one.ended_at or 0.0, default=None)

    @property
    def exit_code(self) -> int | None:
        if self.state == "succeeded":
            return 0
        failed = self.failure
        return failed.exit_code if failed is not None and self.state == "failed" else None

    @property
    def reason(self) -> str:
        """Why it ended as it did, in words."""
        if self.state == "cancelled":
            return "cancelled"
        failed = self.failure
        if failed is None or self.state != "failed":
            return ""
        first = first_failure(failed.replicas.values())
        if first is None:
            words = failed.message or how_it_ended(failed.reason, failed.exit_code)
            return f"{failed.task}: {words}" if words else failed.task
        return f"{replica_key(failed.task, first.index)}: {_ended_words(first)}"

    def replicas(self) -> Iterator[ReplicaAt]:
        """All of them, also those of which the cluster has nothing yet or any more."""
        jobs: dict[str, list[Job]] = {}
        for job, stands in zip(self.jobs, self.standings, strict=True):
            jobs.setdefault(stands.task, []).append(job)
        tasks = self.tasks
        for unit in self.plan.units:
            if unit.id in tasks:
                yield from _replicas(unit, tasks[unit.id], jobs.get(unit.id, []))
            elif unit.kind == "group":
                yield ReplicaAt(unit=unit.id, index=0, stands=self._group(unit, tasks))

    def outcome_of(self, group: Unit) -> str:
        """What has become of a group, from the tasks in it."""
        return self._group(group, self.tasks).state

    def _group(self, unit: Unit, tasks: dict[str, Standing]) -> Copy:
        """A group, which nothing on a cluster stands for, from the tasks in it."""
        inside = [stands for task, stands in tasks.items() if task.startswith(f"{unit.id}/")]
        own = [stands for stands in inside if stands.state != "skipped"]
        state = "skipped" if inside and not own else overall(own)
        ill = next((one for one in own if one.state == "failed"), None) if state == "failed" else None
        return Copy(
            index=0,
            state=state,
            reason="exit" if ill else "",
            exit_code=ill.exit_code if ill else None,
        )

    def unit_of(self, task: str) -> str:
        """The id of a unit from a label, which may be shortened."""
        try:
            known = {names.label_value(unit.id): unit.id for unit in self.plan.units}
        except PlanError:
            return task
        return known.get(task, task)

    def _attempts(self) -> Iterator[Attempt]:
        for one in self.standings:
            for replica in one.replicas.values():
                yield from replica.attempts


def replica_key(unit: str, index: int) -> str:
    """The name of a replica: groups have one replica each here."""
    *groups, task = unit.split("/")
    return "/".join([*(f"{group}.0" for group in groups), f"{task}.{index}"])


def is_held(job: Job) -> bool:
    """Whether a Job is suspended because somebody wants it so."""
    return job.spec.suspend and (names.HOLD in job.metadata.annotations or not closed_gates(job))


def closed_gates(job: Job) -> list[str]:
    """The gates that its pods would have."""
    gates = (gate.name for gate in job.spec.template.spec.scheduling_gates)
    return [name.removeprefix(names.GATE) for name in gates if name.startswith(names.GATE)]


def is_stopped(job: Job) -> bool:
    """Whether nothing of a Job runs, and nothing will: it is over, or cancelled and its pods are gone."""
    if is_over(job):
        return True
    return CANCELLED in job.metadata.annotations and not (job.status.active or job.status.terminating)


def stopped_at(job: Job) -> float | None:
    """When a Job that was cancelled gave its pods up."""
    asked = _moment(job.metadata.annotations.get(CANCELLED, ""))
    if asked is None:
        return None
    suspended = condition(job, "Suspended")
    return max(asked, seconds(suspended.last_transition_time) or 0.0) if suspended else asked


def _moment(written: str) -> float | None:
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        return None


def _ended_words(copy: Copy) -> str:
    """How a replica failed; where a copy or a container is named, that says it already."""
    if copy.message.startswith(("copy ", "container ")):
        return copy.message
    signals = [attempt.signal for attempt in copy.attempts if attempt.reason]
    return how_it_ended(copy.reason or "exit", copy.exit_code, signals[-1] if signals else None, copy.message)


def _replicas(unit: Unit, stands: Standing, jobs: list[Job]) -> Iterator[ReplicaAt]:
    states: dict[int, Copy] = dict(stands.replicas)
    if not jobs:
        code = 0 if stands.state == "succeeded" else None
        for index in range(unit.replicas):
            yield ReplicaAt(
                unit=unit.id, index=index, stands=Copy(index=index, state=stands.state, exit_code=code)
            )
        return
    if len(jobs) == 1 and replica_of(jobs[0]) is None:
        (job,) = jobs
        done = Indexes(job.status.completed_indexes)
        others = state_without_pods(job, any(copy.state == "failed" for copy in states.values()))
        for index in range(unit.replicas):
            state = "succeeded" if index in done else others
            missing = Copy(index=index, state=state, exit_code=0 if state == "succeeded" else None)
            yield ReplicaAt(unit=unit.id, index=index, stands=states.get(index) or missing)
        return
    for index, copy in sorted(states.items()):
        yield ReplicaAt(unit=unit.id, index=index, stands=copy)
