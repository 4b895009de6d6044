"""Admission: from a document to plans that can run here, or a refusal that says why not."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from jobman.control.answers import Submission
from jobman.control.refusals import Refusal
from jobman.engines.base import Host, Refused
from jobman.plan.build import build
from jobman.plan.model import Plan, PlanError, Unit, digest, plan_from_json
from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Pool
from jobman.sched.wishes import wishes_for
from jobman.settings import Settings, home_file, load_settings, settings_from_text
from jobman.spec.load import load_jobs
from jobman.spec.problems import Problem, Problems, SpecError
from jobman.spec.source import Source
from jobman.spec.yaml import collector_paused

LARGE = 50_000
"""Characters of a document that takes its time: it is read outside the loop, with the collector held."""


class SettingsShelf:
    """The settings of the service, read again when the user's file changed."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._settings: Settings | None = None
        self._stamp: tuple[str, int, int] | None = None

    def get(self, submission: Submission) -> Settings:
        """The settings a submission is read with."""
        try:
            if submission.settings is not None:
                return settings_from_text(submission.settings, submission.settings_file or "settings")
            return self._usual()
        except SpecError as error:
            raise Refusal("bad-settings", "the settings are wrong", problems=plain(error.problems)) from error

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


def read_plans(submission: Submission, settings: Settings) -> tuple[list[Plan], list[Problem]]:
    """The plans of a document and its warnings; a refusal with every problem where it has errors."""
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


def renamed(plans: list[Plan], name: str) -> list[Plan]:
    if len(plans) > 1:
        raise Refusal(
            "bad-request",
            f"one name for {len(plans)} jobs: the document holds several",
            "leave the name out, or submit them one by one",
        )
    renamed = msgspec.structs.replace(plans[0], name=name)
    return [msgspec.structs.replace(renamed, digest=digest(renamed))]


class Fitting:
    """Whether plans could ever run on nodes; equal questions are answered once."""

    def __init__(self, nodes: list[ClusterNode]) -> None:
        self.nodes = nodes
        self._pool = Pool(nodes)
        self._known: dict[bytes, str] = {}

    def misfits(self, plan: Plan) -> list[tuple[Unit, str]]:
        """The units that could never start, each with what is missing."""
        return [(unit, why) for unit in plan.units if unit.alternatives and (why := self._why(unit))]

    def _why(self, unit: Unit) -> str:
        if unit.parent is not None:
            return ""  # What does not fit into its group was said when the document was read.
        question = msgspec.json.encode((unit.alternatives, unit.policies.placement))
        if question not in self._known:
            wishes = wishes_for(unit.policies.placement, unit.id, {})
            fits = self._pool.could_ever(unit.alternatives, wishes)
            self._known[question] = "" if fits else self._pool.why_not(unit.alternatives, wishes)
        return self._known[question]


def refuse_misfits(plan: Plan, fitting: Fitting, advice: str) -> None:
    """Refuse a plan that could never start."""
    misfits = fitting.misfits(plan)
    if misfits:
        said = "; ".join(f"{unit.id}: {why}" for unit, why in misfits[:3])
        more = f"; and {len(misfits) - 3} more" if len(misfits) > 3 else ""
        raise Refusal("does-not-fit", f"the job can never start here: {said}{more}", advice)


def refuse_features(plan: Plan, host: Host, *, no_container: bool) -> None:
    """Refuse a plan that asks for what the engine cannot do."""
    refused = list(host.refusals(plan, no_container=no_container))
    if refused:
        said = "; ".join(map(_words, refused[:5]))
        raise Refusal(
            "cannot",
            f"the {host.name} engine cannot do what is asked: {said}",
            "`jobman features` lists what each engine can do",
        )


def _words(refused: Refused) -> str:
    who = ", ".join(refused.units[:3]) or "the document"
    return f"{refused.feature} ({who}): {refused.note}"


def virtual_that_fits(plan: Plan) -> str:
    """The emulated nodes on which a plan would fit, as `--virtual` takes them."""
    nodes = cores = gpus = 1
    for unit in plan.units:
        for totals, parts in zip(unit.totals[:1], unit.alternatives[:1], strict=True):
            nodes = max(nodes, totals.nodes)
            for part in parts:
                cores = max(cores, int(part.per_node.get("core", 1)))
                gpus = max(gpus, int(part.per_node.get("gpu", 0)))
    needs_gpus = any(
        "gpu" in part.per_node for unit in plan.units for parts in unit.alternatives for part in parts
    )
    return f"{nodes}x{cores}x{gpus}" if needs_gpus else f"{nodes}x{cores}"
