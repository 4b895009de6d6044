"""What `flux jobs` says, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from jobman.engines.flux.names import Whose, whose
from jobman.engines.scripts.delegate import QueueRowAt
from jobman.engines.scripts.found import Native, NativeState

_STATES: dict[str, NativeState] = {
    "DEPEND": "waiting",
    "PRIORITY": "waiting",
    "SCHED": "waiting",
    "RUN": "running",
    "CLEANUP": "running",
    "INACTIVE": "over",
}
HELD, DEPENDENCY, BEGIN, RESOURCES = "held", "Dependency", "BeginTime", "Resources"
NO_QUEUE = "default"
EVERY, ACTIVE = "pending,running,inactive", "pending,running"


class Annotations(msgspec.Struct, frozen=True):
    """What others wrote to a job; of these, what its scheduler did."""

    sched: Any = None


class Raised(msgspec.Struct, frozen=True):
    """What went wrong with a job, as Flux sees it; often nothing."""

    type: str = ""
    note: str = ""


class FluxJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of Flux; what is not there yet it does not tell."""

    jobid: str
    name: str = ""
    userid: int = -1
    state: str = ""
    result: str = ""
    queue: str = ""
    urgency: int = 16
    dependencies: list[str] = []
    duration: float = 0.0
    t_inactive: float | None = None
    exception: Raised = Raised()
    annotations: Annotations = Annotations()

    @property
    def is_active(self) -> bool:
        return self.state != "INACTIVE"


def listing(states: str, *, everybody: bool = False) -> list[str]:
    """The command that lists jobs in these states: this user's, or those of all."""
    whose_ = ["--user=all"] if everybody else []
    return ["flux", "jobs", "--count=0", "--json", f"--filter={states}", *whose_]


class _Listing(msgspec.Struct):
    jobs: list[FluxJob] = []


def read_jobs(text: str) -> list[FluxJob]:
    """All jobs of a listing, whosever they are."""
    return msgspec.json.decode(text.encode() or b"{}", type=_Listing).jobs


def natives(jobs: Sequence[FluxJob]) -> Iterator[Native]:
    """The jobs that are ours, each under the ids of all elements of its piece."""
    ours = [(job, found) for job in jobs if (found := whose(job.name)) is not None]
    ids = ids_by_piece(ours)
    for job, found in ours:
        yield _native(job, found, ids[found.job, found.piece])


def ids_by_piece(ours: Sequence[tuple[FluxJob, Whose]]) -> dict[tuple[str, str], str]:
    """Ids in the order of elements. Of one that was submitted twice, the last counts."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for job, one in ours:
        found.setdefault((one.job, one.piece), {})[one.element or 0] = f"{job.jobid}{one.urgency}"
    return {key: ",".join(ids for _, ids in sorted(each.items())) for key, each in found.items()}


def _native(job: FluxJob, found: Whose, ids: str) -> Native:
    state: NativeState = _STATES.get(job.state, "waiting")
    if state == "waiting" and job.urgency == 0:
        state = "held"
    sched = job.annotations.sched
    return Native(
        id=ids,
        piece=found.piece,
        job=found.job,
        state=state,
        element=found.element,
        reason=_reason(job) if state in ("waiting", "held") else "",
        failure=failure(job) if state == "over" else "",
        starts_at=sched.get("t_estimate") if isinstance(sched, Mapping) else None,
        ends_at=job.t_inactive,
    )


def _reason(job: FluxJob) -> str:
    if job.urgency == 0:
        return HELD
    if any(each.startswith("begin") for each in job.dependencies):
        return BEGIN
    return DEPENDENCY if job.state == "DEPEND" else RESOURCES


def failure(job: FluxJob) -> str:
    """Why a job that is over failed, as one of jobman.spec.failures.REASONS."""
    if job.result == "TIMEOUT":
        return "timeout"
    if job.result != "FAILED":
        return ""
    kind, note = job.exception.type, job.exception.note
    if kind == "dependency":
        return ""
    if "node failure" in note or "lost" in note:
        return "node-lost"
    return "launch-failed" if kind in ("alloc", "exec") else "exit"


def rows(jobs: Iterable[tuple[str, FluxJob]], user: int) -> list[QueueRowAt]:
    """How many wait and run in each queue; jobs come with what counts as theirs."""
    found: dict[str, Counter[str]] = {}
    for name, job in jobs:
        counts = found.setdefault(name, Counter())
        state = "running" if _STATES.get(job.state) == "running" else "waiting"
        counts[state] += 1
        counts[f"yours_{state}"] += job.userid == user
    return [QueueRowAt(name=name, **counts) for name, counts in sorted(found.items())]
