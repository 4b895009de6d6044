"""The nodes over time: what is free now, what will be, and the first moment at which a gang finds room.

```
 row (a node)   ████████░░░░░░████░░░░░     one profile each, changed in place
 row            ██░░░░░░░░░░░░░░░░░░░░░
                now ──────────────────▶     a gang fits where enough rows have room for all of its limit
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import FORGIVEN
from jobman.sched.capacity import to_units
from jobman.sched.gangs import Choice, Gang, Holds, Piece, Places, Spot
from jobman.sched.moments import spaced
from jobman.sched.rows import ENDLESS, Row
from jobman.sched.seating import Seating
from jobman.sched.wishes import Wishes

if TYPE_CHECKING:
    from jobman.sched.outlook import Outlook

Rates = Mapping[int, float]
"""What a unit of each kind costs."""
FEW = 8
"""Up to so many nodes are looked at one by one."""
_SEVERAL, _SOME = 12, 32
PLACE = " place"
"""A kind that no shape names: what needs nothing takes a place, and who is alone takes all of them."""
_PLACES = 1 << 40


class Timeline:
    """All rows. The same questions in the same order get the same answers."""

    def __init__(self, nodes: Sequence[ClusterNode]) -> None:
        kinds = dict.fromkeys(kind for node in nodes for kind in node.amounts)
        self.kinds = {kind: number for number, kind in enumerate(kinds)}
        self.rows = [Row(node, [self._units(node, kind) for kind in self.kinds]) for node in nodes]
        self.numbers = {row.name: number for number, row in enumerate(self.rows)}
        self.lack = 1
        """How many rows were missing, at least, when somebody could not start now."""
        self._seating = Seating(self)
        self._look()

    def _look(self) -> None:
        self._outlook = _outlook(self.rows) if len(self.rows) > FEW else None
        is_sole = len(self.rows) == 1
        self.forget: Callable[[float], None] = self.rows[0].profile.forget if is_sole else self._forget
        """Drop what is over."""

    def _units(self, node: ClusterNode, kind: str) -> int:
        if kind in node.amounts:
            return to_units(kind, node.amounts[kind])
        return ENDLESS if kind == FORGIVEN else 0

    def add(self, node: ClusterNode) -> int:
        """One more row, with all the kinds it brings along."""
        for kind in node.amounts:
            self.know(kind)
        capacity = [_PLACES if kind == PLACE else self._units(node, kind) for kind in self.kinds]
        self.rows.append(Row(node, capacity))
        self.numbers[node.name] = len(self.rows) - 1
        self._look()
        return len(self.rows) - 1

    def change(self, number: int, node: ClusterNode) -> list[tuple[int, int]]:
        """Another node in the place of one of the same name; returns what it has more, or less, by kind."""
        for kind in node.amounts:
            self.know(kind)
        row = self.rows[number]
        counted = [(place, kind) for kind, place in self.kinds.items() if kind != PLACE]
        more = [(place, self._units(node, kind) - self._units(row.node, kind)) for place, kind in counted]
        for place, units in more:
            row.capacity[place] += units
            row.free[place] += units
        row.node = node
        return [(place, units) for place, units in more if units]

    def know(self, kind: str) -> int:
        """The number of a kind, which is counted from now on."""
        if kind not in self.kinds:
            self.kinds[kind] = len(self.kinds)
            for row in self.rows:
                row.learn(_PLACES if kind == PLACE else self._units(row.node, kind))
            self._look()
        return self.kinds[kind]

    # -- changing ------------------------------------------------------------------------------------

    def _forget(self, now: float) -> None:
        numbers: Iterable[int] = range(len(self.rows))
        if self._outlook is not None:
            numbers = self._outlook.stale(now)
            self._outlook.changed(numbers)
        for number in numbers:
            self.rows[number].profile.forget(now)

    def plan(self, holds: Holds, start: float, end: float) -> None:
        """Take something for later."""
        rows = self.rows
        for number, pairs in holds:
            rows[number].profile.change(start, end, pairs, -1)
        if self._outlook is not None:
            self._outlook.changed([number for number, _ in holds])

    def unplan(self, holds: Holds, start: float, end: float) -> None:
        rows = self.rows
        for number, pairs in holds:
            rows[number].profile.change(start, end, pairs, 1)
        if self._outlook is not None:
            self._outlook.changed([number for number, _ in holds])

    def begin(self, holds: Holds, now: float, end: float) -> None:
        """Take something now and until an end."""
        for number, pairs in holds:
            row = self.rows[number]
            row.profile.change(now, end, pairs, -1)
            free = row.free
            for kind, units in pairs:
                free[kind] -= units
        if self._outlook is not None:
            self._outlook.touched([number for number, _ in holds])

    def end(self, holds: Holds, now: float, end: float) -> None:
        """Give back what was taken until an end that may be over."""
        for number, pairs in holds:
            row = self.rows[number]
            row.profile.forget(now)
            row.profile.change(now, end, pairs, 1)
            free = row.free
            for kind, units in pairs:
                free[kind] += units
        if self._outlook is not None:
            self._outlook.touched([number for number, _ in holds])

    def hold(self, holds: Holds, sign: int = -1) -> None:
        """Take something now, or give it back, of what was planned."""
        for number, pairs in holds:
            free = self.rows[number].free
            for kind, units in pairs:
                free[kind] += sign * units
        if self._outlook is not None:
            self._outlook.moved([number for number, _ in holds])

    def opened(self, number: int, *, is_open: bool) -> None:
        self.rows[number].is_open = is_open
        self.touched(number)

    def touched(self, number: int) -> None:
        """Something about a row has changed."""
        if self._outlook is not None:
            self._outlook.touched((number,))

    def closing(self, numbers: Iterable[int]) -> Holds:
        """What is planned to close rows."""
        return [(number, self.rows[number].closing) for number in numbers]

    # -- now -----------------------------------------------------------------------------------------

    def now(self, gang: Gang, limit: float, at: float) -> Spot | None:
        """Where a gang can start now: the first alternative for which there is room."""
        sole = gang.sole
        if sole is not None:
            self.lack = 1
            number = sole.ground.rows[0]
            row = self.rows[number]
            free = row.free
            for kind, least in sole.need:
                if free[kind] < least:
                    return None
            if not row.is_open or not row.profile.fits(sole.need, at, at + limit):
                return None
            return Spot(at, 0, sole.places, sole.holds)
        lack = ENDLESS
        for choice in gang.choices:
            spot = self.now_as(gang, choice, limit, at)
            if spot is not None:
                return spot
            lack = min(lack, self.lack)
        self.lack = lack
        return None

    def now_as(self, gang: Gang, choice: Choice, limit: float, at: float) -> Spot | None:
        """Where one alternative of a gang can start now."""
        piece = choice.simple
        if piece is None:
            chosen = self._seating.choose(choice, gang.wishes, at, at + limit, really=True)
            self.lack = 1  # one more row may be enough, by another arrangement
            return None if chosen is None else self.spot(at, choice, chosen, gang.wishes)
        numbers: Collection[int] | None = None
        if gang.hot is not None and gang.only is piece and limit >= gang.cold:
            hot, ground = gang.hot, piece.ground
            numbers = sorted(hot & ground.own) + sorted(
                hot & (ground.members - ground.own) if ground.borrowed else ()
            )
        self.lack = 1
        places = self._pick_now(piece, at, at + limit, numbers)
        return None if places is None else self.spot(at, choice, [places], gang.wishes)

    def _pick_now(
        self, piece: Piece, start: float, end: float, numbers: Collection[int] | None
    ) -> Places | None:
        """The first rows with room now and until the end: a few are looked at, then all at once."""
        outlook = self._outlook
        if numbers is not None or outlook is None or len(piece.ground.everywhere) <= FEW:
            return self.pick(
                piece, piece.ground.everywhere if numbers is None else numbers, start, end, really=True
            )
        found = outlook.open_now(piece)
        if piece.single and found.size < piece.wanted:
            self.lack = piece.wanted - int(found.size)
            return None
        if piece.wanted <= FEW:
            few = max(_SEVERAL, 2 * piece.wanted)
            places = self.pick(piece, found[:few].tolist(), start, end, really=True)
            if places is not None or found.size <= few:
                return places
        found = outlook.fitting(piece, found, start, end)
        if piece.single and found.size < piece.wanted:
            self.lack = piece.wanted - int(found.size)
            return None
        if piece.single:
            return dict.fromkeys(found[: piece.wanted].tolist(), 1)
        return self.pick(piece, found.tolist(), start, end, really=True)

    def pick(
        self, piece: Piece, numbers: Iterable[int], start: float, end: float, *, really: bool
    ) -> Places | None:
        """The first rows with enough room between them; `really` where it must be free now, too."""
        found: Places = {}
        left = piece.wanted
        for number in numbers:
            count = self.takes(piece, number, start, end, left, really=really)
            if count:
                found[number] = count
                left -= count
                if not left:
                    return found
        self.lack = left
        return None

    def takes(self, piece: Piece, number: int, start: float, end: float, most: int, *, really: bool) -> int:
        """How many pieces a row can take."""
        row = self.rows[number]
        if really:
            most = min(most, row.has_now(piece))
            if not most:
                return 0
        return row.room(piece, start, end, 1 if piece.single else most)

    def fitting(
        self, piece: Piece, numbers: Sequence[int], start: float, end: float, *, really: bool
    ) -> Sequence[int]:
        """Of many rows those that may have room; few are left as they are."""
        if self._outlook is None or len(numbers) <= _SOME:
            return numbers
        import numpy as np

        found = np.array(numbers)
        if really:
            open_ = np.zeros(len(self.rows), dtype=bool)
            open_[self._outlook.open_now(piece)] = True
            found = found[open_[found]]
        kept: list[int] = self._outlook.fitting(piece, found, start, end).tolist()
        return kept

    # -- later ---------------------------------------------------------------------------------------

    def earliest(self, gang: Gang, limit: float, after: float, before: float = inf) -> Spot | None:
        """The first moment at which a gang finds room for all of its time; of alternatives the first."""
        best: Spot | None = None
        for choice in gang.choices:
            found = self.earliest_as(gang, choice, limit, after, before)
            if found is not None:
                best, before = found, found.start
        return best

    def earliest_as(
        self, gang: Gang, choice: Choice, limit: float, after: float, before: float = inf
    ) -> Spot | None:
        """The first moment for one alternative, if that is before another."""
        if not choice.has_ground:
            return None
        piece = choice.simple
        if piece is None:
            return self._earliest_together(gang, choice, limit, after, before)
        if piece.is_row:
            number = piece.ground.rows[0]
            start = self.rows[number].profile.earliest(piece.need, limit, after)
            if start >= before:
                return None
            return Spot(start, choice.number, piece.places, piece.holds)
        found = self._earliest_places(piece, limit, after, before)
        return None if found is None else self.spot(found[0], choice, [found[1]], gang.wishes)

    def _earliest_places(
        self, piece: Piece, limit: float, after: float, before: float
    ) -> tuple[float, Places] | None:
        numbers = piece.ground.rows
        if self._outlook is not None and len(numbers) > FEW:
            return self._outlook.earliest(piece, limit, after, before)
        if piece.wanted == 1:
            start, number = min(
                (self.rows[number].earliest(piece, limit, after), number) for number in numbers
            )
            return (start, {number: 1}) if start < before else None
        at = after
        while at < before:
            places = self.pick(piece, numbers, at, at + limit, really=False)
            if places is not None:
                return at, places
            at = self._next_change(numbers, at)
        return None

    def _earliest_together(
        self, gang: Gang, choice: Choice, limit: float, after: float, before: float
    ) -> Spot | None:
        """Several pieces, or wishes: where each by itself finds room, all are tried."""
        for moment in self._moments(choice, self._apart(choice, limit, after)):
            if moment >= before:
                return None
            chosen = self._seating.choose(choice, gang.wishes, moment, moment + limit, really=False)
            if chosen is not None:
                return self.spot(moment, choice, chosen, gang.wishes)
        return None

    def _apart(self, choice: Choice, limit: float, after: float) -> float:
        """The first moment from which each piece finds room at some time, if the others are not looked at."""
        at = after
        for piece in choice.pieces:
            if piece.is_row:
                at = max(at, self.rows[piece.ground.rows[0]].profile.earliest(piece.need, limit, at))
            else:
                found = self._earliest_places(piece, limit, at, inf)
                at = inf if found is None else max(at, found[0])
            if at == inf:
                return inf
        return at

    def _moments(self, choice: Choice, at: float) -> Iterable[float]:
        """A moment, and those behind it at which something changes on the nodes of a choice."""
        if at == inf:
            return ()
        numbers = {number for piece in choice.pieces for number in piece.ground.rows}
        return spaced([at, *self.changes(numbers, at)])

    def changes(self, numbers: Collection[int], after: float) -> list[float]:
        """The moments behind another at which something changes on some rows, or elsewhere."""
        if self._outlook is not None and len(numbers) > _SOME:
            return self._outlook.changes(after)
        return sorted(
            {time for number in numbers for time in self.rows[number].profile.times if time > after}
        )

    def _next_change(self, numbers: Iterable[int], at: float) -> float:
        return min((self.rows[number].profile.next_change(at) for number in numbers), default=inf)

    def exactly(self, gang: Gang, limit: float, at: float) -> Spot | None:
        """Where a gang can go at one moment."""
        for choice in gang.choices:
            if choice.simple is None:
                chosen = self._seating.choose(choice, gang.wishes, at, at + limit, really=False)
            else:
                rows = self.fitting(choice.simple, choice.simple.ground.rows, at, at + limit, really=False)
                places = self.pick(choice.simple, rows, at, at + limit, really=False)
                chosen = None if places is None else [places]
            if chosen is not None:
                return self.spot(at, choice, chosen, gang.wishes)
        return None

    def frugally(
        self, gang: Gang, choice: Choice, limit: float, at: float, rates: Rates, *, really: bool
    ) -> Spot | None:
        """Where one alternative of a gang can go at one moment, on the nodes that cost the least."""

        def cost(number: int) -> float:
            return sum(rates.get(kind, 0.0) * units for kind, units in self.rows[number].whole)

        chosen = self._seating.choose(choice, gang.wishes, at, at + limit, really=really, cost=cost)
        return None if chosen is None else self.spot(at, choice, chosen, gang.wishes)

    # -- sooner --------------------------------------------------------------------------------------

    def sooner(
        self, gang: Gang, spot: Spot, limit: float, after: float, freed: Collection[int]
    ) -> Spot | None:
        """An earlier spot for one who has its place: nothing but some rows was freed since that was found."""
        choice = gang.choices[0]
        piece = choice.simple
        assert piece is not None
        own = {number for number, _ in spot.holds}
        if len(freed) <= _SEVERAL or self._outlook is None:
            start, number = self._soonest(piece, limit, after, spot.start, own, freed)
            if start >= spot.start:
                return None
            if piece.wanted == 1:
                return self.spot(start, choice, [{number: 1}], gang.wishes)
        elif not self._outlook.may_open(freed, piece, limit, after, spot.start, own):
            return None
        assert self._outlook is not None
        found = self._outlook.earliest(piece, limit, after, spot.start, own)
        return None if found is None else self.spot(found[0], choice, [found[1]], gang.wishes)

    def _soonest(
        self,
        piece: Piece,
        limit: float,
        after: float,
        before: float,
        own: Collection[int],
        freed: Iterable[int],
    ) -> tuple[float, int]:
        """The first moment at which one of some rows has room, and that row."""
        best, where = inf, -1
        ground, rows = piece.ground.own, self.rows
        for number in freed:
            if number in ground:
                start = rows[number].earliest(piece, limit, after, before if number in own else inf)
                if start < best or (start == best and number < where):
                    best, where = start, number
        return best, where

    def is_quick(self, gang: Gang) -> bool:
        """Whether `sooner` knows an answer for a gang."""
        choice = gang.choices[0]
        piece = choice.simple
        if piece is None or len(gang.choices) > 1 or gang.bounds or piece.is_row:
            return False
        if piece.wanted == 1:
            return True
        return piece.single and self._outlook is not None and len(piece.ground.rows) > FEW

    def may_help(self, gang: Gang, spot: Spot, limit: float, after: float, freed: Collection[int]) -> bool:
        """Whether the rows that were freed may let one who has its place start sooner."""
        own = {number for number, _ in spot.holds}
        return any(self._opens(piece, spot.start, own, limit, after, freed) for piece in gang.pieces)

    def _opens(
        self, piece: Piece, before: float, own: set[int], limit: float, after: float, freed: Collection[int]
    ) -> bool:
        """Whether one of some rows has room before a moment."""
        if self._outlook is not None and len(freed) > _SEVERAL:
            return self._outlook.may_open(freed, piece, limit, after, before, own)
        return self._soonest(piece, limit, after, before, own, freed)[0] < before

    def open_among(self, piece: Piece, numbers: Sequence[int]) -> list[int]:
        """Rows of a few on which a piece finds room now; of many only so many that may."""
        members, rows = piece.ground.members, self.rows
        if self._outlook is not None and len(numbers) > _SOME:
            return [-1] * self._outlook.count_now(piece, numbers)
        return [number for number in numbers if number in members and rows[number].has_now(piece)]

    def gained(self, piece: Piece, numbers: Sequence[int]) -> int:
        """How many pieces find room now on some rows, at most."""
        if self._outlook is not None and len(numbers) > _SEVERAL:
            found = self._outlook.count_now(piece, numbers)
            return found if piece.single else found * piece.wanted
        members, rows = piece.ground.members, self.rows
        most = 1 if piece.single else piece.wanted
        return sum(min(rows[number].has_now(piece), most) for number in numbers if number in members)

    # -- holding -------------------------------------------------------------------------------------

    def spot(self, start: float, choice: Choice, places: Sequence[Places], wishes: Wishes) -> Spot:
        """A place with what it holds there."""
        if choice.simple is not None:
            return Spot(start, choice.number, places, self.holds(choice.simple, places[0], wishes))
        holds: dict[int, dict[int, int]] = {}
        for piece, where in zip(choice.pieces, places, strict=True):
            for number, pairs in self.holds(piece, where, wishes):
                mine = holds.setdefault(number, {})
                for kind, units in pairs:
                    mine[kind] = units if piece.whole or wishes.exclusive else mine.get(kind, 0) + units
        return Spot(start, choice.number, places, [(row, tuple(mine.items())) for row, mine in holds.items()])

    def holds(self, piece: Piece, places: Places, wishes: Wishes) -> Holds:
        if piece.whole or wishes.exclusive:
            return [(number, self.rows[number].whole) for number in places]
        pairs = piece.pairs
        return [
            (number, pairs if count == 1 else tuple((kind, least * count) for kind, least in pairs))
            for number, count in places.items()
        ]


def _outlook(rows: Sequence[Row]) -> Outlook:
    # It needs arrays, and who has but a few nodes should not wait until they are loaded.
    from jobman.sched.outlook import Outlook

    return Outlook(rows)
