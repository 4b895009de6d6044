"""Looking at thousands of rows at once: the profiles of a timeline as arrays.

```
 times    · │ 0  5  9  ·  · │ 0  ·  · │ 0  2  7  8  · │    the steps of all rows one after the other, each
 amounts  · │ 4  2  6  ·  · │ 4  ·  · │ 1  4  2  4  · │    row with at least one empty step (·) at its end
```

Where a need is met from step to step, the edges of such runs are all windows there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf
from typing import Any

import numpy as np

from jobman.sched.gangs import Ground, Piece, Places
from jobman.sched.moments import spaced
from jobman.sched.profile import Pairs
from jobman.sched.rows import Row

Array = Any
Found = tuple[float, Places]
_NEVER = -(1 << 62)
"""What there is in an empty step."""
_CANDIDATES = 64
_ROUNDING = 1e-5
_EXACTLY = 3
_WORTH_PICKING = 4
"""If only one of so many rows matters, it is worth while to pick their steps out."""


class Outlook:
    """A mirror of rows; those that changed are copied again before the next look."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._build()

    # -- copying -------------------------------------------------------------------------------------

    def _build(self) -> None:
        rows = self._rows
        kinds = len(rows[0].capacity)
        sizes = [_size(len(row.profile.times)) for row in rows]
        total = 1 + sum(sizes)
        room = total + total // 2
        self._times = np.full(room, inf)
        self._amounts = np.full((kinds, room), _NEVER, dtype=np.int64)
        self._owner = np.zeros(room, dtype=np.int64)
        self._free = np.zeros((kinds, len(rows)), dtype=np.int64)
        self._whole = np.zeros((kinds, len(rows)), dtype=np.int64)
        self._open = np.zeros(len(rows), dtype=bool)
        self._wholes: list[Pairs | None] = [None] * len(rows)
        self._whole_steps: Array = None
        """What the whole of its row is, for each step."""
        self._sizes = sizes
        self._used = np.zeros(len(rows), dtype=np.int64)
        self._offsets = np.concatenate([[1], 1 + np.cumsum(sizes)[:-1]]).astype(np.int64)
        self._owner[1:total] = np.repeat(np.arange(len(rows)), sizes)
        self._end = total
        self._layout = object()
        """Another one when steps are moved to another place."""
        self._changed = set(range(len(rows)))
        self._moved = set(range(len(rows)))

    def changed(self, numbers: Iterable[int]) -> None:
        """What is planned on these rows is not what it was."""
        self._changed.update(numbers)

    def moved(self, numbers: Iterable[int]) -> None:
        """What is free on these rows now is not what it was."""
        self._moved.update(numbers)

    def touched(self, numbers: Iterable[int]) -> None:
        """Both."""
        self._changed.update(numbers)
        self._moved.update(numbers)

    def stale(self, now: float) -> list[int]:
        """Rows of which a step is over."""
        self._refresh()
        found: list[int] = np.flatnonzero(self._times[self._offsets + 1] <= now).tolist()
        return found

    def _refresh(self) -> None:
        while self._changed:
            changed, self._changed = self._changed, set()
            for number in changed:
                if not self._copy(number, self._rows[number]):
                    self._build()
                    break

    def _copy(self, number: int, row: Row) -> bool:
        """Copy the steps of a row; False where there is no room for them."""
        profile = row.profile
        steps = len(profile.times)
        if steps >= self._sizes[number] and not self._move(number, steps):
            return False
        begin = int(self._offsets[number])
        end = begin + steps
        self._times[begin:end] = profile.times
        for column, amounts in zip(profile.columns, self._amounts, strict=True):
            amounts[begin:end] = column
        used = int(self._used[number])
        if used > steps:
            self._times[end : begin + used] = inf
            self._amounts[:, end : begin + used] = _NEVER
        self._used[number] = steps
        return True

    def _move(self, number: int, steps: int) -> bool:
        """Give a row that has outgrown its place another one, behind all others."""
        size = _size(steps)
        begin, end = self._end, self._end + size
        if end > len(self._times):
            return False
        old = int(self._offsets[number])
        self._times[old : old + self._used[number]] = inf
        self._amounts[:, old : old + self._used[number]] = _NEVER
        self._owner[begin:end] = number
        self._offsets[number] = begin
        self._sizes[number], self._used[number] = size, 0
        self._end = end
        self._layout = object()
        self._whole_steps = None
        return True

    def _refresh_free(self) -> None:
        if self._moved:
            for number in self._moved:
                row = self._rows[number]
                self._free[:, number] = row.free
                self._open[number] = row.is_open
                if self._wholes[number] is not row.whole:
                    self._note_whole(number, row)
            self._moved = set()

    def _note_whole(self, number: int, row: Row) -> None:
        self._wholes[number] = row.whole
        self._whole[:, number] = 0
        for kind, units in row.whole:
            self._whole[kind, number] = units
        self._whole_steps = None

    # -- what is free now ----------------------------------------------------------------------------

    def open_now(self, piece: Piece) -> Array:
        """The rows with room for a piece in what is free now; those that are borrowed come last."""
        self._refresh_free()
        fits = self._wide(piece.ground) & self._open
        if piece.whole:
            fits &= (self._free >= self._whole).all(axis=0)
        else:
            for kind, least in piece.pairs:
                fits &= self._free[kind] >= least
        found = fits.nonzero()[0]
        if piece.ground.borrowed:
            own = np.zeros(len(self._rows), dtype=bool)
            own[list(piece.ground.rows)] = True
            found = np.concatenate([found[own[found]], found[~own[found]]])
        return found

    def count_now(self, piece: Piece, numbers: Sequence[int]) -> int:
        """On how many of these rows a piece finds room in what is free now."""
        self._refresh_free()
        among = np.array(numbers)
        fits = self._open[among] & self._wide(piece.ground)[among]
        for kind, least in piece.pairs:
            fits &= self._free[kind, among] >= least
        return int(fits.sum())

    def _wide(self, ground: Ground) -> Array:
        if ground.wide is None:
            ground.wide = np.zeros(len(self._rows), dtype=bool)
            ground.wide[list(ground.everywhere)] = True
        return ground.wide

    # -- what will be --------------------------------------------------------------------------------

    def _views(self) -> tuple[Array, Array, Array]:
        """Times, amounts and rows of all steps."""
        self._refresh()
        end = self._end
        return self._times[:end], self._amounts[:, :end], self._owner[:end]

    def _fit(self, piece: Piece, amounts: Array, owner: Array, count: int = 1) -> Array:
        """Steps in which so many pieces find room on a row of their own."""
        fit = self._fit_anywhere(piece, amounts, self._wholes_of(piece, owner), count)
        mask = self._steps_of(piece.ground, owner)
        if mask is not None:
            fit &= mask
        return fit

    def _wholes_of(self, piece: Piece, owner: Array) -> Array:
        """What the whole of its row is for each step, where that matters."""
        if not piece.whole:
            return None
        self._refresh_free()
        if self._whole_steps is None:
            self._whole_steps = self._whole[:, owner]
        return self._whole_steps

    def _fit_anywhere(self, piece: Piece, amounts: Array, wholes: Array, count: int = 1) -> Array:
        """Steps in which there is room for so many pieces on a row, whether or not they may be there."""
        if piece.whole:
            fit = amounts[0] >= wholes[0]
            for there, whole in zip(amounts[1:], wholes[1:], strict=True):
                fit &= there >= whole
            for kind, least in piece.pairs if count > 1 else ():
                fit &= wholes[kind] >= least * count
            return fit
        (kind, least), *others = piece.pairs
        fit = amounts[kind] >= least * count
        for kind, least in others:
            fit &= amounts[kind] >= least * count
        return fit

    def _steps_of(self, ground: Ground, owner: Array) -> Array:
        """The steps of its own rows; None where all are."""
        if len(ground.rows) == len(self._rows):
            return None
        if ground.layout is not self._layout or len(ground.steps) != len(owner):
            own = np.zeros(len(self._rows), dtype=bool)
            own[list(ground.rows)] = True
            ground.steps = own[owner]
            ground.layout = self._layout
        return ground.steps

    def fitting(self, piece: Piece, numbers: Array, start: float, end: float) -> Array:
        """Those of some rows on which a piece finds room all the time in between."""
        if not len(numbers):
            return numbers
        if len(numbers) < len(self._rows) // _WORTH_PICKING:
            times, owner, fit = self._fit_on(numbers, piece)
        else:
            times, amounts, owner = self._views()
            fit = self._fit_anywhere(piece, amounts, self._wholes_of(piece, owner))
        lacking = ~fit[:-1] & (times[:-1] < end) & (times[1:] > start)
        good = np.ones(len(self._rows), dtype=bool)
        good[owner[:-1][lacking]] = False
        return numbers[good[numbers]]

    def changes(self, after: float) -> list[float]:
        """All moments behind another at which something changes, in order."""
        times, _, _ = self._views()
        found: list[float] = np.unique(times[(times > after) & (times < inf)]).tolist()
        return found

    # -- the first moment ----------------------------------------------------------------------------

    def earliest(
        self, piece: Piece, limit: float, after: float, before: float = inf, own: Collection[int] = ()
    ) -> Found | None:
        """The first moment before another at which enough rows have room for all of a limit, and these rows.

        `own` are rows where the piece has its place already, from `before` on.
        """
        if piece.single or piece.wanted == 1:
            return self._of_rows(piece, limit, after, before, own)
        return self._of_slots(piece, limit, after, before)

    def _of_rows(
        self, piece: Piece, limit: float, after: float, before: float, own: Collection[int]
    ) -> Found | None:
        """Each row counts once: from when to when could it begin?"""
        begin, until, rows = self._windows(piece, 1, limit, after, before, own)
        for at in _moments(begin, until, limit, piece.wanted):
            there = rows[(begin <= at) & (at + limit <= until)]
            if there.size >= piece.wanted:
                there.sort()
                return at, dict.fromkeys(there[: piece.wanted].tolist(), 1)
        return None

    def _of_slots(self, piece: Piece, limit: float, after: float, before: float) -> Found | None:
        """A row counts as often as pieces find room on it."""
        for at in spaced(self._openings(piece, limit, after, before)):
            places = self._filled(piece, at, at + limit)
            if places is not None:
                return at, places
        return None

    def _openings(self, piece: Piece, limit: float, after: float, before: float) -> list[float]:
        """Moments at which enough rows may have room: never too few."""
        found: list[tuple[Array, Array, int]] = []
        for count, worth in _steps(piece.wanted):
            begin, until, _ = self._windows(piece, count, limit, after, before, ())
            if not begin.size:
                break
            found.append((begin, until, worth))
        if not found:
            return []
        begin = np.concatenate([windows[0] for windows in found])
        until = np.concatenate([windows[1] for windows in found])
        worths = np.repeat([windows[2] for windows in found], [windows[0].size for windows in found])
        return _open_moments(begin, until, limit, worths, piece.wanted)

    def _windows(
        self, piece: Piece, count: int, limit: float, after: float, before: float, own: Collection[int]
    ) -> tuple[Array, Array, Array]:
        """From when to when so many pieces find room on a row for all of a limit, and which row that is."""
        times, amounts, owner = self._views()
        fit = self._fit(piece, amounts, owner, count)
        return self._runs(fit, times, owner, limit, after, before, own)

    def may_open(
        self,
        numbers: Collection[int],
        piece: Piece,
        limit: float,
        after: float,
        before: float,
        own: Collection[int],
    ) -> bool:
        """Whether one of some rows has room before a moment; `own` are as in `earliest`."""
        rows = [number for number in numbers if number in piece.ground.own]
        if not rows:
            return False
        times, owner, fit = self._fit_on(np.array(rows, dtype=np.int64), piece)
        mine = [number for number in rows if number in own]
        begin, _, _ = self._runs(fit, times, owner, limit, after, before, mine)
        return bool(begin.size)

    def _fit_on(self, rows: Array, piece: Piece) -> tuple[Array, Array, Array]:
        """The steps of some rows: their times, whose they are, and whether a piece finds room in them.

        As among all steps there is an empty one behind each row, and one before the first.
        """
        self._refresh()
        sizes = self._used[rows] + 1
        ends = sizes.cumsum()
        steps = np.arange(-1, ends[-1])
        steps[0] = 0
        steps[1:] += (self._offsets[rows] - ends + sizes).repeat(sizes)
        owner = self._owner[steps]
        if piece.whole:
            self._refresh_free()
            fit = self._fit_anywhere(piece, self._amounts[:, steps], self._whole[:, owner])
        else:
            fit = steps > 0
            for kind, least in piece.pairs:
                fit &= self._amounts[kind].take(steps) >= least
        return self._times[steps], owner, fit

    def _runs(
        self,
        fit: Array,
        times: Array,
        owner: Array,
        limit: float,
        after: float,
        before: float,
        own: Collection[int],
    ) -> tuple[Array, Array, Array]:
        """From when to when steps that fit follow each other for all of a limit, and on which row."""
        edges = (fit[1:] != fit[:-1]).nonzero()[0] + 1
        begin, until = np.maximum(times[edges[::2]], after), times[edges[1::2]]
        rows = owner[edges[::2]]
        if own:
            mine = np.zeros(len(self._rows), dtype=bool)
            mine[list(own)] = True
            until = np.where(mine[rows] & (until >= before), inf, until)
        good = (begin + limit <= until) & (begin < before)
        return begin[good], until[good], rows[good]

    def _room(self, piece: Piece, steps: Array) -> Array:
        """How many pieces find room in some steps, up to as many as are wanted."""
        amounts, wholes = self._amounts[:, steps], None
        if piece.whole:
            self._refresh_free()
            wholes = self._whole[:, self._owner[steps]]
        room = np.full(len(steps), piece.wanted, dtype=np.int64)
        for kind, least in piece.pairs:
            if least:
                np.minimum(room, (amounts if wholes is None else wholes)[kind] // least, out=room)
        np.maximum(room, 0, out=room)
        if wholes is not None:
            room[~self._fit_anywhere(piece, amounts, wholes)] = 0
        return room

    def _filled(self, piece: Piece, start: float, end: float) -> Places | None:
        """Fill rows, the first as far as it goes and then the next, all the time in between."""
        times, _, owner = self._views()
        mask = self._steps_of(piece.ground, owner)
        within = (times[:-1] < end) & (times[1:] > start)
        inside = np.flatnonzero(within if mask is None else within & mask[:-1])
        rows = owner[inside]
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        rooms = np.minimum.reduceat(self._room(piece, inside), firsts)
        rows = rows[firsts]
        good = np.flatnonzero(rooms)
        good = good[np.argsort(rows[good])]
        rows, rooms = rows[good], rooms[good]
        total = np.cumsum(rooms)
        if not total.size or total[-1] < piece.wanted:
            return None
        last = int(np.searchsorted(total, piece.wanted))
        taken = rooms[: last + 1]
        taken[-1] -= total[last] - piece.wanted
        return dict(zip(rows[: last + 1].tolist(), taken.tolist(), strict=True))


def _size(steps: int) -> int:
    """The room for so many steps, with some to spare."""
    return steps + steps // 4 + 3


def _moments(begin: Array, until: Array, limit: float, wanted: int) -> Iterator[float]:
    """The moments at which enough windows are open, by their number: never too few."""
    if begin.size < wanted:
        return
    if wanted == 1:
        yield float(begin.min())
        return
    begin = np.sort(begin)
    last = np.full(until.size, inf) if limit == inf else np.sort(until) - limit + _ROUNDING
    for first in range(wanted - 1, begin.size, _CANDIDATES):
        moments = begin[first : first + _CANDIDATES]
        count = np.searchsorted(begin, moments, "right") - np.searchsorted(last, moments, "left")
        yield from np.unique(moments[count >= wanted]).tolist()


def _steps(most: int) -> list[tuple[int, int]]:
    """So many pieces on a row, and what it counts for that they find room: never too little in all.

    Up to a few, that is exact.
    """
    powers = [(1 << power, 1 << power) for power in range(_EXACTLY, most.bit_length())]
    return [(count, 1) for count in range(1, min(most + 1, 1 << _EXACTLY))] + powers


def _open_moments(begin: Array, until: Array, limit: float, counts: Array, wanted: int) -> list[float]:
    """The moments at which the windows that are open count for enough: never too few."""
    order = np.argsort(begin, kind="stable")
    begin, begun = begin[order], np.cumsum(counts[order])
    if not begun.size or begun[-1] < wanted:
        return []
    last = np.full(until.size, inf) if limit == inf else until - limit + _ROUNDING
    order = np.argsort(last, kind="stable")
    over = np.concatenate([[0], np.cumsum(counts[order])])
    moments = np.unique(begin[int(np.searchsorted(begun, wanted)) :])
    open_ = begun[np.searchsorted(begin, moments, "right") - 1]
    open_ = open_ - over[np.searchsorted(last[order], moments, "left")]
    found: list[float] = moments[open_ >= wanted].tolist()
    return found
