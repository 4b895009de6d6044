"""Upkeep: nodes that come and go, windows in which they are closed, and what others use of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import inf

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import mismatch
from jobman.sched.blocks import Block, on_nodes
from jobman.sched.capacity import to_units
from jobman.sched.profile import Pairs
from jobman.sched.schedule import Schedule
from jobman.sched.timeline import PLACE
from jobman.sched.windows import Window

_SUSPECT = 300.0
"""Seconds for which a suspect node is not counted on, again and again."""
UNAVAILABLE = ("down", "draining", "suspect")


class Away:
    """A node that cannot be used: its state, and from when to when."""

    __slots__ = ("cause", "since", "state", "until")

    def __init__(self, state: str, since: float, until: float, cause: str) -> None:
        self.state = state
        self.since = since
        self.until = until
        self.cause = cause


class Upkeep:
    """Tells the schedule what has become of the nodes."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._timeline = schedule.timeline
        self._windows = schedule.windows
        self.away: dict[str, Away] = {}
        self.dues: list[float] = []
        """When to look at windows and suspect nodes."""

    # -- nodes ---------------------------------------------------------------------------------------

    def set_node(self, name: str, state: str, now: float, cause: str) -> None:
        number = self._timeline.numbers[name]
        known = self.away.pop(name, None)
        if known is not None:
            self._timeline.unplan(self._timeline.closing([number]), known.since, known.until)
            self._schedule.releases.add((number,), now, inf)
            if state not in UNAVAILABLE:
                self._schedule.happened(f"node {name}", "came back")
        self._timeline.opened(number, is_open=state not in UNAVAILABLE)
        if state in UNAVAILABLE:
            away = Away(state, now, now, cause or f"node {name} is {state}")
            self.away[name] = away
            self._keep_away(number, away, now + _SUSPECT if state == "suspect" else inf, now)

    def _keep_away(self, number: int, away: Away, until: float, now: float) -> None:
        """Close a node for longer than it was."""
        since, away.until = away.until, until
        self._timeline.plan(self._timeline.closing([number]), since, until)
        self._schedule.displace([number], since, until, away.cause, now)
        if until < inf:
            heappush(self.dues, until)

    def add_node(self, node: ClusterNode, now: float) -> None:
        """One more node, empty and up; one that is known already comes back as another."""
        if node.name in self._timeline.numbers:
            raise ValueError(f"there is a node {node.name} already; set its state")
        number = self._timeline.add(node)
        self._compile_again()
        self._freed([number], now, inf, f"node {node.name}", "was added")

    def _compile_again(self) -> None:
        """There are others, or others of them, than those who wait were looked at with."""
        compiler = self._schedule.compiler
        compiler.renew()
        for lane in self._schedule.lanes:
            lane.by_gang = None
            for entry in lane.waiting:
                if not entry.window:
                    entry.gang = compiler.gang(entry.request, lane.queue.name)

    def change_node(self, node: ClusterNode, now: float) -> None:
        """A node has more or less than it had, or something else is true of it; what runs there runs on."""
        number = self._timeline.numbers[node.name]
        row = self._timeline.rows[number]
        more = self._timeline.change(number, node)
        row.profile.take(now, inf, [(kind, -units) for kind, units in more])
        row.settle()
        self._compile_again()
        self._grow_whole(number, [(kind, units) for kind, units in more if units > 0], now)
        self._timeline.touched(number)
        self._freed([number], now, inf, f"node {node.name}", "has changed")
        self._schedule.displace([number], now, inf, f"node {node.name} has less than before", now)
        self._leave_unsuited(number, f"node {node.name} has changed")

    def _leave_unsuited(self, number: int, cause: str) -> None:
        """Who was promised a place on a node that does not suit them any more looks for another one."""
        for lane in self._schedule.lanes:
            for entry in list(lane.reserved.values()):
                spot = entry.spot
                if spot is None or entry.window:
                    continue
                pieces = entry.gang.choices[spot.choice].pieces
                if any(
                    number in places and number not in piece.ground.members
                    for piece, places in zip(pieces, spot.places, strict=True)
                ):
                    for member in entry.circle.waiting() if entry.circle is not None else (entry,):
                        if member.spot is not None:
                            member.lane.lost_rows.add(number)
                            self._schedule.unreserve(member, cause)
                            self._schedule.news += 1

    def set_foreign(self, name: str, amounts: Mapping[str, float], now: float) -> None:
        """What others use of a node, from now on and for as long as nobody says otherwise."""
        number = self._timeline.numbers[name]
        row = self._timeline.rows[number]
        wanted = [to_units(kind, amounts.get(kind, 0)) for kind in self._timeline.kinds]
        more = [units - known for units, known in zip(wanted, row.foreign, strict=True)]
        row.profile.take(now, inf, [(kind, units) for kind, units in enumerate(more) if units])
        for kind, units in enumerate(more):
            row.free[kind] -= units
            row.capacity[kind] -= units
        row.foreign = wanted
        row.settle()
        self._schedule.compiler.resized()
        self._grow_whole(number, [(kind, -units) for kind, units in enumerate(more) if units < 0], now)
        self._timeline.touched(number)
        if any(units < 0 for units in more):
            self._freed([number], now, inf, "others", f"use less of node {name}")
        if any(units > 0 for units in more):
            self._schedule.displace([number], now, inf, f"others use more of node {name}", now)

    def _grow_whole(self, number: int, grown: Pairs, now: float) -> None:
        """Who has a node as a whole has what it gains, too."""
        place = self._timeline.kinds.get(PLACE)
        if not grown or place is None:
            return
        for entry in self._schedule.entries.values():
            spot = entry.spot
            held = [] if spot is None else [pairs for row, pairs in spot.holds if row == number]
            if spot is None or not held or all(kind != place for kind, _ in held[0]):
                continue
            amounts = dict(held[0])
            for kind, units in grown:
                amounts[kind] = amounts.get(kind, 0) + units
            self._timeline.plan([(number, grown)], max(now, spot.start), entry.end)
            if entry.is_running:
                self._timeline.hold([(number, grown)])
            spot.holds = [
                (row, tuple(amounts.items()) if row == number else pairs) for row, pairs in spot.holds
            ]

    def _freed(self, rows: Iterable[int], begin: float, end: float, who: str, what: str) -> None:
        self._schedule.releases.add(tuple(rows), begin, end)
        self._schedule.happened(who, what)

    # -- windows -------------------------------------------------------------------------------------

    def block(self, block: Block, now: float) -> tuple[str, ...]:
        """Keep nodes free for a window; returns their names."""
        if self._windows.get(block.name) is not None:
            self.unblock(block.name, now)
        numbers = self._timeline.numbers
        names = on_nodes(block, numbers) if block.count is None else self._best_for(block)
        window = Window(block, frozenset(numbers[name] for name in names))
        self._windows.add(window)
        self._schedule.displace(window.rows, max(now, block.start), block.end, window.words, now)
        self._wake_booked()
        heappush(self.dues, block.start)
        if block.end < inf:
            heappush(self.dues, block.end)
        return names

    def _best_for(self, block: Block) -> tuple[str, ...]:
        """Nodes on which nothing is planned in a window, then those where the least is lost."""
        fitting = [row for row in self._timeline.rows if mismatch(row.node, block.requires, {}) is None]
        order = sorted(fitting, key=lambda row: not row.profile.fits(row.whole, block.start, block.end))
        return tuple(row.name for row in order[: block.count or 0])

    def unblock(self, name: str, now: float) -> None:
        """A window is over, or is not wanted any more."""
        for lane in self._schedule.lanes:
            for entry in list(lane.reserved.values()):
                if entry.window == name:
                    self._schedule.unreserve(entry, f"the reservation {name} is gone")
                    entry.window = ""
        window = self._windows.remove(name)
        self._freed(window.rows, max(now, window.start), window.end, window.words, "was removed")

    def _wake_booked(self) -> None:
        for lane in self._schedule.lanes:
            if lane.reservation:
                lane.is_stale = True

    # -- time ----------------------------------------------------------------------------------------

    def pass_dues(self, now: float) -> None:
        """A window begins or ends, or a suspect node should be back: what was not possible may be now."""
        while self.dues and self.dues[0] <= now:
            heappop(self.dues)
        for name, away in self.away.items():
            if away.until <= now:
                self._keep_away(self._timeline.numbers[name], away, now + _SUSPECT, now)
        ended = self._windows.closed_until(now)
        if ended:
            self._freed(ended, now, inf, "a window", "is over")
        self._wake_booked()
