"""The history of a service as a trace, to be replayed under another policy or on other nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from jobman.api.documents import load_source
from jobman.client import Client
from jobman.control.answers import FINAL_STATES, Attempt, Details
from jobman.plan.model import Plan, Unit
from jobman.settings import Settings
from jobman.sim.history import Finished, trace_of
from jobman.sim.trace import LeftOut, Trace
from jobman.spec.problems import SpecError
from jobman.spec.source import Source


def read_history(
    client: Client,
    *,
    since: float | None = None,
    settings: Settings | str | Path | None = None,
    tell: Callable[[int], None] | None = None,
) -> Trace:
    """What has run since a moment; raises TraceError where nothing has. `tell` hears how far it is."""
    reading = _Reading(client, settings)
    found: list[Finished] = []
    for count, job in enumerate(client.jobs(state=FINAL_STATES, since=since), 1):
        found.extend(reading.finished(client.details(job.id)))
        if tell is not None:
            tell(count)
    return trace_of(found, "history", reading.left_out)


class _Reading:
    """Jobs of a service one after the other; equal documents are read once."""

    def __init__(self, client: Client, settings: Settings | str | Path | None) -> None:
        self._client = client
        self._settings = settings
        self._plans: dict[str, Plan | str] = {}
        self.left_out: list[LeftOut] = []

    def finished(self, job: Details) -> Iterator[Finished]:
        plan = self._plan(job)
        if isinstance(plan, str):
            self.left_out.append(LeftOut(0, f"{job.name} ({job.id}) {plan}"))
            return
        units = {unit.id: unit for unit in plan.askers()}
        stays = _stays(list(self._client.attempts(job.id)))
        for stay in stays:
            unit = units.get(stay.unit)
            if unit is not None:
                yield _finished(job, unit, stay, _ready(job, plan, stay, stays))

    def _plan(self, job: Details) -> Plan | str:
        """The plan of a job, or why there is none."""
        if job.digest not in self._plans:
            self._plans[job.digest] = self._read(job)
        return self._plans[job.digest]

    def _read(self, job: Details) -> Plan | str:
        if not job.document:
            return "was submitted without a document"
        source = Source(job.options.get("file", "-"), job.document)
        specs = load_source(source, settings=self._settings, parameters=job.options.get("parameters"))
        plans = []
        for spec in specs:
            try:
                plans.append(spec.plan())
            except SpecError as error:
                return f"cannot be read with these settings: {error}"
        same = [plan for plan in plans if plan.digest == job.digest or len(plans) == 1]
        return same[0] if same else "is one of several in its document, and it is not known which"


class _Stay(NamedTuple):
    """From when to when a replica held its resources; a group, as long as anything in it did."""

    replica: str
    attempt: int
    began: float
    ended: float | None

    @property
    def unit(self) -> str:
        return self.replica.rpartition(".")[0]


def _stays(attempts: list[Attempt]) -> list[_Stay]:
    found: dict[tuple[str, int], _Stay] = {}
    for attempt in attempts:
        outermost, _, inside = attempt.replica.partition("/")
        number = 1 if inside else attempt.attempt
        stay = _Stay(outermost, number, attempt.granted_at, attempt.ended_at)
        known = found.get((outermost, number))
        found[outermost, number] = stay if known is None else _joined(known, stay)
    return list(found.values())


def _joined(one: _Stay, other: _Stay) -> _Stay:
    ended = None if one.ended is None or other.ended is None else max(one.ended, other.ended)
    return one._replace(began=min(one.began, other.began), ended=ended)


def _ready(job: Details, plan: Plan, stay: _Stay, stays: list[_Stay]) -> float:
    """When it had nothing left to wait for but resources."""
    after = {edge.after for edge in plan.edges if edge.unit == stay.unit}
    before = [
        each.ended or 0.0
        for each in stays
        if each.unit in after or (each.replica == stay.replica and each.attempt == stay.attempt - 1)
    ]
    return min(max([job.submitted_at, *before]), stay.began)


def _finished(job: Details, unit: Unit, stay: _Stay, ready: float) -> Finished:
    return Finished(
        what=f"{stay.replica} of {job.name} ({job.id})",
        submitted_at=ready,
        started_at=stay.began,
        ended_at=stay.ended,
        alternatives=unit.alternatives,
        limit=unit.duration,
        owner=job.owner,
        name=f"{job.name}/{unit.id}",
        account=job.account or "",
        flavor=job.flavor or "",
    )
