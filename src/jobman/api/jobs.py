"""Jobs from Python: submit, look, wait, read the logs; and the same for asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from jobman.api.documents import JobSpec
from jobman.client import Client
from jobman.control.answers import (
    FINAL_STATES,
    Attempt,
    Details,
    Estimate,
    Event,
    LogLine,
    Replica,
    Submission,
    Why,
)
from jobman.control.answers import Job as Glance
from jobman.plan.model import Plan

T = TypeVar("T")
Document = str | Path | JobSpec | Plan
_END: Any = object()


class JobFailed(Exception):
    """A job that was waited for did not succeed."""

    def __init__(self, job: Glance) -> None:
        super().__init__(f"{job.name} ({job.id}) {job.state}{f': {job.reason}' if job.reason else ''}")
        self.job = job


class Job:
    """A job of a service. What is asked of it is asked of the service, each time.

    `promised` is what was said when it was submitted about its start; None where nothing could be.
    """

    def __init__(self, client: Client, id: str, name: str, promised: Estimate | None = None) -> None:
        self.id = id
        self.name = name
        self.promised = promised
        self._client = client

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.name}>"

    def details(self) -> Details:
        """Everything about it, with its tasks and conditions."""
        return self._client.details(self.id)

    @property
    def state(self) -> str:
        """waiting, running, succeeded, failed or cancelled."""
        return self.details().state

    @property
    def is_over(self) -> bool:
        return self.state in FINAL_STATES

    def wait(self, timeout: float | None = None, *, check: bool = False) -> Glance:
        """Wait for its end. Raises TimeoutError; with `check`, JobFailed unless it succeeded."""
        job = self._client.wait(self.id, timeout)
        if check and job.state != "succeeded":
            raise JobFailed(job)
        return job

    def logs(self, *, follow: bool = False, **filters: Any) -> Iterator[LogLine]:
        """The lines its copies wrote, in the order of writing.

        Filters: tail, since, task, replica, node, attempt, stream.
        """
        return self._client.logs(self.id, follow=follow, **filters)

    def output(self, **filters: Any) -> str:
        """What its copies wrote to stdout, as one text."""
        lines = self.logs(stream="stdout", **filters)
        return "".join(line.text if line.partial else f"{line.text}\n" for line in lines)

    def events(self, *, follow: bool = False) -> Iterator[Event]:
        """What happened to it; followed, until it is over."""
        return self._client.events(self.id, follow=follow)

    def replicas(self, **filters: Any) -> Iterator[Replica]:
        """Its replicas. Filters: unit, state."""
        return self._client.replicas(self.id, **filters)

    def attempts(self, **filters: Any) -> Iterator[Attempt]:
        """Its attempts, with exit codes, usage and results. Filter: replica."""
        return self._client.attempts(self.id, **filters)

    def why(self) -> Why:
        """Why it is where it is."""
        return self._client.why(self.id)

    def estimate(self) -> Estimate | None:
        """When it starts, as far as that can be said now; None unless it waits for nodes."""
        return self.why().estimate

    def cancel(self) -> None:
        """End it; its cleanup still runs."""
        self._client.cancel(self.id)

    def hold(self) -> None:
        """Start nothing more of it, and suspend what runs as its document says."""
        self._client.hold(self.id)

    def release(self) -> None:
        """Let it go on."""
        self._client.release(self.id)

    def open_gate(self, gate: str) -> None:
        """Open a gate it waits for."""
        self._client.open_gate(self.id, gate)

    def extend(self, seconds: float, task: str | None = None) -> None:
        """Give what runs more time."""
        self._client.extend(self.id, seconds, task)

    def delete(self, *, force: bool = False) -> None:
        """Forget it, with everything it left; with `force` it is cancelled first."""
        self._client.delete(self.id, force=force)

    def rerun(self, *, failed_only: bool = False) -> Job:
        """Run it once more; what succeeded may count as done."""
        return _submitted(self._client, Submission(rerun_of=self.id, failed_only=failed_only))


class AsyncJob:
    """A job for asyncio: the same questions, to be awaited."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.id = job.id
        self.name = job.name
        self.promised = job.promised

    def __repr__(self) -> str:
        return f"<AsyncJob {self.id} {self.name}>"

    async def details(self) -> Details:
        return await asyncio.to_thread(self.job.details)

    async def wait(self, timeout: float | None = None, *, check: bool = False) -> Glance:
        return await asyncio.to_thread(self.job.wait, timeout, check=check)

    def logs(self, *, follow: bool = False, **filters: Any) -> AsyncIterator[LogLine]:
        return _in_a_thread(lambda: self.job.logs(follow=follow, **filters))

    async def output(self, **filters: Any) -> str:
        return await asyncio.to_thread(self.job.output, **filters)

    def events(self, *, follow: bool = False) -> AsyncIterator[Event]:
        return _in_a_thread(lambda: self.job.events(follow=follow))

    def replicas(self, **filters: Any) -> AsyncIterator[Replica]:
        return _in_a_thread(lambda: self.job.replicas(**filters))

    def attempts(self, **filters: Any) -> AsyncIterator[Attempt]:
        return _in_a_thread(lambda: self.job.attempts(**filters))

    async def why(self) -> Why:
        return await asyncio.to_thread(self.job.why)

    async def estimate(self) -> Estimate | None:
        return await asyncio.to_thread(self.job.estimate)

    async def cancel(self) -> None:
        await asyncio.to_thread(self.job.cancel)

    async def hold(self) -> None:
        await asyncio.to_thread(self.job.hold)

    async def release(self) -> None:
        await asyncio.to_thread(self.job.release)

    async def open_gate(self, gate: str) -> None:
        await asyncio.to_thread(self.job.open_gate, gate)

    async def extend(self, seconds: float, task: str | None = None) -> None:
        await asyncio.to_thread(self.job.extend, seconds, task)

    async def delete(self, *, force: bool = False) -> None:
        await asyncio.to_thread(self.job.delete, force=force)

    async def rerun(self, *, failed_only: bool = False) -> AsyncJob:
        return AsyncJob(await asyncio.to_thread(self.job.rerun, failed_only=failed_only))


def submit(
    document: Document,
    *,
    parameters: Mapping[str, object] | None = None,
    name: str | None = None,
    virtual: str | None = None,
    hold: bool = False,
    no_container: bool = False,
    reservation: str | None = None,
    settings: str | Path | None = None,
    client: Client | None = None,
) -> Job:
    """Submit a document: the path of a file, a JobSpec that was loaded, or a Plan.

    Goes to this user's own service, which is started where there is none, or to the one of `client`. Raises
    jobman.client.Refused with the problems of a wrong document.
    """
    submission = _request(
        document,
        parameters,
        name=name,
        environment=dict(os.environ) if client is None else None,
        virtual=virtual,
        hold=hold,
        no_container=no_container,
        reservation=reservation,
        settings=None if settings is None else Path(settings).read_text("utf-8"),
        settings_file=None if settings is None else str(settings),
    )
    return _submitted(client or Client.usual(), submission)


def what_if(
    document: Document,
    *,
    parameters: Mapping[str, object] | None = None,
    virtual: str | None = None,
    no_container: bool = False,
    reservation: str | None = None,
    client: Client | None = None,
) -> list[Estimate]:
    """When each job of a document would start if it were submitted now, and what would make it sooner.

    Nothing is submitted. Raises jobman.client.Refused as `submit` does.
    """
    submission = _request(
        document,
        parameters,
        virtual=virtual,
        no_container=no_container,
        reservation=reservation,
        what_if=True,
    )
    return (client or Client.usual()).submit(submission).estimates


async def submit_async(document: Document, **options: Any) -> AsyncJob:
    """As `submit`, to be awaited."""
    return AsyncJob(await asyncio.to_thread(lambda: submit(document, **options)))


def find(reference: str, *, client: Client | None = None) -> Job:
    """A job that was submitted before, by its id, the start of one, or its name."""
    client = client or Client.usual()
    found = client.details(reference)
    return Job(client, found.id, found.name)


def _request(document: Document, parameters: Mapping[str, object] | None, **fields: Any) -> Submission:
    given = {key: _as_typed(value) for key, value in (parameters or {}).items()}
    submission = Submission(parameters=given, cwd=str(Path.cwd()), **fields)
    if isinstance(document, Plan):
        submission.plan = document.to_json().decode()
    elif isinstance(document, JobSpec):
        source = document.source
        submission.document, submission.file = (source.text, source.name) if source is not None else ("", "-")
    else:
        submission.document, submission.file = Path(document).read_text("utf-8"), str(document)
    return submission


def _submitted(client: Client, submission: Submission) -> Job:
    answer = client.submit(submission)
    first = answer.jobs[0]
    promised = next((each for each in answer.estimates if each.job == first.id), None)
    return Job(client, first.id, first.name, promised)


def _as_typed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _in_a_thread(make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """Read an iterator that waits in a thread, one item at a time."""
    items = await asyncio.to_thread(make)
    while (item := await asyncio.to_thread(next, items, _END)) is not _END:
        yield item
