"""The nodes over time: what is free now, what will be, and the first moment at which a gang finds room.

```
 row (a node)   ████████░░░░░░████░░░░░     one profile each, changed in place
 row            ██░░░░░░░░░░░░░░░░░░░░░
                now ──────────────────▶     a gang fits where enough rows have room for all of its limit
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import FORGIVEN
from jobman.sched.balance import Balance
from jobman.sched.capacity import to_units
from jobman.sched.gangs import Choice, Gang, Piece, Places, Spot
from jobman.sched.outlook import Outlook
from jobman.sched.profile import Pairs, Profile
from jobman.sched.wishes import Neighbours, Wishes, domain

ENDLESS = 1 << 60
FEW = 8
"""Up to so many nodes are looked at one by one."""


class Row:
    """A node: what it has, what of it is free now, and what will be when."""

    __slots__ = ("capacity", "free", "is_open", "name", "node", "profile", "whole")

    def __init__(self, node: ClusterNode, capacity: list[int], free: list[int] | None = None) -> None:
        self.name = node.name
        self.node = node
        self.capacity = capacity
        self.free = list(capacity) if free is None else free
        self.profile = Profile(capacity)
        self.whole: Pairs = tuple((kind, units) for kind, units in enumerate(capacity) if 0 < units < ENDLESS)
        self.is_open = True
        """Whether anything may start there now."""


class Timeline:
    """All rows. The same questions in the same order get the same answers."""

    def __init__(self, nodes: Sequence[ClusterNode], kinds: Sequence[str]) -> None:
        self.kinds = {kind: number for number, kind in enumerate(kinds)}
        self.rows = [Row(node, self._capacity(node)) for node in nodes]
        self.numbers = {row.name: number for number, row in enumerate(self.rows)}
        self._outlook = Outlook(self.rows) if len(self.rows) > FEW else None
        self._sole = self.rows[0].profile if len(self.rows) == 1 else None

    @classmethod
    def annex(cls, base: Timeline, numbers: Sequence[int], start: float, end: float) -> Timeline:
        """The same nodes as some of another's, there only from one moment to another; what is free now is shared."""
        annex = cls((), list(base.kinds))
        for number in numbers:
            row = base.rows[number]
            copy = Row(row.node, row.capacity, row.free)
            copy.profile.take(-inf, start, row.whole)
            if end != inf:
                copy.profile.take(end, inf, row.whole)
            annex.rows.append(copy)
        annex.numbers = {row.name: number for number, row in enumerate(annex.rows)}
        annex._outlook = Outlook(annex.rows) if len(annex.rows) > FEW else None
        return annex

    def _capacity(self, node: ClusterNode) -> list[int]:
        missing = {FORGIVEN: ENDLESS}
        return [
            to_units(kind, node.amounts[kind]) if kind in node.amounts else missing.get(kind, 0)
            for kind in self.kinds
        ]

    # -- changing ------------------------------------------------------------------------------------

    def forget(self, now: float) -> None:
        """Drop what is over."""
        if self._sole is not None:
            self._sole.forget(now)
        elif self._outlook is not None:
            for number in self._outlook.stale(now):
                self.rows[number].profile.forget(now)
                self._outlook.changed(number)
        else:
            for row in self.rows:
                row.profile.forget(now)

    def plan(self, holds: Iterable[tuple[int, Pairs]], start: float, end: float) -> None:
        """Take something for later."""
        outlook = self._outlook
        for number, pairs in holds:
            self.rows[number].profile.take(start, end, pairs)
            if outlook is not None:
                outlook.changed(number)

    def unplan(self, holds: Iterable[tuple[int, Pairs]], start: float, end: float) -> None:
        outlook = self._outlook
        for number, pairs in holds:
            self.rows[number].profile.give(start, end, pairs)
            if outlook is not None:
                outlook.changed(number)

    def hold(self, holds: Iterable[tuple[int, Pairs]], sign: int = -1) -> None:
        """Take something now, or give it back."""
        outlook = self._outlook
        for number, pairs in holds:
            free = self.rows[number].free
            for kind, units in pairs:
                free[kind] += sign * units
            if outlook is not None:
                outlook.moved(number)

    def opened(self, number: int, *, is_open: bool) -> None:
        self.rows[number].is_open = is_open
        if self._outlook is not None:
            self._outlook.moved(number)

    # -- finding room --------------------------------------------------------------------------------

    def now(self, gang: Gang, limit: float, at: float) -> Spot | None:
        """Where a gang can start now: the first alternative for which there is room."""
        sole = gang.sole
        if sole is not None:
            row = self.rows[sole.rows[0]]
            free = row.free
            for kind, least in sole.need:
                if free[kind] < least:
                    return None
            if not row.is_open or not row.profile.fits(sole.need, at, at + limit):
                return None
            number = sole.rows[0]
            return Spot(at, 0, ({number: sole.wanted},), ((number, sole.need),))
        for choice in gang.choices:
            places = self._choose(choice, gang.wishes, at, at + limit, really=True)
            if places is not None:
                return self.spot(at, choice, places, gang.wishes)
        return None

    def earliest(self, gang: Gang, limit: float, after: float) -> Spot | None:
        """The first moment at which a gang finds room for all of its time; the first alternative among equals."""
        sole = gang.sole
        if sole is not None:
            number = sole.rows[0]
            start = self.rows[number].profile.earliest(sole.need, limit, after)
            if start == inf:
                return None
            return Spot(start, 0, ({number: sole.wanted},), ((number, sole.need),))
        best: Spot | None = None
        for choice in gang.choices:
            found = self._earliest(choice, gang.wishes, limit, after, inf if best is None else best.start)
            best = found or best
        return best

    def _earliest(
        self, choice: Choice, wishes: Wishes, limit: float, after: float, before: float
    ) -> Spot | None:
        at = after
        while True:
            at = max(self._by_count(piece, limit, at) for piece in choice.pieces)
            if at >= before:
                return None
            places = self._choose(choice, wishes, at, at + limit, really=False)
            if places is not None:
                return self.spot(at, choice, places, wishes)
            at = self._next_change(choice, at)
            if at >= before:
                return None

    def _by_count(self, piece: Piece, limit: float, after: float) -> float:
        """The first moment at which enough rows may have room, by their number."""
        if piece.is_row:
            return self.rows[piece.rows[0]].profile.earliest(piece.need, limit, after)
        if self._outlook is not None and len(piece.rows) > FEW:
            return self._outlook.earliest(piece, limit, after)
        at = after
        while at < inf:
            left = piece.wanted
            for number in piece.rows:
                left -= self._room(piece, self.rows[number], at, at + limit, left)
                if not left:
                    return at
            at = min((self.rows[number].profile.next_change(at) for number in piece.rows), default=inf)
        return inf

    def _next_change(self, choice: Choice, at: float) -> float:
        if self._outlook is not None:
            return self._outlook.next_change(at)
        rows = {number for piece in choice.pieces for number in piece.rows}
        return min((self.rows[number].profile.next_change(at) for number in rows), default=inf)

    def _room(self, piece: Piece, row: Row, start: float, end: float, most: int) -> int:
        """How many pieces a row can take all the time in between."""
        if piece.whole:
            if not row.profile.fits(row.whole, start, end):
                return 0
            return 1 if piece.single else min(most, _times(row.capacity, piece.pairs))
        if piece.single:
            return int(row.profile.fits(piece.pairs, start, end))
        return row.profile.room(piece.pairs, start, end, most)

    # -- choosing rows -------------------------------------------------------------------------------

    def _choose(
        self, choice: Choice, wishes: Wishes, start: float, end: float, *, really: bool
    ) -> list[Places] | None:
        """Places for all pieces at a moment; `really` where they must be free now, too."""
        simple = choice.simple
        if simple is not None:
            found = self._pick_simple(simple, start, end, really=really)
            return None if found is None else [found]
        for ground in self._grounds(choice, wishes, really=really):
            places = self._together(choice, wishes, ground, start, end, really=really)
            if places is not None:
                return places
        return None

    def _pick_simple(self, piece: Piece, start: float, end: float, *, really: bool) -> Places | None:
        """The first rows with enough room: a few are looked at, then all at once."""
        rows = piece.rows + piece.borrowed if really and piece.borrowed else piece.rows
        outlook = self._outlook
        if outlook is None or len(rows) <= FEW:
            return self._pick(piece, rows, start, end, really=really)
        if piece.wanted <= FEW:
            some = outlook.open_now(piece) if really else outlook.open_at(piece, start)
            found = self._pick(piece, some[: 4 * FEW], start, end, really=really)
            if found is not None or len(some) <= 4 * FEW:
                return found
        return outlook.pick(piece, start, end, really=really)

    def _pick(
        self, piece: Piece, rows: Iterable[int], start: float, end: float, *, really: bool
    ) -> Places | None:
        """The first rows with enough room between them."""
        found: Places = {}
        left = piece.wanted
        for number in rows:
            count = self._takes(piece, number, start, end, left, really=really)
            if count:
                found[number] = count
                left -= count
                if not left:
                    return found
        return None

    def _takes(self, piece: Piece, number: int, start: float, end: float, most: int, *, really: bool) -> int:
        row = self.rows[number]
        if really:
            if not row.is_open:
                return 0
            most = min(
                most, _times(row.free, row.whole if piece.whole else piece.pairs) if not piece.whole else most
            )
            if piece.whole and not _times(row.free, row.whole):
                return 0
            if not most:
                return 0
        return self._room(piece, row, start, end, most)

    def _together(
        self, choice: Choice, wishes: Wishes, ground: Sequence[int], start: float, end: float, *, really: bool
    ) -> list[Places] | None:
        """Places for several pieces, or with a balance to keep: those with the least choice come first."""
        balance = Balance(wishes, {row.name: row.node for row in self.rows})
        found: list[Places] = [{} for _ in choice.pieces]
        taken: list[tuple[int, Pairs]] = []
        order = sorted(
            range(len(choice.pieces)),
            key=lambda at: (not choice.pieces[at].single, len(choice.pieces[at].rows)),
        )
        used: set[int] = set()
        try:
            for at in order:
                piece = choice.pieces[at]
                suited = set(piece.rows) | (set(piece.borrowed) if really else set())
                rows = [
                    number for number in ground if number in suited and not (piece.single and number in used)
                ]
                if balance.matters:
                    places = self._balanced(piece, rows, balance, start, end, really=really)
                else:
                    places = self._pick(piece, rows, start, end, really=really)
                if places is None:
                    return None
                found[at] = places
                if piece.single:
                    used.update(places)
                if len(order) > 1:
                    holds = self._holds(piece, places, exclusive=False)
                    self.plan(holds, start, end)
                    if really:
                        self.hold(holds)
                    taken.extend(holds)
            return found
        finally:
            self.unplan(taken, start, end)
            if really:
                self.hold(taken, 1)

    def _balanced(
        self, piece: Piece, rows: Sequence[int], balance: Balance, start: float, end: float, *, really: bool
    ) -> Places | None:
        rooms = {}
        for number in rows:
            count = self._takes(piece, number, start, end, piece.wanted, really=really)
            if count:
                rooms[number] = (self.rows[number].node, count)
        nodes = [self.rows[number].node for number in rows]
        return balance.divide(rooms, piece.wanted, piece.copies, nodes)

    # -- wishes --------------------------------------------------------------------------------------

    def _grounds(self, choice: Choice, wishes: Wishes, *, really: bool) -> Iterator[Sequence[int]]:
        """The rows to try, in order of preference, one choice after the other."""
        rows = dict.fromkeys(
            number
            for piece in choice.pieces
            for number in (piece.rows + piece.borrowed if really else piece.rows)
        )
        ground = self._related(list(rows), wishes.apart, welcome=False)
        near = wishes.near
        ground = self._related(ground, near, welcome=True)
        if near is not None and near.own:
            domains: dict[str, list[int]] = {}
            for number in ground:
                place = domain(self.rows[number].node, near.by)
                if place is not None:
                    domains.setdefault(place, []).append(number)
            yield from domains.values()
        if near is None or not near.own or not near.required:
            yield ground

    def _related(self, ground: list[int], to: Neighbours | None, *, welcome: bool) -> list[int]:
        """Rows in (or out of) the domains of others; where it is a wish only, the rest comes after."""
        if to is None or not to.nodes:
            return ground
        known = (self.rows[self.numbers[name]].node for name in to.nodes if name in self.numbers)
        theirs = {domain(node, to.by) for node in known} - {None}
        good: list[int] = []
        bad: list[int] = []
        for number in ground:
            is_there = domain(self.rows[number].node, to.by) in theirs
            (good if is_there is welcome else bad).append(number)
        return good if to.required else good + bad

    # -- holding -------------------------------------------------------------------------------------

    def spot(self, start: float, choice: Choice, places: Sequence[Places], wishes: Wishes) -> Spot:
        if choice.simple is not None:
            return Spot(
                start,
                choice.number,
                places,
                self._holds(choice.simple, places[0], exclusive=wishes.exclusive),
            )
        holds: dict[int, dict[int, int]] = {}
        for piece, where in zip(choice.pieces, places, strict=True):
            for number, pairs in self._holds(piece, where, exclusive=wishes.exclusive):
                mine = holds.setdefault(number, {})
                for kind, units in pairs:
                    mine[kind] = units if piece.whole or wishes.exclusive else mine.get(kind, 0) + units
        return Spot(start, choice.number, places, [(row, tuple(mine.items())) for row, mine in holds.items()])

    def _holds(self, piece: Piece, places: Places, *, exclusive: bool) -> list[tuple[int, Pairs]]:
        if piece.whole or exclusive:
            return [(number, self.rows[number].whole) for number in places]
        pairs = piece.pairs
        return [
            (number, pairs if count == 1 else tuple((kind, least * count) for kind, least in pairs))
            for number, count in places.items()
        ]


def _times(free: Sequence[int], pairs: Pairs) -> int:
    """How often a need goes into what is free."""
    return max(0, min((free[kind] // least for kind, least in pairs if least), default=ENDLESS))
