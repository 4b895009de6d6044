"""Admission: from a document to plans that can run here, or a refusal that says why not."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import ceil
from pathlib import Path
from typing import Any

import msgspec

from jobman.control.answers import Submission
from jobman.control.refusals import Refusal
from jobman.engines.base import Host, Refused
from jobman.garbage import collector_paused
from jobman.plan.build import build
from jobman.plan.model import Plan, PlanError, Unit, digest, plan_from_json
from jobman.plan.nodes import ClusterNode
from jobman.sched.capacity import to_amount
from jobman.sched.placement import Pool
from jobman.sched.scheduling import Scheduling, scheduling
from jobman.sched.wishes import domain, wishes_for
from jobman.settings import Settings, home_file, load_settings, settings_from_text
from jobman.settings.accounting import Accounting, accounting_of
from jobman.settings.kubernetes import Cluster, cluster_of
from jobman.spec.load import load_jobs
from jobman.spec.problems import Problem, Problems, SpecError
from jobman.spec.shapes import Part
from jobman.spec.source import Source

log = logging.getLogger("jobman.admission")
_MOST_KEPT = 64
LARGE = 50_000
"""Characters of a document that takes its time: it is read outside the loop, with the collector held."""


class SettingsShelf:
    """The settings of the service, read again when the user's file changed."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._settings: Settings | None = None
        self._stamp: tuple[str, int, int] | None = None
        self._texts: dict[tuple[str, str], Settings] = {}
        self._last_asked: Settings | None = None

    def get(self, submission: Submission) -> Settings:
        """The settings a submission is read with."""
        try:
            if submission.settings is not None:
                return self._given(submission.settings, submission.settings_file or "settings")
            return self._usual()
        except SpecError as error:
            raise Refusal("bad-settings", "the settings are wrong", problems=plain(error.problems)) from error

    def _given(self, text: str, name: str) -> Settings:
        known = self._texts.get((name, text))
        if known is None:
            known = settings_from_text(text, name)
            if len(self._texts) >= _MOST_KEPT:
                self._texts.clear()
            self._texts[name, text] = known
        return known

    def newly(self) -> tuple[Scheduling, Accounting] | None:
        """What the settings say where they were changed since this was asked, or None; raises SpecError."""
        known = self._last_asked
        self._last_asked = found = self._usual()
        return None if found is known else (scheduling(found), accounting_of(found.values))

    def facts(self) -> dict[str, str]:
        """What the settings say of this machine; where they are wrong, each submission is told so."""
        try:
            facts: dict[str, str] = self._usual().values.get("facts", {})
            return facts
        except SpecError:
            return {}

    def cluster(self) -> Cluster:
        """What the settings say of the cluster whose nodes are planned; raises SpecError."""
        return cluster_of(self._usual().values)

    def default_image(self) -> str | None:
        return self._usual().site().default_image

    def image_prefix(self) -> str:
        return self._usual().site().image_prefix

    def scheduling(self) -> Scheduling:
        """What the settings say about queues, accounts and times; where they are wrong, the usual."""
        try:
            return scheduling(self._usual())
        except SpecError:
            log.exception("the settings are wrong: the scheduler goes by its defaults")
            return Scheduling()

    def accounting(self) -> Accounting:
        """What the settings say about prices; where they are wrong, the usual."""
        try:
            return accounting_of(self._usual().values)
        except SpecError:
            return Accounting()

    def _usual(self) -> Settings:
        file = Path(self._path) if self._path is not None else home_file()
        stamp = None
        if file is not None and file.exists():
            found = file.stat()
            stamp = (str(file), found.st_mtime_ns, found.st_size)
        if self._settings is None or stamp != self._stamp:
            self._settings, self._stamp = load_settings(self._path), stamp
        return self._settings


def plain(problems: Any) -> list[dict[str, Any]]:
    """Problems as data."""
    found: list[dict[str, Any]] = msgspec.to_builtins(list(problems))
    return found


class Reader:
    """Reads documents; one that comes again, as in a loop of a shell, is not read again."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Settings, list[Plan], list[Problem]]] = {}

    def read(self, submission: Submission, settings: Settings) -> tuple[list[Plan], list[Problem]]:
        """The plans of a document and its warnings; a refusal with every problem where it has errors."""
        if len(submission.document) > LARGE or submission.plan is not None:
            return read_plans(submission, settings)
        key = (submission.document, submission.file, *sorted(submission.parameters.items()))
        known = self._known.get(key)
        if known is None or known[0] is not settings:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[key] = (settings, *read_plans(submission, settings))
        return known[1], known[2]


def read_plans(submission: Submission, settings: Settings) -> tuple[list[Plan], list[Problem]]:
    """The plans of a submission and the warnings of its document, or a refusal."""
    if submission.plan is not None:
        return [_given(submission.plan)], []
    problems = Problems()
    source = Source(submission.file, submission.document)
    with collector_paused() if len(submission.document) > LARGE else nullcontext():
        jobs = load_jobs(source, settings.site(), problems, submission.parameters)
        if problems.has_errors or not jobs:
            raise Refusal("bad-document", "the document is wrong", problems=plain(problems.in_order()))
        plans = [build(job) for job in jobs if job is not None]
    return plans, problems.in_order()


def _given(text: str) -> Plan:
    try:
        return plan_from_json(text)
    except PlanError as error:
        raise Refusal("bad-document", str(error), "send the plan as `Plan.to_json` gives it") from error


def submitted_again(
    submission: Submission, document: str, plan: str, options: Mapping[str, Any], cwd: str | None
) -> Submission:
    """The submission of an earlier job's document, with what its author said beside it."""
    return msgspec.structs.replace(
        submission,
        document=document,
        plan=None if document else plan,
        file=options.get("file", "-"),
        parameters={**options.get("parameters", {}), **submission.parameters},
        settings=submission.settings or options.get("settings"),
        name=submission.name or options.get("given_name"),
        cwd=cwd,
    )


def name_from(file: str, plan: Plan) -> str:
    """A name for a document that has none: its file's, or its first task's."""
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    usable = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem).strip("-_.")
    return usable[:63] or plan.units[0].name


def flavor_of(plan: Plan) -> str | None:
    """The flavor its first task asks for."""
    parts = (part for unit in plan.units for parts in unit.alternatives for part in parts)
    return next((part.flavor.name for part in parts if part.flavor is not None), None)


def renamed(plans: list[Plan], name: str) -> list[Plan]:
    if len(plans) > 1:
        raise Refusal(
            "bad-request",
            f"one name for {len(plans)} jobs: the document holds several",
            "leave the name out, or submit them one by one",
        )
    renamed = msgspec.structs.replace(plans[0], name=name)
    return [msgspec.structs.replace(renamed, digest=digest(renamed))]


def with_limit(plan: Plan, default: float | None) -> Plan:
    """A plan in which everything that holds nodes has a time limit, where the site has one for all."""
    if default is None or all(unit.duration is not None or unit.parent is not None for unit in plan.units):
        return plan
    units = tuple(
        msgspec.structs.replace(unit, duration=default)
        if unit.duration is None and unit.parent is None
        else unit
        for unit in plan.units
    )
    limited = msgspec.structs.replace(plan, units=units)
    return msgspec.structs.replace(limited, digest=digest(limited))


class Fitting:
    """Whether plans could ever run on nodes; equal questions are answered once."""

    def __init__(self, nodes: list[ClusterNode]) -> None:
        self.nodes = nodes
        self._pool = Pool(nodes)
        self._known: dict[bytes, str] = {}

    def misfits(self, plan: Plan) -> list[tuple[Unit, str]]:
        """The units that could never start, each with what is missing."""
        return [(unit, why) for unit in plan.units if unit.alternatives and (why := self._why(unit))]

    def fits_beside(self, unit: Unit, overhead: Mapping[str, int]) -> bool:
        """Whether a unit could ever start where its pieces cost so much more than they ask for."""
        wishes = wishes_for(unit.policies.placement, unit.id, {})
        larger = tuple(tuple(_with_overhead(part, overhead) for part in parts) for parts in unit.alternatives)
        return self._pool.could_ever(larger, wishes)

    def _unknown_level(self, unit: Unit) -> str | None:
        """A topology level that a placement insists on and no node has."""
        placement = unit.policies.placement
        wishes = (placement.near, placement.apart, placement.spread) if placement is not None else ()
        levels = [wish.by for wish in wishes if wish is not None and wish.required]
        missing = (level for level in levels if all(domain(node, level) is None for node in self.nodes))
        return next(missing, None)

    def _why(self, unit: Unit) -> str:
        if unit.parent is not None:
            return ""  # What does not fit into its group was said when the document was read.
        question = msgspec.json.encode((unit.alternatives, unit.policies.placement))
        if question not in self._known:
            if level := self._unknown_level(unit):
                self._known[question] = f"no node says which {level} it is in"
                return self._known[question]
            wishes = wishes_for(unit.policies.placement, unit.id, {})
            fits = self._pool.could_ever(unit.alternatives, wishes)
            self._known[question] = "" if fits else self._pool.why_not(unit.alternatives, wishes)
        return self._known[question]


def _with_overhead(part: Part, overhead: Mapping[str, int]) -> Part:
    """With what each of its pieces costs: slots that go wherever there is room are pieces themselves."""
    is_slot = part.nodes is None and not part.beside
    held = dict(part.each if is_slot else part.beside)
    for kind, units in overhead.items():
        held[kind] = held.get(kind, 0) + to_amount(kind, units)
    return msgspec.structs.replace(
        part, exclusive=part.is_whole, **({"each": held} if is_slot else {"beside": held})
    )


NEVER = "never, even when everything is free: "


def refuse_misfits(plan: Plan, fitting: Fitting, host: Host) -> None:
    """Refuse a plan that could never start, with what would help."""
    misfits = fitting.misfits(plan)
    if misfits:
        virtual = virtual_that_fits(plan, host)
        advice = (
            f"emulated nodes would do: --virtual {virtual}"
            if virtual
            else "`jobman nodes` shows what there is"
        )
        said = "; ".join(f"{unit.id}: {why.removeprefix(NEVER)}" for unit, why in misfits[:3])
        more = f"; and {len(misfits) - 3} more" if len(misfits) > 3 else ""
        raise Refusal("does-not-fit", f"the job can never start here: {said}{more}", advice)


def refuse_features(plan: Plan, host: Host, *, no_container: bool) -> None:
    """Refuse a plan that asks for what the engine cannot do."""
    refuse(host.refusals(plan, no_container=no_container), host.name)


def refuse(refused: Sequence[Refused], engine: str) -> None:
    """Refuse what an engine does not do, if there is any of it."""
    if refused:
        raise Refusal(
            "cannot",
            f"the {engine} engine cannot do what is asked: {told(refused)}",
            "`jobman features` lists what each engine can do",
        )


def told(refused: Sequence[Refused]) -> str:
    """The first of what cannot be had: what, who asked for it, and why not."""
    return "; ".join(map(_words, refused[:5]))


def _words(refused: Refused) -> str:
    who = ", ".join(refused.units[:3]) or "the document"
    return f"{refused.feature} ({who}): {refused.note}"


def virtual_that_fits(plan: Plan, host: Host) -> str | None:
    """Emulated nodes on which a plan would fit, as `--virtual` takes them; None where they would not help."""
    for text in dict.fromkeys(_candidates(plan)):
        try:
            if not Fitting(list(host.nodes(text))).misfits(plan):
                return text
        except ValueError:
            continue
    return None


def _candidates(plan: Plan) -> Iterator[str]:
    """Nodes as large as the parts of all units need, by their first alternative, their second and so on."""
    units = list(plan.askers())
    for number in range(max((len(unit.alternatives) for unit in units), default=0)):
        chosen = [unit.alternatives[min(number, len(unit.alternatives) - 1)] for unit in units]
        nodes = max(sum(part.nodes or 0 for part in parts) for parts in chosen) or 1
        cores, gpus = (max(_most(parts, kind) for parts in chosen) for kind in ("core", "gpu"))
        yield f"{nodes}x{max(1, cores)}" + (f"x{gpus}" if gpus else "")


def _most(parts: Sequence[Part], kind: str) -> int:
    """What one node must have for all parts: the largest node's share, and all slots that go anywhere."""
    on_nodes = max((part.per_node.get(kind, 0) for part in parts if part.nodes is not None), default=0)
    anywhere = sum(part.per_node.get(kind, 0) for part in parts if part.nodes is None)
    return ceil(on_nodes + anywhere)
