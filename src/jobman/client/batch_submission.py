"""From a submission to scripts in a folder, and to the manager: all of it, or nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jobman.client.batch_completing import complete, release_free
from jobman.client.batch_misfits import with_reasons
from jobman.client.direct_submission import fingerprint, job_id
from jobman.client.failures import Refused as NotHere
from jobman.control import answers
from jobman.control.admission import SettingsShelf, name_from, read_plans, refuse, renamed, submitted_again
from jobman.control.refusals import Refusal
from jobman.engines.failpoints import failpoint
from jobman.engines.scripts.commands import Failed, NotThere
from jobman.engines.scripts.delegate import Delegate, Script, texts_of
from jobman.engines.scripts.done import left_word
from jobman.engines.scripts.folder import About, Folder
from jobman.engines.scripts.given import given_to
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.program import tags_of
from jobman.engines.scripts.registry import Entry, Registry
from jobman.engines.scripts.site import Job
from jobman.engines.vault import Unavailable, Vault
from jobman.plan.model import Plan
from jobman.settings import Settings
from jobman.settings.slurm import BatchSite
from jobman.spec.problems import Problem
from jobman.spec.quantities import Moment

_NOT_HERE = {
    "virtual": ("--virtual", "nodes of a cluster are real; leave it out"),
    "what_if": ("--what-if", "`jobman why` asks when a job will start"),
    "keep_logs": ("--keep-logs", "output is in files of yours already"),
}


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job that can be submitted."""

    about: About
    plan: Plan
    job: Job
    scripts: tuple[Script, ...]
    notes: tuple[str, ...] = ()
    environment: dict[str, str] | None = None
    site: BatchSite
    given: dict[str, bytes] = {}
    """What is handed to copies and stands in no document."""

    @property
    def pieces(self) -> list[Piece]:
        return [script.piece for script in self.scripts]


class Submitting:
    """Brings the jobs of a submission to a manager."""

    def __init__(self, manager: Delegate, registry: Registry, root: Path, owner: str) -> None:
        self._manager = manager
        self._registry = registry
        self._root = root
        self._owner = owner

    def read(self, submission: answers.Submission) -> tuple[list[Plan], list[Problem], Settings]:
        for field, (option, advice) in _NOT_HERE.items():
            if getattr(submission, field):
                message = f"{option} is not there on {self._manager.title}"
                raise NotHere(501, answers.Failure(code="not-here", message=message, advice=advice, exit=4))
        settings = SettingsShelf(submission.settings_file).get(submission)
        plans, warnings = read_plans(submission, settings)
        if submission.name is not None:
            plans = renamed(plans, submission.name)
        return plans, warnings, settings

    def prepare(
        self,
        submission: answers.Submission,
        plans: Sequence[Plan],
        settings: Settings,
        key: str,
        done: Mapping[str, tuple[int, ...]] | None = None,
    ) -> list[Prepared]:
        """The scripts of each job. The same key gives the same ids, so that nothing is submitted twice."""
        site = self._manager.site(settings.values)
        print_of_it = fingerprint(submission)
        return [
            self.prepare_as(
                submission,
                plan,
                job_id(self._owner, key, number),
                site,
                print_of_it,
                priority=_priority(plan, settings),
                done=done,
            )
            for number, plan in enumerate(plans)
        ]

    def prepare_as(
        self,
        submission: answers.Submission,
        plan: Plan,
        id_: str,
        site: BatchSite,
        print_of_it: str = "",
        *,
        priority: int = 0,
        done: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Prepared:
        """One job under this id; raises Refusal where it asks for what cannot be had."""
        manager = self._manager
        refuse(manager.refusals(plan, site, no_container=submission.no_container), manager.name)
        now = time.time()
        name = plan.name or name_from(submission.file, plan)
        if submission.reservation is not None:
            site = msgspec.structs.replace(site, reservation=submission.reservation)
        job = Job(
            id=id_,
            name=name,
            folder=str(self._root / id_),
            file=submission.file,
            cwd=submission.cwd,
            scratch=site.scratch,
            prologue=site.prologue,
            container=site.container,
            no_container=submission.no_container,
            done=dict(done or {}),
            earliest=_moment(plan.start.earliest if plan.start else None, now),
            latest=_moment(plan.start.latest if plan.start else None, now),
        )
        try:
            plan, notes = manager.choose(plan, job, site)
        except Failed as error:
            raise with_reasons(refusal_of(error), plan, manager, site) from error
        about = About(
            id=id_,
            name=name,
            owner=self._owner,
            engine=manager.name,
            submitted_at=now,
            document=submission.document,
            plan=plan.to_json().decode(),
            fingerprint=print_of_it,
            options=_options(submission),
            notes=notes,
            priority=priority,
            done={name: list(indexes) for name, indexes in job.done.items()},
            latest=job.latest,
        )
        scripts = tuple(manager.compile(plan, job, site))
        return Prepared(
            about=about,
            plan=plan,
            job=job,
            scripts=scripts,
            notes=tuple(notes),
            environment=submission.environment,
            site=site,
            given=self._given(plan, job, submission.environment),
        )

    def _given(self, plan: Plan, job: Job, environment: Mapping[str, str] | None) -> dict[str, bytes]:
        home = Path((environment or os.environ).get("HOME") or "~").expanduser() / ".jobman"
        try:
            return given_to(plan, tags_of(plan), Vault(home), job.folder, Path(job.cwd or "."))
        except Unavailable as error:
            raise Refusal("cannot", error.message, "jobman submits what is there") from error

    def is_known(self, prepared: Sequence[Prepared]) -> bool:
        """Whether this submission came before; raises where it was another with the same key."""
        folder = Folder(self._root / prepared[0].about.id)
        try:
            known = folder.about()
        except (OSError, msgspec.DecodeError):
            return False
        if known.fingerprint != prepared[0].about.fingerprint:
            message = "this idempotency key belongs to another submission"
            raise Refusal("key-reused", message, "use a new key for each submission")
        return True

    def submit(self, prepared: Sequence[Prepared], *, hold: bool) -> None:
        """All jobs, or none: what was submitted before one was refused is taken back, and none of it ran."""
        for one in prepared:
            self._register(one, hold=hold)
        try:
            self._complete([(Folder(Path(one.job.folder)), one.pieces) for one in prepared])
        except Failed as error:
            for one in prepared:
                self._take_back(one)
            refusal = refusal_of(error)
            for one in prepared:
                refusal = with_reasons(refusal, one.plan, self._manager, one.site)
            raise refusal from error
        except NotThere as error:
            if error.is_absent and not any(Folder(Path(one.job.folder)).ids() for one in prepared):
                for one in prepared:
                    self._forget(one)
                raise
            ids = " ".join(one.about.id for one in prepared)
            advice = f"`jobman release {ids}` completes the submission, `jobman cancel {ids}` gives it up"
            raise NotThere(f"{error}", advice) from error

    def _complete(self, jobs: Sequence[tuple[Folder, list[Piece]]]) -> None:
        """Of several, none begins before the last is there."""
        several = len(jobs) > 1
        for folder, pieces in jobs:
            complete(self._manager, folder, pieces, wait=several)
        for folder, pieces in jobs if several else ():
            release_free(self._manager, folder, pieces)

    def _register(self, one: Prepared, *, hold: bool) -> None:
        folder = Folder(Path(one.job.folder))
        if not folder.has("about.json"):
            scripts = texts_of(one.scripts)
            earlier = str(one.about.options.get("rerun_of", "an earlier job"))
            word = {**left_word(one.plan, one.job.done, earlier), **one.given}
            folder.make(one.about, scripts, one.environment, held=hold, word=word)
        failpoint("batch.before-register")
        entry = Entry(
            id=one.about.id,
            engine=one.about.engine,
            name=one.about.name,
            folder=one.job.folder,
            submitted_at=one.about.submitted_at,
        )
        self._registry.add(entry)

    def _take_back(self, one: Prepared) -> None:
        folder = Folder(Path(one.job.folder))
        folder.mark("cancelled")
        self._manager.kill({**self._manager.known(one.about.id), **folder.ids()}.values())
        self._forget(one)

    def _forget(self, one: Prepared) -> None:
        self._registry.remove([one.about.id])
        shutil.rmtree(one.job.folder, ignore_errors=True)


def submission_again(submission: answers.Submission, about: About) -> answers.Submission:
    """The submission of an earlier job, with what was said beside its document."""
    options = about.options
    found = submitted_again(submission, about.document, about.plan, options, options.get("cwd"))
    return msgspec.structs.replace(found, no_container=bool(options.get("no_container")))


def refusal_of(error: Failed) -> Refusal:
    """What the manager said against a job, in its own words and with what to do."""
    words = error.said.error.lower()
    for part, code, advice in _REFUSALS:
        if part in words:
            return Refusal(code, f"{error}", advice)
    return Refusal("cannot", f"{error}", "`jobman render` shows what was submitted")


_REFUSALS = (
    ("node configuration is not available", "does-not-fit", "`jobman nodes` shows what there is"),
    ("more processors requested", "does-not-fit", "`jobman nodes` shows what there is"),
    ("node count specification invalid", "does-not-fit", "`jobman nodes` shows what there is"),
    ("memory specification can not", "does-not-fit", "`jobman nodes` shows what there is"),
    ("invalid feature", "does-not-fit", "`slurm.facts` of the settings says what a fact is called there"),
    ("requested time limit", "does-not-fit", "ask for less time, or for another queue"),
    ("invalid partition", "cannot", "`queue` names a partition, or a name that `slurm.queues` translates"),
    ("invalid account", "forbidden", "`account` names one that you may use"),
    ("permission denied", "forbidden", "ask whoever runs the cluster"),
    ("access/permission", "forbidden", "ask whoever runs the cluster"),
    ("violates accounting/qos policy", "quota", "your limits are used up, or it asks for more than they are"),
    ("invalid qos", "cannot", "`slurm.qos` and `slurm.priorities` of the settings name those there are"),
    ("unsatisfiable request", "does-not-fit", "`jobman nodes` shows what there is"),
    ("exceeds remaining instance lifetime", "does-not-fit", "ask for less time, or in an instance with more"),
    ("exceeds policy limit", "does-not-fit", "ask for less, or for another queue"),
    ("is disabled", "cannot", "the queue takes nothing now; choose another one"),
    ("only instance owner can use sign-type", "forbidden", "guests need flux-security; ask whoever runs it"),
    ("not a valid queue", "cannot", "`queue` names a queue, or a name that the settings translate"),
    ("invalid queue", "cannot", "`queue` names a queue, or a name that the settings translate"),
    ("is too old", "cannot", "ask whoever runs the cluster, or choose another engine"),
    ("invalid generic resource", "does-not-fit", "the cluster has no such resource"),
)


def _priority(plan: Plan, settings: Settings) -> int:
    """What the settings say that the named class is worth."""
    named = settings.values.get("priorities", {}).get(plan.policies.priority or "")
    return 0 if named is None else int(named.value)


def _moment(moment: Moment | None, now: float) -> float | None:
    if moment is None:
        return None
    return now + moment.after if moment.after is not None else moment.at.timestamp() if moment.at else None


def _options(submission: answers.Submission) -> dict[str, Any]:
    """What a rerun needs, and the document does not say."""
    found: dict[str, Any] = {"file": submission.file}
    for field in ("parameters", "rerun_of", "settings", "cwd", "no_container"):
        if getattr(submission, field):
            found[field] = getattr(submission, field)
    if submission.name:
        found["given_name"] = submission.name
    return found
