"""A trace from what a service has run: each time something held resources is a job of the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, inf

import msgspec

from jobman.sim.trace import LeftOut, Trace, TraceError, TraceJob, in_order
from jobman.spec.shapes import Alternatives, totals


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """One time that something held resources. Moments are seconds since 1970, None where nobody knows."""

    what: str
    """For messages, such as `align.3 of 4f2a`."""
    submitted_at: float | None
    """When it could have started for all it depends on."""
    started_at: float | None
    ended_at: float | None
    alternatives: Alternatives
    limit: float | None = None
    """Seconds; None where it had none."""
    owner: str = ""
    name: str = ""
    account: str = ""
    flavor: str = ""


def trace_of(finished: Iterable[Finished], name: str, left_out: Sequence[LeftOut] = ()) -> Trace:
    """The trace, with what else is known to be left out; raises TraceError where nothing can be replayed."""
    left_out = list(left_out)
    usable: list[Finished] = []
    for each in finished:
        if missing := _missing(each):
            left_out.append(LeftOut(0, f"{each.what} has no {missing}"))
        else:
            usable.append(each)
    if not usable:
        words = f": {left_out[0].words}" if left_out else ""
        raise TraceError(f"the history has nothing that could be replayed{words}", "has anything run yet?")
    began = min(each.submitted_at or 0.0 for each in usable)
    usable.sort(key=lambda each: each.submitted_at or 0.0)
    jobs = [_job(number, each, began) for number, each in enumerate(usable, 1)]
    return Trace(name=name, jobs=in_order(jobs), began=began, left_out=left_out)


def _missing(each: Finished) -> str:
    moments = {"submission": each.submitted_at, "start": each.started_at, "end": each.ended_at}
    return next((name for name, moment in moments.items() if moment is None), "") or (
        "" if each.alternatives else "shape"
    )


def _job(number: int, each: Finished, began: float) -> TraceJob:
    submitted, started, ended = each.submitted_at or 0.0, each.started_at or 0.0, each.ended_at or 0.0
    run = max(ended - started, 0.0)
    asked = totals(each.alternatives[0])
    return TraceJob(
        number=number,
        submit=submitted - began,
        run=run,
        processors=max(1, ceil(asked.amounts.get("core", asked.nodes))),
        # What overstayed, for a grace or an extension, is taken to have asked for as much.
        requested=inf if each.limit is None else max(each.limit, run),
        user=each.owner,
        name=each.name,
        wait=max(started - submitted, 0.0),
        shape=each.alternatives,
        account=each.account,
        flavor=each.flavor,
    )
