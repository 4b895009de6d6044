"""Seating: rows for gangs of several pieces, or with wishes about who is near to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from jobman.sched.balance import Balance
from jobman.sched.gangs import Choice, Piece, Places
from jobman.sched.profile import Pairs
from jobman.sched.wishes import NO_WISHES, Neighbours, Wishes, domain
from jobman.spec.packing import share

if TYPE_CHECKING:
    from jobman.sched.timeline import Timeline


class Seating:
    """Chooses rows on a timeline; what it tries it takes back."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def choose(
        self,
        choice: Choice,
        wishes: Wishes,
        start: float,
        end: float,
        *,
        really: bool,
        cost: Callable[[int], float] | None = None,
    ) -> list[Places] | None:
        """Places for all pieces from one moment to another; `really` where they must be free now, too.

        With a cost, the cheapest rows come first.
        """
        if not choice.has_ground and not really:
            return None
        attempt = _Attempt(self._timeline, choice, wishes, start, end, really=really)
        for ground in self._grounds(choice, wishes, really=really):
            places = attempt.seat(ground if cost is None else sorted(ground, key=cost))
            if places is not None:
                return places
        return None

    def _grounds(self, choice: Choice, wishes: Wishes, *, really: bool) -> Iterator[Sequence[int]]:
        """The rows to try, in order of preference, one choice after the other."""
        rows = dict.fromkeys(
            number
            for piece in choice.pieces
            for number in (piece.ground.everywhere if really else piece.ground.rows)
        )
        ground = self._related(list(rows), wishes.apart, welcome=False)
        near = wishes.near
        ground = self._related(ground, near, welcome=True)
        if near is not None and near.own:
            yield from self._domains(ground, near.by)
        if near is None or not near.own or not near.required:
            yield ground

    def _domains(self, ground: Sequence[int], level: str) -> Iterator[Sequence[int]]:
        domains: dict[str, list[int]] = {}
        for number in ground:
            place = domain(self._timeline.rows[number].node, level)
            if place is not None:
                domains.setdefault(place, []).append(number)
        yield from domains.values()

    def _related(self, ground: list[int], to: Neighbours | None, *, welcome: bool) -> list[int]:
        """Rows in (or out of) the domains of others; where it is a wish only, the rest comes after."""
        if to is None or not to.nodes:
            return ground
        timeline = self._timeline
        known = (timeline.rows[timeline.numbers[name]].node for name in to.nodes if name in timeline.numbers)
        theirs = {domain(node, to.by) for node in known} - {None}
        good: list[int] = []
        bad: list[int] = []
        for number in ground:
            is_there = domain(timeline.rows[number].node, to.by) in theirs
            (good if is_there is welcome else bad).append(number)
        return good if to.required else good + bad


class _Attempt:
    """One choice at one time, tried on one ground after the other."""

    def __init__(
        self, timeline: Timeline, choice: Choice, wishes: Wishes, start: float, end: float, *, really: bool
    ) -> None:
        self._timeline = timeline
        self._wishes = wishes
        self._start, self._end, self._really = start, end, really
        self._pieces = [piece.inside or piece for piece in choice.pieces]
        self._suited = [self._suited_to(piece) for piece in choice.pieces]

    def _suited_to(self, piece: Piece) -> frozenset[int]:
        ground = piece.ground.everywhere if self._really else piece.ground.rows
        suited = self._timeline.fitting(piece, ground, self._start, self._end, really=self._really)
        if piece.inside is not None:
            # Others must leave the whole node to it; what its own parts leave to each other is seen later.
            suited = [number for number in suited if self._takes(piece, number, 1)]
        return frozenset(suited)

    def _takes(self, piece: Piece, number: int, most: int) -> int:
        return self._timeline.takes(piece, number, self._start, self._end, most, really=self._really)

    def seat(self, ground: Sequence[int]) -> list[Places] | None:
        """Places for all pieces: those with the least choice come first."""
        order = sorted(
            range(len(self._pieces)),
            key=lambda at: (not self._pieces[at].single, len(self._suited[at])),
        )
        found = self._one_by_one(order, ground)
        if found is None and len(order) > 1:
            found = self._one_by_one(order, self._thriftily(ground))
        if found is None and len(order) > 1:
            found = self._one_by_one(order, self._tightest_first(ground))
        has_balance = self._wishes.spread is not None or self._wishes.apart is not None
        if found is None and not has_balance and sum(piece.single for piece in self._pieces) > 1:
            found = self._shared_out(order, ground)
        return found

    def _thriftily(self, ground: Sequence[int]) -> list[int]:
        """The rows that are good for the fewest pieces first."""
        return sorted(ground, key=lambda number: sum(number in suited for suited in self._suited))

    def _tightest_first(self, ground: Sequence[int]) -> list[int]:
        """The rows that have the least of what is asked for first."""
        kinds = sorted({kind for piece in self._pieces for kind, _ in piece.pairs})
        rows = self._timeline.rows
        return sorted(ground, key=lambda number: [rows[number].capacity[kind] for kind in kinds])

    def _one_by_one(
        self, order: Sequence[int], ground: Sequence[int], given: dict[int, Places] | None = None
    ) -> list[Places] | None:
        timeline = self._timeline
        rows = timeline.rows
        balance = Balance(self._wishes, {rows[number].name: rows[number].node for number in self._placed()})
        found: list[Places] = [{} for _ in self._pieces]
        taken: list[tuple[int, Pairs]] = []
        used: set[int] = set()
        try:
            for at in order:
                piece = self._pieces[at]
                places = given[at] if given and at in given else self._places(at, ground, used, balance)
                if places is None:
                    return None
                found[at] = places
                if piece.single:
                    used.update(places)
                if len(order) > 1:
                    taken.extend(self._take(piece, places))
            return found
        finally:
            timeline.unplan(taken, self._start, self._end)
            if self._really:
                timeline.hold(taken, 1)

    def _placed(self) -> list[int]:
        """The rows of copies that are there already."""
        spread = self._wishes.spread
        numbers = self._timeline.numbers
        return [numbers[name] for name in spread.placed if name in numbers] if spread is not None else []

    def _places(self, at: int, ground: Sequence[int], used: set[int], balance: Balance) -> Places | None:
        piece, suited = self._pieces[at], self._suited[at]
        rows = [number for number in ground if number in suited and not (piece.single and number in used)]
        if balance.matters:
            return self._balanced(piece, rows, ground, balance)
        return self._timeline.pick(piece, rows, self._start, self._end, really=self._really)

    def _balanced(
        self, piece: Piece, rows: Sequence[int], ground: Sequence[int], balance: Balance
    ) -> Places | None:
        timeline = self._timeline
        rooms = {}
        for number in rows:
            count = self._takes(piece, number, piece.wanted)
            if count:
                rooms[number] = (timeline.rows[number].node, count)
        members = piece.ground.members
        nodes = [timeline.rows[number].node for number in ground if number in members]
        return balance.divide(rooms, piece.wanted, piece.copies, nodes)

    def _take(self, piece: Piece, places: Places) -> list[tuple[int, Pairs]]:
        """What one piece gets is not there for the next."""
        holds = list(self._timeline.holds(piece, places, NO_WISHES))
        self._timeline.plan(holds, self._start, self._end)
        if self._really:
            self._timeline.hold(holds)
        return holds

    def _shared_out(self, order: Sequence[int], ground: Sequence[int]) -> list[Places] | None:
        """Several pieces compete for nodes of their own: give each some that the others can do without."""
        single = [at for at in order if self._pieces[at].single]
        open_ = {
            at: {
                number
                for number in ground
                if number in self._suited[at] and self._takes(self._pieces[at], number, 1)
            }
            for at in single
        }
        kinds: dict[tuple[bool, ...], list[int]] = {}
        for number in ground:
            kinds.setdefault(tuple(number in open_[at] for at in single), []).append(number)
        fitting = [
            [place for place, kind in enumerate(kinds) if kind[number]] for number in range(len(single))
        ]
        wanted = [self._pieces[at].wanted for at in single]
        shares = share(wanted, fitting, [len(numbers) for numbers in kinds.values()])
        if shares is None:
            return None
        left = [iter(numbers) for numbers in kinds.values()]
        given: dict[int, Places] = {at: {} for at in single}
        for (number, place), count in sorted(shares.items()):
            given[single[number]].update((next(left[place]), 1) for _ in range(count))
        return self._one_by_one(order, ground, given)
