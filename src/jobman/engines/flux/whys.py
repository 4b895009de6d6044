"""Why something waits: what Flux tells of it, in plain words."""

from __future__ import annotations

from collections.abc import Iterable

from jobman.engines.flux.queue import BEGIN, DEPENDENCY, HELD
from jobman.engines.scripts.delegate import Waiting
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import CLOSER
from jobman.engines.scripts.waits import dependency, held, inside


def waits(job: BatchJob, stopped: Iterable[str] = ()) -> list[Waiting]:
    """What each part of a job waits for; `stopped` are queues that start nothing."""
    closed = set(stopped)
    found = {(each.kind, each.replica, each.message): each for each in inside(job)}
    for native in job.natives:
        if native.state in ("waiting", "held") and native.piece != CLOSER:
            kind, message = _reason(native, job, closed)
            replica = f"{native.piece}.{native.element or 0}"
            waiting = Waiting(kind=kind, replica=replica, message=message, starts_at=native.starts_at)
            # Replicas are jobs of their own, and mostly wait for the same thing.
            found.setdefault((kind, native.piece, message), waiting)
    return list(found.values())


def _reason(native: Native, job: BatchJob, stopped: set[str]) -> tuple[str, str]:
    if native.reason == HELD:
        return held(native, job)
    if native.reason == BEGIN:
        return "start", "its time has not come yet"
    if native.reason == DEPENDENCY:
        return dependency(native, job)
    if (job.plan.queue or "") in stopped:
        return "queue", "its queue starts nothing"
    return "resources", "the cores or nodes it asks for are in use, or others come before it"
