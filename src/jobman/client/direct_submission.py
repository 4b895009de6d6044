"""From a submission to the objects of its jobs, or a refusal that says why not; no cluster is asked here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jobman.client.failures import Refused as NotHere
from jobman.control import answers
from jobman.control.admission import SettingsShelf, read_plans, renamed
from jobman.control.refusals import Refusal
from jobman.engines.base import Refused
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.compile import CannotCompile, Compiled, Target, compile_plan
from jobman.engines.kubernetes.driving import needs_driver
from jobman.engines.kubernetes.features import refusals
from jobman.engines.kubernetes.found import FINGERPRINT, OPTIONS
from jobman.engines.kubernetes.staging import files_at_hand
from jobman.plan.model import Plan
from jobman.spec.problems import Problem

_MOST_TOLD = 5
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
            flavor=_flavor(self.plan),
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
    submission: answers.Submission, plans: Sequence[Plan], *, key: str, namespace: str, owner: str
) -> list[Prepared]:
    """The objects of each job. The same key makes the same ids, so that nothing is made twice."""
    print_of_it = fingerprint(submission)
    return [
        _prepared(submission, plan, job_id(owner, key, number), namespace, owner, print_of_it)
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
    submission: answers.Submission, plan: Plan, id_: str, namespace: str, owner: str, print_of_it: str
) -> Prepared:
    folder = Path(submission.cwd or "/")
    target = Target(
        namespace=namespace,
        job_id=id_,
        owner=owner,
        document=submission.document,
        files=files_at_hand(plan, folder),
    )
    if found := refusals(plan, target):
        _refuse(found)
    if found := needs_driver(plan, target):
        said = "; ".join(map(_words, found[:_MOST_TOLD]))
        raise Refusal(
            "cannot",
            f"a cluster alone cannot drive this job: {said}",
            "run it on a jobman service, or submit its tasks as jobs of their own",
        )
    try:
        compiled = compile_plan(plan, target)
    except CannotCompile as error:
        _refuse(error.refused)
    name = plan.name or _name_from(submission.file, plan)
    _mark(compiled, {OPTIONS: _options(submission, name), FINGERPRINT: print_of_it})
    if submission.hold:
        _hold(compiled)
    is_held = submission.hold or any(
        names.HOLD in each["metadata"]["annotations"] for units in compiled.units.values() for each in units
    )
    return Prepared(id=id_, name=name, plan=plan, compiled=compiled, owner=owner, held=is_held)


def _refuse(refused: Sequence[Refused]) -> Any:
    said = "; ".join(map(_words, refused[:_MOST_TOLD]))
    raise Refusal(
        "cannot",
        f"the kubernetes engine cannot do what is asked: {said}",
        "`jobman features` lists what each engine can do",
    )


def _words(refused: Refused) -> str:
    who = ", ".join(refused.units[:3]) or "the document"
    return f"{refused.feature} ({who}): {refused.note}"


def _mark(compiled: Compiled, annotations: Mapping[str, str]) -> None:
    compiled.anchor["metadata"].setdefault("annotations", {}).update(annotations)


def _hold(compiled: Compiled) -> None:
    for units in compiled.units.values():
        for written in units:
            written["metadata"].setdefault("annotations", {})[names.HOLD] = "true"
            written["spec"]["suspend"] = True


def _options(submission: answers.Submission, name: str) -> str:
    """What a rerun needs, and the document does not say."""
    options: dict[str, Any] = {"name": name, "file": submission.file}
    for field in ("parameters", "rerun_of", "settings", "cwd"):
        if getattr(submission, field):
            options[field] = getattr(submission, field)
    if submission.name:
        options["given_name"] = submission.name
    return msgspec.json.encode(options).decode()


def again(
    submission: answers.Submission, document: str, plan: str, options: Mapping[str, Any]
) -> answers.Submission:
    """The submission of an earlier job's document."""
    return msgspec.structs.replace(
        submission,
        document=document,
        plan=None if document else plan,
        file=options.get("file", "-"),
        parameters={**options.get("parameters", {}), **submission.parameters},
        settings=submission.settings or options.get("settings"),
        name=submission.name or options.get("given_name"),
        cwd=options.get("cwd"),
    )


def _name_from(file: str, plan: Plan) -> str:
    """A name for a document that has none: its file's, or its first task's."""
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    usable = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem).strip("-_.")
    return usable[:63] or plan.units[0].name


def _flavor(plan: Plan) -> str | None:
    parts = (part for unit in plan.units for parts in unit.alternatives for part in parts)
    return next((part.flavor.name for part in parts if part.flavor is not None), None)
