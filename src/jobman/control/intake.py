"""Intake: from a submission to the records of new jobs, also for a job that is run once more."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from jobman.control import answers
from jobman.control.admission import (
    Fitting,
    Reader,
    SettingsShelf,
    flavor_of,
    name_from,
    refuse,
    refuse_features,
    refuse_misfits,
    renamed,
    submitted_again,
    with_limit,
)
from jobman.control.refusals import Refusal
from jobman.control.store.records import JobRecord
from jobman.control.store.store import Store
from jobman.engines.base import Account, Host
from jobman.plan.model import Plan
from jobman.plan.nodes import ClusterNode
from jobman.settings import Settings
from jobman.spec.problems import Problem


class Admitted(msgspec.Struct, kw_only=True):
    """A submission that can run: its plans, and how they are to be entered."""

    submission: answers.Submission
    plans: list[Plan]
    warnings: list[Problem]
    settings: Settings
    nodes: Sequence[ClusterNode]
    account: Account | None = None
    done: list[str] = []
    """Replicas that count as succeeded from the beginning."""


class Intake:
    """Reads submissions and refuses what cannot run here."""

    def __init__(
        self, store: Store, host: Host, settings: SettingsShelf, default_duration: float | None = None
    ) -> None:
        self._store = store
        self._host = host
        self.settings = settings
        self._reader = Reader()
        self._default_duration = default_duration
        self.renew(list(host.nodes()))

    def renew(self, nodes: list[ClusterNode]) -> None:
        """There are others nodes, or others of them, than before."""
        self._fitting = Fitting(nodes)

    def admit(self, submission: answers.Submission, owner: str) -> Admitted:
        """Everything that has to be right before a job is entered; raises a Refusal."""
        account = self._account(owner)
        done: list[str] = []
        if submission.rerun_of is not None:
            submission, done = self._again(submission)
        settings = self.settings.get(submission)
        plans, warnings = self._reader.read(submission, settings)
        if submission.name is not None:
            plans = renamed(plans, submission.name)
        plans = [with_limit(plan, self._default_duration) for plan in plans]
        fitting = self._fit(plans, submission)
        if account is not None:
            for plan in plans:
                refuse(self._host.refusals_for(plan, account), self._host.name)
        return Admitted(
            submission=submission,
            plans=plans,
            warnings=warnings,
            settings=settings,
            nodes=fitting.nodes,
            done=done,
            account=account,
        )

    def _account(self, owner: str) -> Account | None:
        try:
            return self._host.account_of(owner)
        except PermissionError as error:
            advice = "ask whoever runs the service for an account on its machine"
            raise Refusal("forbidden", str(error), advice) from error

    def _fit(self, plans: list[Plan], submission: answers.Submission) -> Fitting:
        fitting = self._fitting
        if submission.keep_logs is not None:
            advice = "leave --keep-logs out; it is for a cluster without a service"
            raise Refusal("cannot", "a service keeps what jobs write by itself", advice)
        if submission.virtual is not None:
            try:
                fitting = Fitting(list(self._host.nodes(submission.virtual)))
            except ValueError as error:
                advice = "write NODESxCORES, such as --virtual 4x4; clusters emulate no nodes"
                raise Refusal("bad-request", str(error), advice) from error
        for plan in plans:
            refuse_features(plan, self._host, no_container=submission.no_container)
            refuse_misfits(plan, fitting, self._host)
        return fitting

    def _again(self, submission: answers.Submission) -> tuple[answers.Submission, list[str]]:
        """The submission of an earlier job's document, and the replicas that are done already."""
        assert submission.rerun_of is not None
        record = self._store.job(submission.rerun_of)
        kept = None if record is None else self._store.document(record.id)
        if record is None or kept is None:
            raise Refusal("no-such-job", f"there is no job {submission.rerun_of}")
        options = record.options
        document, plan = kept
        again = msgspec.structs.replace(
            submitted_again(submission, document, plan.decode(), options, record.cwd),
            virtual=submission.virtual or options.get("virtual"),
            no_container=submission.no_container or options.get("no_container", False),
        )
        return again, self._succeeded(record) if submission.failed_only else []

    def _succeeded(self, record: JobRecord) -> list[str]:
        if record.state not in answers.FINAL_STATES:
            raise Refusal("wrong-state", f"the job {record.id} is not over yet")
        done: list[str] = []
        cursor = None
        while True:
            page = self._store.replicas(record.id, states=["succeeded"], cursor=cursor, limit=1000)
            done += [replica.key for replica in page.items]
            cursor = page.cursor
            if cursor is None:
                return done

    def record(
        self, plan: Plan, admitted: Admitted, owner: str, now: float, environment: str | None
    ) -> JobRecord:
        """The record of a new job; its number is given when it enters."""
        submission = admitted.submission
        return JobRecord(
            id=secrets.token_hex(6),
            number=0,
            name=plan.name or name_from(submission.file, plan),
            owner=owner,
            submitted_at=now,
            queue=plan.queue,
            priority=admitted.settings.priority(plan.policies.priority),
            account=plan.account,
            flavor=flavor_of(plan),
            labels=plan.labels,
            document=submission.document,
            plan=plan.to_json(),
            digest=plan.digest,
            cwd=submission.cwd or "/",
            environment=environment,
            options=_options(submission, plan, admitted),
        )


def fingerprint(submission: answers.Submission) -> str:
    """What makes two submissions the same; the environment of submission may differ."""
    bare = msgspec.structs.replace(submission, environment=None)
    return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()


def _options(submission: answers.Submission, plan: Plan, admitted: Admitted) -> dict[str, Any]:
    options: dict[str, Any] = {"file": submission.file}
    for name in ("parameters", "virtual", "no_container", "rerun_of", "settings", "reservation"):
        if getattr(submission, name):
            options[name] = getattr(submission, name)
    if submission.name:
        options["given_name"] = submission.name
    classes = {unit.policies.priority for unit in plan.units} - {None, plan.policies.priority}
    if classes:
        options["weights"] = {name: admitted.settings.priority(name) for name in classes}
    if admitted.account is not None:
        options["account"] = msgspec.to_builtins(admitted.account)
    return options
