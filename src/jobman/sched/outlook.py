"""Looking at thousands of rows at once: the profiles of a timeline as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from jobman.sched.gangs import Piece

if TYPE_CHECKING:
    from jobman.sched.timeline import Row

Array = Any
_STEPS = 8


class Outlook:
    """A mirror of rows: a line of steps for each, those that changed are copied again before the next look."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._kinds = len(rows[0].capacity) if rows else 0
        self._steps = _STEPS
        self._dirty: set[int] = set(range(len(rows)))
        self._moved: set[int] = set(range(len(rows)))
        self._free = np.zeros((self._kinds, len(rows)), dtype=np.int64)
        self._whole = np.array([row.capacity for row in rows], dtype=np.int64).T.reshape(
            self._kinds, len(rows)
        )
        self._open = np.ones(len(rows), dtype=bool)
        self._lay_out()

    def _lay_out(self) -> None:
        count = len(self._rows)
        self._times = np.full((self._steps, count), inf)
        self._amounts = np.zeros((self._kinds, self._steps, count), dtype=np.int64)
        self._dirty = set(range(count))

    def changed(self, number: int) -> None:
        self._dirty.add(number)

    def moved(self, number: int) -> None:
        self._moved.add(number)

    def stale(self, now: float) -> list[int]:
        """Rows of which a step is over."""
        self._refresh()
        return np.flatnonzero(self._times[1] <= now).tolist()

    # -- copying -------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        while self._dirty:
            dirty, self._dirty = self._dirty, set()
            longest = max(len(self._rows[number].profile.times) for number in dirty)
            if longest > self._steps:
                self._steps = max(longest, 2 * self._steps)
                self._lay_out()
                continue
            times, amounts = self._times, self._amounts
            for number in dirty:
                profile = self._rows[number].profile
                steps = len(profile.times)
                times[:steps, number] = profile.times
                times[steps:, number] = inf
                for kind, column in enumerate(profile.columns):
                    amounts[kind, :steps, number] = column
                    amounts[kind, steps:, number] = column[-1]

    def _refresh_free(self) -> None:
        if self._moved:
            for number in self._moved:
                row = self._rows[number]
                self._free[:, number] = row.free
                self._open[number] = row.is_open
            self._moved = set()

    def _mask(self, piece: Piece) -> Array:
        """The rows that suit a piece."""
        if piece.mask is None:
            piece.mask = self._marked(piece.rows)
            piece.all_mask = self._marked(piece.rows + piece.borrowed)
        return piece.mask

    def _marked(self, rows: Sequence[int]) -> Array:
        mask = np.zeros(len(self._rows), dtype=bool)
        mask[list(rows)] = True
        return mask

    # -- looking -------------------------------------------------------------------------------------

    def open_now(self, piece: Piece) -> list[int]:
        """The rows with room for a piece now, in order; those that are borrowed come last."""
        self._refresh_free()
        self._mask(piece)
        fits = piece.all_mask & self._open
        for kind, least in self._needs(piece):
            fits &= self._free[kind] >= least
        found: list[int] = np.flatnonzero(fits).tolist()
        if piece.borrowed:
            own = set(piece.rows)
            found.sort(key=lambda number: number not in own)
        return found

    def open_at(self, piece: Piece, at: float) -> list[int]:
        """The rows with room for a piece at a moment, in order."""
        self._refresh()
        step = (self._times <= at).sum(axis=0) - 1
        np.maximum(step, 0, out=step)
        every = np.arange(len(self._rows))
        fits = self._mask(piece).copy()
        for kind, least in self._needs(piece):
            fits &= self._amounts[kind, step, every] >= least
        found: list[int] = np.flatnonzero(fits).tolist()
        return found

    def pick(self, piece: Piece, start: float, end: float, *, really: bool) -> dict[int, int] | None:
        """The first rows with enough room between them, all the time from one moment to another."""
        self._refresh()
        mask = self._mask(piece)
        fits = mask.copy()
        room = None if piece.single else np.full(len(self._rows), piece.wanted, dtype=np.int64)
        if really:
            self._refresh_free()
            fits = piece.all_mask & self._open
            for kind, least in self._needs(piece):
                fits &= self._free[kind] >= least
            if room is not None and not piece.whole:
                for kind, least in piece.pairs:
                    np.minimum(room, self._free[kind] // least, out=room)
        times = self._times
        for step in range(self._steps):
            inside = times[step] < end
            if not inside.any():
                break
            if step + 1 < self._steps:
                inside &= times[step + 1] > start
            for kind, least in self._needs(piece):
                fits &= ~inside | (self._amounts[kind, step] >= least)
                if room is not None and not piece.whole:
                    np.minimum(room, np.where(inside, self._amounts[kind, step] // least, room), out=room)
        if room is not None and piece.whole:
            for kind, least in piece.pairs:
                np.minimum(room, self._whole[kind] // least, out=room)
        return self._first(piece, fits, room)

    def _first(self, piece: Piece, fits: Array, room: Array | None) -> dict[int, int] | None:
        found = np.flatnonzero(fits)
        if piece.borrowed:
            own = self._mask(piece)[found]
            found = np.concatenate([found[own], found[~own]])
        if room is None:
            if found.size < piece.wanted:
                return None
            return dict.fromkeys(found[: piece.wanted].tolist(), 1)
        places: dict[int, int] = {}
        left = piece.wanted
        for number in found.tolist():
            count = min(left, int(room[number]))
            if count > 0:
                places[number] = count
                left -= count
                if not left:
                    return places
        return None

    def next_change(self, at: float) -> float:
        self._refresh()
        later = self._times[self._times > at]
        return float(later.min()) if later.size else inf

    def _needs(self, piece: Piece) -> Iterable[tuple[int, Any]]:
        if not piece.whole:
            return piece.pairs
        return [(kind, self._whole[kind]) for kind in range(self._kinds)]

    def earliest(self, piece: Piece, limit: float, after: float) -> float:
        """The first moment at which enough rows may have room for all of a limit."""
        self._refresh()
        if piece.single or piece.wanted == 1:
            return self._of_rows(piece, limit, after)
        return self._of_slots(piece, limit, after)

    def _of_rows(self, piece: Piece, limit: float, after: float) -> float:
        """Each row counts once: from when to when could it begin?"""
        steps = self._steps
        fit = np.broadcast_to(self._mask(piece), self._times.shape).copy()
        for kind, least in self._needs(piece):
            fit &= self._amounts[kind] >= least
        until = np.where(fit[-1], inf, -inf)
        starts: list[Array] = []
        ends: list[Array] = []
        for step in range(steps - 1, -1, -1):
            if step < steps - 1:
                until = np.where(fit[step + 1], until, self._times[step + 1])
            begins = fit[step] if step == 0 else fit[step] & ~fit[step - 1]
            here = np.flatnonzero(begins & (self._times[step] < inf))
            if here.size:
                start = np.maximum(self._times[step][here], after)
                end = until[here]
                long_enough = end >= start + limit
                starts.append(start[long_enough])
                ends.append(end[long_enough] - limit if limit < inf else np.full(long_enough.sum(), inf))
        if not starts:
            return inf
        start, last = np.concatenate(starts), np.concatenate(ends)
        if start.size < piece.wanted:
            return inf
        if piece.wanted == 1:
            return float(start.min())
        start.sort()
        last.sort()
        count = np.searchsorted(start, start, "right") - np.searchsorted(last, start, "left")
        enough = np.flatnonzero(count >= piece.wanted)
        return float(start[enough[0]]) if enough.size else inf

    def _of_slots(self, piece: Piece, limit: float, after: float) -> float:
        """A row counts as often as pieces find room on it from a step on: never too few."""
        steps, times = self._steps, self._times
        room = np.broadcast_to(np.where(self._mask(piece), piece.wanted, 0), times.shape).copy()
        if piece.whole:
            fit = np.ones(times.shape, dtype=bool)
            for kind in range(self._kinds):
                fit &= self._amounts[kind] >= self._whole[kind]
            for kind, least in piece.pairs:
                np.minimum(room, self._whole[kind] // least, out=room)
            room *= fit
        else:
            for kind, least in piece.pairs:
                if least:
                    np.minimum(room, self._amounts[kind] // least, out=room)
        np.maximum(room, 0, out=room)
        least_of = room.copy()
        for step in range(steps):
            until = np.maximum(times[step], after) + limit
            for later in range(step + 1, steps):
                inside = times[later] < until
                if not inside.any():
                    break
                np.minimum(least_of[step], np.where(inside, room[later], piece.wanted), out=least_of[step])
        over = np.vstack([times[1:], np.full((1, times.shape[1]), inf)]) <= after
        least_of[over] = 0
        begins = np.where(over, after, np.maximum(times, after))
        before = np.vstack([np.zeros((1, times.shape[1]), dtype=np.int64), least_of[:-1]])
        change = (least_of - before).ravel()
        moments = begins.ravel()
        real = (moments < inf) & (change != 0)
        moments, change = moments[real], change[real]
        order = np.argsort(moments, kind="stable")
        moments, total = moments[order], np.cumsum(change[order])
        if not moments.size:
            return inf
        last_of_moment = np.append(moments[1:] != moments[:-1], True)
        enough = np.flatnonzero((total >= piece.wanted) & last_of_moment)
        return float(moments[enough[0]]) if enough.size else inf
