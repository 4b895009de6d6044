"""A driven job as it is found again in a cluster: where it stands is what its course says. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from jobman.engines.endings import how_it_ended
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.copies import Replica, joined
from jobman.engines.kubernetes.course import (
    Course,
    Driver,
    ReplicaStands,
    TaskAt,
    UnknownCourse,
    course_of,
    driver_of,
    is_fresh,
)
from jobman.engines.kubernetes.errors import KubernetesError
from jobman.engines.kubernetes.found import FoundJob, ReplicaAt
from jobman.engines.kubernetes.objects import ConfigMap, Event, Job, Kept, Pod
from jobman.engines.kubernetes.seen import attempt_of
from jobman.engines.kubernetes.states import Standing

_LIVE = ("starting", "running", "stopping")
_NEVER_DRIVEN = Course()


class NobodyDrives(KubernetesError):
    """A job whose next step nobody takes."""

    def __init__(self, job: str) -> None:
        super().__init__(f"Nobody drives the job {job} now.", f"Go on with it: {resuming(job)}")


def resuming(job: str) -> str:
    """The command that goes on with a job."""
    return f"jobman -e kubernetes run --resume {job}"


def gates_opened(anchor: Kept) -> list[str]:
    """The gates that somebody wants open."""
    notes = anchor.metadata.annotations
    return [note.removeprefix(names.GATE) for note in notes if note.startswith(names.GATE)]


class DrivenJob(FoundJob):
    """Everything a cluster knows of a job that somebody drives, or drove."""

    def __init__(
        self,
        anchor: Kept,
        course: ConfigMap,
        jobs: Iterable[Job],
        pods: Iterable[Pod],
        events: Iterable[Event],
    ) -> None:
        super().__init__(anchor, jobs, pods, events)
        self._config = course
        self._course: Course | None = None

    @property
    def course(self) -> Course:
        """How far it is; nowhere, where that cannot be read."""
        if self._course is None:
            try:
                self._course = course_of(self._config)
            except UnknownCourse:
                self._course = _NEVER_DRIVEN
        return self._course

    @property
    def driver(self) -> Driver | None:
        """Who drives, or did until something happened to them."""
        return driver_of(self._config)

    def is_driven(self, now: float) -> bool:
        return is_fresh(self.driver, now)

    # -- where it stands -------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        return self.course.state

    @property
    def is_held(self) -> bool:
        if self.is_over:
            return False
        wish = self.anchor.metadata.annotations.get(names.HOLD)
        return wish == "true" if wish else bool(self.course.job.get("held", self.plan.policies.hold))

    @property
    def gates(self) -> list[str]:
        if self.is_over:
            return []
        policies = (self.plan.policies, *(unit.policies for unit in self.plan.units))
        return [
            gate for gate in dict.fromkeys(g for each in policies for g in each.gates) if self._shut(gate)
        ]

    def _shut(self, gate: str) -> bool:
        return gate not in gates_opened(self.anchor) and gate not in self.course.job.get("open_gates", ())

    @property
    def rows(self) -> list[TaskAt]:
        """Every unit in its scopes; of a job that never began, those at the top."""
        if self.course.tasks:
            return self.course.tasks
        return [
            TaskAt(unit=unit.id, counts={"waiting": unit.replicas})
            for unit in self.plan.units
            if unit.parent is None
        ]

    @property
    def counts(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for row in self.rows:
            if self.plan.unit(row.unit).kind == "task":
                found.update(row.counts)
        return dict(found)

    @property
    def started_at(self) -> float | None:
        return self.course.started_at

    @property
    def ended_at(self) -> float | None:
        return self.course.ended_at

    @property
    def cancelled_at(self) -> float | None:
        # Its Jobs have the same mark where one of them was stopped.
        alone = FoundJob(self.anchor, (), ())
        return alone.cancelled_at

    @property
    def failure(self) -> Standing | None:
        return None

    @property
    def exit_code(self) -> int | None:
        if self.state == "succeeded":
            return 0
        if self.state != "failed":
            return None
        return (self.course.failure[2] if self.course.failure else None) or 1

    @property
    def reason(self) -> str:
        if self.state == "cancelled":
            return "cancelled"
        if self.state != "failed" or self.course.failure is None:
            return ""
        key, reason, code = self.course.failure
        words = how_it_ended(reason, code, None, self._words().get(key, ""))
        return f"{key}: {words}" if key else words

    def _words(self) -> dict[str, str]:
        return {each.key: each.message for each in self.course.replicas if each.message}

    # -- replicas --------------------------------------------------------------------------------------------

    def replicas(self) -> Iterator[ReplicaAt]:
        known = {each.key: each for each in self.course.replicas}
        attempts = self._by_key()
        for row in self.rows:
            unit = self.plan.unit(row.unit)
            for index in range(unit.replicas):
                key = f"{row.scope}/{unit.name}.{index}" if row.scope else f"{unit.name}.{index}"
                stands = self._stands(row, index, known.get(key), attempts.get(key, []))
                yield ReplicaAt(unit=unit.id, index=index, stands=stands, named=key)

    def _stands(self, row: TaskAt, index: int, known: ReplicaStands | None, tries: list[Replica]) -> Replica:
        tried = tuple(attempt for one in tries for attempt in one.attempts)
        if known is None:
            never = {None: "waiting", "skipped": "skipped"}.get(row.outcome, "cancelled")
            return Replica(index=index, state=never, attempts=tried)
        copies = tries[-1].copies if tries and known.state in _LIVE else ()
        return Replica(
            index=index,
            state=known.state,
            attempts=tried,
            reason=known.reason,
            exit_code=known.exit_code,
            message=known.message,
            copies=copies,
        )

    def _by_key(self) -> dict[str, list[Replica]]:
        """What Jobs and pods tell of the attempts of each replica, in order."""
        parts: defaultdict[tuple[str, int], list[Replica]] = defaultdict(list)
        for job, stands in zip(self.jobs, self.standings, strict=True):
            if (address := attempt_of(job)) is not None:
                parts[address] += stands.replicas.values()
        found: defaultdict[str, list[Replica]] = defaultdict(list)
        for key, attempt in sorted(parts):
            found[key].append(joined(parts[key, attempt]))
        return dict(found)

    # -- what stands in its way ------------------------------------------------------------------------------

    def current_jobs(self) -> set[str]:
        """The names of the Jobs that matter now: those that are under way, and those that made it fail."""
        wanted = ("failed",) if self.is_over else (*_LIVE, "failed", "resting")
        now = {(each.key, each.attempt) for each in self.course.replicas if each.state in wanted}
        return {job.metadata.name for job in self.jobs if attempt_of(job) in now}
