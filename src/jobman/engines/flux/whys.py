"""Why something waits: what Flux tells of it, in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobman.engines.flux.compile import plain_ids
from jobman.engines.flux.queue import BEGIN, DEPENDENCY, HELD
from jobman.engines.scripts.delegate import Waiting
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import CLOSER
from jobman.engines.scripts.waits import dependency, held, inside

_STOPPED = re.compile(r"^(?:(\S+): )?Scheduling is stopped(?:: (.*))?$", re.MULTILINE)


def read_stopped(text: str) -> dict[str, str]:
    """Queues that start nothing, and what was said of that; where there is but one, it has no name."""
    return {name: why.strip() for name, why in _STOPPED.findall(text)}


def waits(job: BatchJob, stopped: Mapping[str, str]) -> list[Waiting]:
    """What each part of a job waits for; `stopped` says of jobs that their queues start nothing, and why."""
    found = {(each.kind, each.replica, each.message): each for each in inside(job)}
    for native in job.natives:
        if native.state in ("waiting", "held") and native.piece != CLOSER:
            kind, message = _reason(native, job, stopped)
            replica = f"{native.piece}.{native.element or 0}"
            waiting = Waiting(kind=kind, replica=replica, message=message, starts_at=native.starts_at)
            # Replicas are jobs of their own, and mostly wait for the same thing.
            found.setdefault((kind, native.piece, message), waiting)
    return list(found.values())


def _reason(native: Native, job: BatchJob, stopped: Mapping[str, str]) -> tuple[str, str]:
    if native.reason == HELD:
        return held(native, job)
    if native.reason == BEGIN:
        return "start", "its time has not come yet"
    if native.reason == DEPENDENCY:
        return dependency(native, job)
    if (said := next((stopped[id_] for id_ in plain_ids(native.id) if id_ in stopped), None)) is not None:
        return "queue", f"its queue starts nothing: {said}" if said else "its queue starts nothing"
    return "resources", "the cores or nodes it asks for are in use, or others come before it"
