"""When those who wait are expected to start, from how long such jobs have run before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import msgspec

from jobman.control.store.views import PastRun
from jobman.plan.nodes import ClusterNode
from jobman.sched.forecast import Expectation, Forecaster
from jobman.sched.history import History, Work
from jobman.sched.queues import Queue
from jobman.sched.requests import Promise, Request

ASSUMED = 365 * 86400.0
"""Seconds for which something without a time limit is taken to run: long enough that nobody waits for it, and
that it keeps its turn."""
_REFRESH = 30.0
"""Seconds after which those who wait are told again, where that is cheap."""
_MOST = 2000
"""With more waiting than so many, only those who come are told."""


class Expectations:
    """Follows what waits and runs, in the planner's thread.

    All queues are played as one, by the policy of the usual one: they share the nodes.
    """

    def __init__(self, nodes: Sequence[ClusterNode], queue: Queue, past: Iterable[PastRun] = ()) -> None:
        capacity: dict[str, float] = {"node": float(len(nodes))}
        for node in nodes:
            for kind, amount in node.amounts.items():
                capacity[kind] = capacity.get(kind, 0.0) + amount
        self._forecaster = Forecaster(capacity, queue, history=_history(past))
        self._new: list[str] = []
        self._waiting: set[str] = set()
        self._refreshed = -inf

    def submitted(self, request: Request, now: float) -> None:
        self._forecaster.submitted(_honest(request), now)
        self._new.append(request.id)
        self._waiting.add(request.id)

    def started(self, request_id: str, now: float) -> None:
        self._waiting.discard(request_id)
        self._forecaster.started(request_id, now)

    def ended(self, request_id: str, now: float) -> None:
        self._forecaster.ended(request_id, now)

    def left(self, request_id: str) -> None:
        self._waiting.discard(request_id)
        self._forecaster.left(request_id)

    def fresh(self, now: float, promises: Mapping[str, Promise]) -> dict[str, Expectation]:
        """What those are told who came since the last pass, and now and then everybody."""
        new, self._new = [each for each in self._new if each in self._waiting], []
        if new and len(new) <= _MOST:
            return _known({each: self._expect(each, now, promises.get(each)) for each in new})
        if self._waiting and now - self._refreshed > _REFRESH and len(self._waiting) <= _MOST:
            self._refreshed = now
            return _known(self._forecaster.expect_all(now))
        return {}

    def _expect(self, request_id: str, now: float, promise: Promise | None) -> Expectation:
        by = promise.guaranteed_by if promise is not None else None
        return self._forecaster.expect(request_id, now, by)

    def expect(self, request: Request, guaranteed_by: float | None, now: float) -> Expectation | None:
        """What one would be told who came now."""
        found = self._forecaster.try_out(_honest(request), now, guaranteed_by=guaranteed_by)
        return found if found.p50 < inf else None


def _history(past: Iterable[PastRun]) -> History:
    """Of what ran before the service was started, the oldest first."""
    history = History()
    for run in sorted(past, key=lambda run: run.ended_at):
        unit = run.key.rpartition(".")[0]
        limit = inf if run.limit is None else run.limit
        history.add(Work(run.owner, f"{run.name}/{unit}", "", run.flavor or "", limit), run.seconds)
    return history


def _honest(request: Request) -> Request:
    """Without the year that the planner takes something without a limit to run."""
    return msgspec.structs.replace(request, limit=inf) if request.limit >= ASSUMED else request


def _known(found: Mapping[str, Expectation]) -> dict[str, Expectation]:
    return {each: expected for each, expected in found.items() if expected.p90 < inf}
