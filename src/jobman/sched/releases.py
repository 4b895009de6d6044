"""What was freed, in order: who failed is tried again only if something was freed that could help."""

from __future__ import annotations

from collections.abc import Sequence

from jobman.sched.bounds import Bound
from jobman.sched.gangs import Gang
from jobman.sched.lanes import Entry
from jobman.sched.timeline import Timeline

_MOST = 4096
_HOT = 32
"""With more freed rows than so many, all rows are asked."""


Release = tuple[Sequence[int], float, float, Sequence[Bound]]
"""Rows on which something was freed from one moment to another, and limits of which something was."""


class Releases:
    """A log. Positions in it stay what they are when its beginning is forgotten."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._log: list[Release] = []
        self._base = 0
        self.count = 0
        """How much there was, ever."""
        self._known: dict[tuple[int, float], list[int]] = {}
        """Answers that hold until something more is freed."""
        self._peaks: dict[int, tuple[int, ...]] = {}
        """The most that is free where something was freed, by its place in the log; of single rows only."""

    def add(self, rows: Sequence[int], begin: float, end: float, bounds: Sequence[Bound] = ()) -> None:
        log = self._log
        if len(log) > _MOST:
            # Those who have not looked since then will look at everything.
            self._base = self.count
            self._log = log = []
            self._peaks = {}
        log.append((rows, begin, end, bounds))
        if self._known:
            self._known = {}
        self.count += 1

    # -- those who cannot start ----------------------------------------------------------------------

    def revives(self, gang: Gang, now: float) -> bool:
        """Whether something was freed, since a gang could not start, with which it could."""
        since = gang.seen - self._base
        if since < 0:
            gang.revive()
            return True
        if gang.is_bound and self._frees_bound(gang, since):
            gang.revive()
            return True
        rows = self._rows_since(since, now + gang.failed)
        gang.seen = self.count
        for piece in gang.pieces:
            gang.lack -= self._timeline.gained(piece, rows)
        if gang.lack > 0:
            return False
        gang.relent()
        return True

    def warm(self, gang: Gang, now: float) -> None:
        """Count the rows freed since a gang for which one is enough found none at all."""
        hot, piece = gang.hot, gang.only
        since = gang.warm - self._base
        if hot is None or piece is None or gang.warm == self.count:
            return
        rows = self._rows_since(since, now + gang.cold)
        found = self._timeline.open_among(piece, rows) if since >= 0 else [-1]
        gang.warm = self.count
        hot.update(found)
        if -1 in hot or len(hot) > _HOT:
            gang.hot = None

    def _frees_bound(self, gang: Gang, since: int) -> bool:
        bounds = gang.bounds
        return any(bound in bounds for release in self._log[since:] for bound in release[3])

    def _rows_since(self, since: int, before: float) -> list[int]:
        """The rows on which something was freed before a moment; who fails until then needs no other."""
        known = self._known.get((since, before))
        if known is None:
            found: dict[int, None] = {}
            for rows, begin, _, _ in self._log[max(since, 0) :]:
                if begin < before:
                    found.update(dict.fromkeys(rows))
            known = self._known[since, before] = list(found)
        return known

    # -- those who have a place ----------------------------------------------------------------------

    def rows_for(self, entry: Entry) -> set[int] | None:
        """The rows freed since somebody was last tried, before its end; None where all must be asked."""
        since = entry.tested - self._base
        if since < 0:
            return None
        bounds = entry.gang.bounds
        rows: set[int] = set()
        for freed, begin, _, limits in self._log[since:]:
            if begin < entry.end:
                rows.update(freed)
                if bounds and any(bound in bounds for bound in limits):
                    return None
        return rows

    def helps_sole(self, entry: Entry, start: float) -> bool:
        """The same for one who has but one row to look at: whether anything can have changed."""
        since = entry.tested - self._base
        if since < 0:
            return True
        log, gang = self._log, entry.gang
        kind, least = gang.kind, gang.least
        assert gang.sole is not None
        number = gang.sole.ground.rows[0]
        for place in range(since, len(log)):
            rows, begin, end, _ = log[place]
            if begin < start and number in rows:
                if len(rows) > 1:
                    return True
                peak = self._peaks.get(place)
                if peak is None:
                    peak = self._peaks[place] = self._timeline.rows[number].profile.peak(begin, end)
                if peak[kind] >= least:
                    return True
        return False
