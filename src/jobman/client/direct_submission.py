"""From a submission to the objects of its jobs, or a refusal that says why not; no cluster is asked here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from jobman.client.failures import Refused as NotHere
from jobman.control import answers
from jobman.control.admission import SettingsShelf, flavor_of, name_from, read_plans, refuse, renamed, told
from jobman.control.refusals import Refusal
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.compile import CannotCompile, Compiled, Target, compile_plan
from jobman.engines.kubernetes.course import new_course
from jobman.engines.kubernetes.driven import DrivenCompiler
from jobman.engines.kubernetes.driving import needs_driver
from jobman.engines.kubernetes.features import refusals
from jobman.engines.kubernetes.found import FINGERPRINT, OPTIONS
from jobman.engines.kubernetes.kept_logs import KeptLogs, kept_logs
from jobman.engines.kubernetes.kinds import JOB_SETS
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.sets import SetCompiler, beyond_a_set
from jobman.engines.kubernetes.site import of_site
from jobman.engines.kubernetes.staging import files_at_hand
from jobman.plan.model import Plan
from jobman.settings.kubernetes import cluster_of
from jobman.spec.problems import Problem

_ENGINE = "kubernetes"
_DRIVE_IT = "drive it from here with `jobman -e kubernetes run`, or run it on a jobman service"
_NOT_HERE = {
    "virtual": ("--virtual", "nodes of a cluster are real; leave it out"),
    "no_container": ("--no-container", "pods are containers; leave it out"),
    "reservation": ("--reservation", "a plain cluster keeps no reservations"),
    "what_if": ("--what-if", "a plain cluster does not plan ahead"),
    "failed_only": ("rerun --failed", "run the whole job once more, without --failed"),
}


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job that can be made."""

    id: str
    name: str
    plan: Plan
    compiled: Compiled
    owner: str
    held: bool
    is_driven: bool = False
    samples: dict[str, list[Written]] = {}
    """The Jobs of each task that somebody else makes later: whoever drives the job, or the cluster."""

    @property
    def trial(self) -> Compiled:
        """What a cluster is to look at before anything is made."""
        return msgspec.structs.replace(self.compiled, units={**self.compiled.units, **self.samples})

    @property
    def answer(self) -> answers.Job:
        """The job as it is when it was made."""
        tasks = [unit for unit in self.plan.units if unit.kind == "task"]
        return answers.Job(
            id=self.id,
            name=self.name,
            owner=self.owner,
            state="waiting",
            held=self.held,
            flavor=flavor_of(self.plan),
            labels=self.plan.labels,
            submitted_at=time.time(),
            counts={"waiting": sum(unit.replicas for unit in tasks)},
        )


def read(submission: answers.Submission) -> tuple[list[Plan], list[Problem]]:
    """The plans of a submission, and what its document is warned of."""
    for field, (option, advice) in _NOT_HERE.items():
        if getattr(submission, field):
            message = f"{option} is not there on a plain cluster"
            raise NotHere(501, answers.Failure(code="not-here", message=message, advice=advice, exit=4))
    plans, warnings = read_plans(submission, SettingsShelf().get(submission))
    if submission.name is not None:
        plans = renamed(plans, submission.name)
    return plans, warnings


def prepare(
    submission: answers.Submission,
    plans: Sequence[Plan],
    *,
    key: str,
    namespace: str,
    owner: str,
    driven: bool = False,
    sets: bool = False,
) -> list[Prepared]:
    """The objects of each job. The same key makes the same ids, so that nothing is made twice.

    `sets` says that the cluster makes JobSets, and `driven` that somebody will drive those jobs for which
    that is not enough; else they are refused.
    """
    print_of_it = fingerprint(submission)
    return [
        _prepared(submission, plan, job_id(owner, key, number), namespace, owner, print_of_it, driven, sets)
        for number, plan in enumerate(plans)
    ]


def job_id(owner: str, key: str, number: int) -> str:
    """The id of a job of a submission."""
    return hashlib.sha256(f"{owner}\n{key}\n{number}".encode()).hexdigest()[:12]


def fingerprint(submission: answers.Submission) -> str:
    """What makes two submissions the same; the environment of submission may differ."""
    bare = msgspec.structs.replace(submission, environment=None)
    return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()


def _prepared(
    submission: answers.Submission,
    plan: Plan,
    id_: str,
    namespace: str,
    owner: str,
    print_of_it: str,
    driven: bool,
    sets: bool,
) -> Prepared:
    settings = SettingsShelf().get(submission)
    folder = Path(submission.cwd or "/")
    target = Target(
        namespace=namespace,
        job_id=id_,
        owner=owner,
        document=submission.document,
        name=plan.name or name_from(submission.file, plan),
        files=files_at_hand(plan, folder),
        keep_logs=_kept_logs(submission.keep_logs),
        **of_site(settings),
    )
    try:
        made = _compiled(plan, target, driven=driven, sets=sets and cluster_of(settings.values).job_sets)
    except CannotCompile as error:
        refuse(error.refused, _ENGINE)
        raise
    name, compiled = plan.name or name_from(submission.file, plan), made.compiled
    _mark(compiled, {OPTIONS: _options(submission, name), FINGERPRINT: print_of_it})
    if submission.hold:
        _hold(compiled)
        if made.is_driven:
            _mark(compiled, {names.HOLD: "true"})
    is_held = submission.hold or any(
        names.HOLD in each["metadata"]["annotations"] for units in compiled.units.values() for each in units
    )
    is_held |= bool(made.samples) and plan.policies.hold
    return Prepared(
        id=id_,
        name=name,
        plan=plan,
        compiled=compiled,
        owner=owner,
        held=is_held,
        is_driven=made.is_driven,
        samples=made.samples,
    )


class _Made(NamedTuple):
    """The objects of a job, and the Jobs that somebody else makes later."""

    compiled: Compiled
    samples: dict[str, list[Written]] = {}
    is_driven: bool = False


def _compiled(plan: Plan, target: Target, *, driven: bool, sets: bool) -> _Made:
    found, needed = refusals(plan, target), needs_driver(plan, target)
    if not found and not needed:
        return _Made(compile_plan(plan, target))
    if sets and not beyond_a_set(plan, target):
        setting = SetCompiler(plan, target)
        return _Made(setting.compiled(), setting.samples())
    with_driver = msgspec.structs.replace(target, driven=True)
    beyond_driving = refusals(plan, with_driver)
    if driven or beyond_driving:
        refuse(beyond_driving, _ENGINE)
        compiler = DrivenCompiler(plan, with_driver)
        compiled = compiler.compiled()
        compiled.support.append(new_course(compiled.anchor))
        return _Made(compiled, compiler.samples(), is_driven=True)
    beyond_sets, advice = beyond_a_set(plan, target), _DRIVE_IT
    missing = beyond_sets if sets else [*needed, *found]
    if not beyond_sets:
        advice = f"{advice}; with JobSet installed, the cluster could do it"
    raise Refusal("cannot", f"a cluster alone cannot drive this job: {told(missing)}", advice)


def _kept_logs(text: str | None) -> KeptLogs | None:
    if text is None:
        return None
    try:
        return kept_logs(text)
    except ValueError as error:
        message, _, advice = str(error).partition("\n")
        raise Refusal("bad-request", message, advice) from error


def _mark(compiled: Compiled, annotations: Mapping[str, str]) -> None:
    compiled.anchor["metadata"].setdefault("annotations", {}).update(annotations)


def _hold(compiled: Compiled) -> None:
    suspended = [each for units in compiled.units.values() for each in units]
    suspended += [compiled.anchor] if compiled.anchor["kind"] == JOB_SETS.kind else []
    for written in suspended:
        written["metadata"].setdefault("annotations", {})[names.HOLD] = "true"
        written["spec"]["suspend"] = True


def _options(submission: answers.Submission, name: str) -> str:
    """What a rerun needs, and the document does not say."""
    options: dict[str, Any] = {"name": name, "file": submission.file}
    for field in ("parameters", "rerun_of", "settings", "cwd", "keep_logs"):
        if getattr(submission, field):
            options[field] = getattr(submission, field)
    if submission.name:
        options["given_name"] = submission.name
    return msgspec.json.encode(options).decode()
