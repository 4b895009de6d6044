"""Submitting: from a submission to jobs on the floor, once for each key, and what their authors are told."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from jobman.control import answers
from jobman.control.admission import LARGE, plain
from jobman.control.batch import Batch
from jobman.control.explaining import estimate_of, try_out
from jobman.control.intake import Admitted, Intake, fingerprint
from jobman.control.refusals import Refusal
from jobman.control.store.records import JobRecord, SubmissionRecord
from jobman.control.working import Working


class Submitting(Working, ABC):
    """The part of the director where jobs come in."""

    _intake: Intake
    _keys: dict[tuple[str, str], asyncio.Future[Any]]
    """Idempotency keys of submissions that are not committed yet."""

    @abstractmethod
    def reread(self) -> None:
        """Let settings that were changed count."""

    async def submit(self, submission: answers.Submission, owner: str, key: str | None) -> answers.Submitted:
        """Admit a document, commit its jobs, and answer. The same key gets the same answer again."""
        if key is None or submission.dry_run or submission.what_if:
            return await self._submit(submission, owner, None)
        while (earlier := self._keys.get((owner, key))) is not None:
            await asyncio.wait([earlier])
        done = self._keys[owner, key] = self._loop.create_future()
        try:
            known = await self._replayed(owner, key, fingerprint(submission))
            return known or await self._submit(submission, owner, key)
        finally:
            del self._keys[owner, key]
            done.set_result(None)

    async def _submit(self, submission: answers.Submission, owner: str, key: str | None) -> answers.Submitted:
        print_of_it = fingerprint(submission)
        if len(submission.document) > LARGE or submission.rerun_of is not None:
            admitted = await asyncio.to_thread(self._intake.admit, submission, owner)
        else:
            admitted = self._intake.admit(submission, owner)
        self.reread()
        warnings = plain(admitted.warnings)
        if submission.dry_run or submission.what_if:
            records = self._records(admitted, owner, None)
            self._government.entrance.refuse_all(records, admitted.plans)
            return answers.Submitted(
                jobs=[_as_answer(record) for record in records],
                warnings=warnings,
                estimates=await self._what_if(records, admitted) if submission.what_if else [],
                notes=["nothing was submitted"],
            )
        environment = None
        if submission.environment is not None:
            environment = self.host.keep_environment(submission.environment)

        def enter(batch: Batch, future: asyncio.Future[Any]) -> None:
            records = self._records(admitted, owner, environment)
            self._government.entrance.refuse_all(records, admitted.plans)
            for plan, record in zip(admitted.plans, records, strict=True):
                self._floor.enter(
                    record, plan, admitted.nodes, batch, done=admitted.done, hold=submission.hold
                )
                batch.fresh[record.id] = future
            if key is not None:
                jobs = tuple(record.id for record in records)
                batch.changes.submissions.append(
                    SubmissionRecord(owner=owner, key=key, digest=print_of_it, jobs=jobs, at=self._clock())
                )
            batch.waiting.append((future, records))

        records = await self._ask(enter)
        estimates = [estimate_of(self._floor, record.id) for record in records]
        return answers.Submitted(
            jobs=[_as_answer(record) for record in records],
            warnings=warnings,
            estimates=[estimate for estimate in estimates if estimate is not None],
        )

    async def _what_if(self, records: Sequence[JobRecord], admitted: Admitted) -> list[answers.Estimate]:
        """When each job would start if it were submitted now, and what would make that sooner."""
        if admitted.submission.virtual:
            return [answers.Estimate(job=record.id, starts_now=True) for record in records]
        pairs = zip(records, admitted.plans, strict=True)
        return [await try_out(self._floor, record, plan) for record, plan in pairs]

    def _records(self, admitted: Admitted, owner: str, environment: str | None) -> list[JobRecord]:
        now = self._clock()
        return [self._intake.record(plan, admitted, owner, now, environment) for plan in admitted.plans]

    async def _replayed(self, owner: str, key: str, print_of_it: str) -> answers.Submitted | None:
        known = await asyncio.to_thread(self.store.submission, owner, key)
        if known is None:
            return None
        if known.digest != print_of_it:
            message = "this idempotency key belongs to another submission"
            raise Refusal("key-reused", message, "use a new key for each submission")
        found = [await asyncio.to_thread(self.store.job, job_id) for job_id in known.jobs]
        jobs = [_as_answer(record) for record in found if record is not None]
        return answers.Submitted(jobs=jobs, replayed=True)


def _as_answer(record: JobRecord) -> answers.Job:
    fields = {name: getattr(record, name) for name in answers.Job.__struct_fields__ if hasattr(record, name)}
    return answers.Job(**fields)
