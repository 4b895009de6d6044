"""Small clusters, requests for them, and a site that plays a history and checks all that a planner says.

What is checked is worked out from the shapes alone: nothing here asks the planner what is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from math import inf

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.sched.blocks import Block
from jobman.sched.planner import Pass, Planner
from jobman.sched.queues import Queue, QueueState
from jobman.sched.requests import Extension, Placed, Promise, Request, Revision, Start
from jobman.sched.wishes import NO_WISHES, Wishes
from jobman.spec.shapes import Alternative, Alternatives, Part

Held = dict[str, dict[str, float]]
"""Amounts by node and kind; `whole` for one who is alone there."""
WHOLE = "whole"
EXCUSES = ("node ", "maintenance", "reservation", "ran longer", "queue", "joins it")
"""What a guarantee that moves later must be blamed on."""
PUNCTUAL = 1.0
"""Who starts less than so many seconds late is in time, and is over when it was to be."""

# -- builders ----------------------------------------------------------------------------------------------


def node(name: str, cores: float = 4, *, gpus: int = 0, memory: int = 0, **facts: str) -> ClusterNode:
    amounts: dict[str, float] = {"core": cores}
    if gpus:
        amounts["gpu"] = gpus
    if memory:
        amounts["memory"] = memory
    return ClusterNode(name=name, amounts=amounts, facts=facts)


def equal_nodes(count: int, cores: float = 4, *, gpus: int = 0, memory: int = 0) -> list[ClusterNode]:
    return [node(f"n{number}", cores, gpus=gpus, memory=memory) for number in range(1, count + 1)]


def cores(count: float, *, slots: int = 1, **requires: str) -> Part:
    """So many slots of so many cores each, wherever there is room."""
    return Part(slots=slots, each={"core": count}, requires=requires)


def nodes(count: int, **each: float) -> Part:
    """So many nodes, and what is needed on each."""
    return Part(nodes=count, each=dict(each))


def whole(count: int = 1, **requires: str) -> Part:
    return Part(nodes=count, exclusive=True, requires=requires)


def alternatives(*shapes: Part | Alternative) -> Alternatives:
    return tuple(shape if isinstance(shape, tuple) else (shape,) for shape in shapes)


class Asking:
    """Makes requests with numbers in the order of their making."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(
        self,
        id_: str = "",
        *shapes: Part | Alternative,
        limit: float = 100,
        wishes: Wishes = NO_WISHES,
        queue: str = "",
        weight: float = 0,
        user: str = "",
        earliest: float = -inf,
        reservation: str = "",
        overhead: dict[str, int] | None = None,
        latest: float = inf,
        together: tuple[str, ...] = (),
        job: str = "",
    ) -> Request:
        self.number += 1
        return Request(
            id=id_ or f"r{self.number}",
            alternatives=alternatives(*(shapes or (cores(1),))),
            limit=limit,
            wishes=wishes,
            number=self.number,
            queue=queue,
            weight=weight,
            user=user,
            earliest=earliest,
            reservation=reservation,
            overhead=overhead or {},
            latest=latest,
            together=together,
            job=job,
        )


def maintenance(name: str, start: float, end: float, *names: str) -> Block:
    return Block(name=name, start=start, end=end, nodes=names, kind="maintenance")


def reservation(name: str, start: float, end: float, *names: str, users: tuple[str, ...] = ("ada",)) -> Block:
    return Block(name=name, start=start, end=end, nodes=names, kind="reservation", users=users)


# -- what a placement means --------------------------------------------------------------------------------


def piece_count(part: Part) -> int:
    if part.nodes is not None:
        return part.nodes
    return 1 if part.beside else part.slots or 1


def piece_need(part: Part) -> dict[str, float]:
    if part.nodes is not None or part.beside:
        return dict(part.per_node)
    return dict(part.each)


def is_alone(part: Part, wishes: Wishes) -> bool:
    return part.is_whole or wishes.exclusive


def held(request: Request, placed: Placed) -> Held:
    """What a request holds on each node."""
    found: Held = {}
    for part, places in zip(request.alternatives[placed.alternative], placed.places, strict=True):
        need = piece_need(part)
        for kind, more in request.overhead.items():
            need[kind] = need.get(kind, 0) + (more / 1000 if kind == "core" else more)
        for name, count in places.items():
            mine = found.setdefault(name, {})
            for kind, amount in need.items():
                mine[kind] = mine.get(kind, 0) + amount * count
            if is_alone(part, request.wishes):
                mine[WHOLE] = 1
    return found


def domain(where: ClusterNode, level: str) -> str | None:
    return where.name if level == "node" else where.facts.get(level, where.labels.get(level))


class Wrong(AssertionError):
    """Something that must never happen."""


class Running(msgspec.Struct):
    request: Request
    placed: Placed
    since: float
    until: float
    ends: float
    """When it really ends."""


class Site:
    """A planner with its cluster: what happens is told to it, what it says is checked and carried out."""

    def __init__(
        self,
        cluster: Iterable[ClusterNode],
        queues: Iterable[Queue] = (Queue(name="batch"),),
        *,
        bounds: dict[str, dict[str, float]] | None = None,
        is_exact: bool = True,
        now: float = 0.0,
        firm: float = inf,
    ) -> None:
        self.nodes = {each.name: each for each in cluster}
        self.queues = {queue.name: queue for queue in queues}
        self.bounds = bounds
        self.is_exact = is_exact
        """Whether a pass is made at every moment the planner asks for."""
        self.lags: Iterator[float] = repeat(0.0)
        """How late each pass is that should be made at a moment."""
        self.now = now
        self.firm = firm
        """How far ahead anything is promised."""
        self.planner = Planner(
            list(self.nodes.values()),
            list(self.queues.values()),
            bounds=self.bounds_of if bounds is not None else None,
            firm=firm,
        )
        self.ask = Asking()
        self.waiting: dict[str, Request] = {}
        self.runs: dict[str, float] = {}
        self.running: dict[str, Running] = {}
        self.starts: dict[str, float] = {}
        self.placed: dict[str, Placed] = {}
        self.guarantees: dict[str, float] = {}
        self.revisions: list[Revision] = []
        self.states: dict[str, str] = {}
        self.blocks: dict[str, Block] = {}
        self.order: list[str] = []
        self.foreign: dict[str, dict[str, float]] = {}

    def bounds_of(self, request: Request) -> list[tuple[str, dict[str, float]]]:
        assert self.bounds is not None
        return [(user, most) for user, most in self.bounds.items() if user == request.user]

    # -- what happens --------------------------------------------------------------------------------------

    def submit(self, request: Request, run: float | None = None) -> Request:
        """Let it wait; it will run for so long, or for all of its limit."""
        self.planner.submit(request, self.now)
        self.waiting[request.id] = request
        self.runs[request.id] = request.limit if run is None else run
        return request

    def asks(
        self, id_: str = "", *shapes: Part | Alternative, run: float | None = None, **more: object
    ) -> str:
        return self.submit(self.ask(id_, *shapes, **more), run).id  # type: ignore[arg-type]

    def withdraw(self, id_: str) -> None:
        self.planner.withdraw(id_, self.now)
        del self.waiting[id_]
        self.guarantees.pop(id_, None)

    def end(self, id_: str) -> None:
        self.planner.ended(id_, self.now)
        del self.running[id_]

    def set_node(self, name: str, state: str) -> None:
        """What runs on a node that is lost is over."""
        self.states[name] = state
        self.planner.set_node(name, state, self.now)
        if state == "down":
            for id_, run in list(self.running.items()):
                if name in held(run.request, run.placed):
                    self.end(id_)

    def block(self, block: Block) -> tuple[str, ...]:
        names = self.planner.block(block, self.now)
        self.blocks[block.name] = msgspec.structs.replace(block, nodes=names)
        return names

    def unblock(self, name: str) -> None:
        self.planner.unblock(name, self.now)
        del self.blocks[name]

    def add_node(self, each: ClusterNode) -> None:
        self.planner.add_node(each, self.now)
        self.nodes[each.name] = each

    def set_foreign(self, name: str, **amounts: float) -> None:
        self.planner.set_foreign(name, amounts, self.now)
        self.foreign[name] = amounts

    def set_queue(self, name: str, state: QueueState) -> None:
        self.queues[name] = msgspec.structs.replace(self.queues[name], state=state)
        self.planner.set_queue(name, state)

    def extend(self, id_: str, seconds: float) -> Extension:
        answer = self.planner.extend(id_, seconds, self.now)
        if answer.granted:
            run = self.running[id_]
            run.until += seconds
            run.ends += seconds
        return answer

    # -- time ----------------------------------------------------------------------------------------------

    def plan(self) -> Pass:
        done = self.planner.plan(self.now)
        for revision in done.revisions:
            self._revise(revision)
        for start in done.starts:
            self._begin(start)
        self._check_foreign(done.starts)
        self._check_circles(done.starts)
        self.check()
        return done

    def advance(self, to: float) -> None:
        """Let time pass, with a pass whenever something ends or the planner wants one."""
        while (moment := self._next()) <= to:
            self.now = moment + next(self.lags)
            self.end_what_is_over()
            self.plan()
        self.now = max(self.now, to)

    def settle(self, most: float = inf) -> None:
        """Let everything run that can."""
        self.plan()
        steps = 0
        while (moment := self._next()) < most:
            self.now = moment + next(self.lags)
            self.end_what_is_over()
            self.plan()
            steps += 1
            if steps > 2000:
                raise Wrong(f"the planner wants passes for ever: now {self.now}, next {self._next()}")

    def end_what_is_over(self) -> None:
        for id_, run in list(self.running.items()):
            if run.ends <= self.now:
                self.end(id_)

    def _next(self) -> float:
        due = self.planner.next_due(self.now)
        if due is not None and due <= self.now:
            raise Wrong(f"a pass is wanted at {due}, and it is {self.now}")
        ends = (max(run.ends, self.now) for run in self.running.values())
        return min([*ends, inf if due is None else due])

    # -- carrying out --------------------------------------------------------------------------------------

    def _begin(self, start: Start) -> None:
        if start.id not in self.waiting:
            raise Wrong(f"{start.id} does not wait, and starts")
        request = self.waiting.pop(start.id)
        self._check_gang(request, start.placed)
        self._check_ground(request, start.placed, start.until)
        if not self.now - PUNCTUAL < start.until - request.limit < self.now + 1e-6 and start.until < inf:
            raise Wrong(f"{start.id} may run until {start.until}, not for all of its limit")
        promised = self.guarantees.pop(start.id, inf)
        if promised <= self.now - PUNCTUAL:
            raise Wrong(f"{start.id} was promised {promised} and starts {self.now}")
        if not request.earliest <= self.now <= request.latest:
            raise Wrong(f"{start.id} starts {self.now}, not from {request.earliest} to {request.latest}")
        self.starts[start.id] = self.now
        self.placed[start.id] = start.placed
        self.order.append(start.id)
        ends = self.now + self.runs.get(start.id, request.limit)
        self.running[start.id] = Running(request, start.placed, self.now, start.until, ends)

    def _revise(self, revision: Revision) -> None:
        known = self.guarantees.get(revision.id)
        self.revisions.append(revision)
        is_later = revision.before is not None and (
            revision.after is None or revision.after > revision.before
        )
        if is_later and not any(word in revision.cause for word in EXCUSES):
            raise Wrong(f"moved later without an excuse: {revision}")
        if revision.before != known:
            raise Wrong(f"{revision}, but the guarantee was {known}")
        if revision.after is not None and revision.after > self.now + self.firm:
            raise Wrong(f"{revision} is too far ahead to be promised")
        if revision.after is None:
            self.guarantees.pop(revision.id, None)
        else:
            self.guarantees[revision.id] = revision.after

    # -- checking ------------------------------------------------------------------------------------------

    def check(self) -> None:
        self._check_nodes(self._held_now())
        self._check_bounds()
        self._check_promises()
        self._check_plan()

    def _held_now(self) -> Iterator[tuple[str, Held]]:
        for id_, run in self.running.items():
            yield id_, held(run.request, run.placed)

    def _check_nodes(self, holdings: Iterable[tuple[str, Held]], when: str = "now") -> None:
        """No more is held than there is, and who is alone is alone."""
        by_node: dict[str, dict[str, dict[str, float]]] = {}
        for id_, mine in holdings:
            for name, amounts in mine.items():
                by_node.setdefault(name, {})[id_] = amounts
        for name, holders in by_node.items():
            if any(WHOLE in amounts for amounts in holders.values()) and len(holders) > 1:
                raise Wrong(f"{name} is shared by {sorted(holders)} {when}, and one of them wants it alone")
            total: Counter[str] = Counter()
            for amounts in holders.values():
                total.update({kind: amount for kind, amount in amounts.items() if kind != WHOLE})
            for kind, amount in total.items():
                if kind == "socket" and kind not in self.nodes[name].amounts:
                    continue
                if amount > self.nodes[name].amounts.get(kind, 0) + 1e-9:
                    raise Wrong(f"{name} gives {amount} {kind} {when}: {holders}")

    def _check_foreign(self, starts: Iterable[Start]) -> None:
        """Nobody starts on what others use."""
        used = {name for start in starts for places in start.placed.places for name in places}
        for name in used & self.foreign.keys():
            others = [(run, held(run.request, run.placed).get(name, {})) for run in self.running.values()]
            for kind, foreign in self.foreign[name].items():
                mine = sum(amounts.get(kind, 0) for _, amounts in others)
                if foreign and mine + foreign > self.nodes[name].amounts.get(kind, 0):
                    raise Wrong(f"{mine} {kind} are used on {name}, of which others use {foreign}")

    def _check_circles(self, starts: Iterable[Start]) -> None:
        """Who must run together starts together."""
        begun = {start.id for start in starts}
        for id_ in begun:
            for other in self.running[id_].request.together:
                if other in self.waiting or self.starts.get(other, self.now) != self.now:
                    raise Wrong(f"{id_} starts without {other}")

    def _check_gang(self, request: Request, placed: Placed) -> None:
        """All pieces are there, where they may be, and as they were wished."""
        parts = request.alternatives[placed.alternative]
        if len(parts) != len(placed.places):
            raise Wrong(f"{request.id} has {len(placed.places)} of {len(parts)} parts")
        own: list[str] = []
        for part, places in zip(parts, placed.places, strict=True):
            if sum(places.values()) != piece_count(part) or min(places.values()) < 1:
                raise Wrong(f"{request.id} wants {piece_count(part)} pieces and gets {places}")
            if part.nodes is not None:
                own.extend(places)
                if set(places.values()) != {1}:
                    raise Wrong(f"{request.id} wants nodes of their own and gets {places}")
            for name in places:
                self._check_facts(request, part, self.nodes[name])
        if len(set(own)) < len(own):
            raise Wrong(f"{request.id} has one node for two of its nodes: {placed.places}")
        self._check_wishes(request, placed)

    def _check_facts(self, request: Request, part: Part, where: ClusterNode) -> None:
        for key, value in part.requires.items():
            if where.facts.get(key, where.labels.get(key)) != value:
                raise Wrong(f"{request.id} requires {key}={value} and gets {where.name}")
        for key, value in request.wishes.labels.items():
            if where.labels.get(key) != value:
                raise Wrong(f"{request.id} wishes {key}={value} and gets {where.name}")

    def _check_wishes(self, request: Request, placed: Placed) -> None:
        wishes = request.wishes
        used = [name for places in placed.places for name in places]
        if wishes.near is not None and wishes.near.required:
            mine = {domain(self.nodes[name], wishes.near.by) for name in used}
            if wishes.near.own and (len(mine) > 1 or None in mine):
                raise Wrong(f"{request.id} is not near to itself: {placed.places}")
            theirs = self._domains(wishes.near.nodes, wishes.near.by)
            if wishes.near.nodes and not mine <= theirs:
                raise Wrong(f"{request.id} is not near to {wishes.near.nodes}: {placed.places}")
        if wishes.apart is not None and wishes.apart.required:
            level = wishes.apart.by
            if self._domains(used, level) & self._domains(wishes.apart.nodes, level):
                raise Wrong(f"{request.id} is not apart from {wishes.apart.nodes}: {placed.places}")
            pieces = Counter[str | None]()
            for places in placed.places:
                for name, count in places.items():
                    pieces[domain(self.nodes[name], level)] += count
            pieces.pop(None, None)
            if wishes.apart.own and any(count > 1 for count in pieces.values()):
                raise Wrong(f"{request.id} is not apart from itself: {placed.places}")
        if wishes.spread is not None and wishes.spread.required and len(placed.places) == 1:
            self._check_spread(request, placed)

    def _check_spread(self, request: Request, placed: Placed) -> None:
        spread = request.wishes.spread
        assert spread is not None
        part = request.alternatives[placed.alternative][0]
        size = part.copies // piece_count(part)
        level = spread.by
        copies: Counter[str | None] = Counter(
            domain(self.nodes[name], level) for name in spread.placed if name in self.nodes
        )
        got: Counter[str | None] = Counter()
        for name, count in placed.places[0].items():
            got[domain(self.nodes[name], level)] += count * size
        copies.update(got)
        if None in got:
            raise Wrong(f"{request.id} is spread over {level} and gets a node without one: {placed.places}")
        if request.wishes.near is not None or request.wishes.apart is not None or request.reservation:
            return
        own = self._ground(request)
        is_borrowed = not {each.name for each in own}.issuperset(placed.places[0])
        ground = self._ground(request, borrowed=True) if is_borrowed else own
        suited = [
            each
            for each in ground
            if all(each.facts.get(key, each.labels.get(key)) == value for key, value in part.requires.items())
            and all(each.amounts.get(kind, 0) >= amount for kind, amount in piece_need(part).items())
        ]
        least = min(copies[place] for each in suited if (place := domain(each, level)) is not None)
        if any(copies[place] - least > max(spread.skew, size) for place in got):
            raise Wrong(f"{request.id} is not even: {placed.places}, {dict(copies)}")

    def _domains(self, names: Iterable[str], level: str) -> set[str | None]:
        return {domain(self.nodes[name], level) for name in names if name in self.nodes} - {None}

    def _queue(self, request: Request) -> Queue:
        return self.queues.get(request.queue) or self.queues.get("batch") or list(self.queues.values())[-1]

    def _own(self, queue: Queue) -> set[str]:
        named = {name for each in self.queues.values() for name in each.nodes}
        return set(queue.nodes) or set(self.nodes) - named

    def _ground(self, request: Request, *, borrowed: bool = False) -> list[ClusterNode]:
        queue = self._queue(request)
        names = self._own(queue)
        if borrowed:
            for other in queue.borrow:
                names |= self._own(self.queues[other])
        return [each for name, each in self.nodes.items() if name in names]

    def _check_ground(self, request: Request, placed: Placed, until: float) -> None:
        """Only on nodes of its queue that are up, and out of every window until its time is over."""
        used = {name for places in placed.places for name in places}
        for name in used:
            if self.states.get(name, "up") != "up":
                raise Wrong(f"{request.id} starts on {name}, which is {self.states[name]}")
        if request.reservation:
            mine = [
                block
                for block in self.blocks.values()
                if block.kind == "reservation"
                and request.reservation in (block.name, block.definition)
                and block.start <= self.now
                and until <= block.end
                and used <= set(block.nodes)
            ]
            if not mine:
                raise Wrong(f"{request.id} starts out of its reservation {request.reservation} on {used}")
        else:
            mine = []
            allowed = {each.name for each in self._ground(request, borrowed=True)}
            if not used <= allowed:
                raise Wrong(f"{request.id} starts on {used}, and its queue has {allowed}")
        for block in self.blocks.values():
            if block not in mine and used & set(block.nodes) and block.start < until and self.now < block.end:
                raise Wrong(f"{request.id} runs from {self.now} to {until} on {used} into {block}")

    def _check_bounds(self) -> None:
        for user, most in (self.bounds or {}).items():
            for kind, amount in most.items():
                theirs = [run for run in self.running.values() if run.request.user == user]
                used = sum(self._used(run.request, run.placed, kind) for run in theirs)
                if kind == "job":
                    used = len({run.request.job or run.request.id for run in theirs})
                if used > amount + 1e-9:
                    raise Wrong(f"{user} uses {used} {kind}, and may use {amount}")

    def _used(self, request: Request, placed: Placed, kind: str) -> float:
        mine = held(request, placed)
        if kind == "node":
            parts = request.alternatives[placed.alternative]
            return sum(part.nodes or 0 for part in parts)
        return sum(
            self.nodes[name].amounts.get(kind, 0) if WHOLE in amounts else amounts.get(kind, 0)
            for name, amounts in mine.items()
        )

    def _check_promises(self) -> None:
        """What is promised is what was said, and nothing promised is overdue."""
        for id_, request in self.waiting.items():
            promise = self.planner.promise(id_)
            if promise.guaranteed_by != self.guarantees.get(id_):
                raise Wrong(
                    f"{id_} is promised {promise.guaranteed_by}, and was told {self.guarantees.get(id_)}"
                )
            if promise.guaranteed_by is None:
                continue
            if self._is_overdue(promise.guaranteed_by) and not self._is_closed(request):
                raise Wrong(f"{id_} was promised {promise.guaranteed_by} and waits {self.now}")
            if promise.placed is None:
                raise Wrong(f"{id_} is promised {promise.guaranteed_by} and has no place")
            if not request.earliest <= promise.guaranteed_by <= request.latest:
                raise Wrong(f"{id_} is promised {promise.guaranteed_by}, out of its window")
            self._check_gang(request, promise.placed)

    def _is_overdue(self, guaranteed_by: float) -> bool:
        if not self.is_exact or guaranteed_by > self.now:
            return False
        # Somebody whose time is over may yet end this very moment.
        return guaranteed_by < self.now or not any(run.until <= self.now for run in self.running.values())

    def _is_closed(self, request: Request) -> bool:
        return self._queue(request).state is QueueState.CLOSED

    def _check_plan(self) -> None:
        """All that runs and all that is promised fits, at every moment to come, around the windows."""
        spans: list[tuple[float, float, str, Held]] = [
            (self.now, run.until, id_, held(run.request, run.placed)) for id_, run in self.running.items()
        ]
        promised = set()
        for id_, request in self.waiting.items():
            promise = self.planner.promise(id_)
            if promise.guaranteed_by is None or promise.placed is None:
                continue
            promised.add(id_)
            start = promise.guaranteed_by
            spans.append((start, start + request.limit, id_, held(request, promise.placed)))
            self._check_promised_ground(request, promise.placed, start)
        moments = sorted({start for start, *_ in spans if start > self.now})
        for moment in moments:
            there = [(id_, mine) for start, end, id_, mine in spans if start <= moment < end]
            if any(id_ in promised for id_, _ in there):
                self._check_nodes(there, f"at {moment}")

    def _check_promised_ground(self, request: Request, placed: Placed, start: float) -> None:
        used = {name for places in placed.places for name in places}
        end = start + request.limit
        for name in used:
            if self.states.get(name, "up") in ("down", "draining"):
                raise Wrong(f"{request.id} is promised {name}, which is {self.states[name]}")
        for block in self.blocks.values():
            if used & set(block.nodes) and block.start < end and start < block.end:
                is_mine = block.kind == "reservation" and request.reservation in (
                    block.name,
                    block.definition,
                )
                if not is_mine:
                    raise Wrong(f"{request.id} is promised {start} to {end} on {used}, in {block}")

    # -- another planner -----------------------------------------------------------------------------------

    def restarted(self) -> Site:
        """The same site with a planner that was told what runs and what was promised."""
        other = Site(
            self.nodes.values(), self.queues.values(), bounds=self.bounds, now=self.now, firm=self.firm
        )
        for name, state in self.states.items():
            other.set_node(name, state)
        for name, amounts in self.foreign.items():
            other.set_foreign(name, **amounts)
        for block in self.blocks.values():
            other.block(block)
        for id_, run in self.running.items():
            request = msgspec.structs.replace(run.request, limit=run.until - run.since)
            other.planner.restore(request, run.placed, run.since, self.now)
            other.running[id_] = run
        for id_, request in self.waiting.items():
            other._resume(request, self.planner.promise(id_))
        other.runs, other.starts, other.order = dict(self.runs), dict(self.starts), list(self.order)
        other.placed, other.ask, other.is_exact = dict(self.placed), self.ask, self.is_exact
        return other

    def _resume(self, request: Request, promise: Promise) -> None:
        self.waiting[request.id] = request
        if promise.guaranteed_by is None or promise.placed is None:
            self.planner.submit(request, self.now)
            return
        self.planner.keep(request, promise.placed, promise.guaranteed_by, self.now)
        self.guarantees[request.id] = promise.guaranteed_by

    # -- the end -------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Let everything end or leave, and see that all is free for ever."""
        for name in list(self.foreign):
            self.set_foreign(name)
        for name, state in list(self.states.items()):
            if state != "up":
                self.set_node(name, "up")
        for name in list(self.blocks):
            self.unblock(name)
        for id_ in list(self.waiting):
            self.withdraw(id_)
        for id_ in list(self.running):
            self.end(id_)
        self.now += 1
        self.plan()
        everything_is_free(self.planner, self.now)


def everything_is_free(planner: Planner, now: float) -> None:
    for row in planner.timeline.rows:
        if row.free != row.capacity:
            raise Wrong(f"{row.name} has {row.free} free of {row.capacity}")
        for kind, capacity in enumerate(row.capacity):
            steps = list(zip(row.profile.times, row.profile.columns[kind], strict=True))
            over = {start for (start, _), (end, _) in pairwise(steps) if end <= now}
            left = [free for start, free in steps if start not in over]
            if any(free != capacity for free in left):
                raise Wrong(f"{row.name} will have {steps} of {capacity}")
    for name, (kinds, profile) in planner._bounds.items():
        for number, kind in enumerate(kinds):  # type: ignore[arg-type, assignment]
            if len(set(profile.columns[number])) > 1:  # type: ignore[union-attr]
                raise Wrong(f"the bound {name} on {kind} is {profile.columns[number]} over {profile.times}")  # type: ignore[union-attr]
