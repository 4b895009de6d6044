"""When those who wait are expected to start, from how long such jobs have run before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import inf

import msgspec

from jobman.control.store.views import PastRun
from jobman.control.time_limits import ASSUMED, FAR, limit_of
from jobman.plan.nodes import ClusterNode, in_all
from jobman.sched.forecast import Expectation, Forecaster
from jobman.sched.forecast_jobs import asked_for, needed, shape
from jobman.sched.forecast_limits import Ceilings, LimitsOf
from jobman.sched.history import History, Work
from jobman.sched.minimum import least_amounts
from jobman.sched.queues import Queue, QueueState
from jobman.sched.reach import own_nodes, share_of
from jobman.sched.requests import Request
from jobman.sched.scheduling import Scheduling

Guarantees = Callable[[str], float | None]
"""By when a request that waits starts at the latest, by its id."""
_REFRESH = 30.0
"""Seconds after which those who wait are told again, where that is cheap."""
_MOST = 2000
"""With more waiting than so many, only those who come are told."""
_MOST_SHAPES = 1000


class _Area:
    """Nodes that some queues share and others do not use: they are played as one, by the policy of one."""

    def __init__(
        self, queue: Queue, nodes: Sequence[ClusterNode], limits_of: LimitsOf, history: History
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.ceilings = Ceilings(limits_of)
        self._capacity = in_all(nodes)
        self.forecaster = Forecaster(self._capacity, queue, history=history)
        self._leasts: dict[bytes, dict[str, float]] = {}

    def join(self, request: Request, now: float) -> None:
        amounts = self._amounts(request)
        counts = self.ceilings.join(request, amounts)
        self._look_at_limits()
        self.forecaster.submitted(_honest(request), now, also=_also(amounts, counts))

    def gone(self, request: Request) -> None:
        """It does not wait or run any more."""
        heir = self.ceilings.leave(request.id)
        self._look_at_limits()
        if heir is not None:
            self.forecaster.counts(heir[0], heir[1])

    def try_out(self, request: Request, guaranteed_by: float | None, now: float) -> Expectation:
        amounts = self._amounts(request)
        also = _also(amounts, self.ceilings.of(request, amounts))
        return self.forecaster.try_out(_honest(request), now, guaranteed_by=guaranteed_by, also=also)

    def learn_node(self, node: ClusterNode) -> None:
        """One more node, or another than before."""
        self.nodes[node.name] = node
        self._capacity = in_all(self.nodes.values())
        self._leasts.clear()
        self.forecaster.resized({**self._capacity, **self.ceilings.capacity})

    def close(self, name: str, start: float, end: float, nodes: Iterable[str]) -> None:
        """Nodes of it cannot be used for some time."""
        mine = [self.nodes[each] for each in nodes if each in self.nodes]
        if mine:
            self.forecaster.closed(name, start, end, in_all(mine))

    def _look_at_limits(self) -> None:
        if self.ceilings.is_changed:
            self.ceilings.is_changed = False
            self.forecaster.resized({**self._capacity, **self.ceilings.capacity})

    def _amounts(self, request: Request) -> dict[str, float]:
        """What it holds at least, also of nodes that it takes as a whole."""
        parts = request.alternatives[0]
        if not request.wishes.exclusive and not any(part.is_whole for part in parts):
            return {**needed(request), "node": sum(part.nodes or 0 for part in parts)}
        key = msgspec.msgpack.encode((parts, request.wishes, request.overhead))
        known = self._leasts.get(key)
        if known is None:
            if len(self._leasts) > _MOST_SHAPES:
                self._leasts.clear()
            found = least_amounts(parts, list(self.nodes.values()), request.wishes, request.overhead)
            known = self._leasts[key] = dict(found) if found is not None else needed(request)
        return known


class Expectations:
    """Follows what waits and runs, in the planner's thread.

    What was given to a queue alone is played alone, with the limits that hold there. Those who run in an
    advance reservation are not played: they start when they were promised to.
    """

    def __init__(
        self,
        nodes: Sequence[ClusterNode],
        scheduling: Scheduling,
        bounds: LimitsOf = lambda _request: (),
        past: Callable[[], Iterable[PastRun]] = tuple,
    ) -> None:
        self._scheduling = scheduling
        self._past: Callable[[], Iterable[PastRun]] | None = past
        self._history = History()
        self._nodes = {node.name: node for node in nodes}
        self._shares = _shares(nodes, scheduling)
        self._areas = dict(_areas(nodes, scheduling, self._limits_of(bounds), self._history))
        """By the names of queues; several may have the same."""
        self._played: set[str] = set()
        """Those who are played: who waits in a closed queue is not, nor who has a reservation."""
        self._requests: dict[str, Request] = {}
        self._since: dict[str, float] = {}
        """When those began who run."""
        self._new: list[str] = []
        self._told: dict[str, Expectation] = {}
        """What those were told who wait."""
        self._away: dict[str, float] = {}
        """Nodes that cannot be used, and since when."""
        self._foreign: dict[str, tuple[float, Mapping[str, float]]] = {}
        """What others use of nodes, and since when."""
        self._closed: set[str] = set()
        self._silenced: list[str] = []
        """Those of whom nothing can be said any more."""
        self._refreshed = -inf

    @property
    def is_ignorant(self) -> bool:
        """Whether somebody waits, and what ran before the service was started has not been looked at."""
        return self._past is not None and len(self._since) < len(self._requests)

    def learn(self) -> None:
        """Look at what ran before; what ended since then is among it."""
        if self._past is None:
            return
        past, self._past = self._past, None
        self._history = _history(past(), self._scheduling)
        for area in self._all():
            area.forecaster.remember(self._history)
        self._refreshed = -inf

    # -- what happens --------------------------------------------------------------------------------

    def submitted(self, request: Request, now: float) -> None:
        self._requests[request.id] = request
        self._new.append(request.id)
        if self._queue(request) not in self._closed:
            self._join(request, now)

    def started(self, request_id: str, now: float) -> None:
        request = self._requests[request_id]
        self._since[request_id] = now
        self._told.pop(request_id, None)
        self._join(request, now)
        if request_id in self._played:
            self._area(request).forecaster.started(request_id, now)

    def ended(self, request_id: str, now: float, *, learn: bool = True) -> None:
        request = self._requests.pop(request_id)
        since = self._since.pop(request_id)
        if request_id in self._played:
            self._played.remove(request_id)
            self._area(request).forecaster.ended(request_id, now, learn=learn)
            self._area(request).gone(request)
        elif learn:
            self._history.add(_work(request), now - since)

    def left(self, request_id: str) -> None:
        request = self._requests.pop(request_id)
        self._told.pop(request_id, None)
        self._leave(request)

    def _join(self, request: Request, now: float) -> None:
        if not request.reservation and request.id not in self._played:
            self._played.add(request.id)
            self._area(request).join(request, now)

    def _leave(self, request: Request) -> None:
        if request.id in self._played:
            self._played.remove(request.id)
            self._area(request).forecaster.left(request.id)
            self._area(request).gone(request)

    # -- what administrators say ---------------------------------------------------------------------

    def set_queue(self, name: str, state: QueueState, now: float) -> None:
        """Who waits in a closed queue is in nobody's way, and cannot be told anything."""
        is_closed = state is QueueState.CLOSED
        if is_closed is (name in self._closed):
            return
        (self._closed.add if is_closed else self._closed.remove)(name)
        waiting = [each for each in self._requests.values() if each.id not in self._since]
        for request in [each for each in waiting if self._queue(each) == name]:
            if is_closed:
                self._leave(request)
                self._told.pop(request.id, None)
                self._silenced.append(request.id)
            else:
                self._join(request, now)
                self._new.append(request.id)

    def set_node(self, name: str, state: str, now: float) -> None:
        self._away.pop(name, None)
        if state != "up":
            self._away[name] = now
        self._lessen(name)

    def set_foreign(self, name: str, amounts: Mapping[str, float], now: float) -> None:
        self._foreign[name] = (now, amounts)
        self._lessen(name)

    def learn_node(self, node: ClusterNode, now: float) -> None:  # noqa: ARG002
        """A node that was not there before, or is not what it was."""
        self._nodes[node.name] = node
        known = [area for area in self._all() if node.name in area.nodes]
        queues = self._scheduling.queues
        names = [queue.name for queue in queues if own_nodes(queue, queues, [node])]
        for area in known or [self._areas[name] for name in names[:1]]:
            area.learn_node(node)
        self._shares.update(_shares(list(self._nodes.values()), self._scheduling))
        self._lessen(node.name)

    def _lessen(self, name: str) -> None:
        """Let a node count for what can be used of it."""
        self.reopened(f"node {name}")
        since, amounts = self._foreign.get(name, (0.0, {}))
        if name in self._away:
            self.closed(f"node {name}", self._away[name], inf, (name,))
        elif amounts:
            for area in self._all():
                if name in area.nodes:
                    area.forecaster.closed(f"node {name}", since, inf, amounts)

    def closed(self, name: str, start: float, end: float, nodes: Iterable[str]) -> None:
        """Nodes cannot be used for some time."""
        names = tuple(nodes)
        for area in self._all():
            area.close(name, start, end, names)

    def reopened(self, name: str) -> None:
        for area in self._all():
            area.forecaster.reopened(name)

    # -- what is foretold ----------------------------------------------------------------------------

    def fresh(
        self, now: float, guarantees: Guarantees, revised: Iterable[str] = ()
    ) -> dict[str, Expectation | None]:
        """What those are told who came since the last pass, and now and then everybody; None for no more.

        Nobody is told anything later than the guarantee; whose guarantee is better now is told anew.
        """
        if self.is_ignorant:
            return {}
        found: dict[str, Expectation | None] = dict.fromkeys(self._silenced)
        self._silenced = []
        new = dict.fromkeys(each for each in self._new if self._waits(each))
        self._new = []
        if new and len(new) <= _MOST:
            found |= self._of(new, now, guarantees)
        elif self._is_time(now):
            self._refreshed = now
            found |= self._of_all(now, guarantees)
        for each in revised:
            told, by = self._told.get(each), _near(guarantees(each), now)
            if each not in found and by is not None and (told is None or told.p90 > by):
                found[each] = Expectation(by if told is None else min(told.p50, by), by)
            elif each not in found and by is None and each not in self._played:
                found[each] = None  # its reservation is gone
                self._told.pop(each, None)
        self._told |= {each: told for each, told in found.items() if told is not None}
        return found

    def expect(self, request: Request, guaranteed_by: float | None, now: float) -> Expectation | None:
        """What one would be told who came now."""
        self.learn()
        if guaranteed_by is not None and (guaranteed_by <= now or request.reservation):
            return Expectation(guaranteed_by, guaranteed_by)
        if request.reservation or self._queue(request) in self._closed:
            return None
        area = self._area(request)
        return _later(area.try_out(request, guaranteed_by, now), area, guaranteed_by, now)

    def _is_time(self, now: float) -> bool:
        waiting = len(self._requests) - len(self._since)
        return 0 < waiting <= _MOST and now - self._refreshed > _REFRESH

    def _of(self, ids: Iterable[str], now: float, guarantees: Guarantees) -> dict[str, Expectation]:
        """What each is told who has just come."""
        found = {}
        for each in ids:
            request, by = self._requests[each], _near(guarantees(each), now)
            told: Expectation | None
            if each in self._played:
                area = self._area(request)
                told = _later(area.forecaster.expect(each, now, by), area, by, now)
            else:
                told = None if by is None else Expectation(by, by)
            if told is not None:
                found[each] = told
        return found

    def _of_all(self, now: float, guarantees: Guarantees) -> dict[str, Expectation]:
        found = {}
        known = {each: by for each in self._requests if (by := _near(self._by(each, guarantees), now))}
        for area in self._all():
            for each, told in area.forecaster.expect_all(now, known).items():
                later = _later(told, area, known.get(each), now)
                if later is not None:
                    found[each] = later
        return found

    def _by(self, request_id: str, guarantees: Guarantees) -> float | None:
        return None if request_id in self._since else guarantees(request_id)

    def _waits(self, request_id: str) -> bool:
        return request_id in self._requests and request_id not in self._since

    def _queue(self, request: Request) -> str:
        return request.queue if request.queue in self._areas else self._scheduling.default_queue

    def _limits_of(self, bounds: LimitsOf) -> LimitsOf:
        """Limits, and what its queue may use at one time."""

        def limits_of(request: Request) -> Iterable[tuple[Hashable, Mapping[str, float]]]:
            share = self._shares.get(request.queue or self._scheduling.default_queue)
            return bounds(request) if share is None else [*bounds(request), share]

        return limits_of

    def _area(self, request: Request) -> _Area:
        return self._areas[self._queue(request)]

    def _all(self) -> Iterable[_Area]:
        return {id(area): area for area in self._areas.values()}.values()


def _areas(
    nodes: Sequence[ClusterNode], scheduling: Scheduling, limits_of: LimitsOf, history: History
) -> Iterator[tuple[str, _Area]]:
    """Queues that share nodes are in one area."""
    together: list[tuple[set[str], list[Queue]]] = []
    for queue in scheduling.queues:
        names = {node.name for node in own_nodes(queue, scheduling.queues, nodes)}
        queues = [queue]
        for known in [known for known in together if not known[0].isdisjoint(names)]:
            together.remove(known)
            names, queues = names | known[0], known[1] + queues
        together.append((names, queues))
    for names, queues in together:
        usual = next((queue for queue in queues if queue.name == scheduling.default_queue), queues[0])
        area = _Area(usual, [node for node in nodes if node.name in names], limits_of, history)
        yield from ((queue.name, area) for queue in queues)


def _shares(
    nodes: Sequence[ClusterNode], scheduling: Scheduling
) -> dict[str, tuple[Hashable, dict[str, float]]]:
    """What queues may use at one time of the nodes they have."""
    found: dict[str, tuple[Hashable, dict[str, float]]] = {}
    for queue in scheduling.queues:
        if queue.share is not None:
            most = share_of(queue, own_nodes(queue, scheduling.queues, nodes))
            found[queue.name] = (("share", queue.name), most)
    return found


def _also(amounts: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
    """What counts beside a shape: all that is on nodes it takes as a whole, and limits."""
    return {**{kind: amount for kind, amount in amounts.items() if kind != "node"}, **counts}


def _later(told: Expectation, area: _Area, by: float | None, now: float) -> Expectation | None:
    """What one is told whom the planner did not start: it waits at least until something ends.

    Nodes have borders, and a play knows only sums.
    """
    if told.p90 == inf:
        return None
    if told.p50 > now:
        return told
    soonest = area.forecaster.soonest(now)
    first = min(now if soonest == inf else soonest, inf if by is None else by)
    return Expectation(max(told.p50, first), max(told.p90, first))


def _near(moment: float | None, now: float) -> float | None:
    """A start that can be promised: nothing without a limit is in the way."""
    return moment if moment is not None and moment - now < FAR else None


def _history(past: Iterable[PastRun], scheduling: Scheduling) -> History:
    """Of what ran before the service was started, the oldest first."""
    history = History()
    for run in sorted(past, key=lambda run: run.ended_at):
        limit = limit_of(run.limit, run.grace, scheduling)
        work = Work(
            run.owner,
            f"{run.name}/{run.unit}",
            shape(asked_for(run.parts)) if run.parts else "",
            run.flavor or "",
            inf if limit >= ASSUMED else limit,
        )
        history.add(work, run.seconds)
    return history


def _work(request: Request) -> Work:
    limit = _honest(request).limit
    return Work(request.user, request.name, shape(needed(request)), request.flavor, limit)


def _honest(request: Request) -> Request:
    """Without the year that the planner takes something without a limit to run."""
    return msgspec.structs.replace(request, limit=inf) if request.limit >= ASSUMED else request
