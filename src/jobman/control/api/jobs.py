"""`/v1/jobs`: submitting, listing, looking closer, and everything that is done to a job."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import msgspec

from jobman.control.answers import (
    FINAL_STATES,
    Attempt,
    Copy,
    Deleted,
    Details,
    Extension,
    Job,
    JobState,
    Listing,
    Page,
    Replica,
    ReplicaState,
    Submission,
    Submitted,
    Why,
)
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Reply, Resource
from jobman.control.api.news import until_over
from jobman.control.api.query import Cursor, Limit, Moment, Paged, Query, Text
from jobman.control.api.reading import (
    attempt_answer,
    decoded_plan,
    details_answer,
    find_job,
    is_over,
    job_answer,
    output_condition,
    page_answer,
    replica_answer,
)
from jobman.control.refusals import Refusal
from jobman.control.store import views
from jobman.control.store.cursors import cursor_of, key_of
from jobman.control.store.records import JobRecord
from jobman.control.store.views import JobFilter

jobs = Resource("jobs")

ONE = ("no-such-job", "ambiguous")
ACTS = (*ONE, "wrong-state", "stopping", "store")
FinalState = Literal["succeeded", "failed", "cancelled"]
Label = Annotated[
    str,
    msgspec.Meta(pattern=r"^[^=\u0000]+(=[^\u0000]*)?$", max_length=1000, description="NAME=VALUE or NAME"),
]
_SECONDS_TO_STOP = 60.0
_AT_ONCE = 100
_NOBODY = ""
"""The owner of no job: others have none, as far as a user can see."""


class Wanted(Query, kw_only=True):
    """Which jobs are meant: those that fit everything that is given."""

    owner: Text | None = None
    mine: bool = False
    name: Annotated[Text, msgspec.Meta(description="A pattern with * and ?.")] | None = None
    label: list[Label] = []
    queue: Text | None = None
    since: Annotated[Moment, msgspec.Meta(description="Submitted then or later.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="Submitted before then.")] | None = None
    search: (
        Annotated[
            Text, msgspec.Meta(description="A part of the id, name, queue, flavor, account or a label.")
        ]
        | None
    ) = None


class JobsQuery(Wanted, kw_only=True):
    """Which jobs to list."""

    state: list[JobState] = []
    order: Annotated[
        Literal["newest", "queue"],
        msgspec.Meta(
            description="queue: first those who wait, in the order in which their queues serve them."
        ),
    ] = "newest"
    limit: Limit = 100
    cursor: Cursor | None = None


class DeleteQuery(Wanted, kw_only=True):
    """Which jobs to delete: one's own, unless an owner is named."""

    all: bool = False
    """Says that more than one job is meant."""
    state: list[FinalState] = []


class ForceQuery(Query, kw_only=True):
    """How to delete."""

    force: Annotated[bool, msgspec.Meta(description="Cancel it first.")] = False


class ReplicasQuery(Paged, kw_only=True):
    """Which replicas to list."""

    unit: Text | None = None
    state: list[ReplicaState] = []


class AttemptsQuery(Paged, kw_only=True):
    """Which attempts to list."""

    replica: Text | None = None


@jobs.serve(
    "POST",
    "/v1/jobs",
    body=Submission,
    answers={201: Submitted, 200: Submitted},
    refuses=("bad-document", "bad-settings", "cannot", "does-not-fit", "key-reused", "store", *ONE),
    headers={"Idempotency-Key": "The same request with the same key is carried out once."},
)
async def submit(call: Call, submission: Submission) -> Reply:
    """Submit every job of a document, or none. 200: submitted before, or not at all in a dry run."""
    if submission.rerun_of is not None:
        submission.rerun_of = (await call.desk.read(find_job, call, submission.rerun_of)).id
    if call.desk.mode == "shared":
        # What is in the environment of a caller is no business of a service of somebody else.
        submission.environment = None
    answer = await call.director.submit(submission, call.caller.user, _idempotency_key(call))
    return Reply(answer, 200 if answer.replayed or submission.dry_run or submission.what_if else 201)


@jobs.serve("GET", "/v1/jobs", query=JobsQuery, answers={200: Page[Job]}, refuses=("store",))
def list_jobs(call: Call, query: JobsQuery) -> Page[Job]:
    """List jobs, the newest first, or first those who wait in the order of their queues."""
    wanted = _filter(call, query, query.state)
    read = _in_line if query.order == "queue" else _newest
    page = page_answer(read(call, wanted, query.cursor, query.limit), job_answer)
    for job in page.items:
        if job.state in ("waiting", "running"):
            job.estimate, job.ends_by = call.director.glance(job.id)
    return page


@jobs.serve("DELETE", "/v1/jobs", query=DeleteQuery, answers={200: Deleted}, refuses=("stopping", "store"))
async def delete_jobs(call: Call, query: DeleteQuery) -> Deleted:
    """Delete all finished jobs that fit."""
    if not query.all:
        raise Refusal("bad-request", "This deletes many jobs.", "Say all=true if you mean it.")
    if query.owner is None:
        query.mine = True
    wanted = _filter(call, query, query.state or FINAL_STATES)
    deleted, cursor = 0, None
    while True:
        page = await call.desk.read(call.store.jobs, wanted, cursor, _AT_ONCE)
        deleted += sum(await asyncio.gather(*(_forget(call, record) for record in page.items)))
        cursor = page.cursor
        if cursor is None:
            return Deleted(deleted=deleted)


@jobs.serve("GET", "/v1/jobs/{ref}", answers={200: Details}, refuses=(*ONE, "store"))
def details(call: Call) -> Details:
    """Everything about a job."""
    record = find_job(call, call.part("ref"))
    found = call.store.document(record.id)
    if found is None:
        raise Refusal("no-such-job", f"The job {record.id} was deleted at this moment.")
    document, plan = found[0], decoded_plan(found[1])
    answer = details_answer(record, document, plan, call.store.tasks(record.id))
    answer.conditions.append(output_condition(call.desk, record))
    if "result_file" in plan.features:
        attempts = call.store.attempts(record.id).items
        answer.results = {each.key: each.result for each in attempts if each.result is not None}
    return answer


@jobs.serve("DELETE", "/v1/jobs/{ref}", query=ForceQuery, answers={200: Job}, refuses=ACTS)
async def delete(call: Call, query: ForceQuery) -> Job:
    """Delete a finished job with all that belongs to it."""
    record = await _found(call)
    if query.force and not is_over(record):
        await call.director.cancel(record.id, call.caller.user)
        record = await _wait_for_end(call, record)
    await call.director.delete(record.id, call.caller.user)
    return job_answer(record)


@jobs.serve("POST", "/v1/jobs/{ref}/cancel", answers={200: Job}, refuses=ACTS)
async def cancel(call: Call) -> Job:
    """Stop a job for good."""
    record = await _found(call)
    await call.director.cancel(record.id, call.caller.user)
    return await _now(call, record)


@jobs.serve("POST", "/v1/jobs/{ref}/hold", answers={200: Job}, refuses=ACTS)
async def hold(call: Call) -> Job:
    """Keep a job from starting, or suspend it."""
    record = await _found(call)
    await call.director.hold(record.id, call.caller.user)
    return await _now(call, record)


@jobs.serve("POST", "/v1/jobs/{ref}/release", answers={200: Job}, refuses=ACTS)
async def release(call: Call) -> Job:
    """Let a job that is held go on."""
    record = await _found(call)
    await call.director.release(record.id, call.caller.user)
    return await _now(call, record)


@jobs.serve(
    "POST",
    "/v1/jobs/{ref}/extend",
    body=Extension,
    answers={200: Job},
    refuses=(*ACTS, "no-such-task", "cannot"),
)
async def extend(call: Call, extension: Extension) -> Job:
    """Give a job, or one task of it, more time."""
    record = await _found(call)
    await call.director.extend(record.id, extension.seconds, extension.task, call.caller.user)
    return await _now(call, record)


@jobs.serve("POST", "/v1/jobs/{ref}/gates/{gate}/open", answers={200: Job}, refuses=(*ACTS, "no-such-gate"))
async def open_gate(call: Call) -> Job:
    """Open a gate that a job waits for."""
    record = await _found(call)
    await call.director.open_gate(record.id, call.part("gate"), call.caller.user)
    return await _now(call, record)


@jobs.serve(
    "GET",
    "/v1/jobs/{ref}/replicas",
    query=ReplicasQuery,
    answers={200: Page[Replica]},
    refuses=(*ONE, "store"),
)
def list_replicas(call: Call, query: ReplicasQuery) -> Page[Replica]:
    """List the replicas of a job that have begun to do more than wait."""
    record = find_job(call, call.part("ref"))
    page = call.store.replicas(record.id, query.unit, query.state, cursor=query.cursor, limit=query.limit)
    return page_answer(page, replica_answer)


@jobs.serve(
    "GET",
    "/v1/jobs/{ref}/attempts",
    query=AttemptsQuery,
    answers={200: Page[Attempt]},
    refuses=(*ONE, "store"),
)
def list_attempts(call: Call, query: AttemptsQuery) -> Page[Attempt]:
    """List the attempts of a job."""
    record = find_job(call, call.part("ref"))
    return page_answer(
        call.store.attempts(record.id, query.replica, query.cursor, query.limit), attempt_answer
    )


@jobs.serve("GET", "/v1/jobs/{ref}/why", answers={200: Why}, refuses=(*ONE, "store"))
async def why(call: Call) -> Why:
    """Why a job is where it is."""
    record = await _found(call)
    found = await call.director.why(record.id)
    if found is not None:
        return found
    job = await _now(call, record)
    reason = "" if job.reason == job.state else job.reason
    summary = f"it is over: {job.state}" + (f", {reason}" if reason else "")
    return Why(job=job.id, state=job.state, summary=summary)


@jobs.serve("GET", "/v1/jobs/{ref}/copies", answers={200: Listing[Copy]}, refuses=(*ONE, "store"))
async def list_copies(call: Call) -> Listing[Copy]:
    """List the copies of a job that run now."""
    record = await _found(call)
    return Listing(items=msgspec.convert(call.director.copies(record.id), list[Copy]))


# -- on the way ----------------------------------------------------------------------------------------


def _idempotency_key(call: Call) -> str | None:
    key = call.header(b"idempotency-key")
    if key is not None and not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise Refusal("bad-request", "An Idempotency-Key has 1 to 255 letters that can be printed.")
    return key


def _newest(call: Call, wanted: JobFilter, cursor: str | None, limit: int) -> views.Page[JobRecord]:
    return call.store.jobs(wanted, cursor, limit)


def _in_line(call: Call, wanted: JobFilter, cursor: str | None, limit: int) -> views.Page[JobRecord]:
    """First those who wait, by their places as of now, then all others.

    The queue moves from page to page: somebody may be seen twice, or not at all.
    """
    passed, below = (0, None) if cursor is None else key_of(cursor, tuple[int, str | None])
    found: list[JobRecord] = []
    if below is None and (not wanted.states or "waiting" in wanted.states):
        waiting = msgspec.structs.replace(wanted, states=frozenset({"waiting"}))
        found = call.store.jobs_of(call.director.in_line(), waiting, passed + limit + 1)[passed:]
    if len(found) > limit:
        return views.Page(found[:limit], cursor_of((passed + limit, None)))
    states = (wanted.states or frozenset(get_args(JobState))) - {"waiting"}
    if not states:
        return views.Page(found, None)
    others = msgspec.structs.replace(wanted, states=states)
    page = call.store.jobs(others, below or None, max(1, limit - len(found)))
    if len(found) == limit:  # there is no room for the first of the others: the next page begins with them
        return views.Page(found, cursor_of((passed + limit, "")) if page.items else None)
    cursor = None if page.cursor is None else cursor_of((passed, page.cursor))
    return views.Page([*found, *page.items], cursor)


def _filter(call: Call, query: Wanted, states: Sequence[str]) -> JobFilter:
    owner = call.caller.user if query.mine else query.owner or call.caller.horizon
    if owner is not None and not call.caller.sees(owner):
        owner = _NOBODY
    labels: dict[str, str | None] = {}
    for label in query.label:
        name, separator, value = label.partition("=")
        labels[name] = value if separator else None
    return JobFilter(
        owner=owner,
        states=frozenset(states),
        name=query.name,
        labels=labels,
        queue=query.queue,
        since=query.since,
        until=query.until,
        text=query.search,
    )


async def _found(call: Call) -> JobRecord:
    return await call.desk.read(find_job, call, call.part("ref"))


async def _now(call: Call, record: JobRecord) -> Job:
    """The job after something was done to it."""
    found = await call.desk.read(call.store.job, record.id)
    return job_answer(found or record)


async def _forget(call: Call, record: JobRecord) -> int:
    """One of many: whether it could be deleted."""
    try:
        await call.director.delete(record.id, call.caller.user)
    except Refusal as refusal:
        if refusal.code in ("no-such-job", "wrong-state"):
            return 0
        raise
    return 1


async def _wait_for_end(call: Call, record: JobRecord) -> JobRecord:
    try:
        async with asyncio.timeout(_SECONDS_TO_STOP):
            return await until_over(call.desk, record)
    except TimeoutError:
        raise Refusal(
            "wrong-state", f"The job {record.id} is still stopping.", "It is cancelled; delete it later."
        ) from None
