"""What was freed, in order: who failed is tried again only if something was freed that could help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobman.sched.bounds import Bound
from jobman.sched.gangs import Gang
from jobman.sched.lanes import Entry
from jobman.sched.timeline import Timeline

_MOST = 4096
_HOT = 32
"""With more freed rows than so many, all rows are asked."""


class Release(NamedTuple):
    """Rows on which something was freed from one moment to another, and limits of which something was."""

    rows: Sequence[int]
    begin: float
    end: float
    bounds: Sequence[Bound]
    peak: list[int]
    """The most that is free there, once somebody has asked; of one row only."""


class Releases:
    """A log. Positions in it stay what they are when its beginning is forgotten."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._log: list[Release] = []
        self._base = 0
        self.count = 0
        """How much there was, ever."""
        self._freed: tuple[int, int, tuple[int, ...]] = (-1, -1, ())

    def add(self, rows: Sequence[int], begin: float, end: float, bounds: Sequence[Bound] = ()) -> None:
        self._log.append(Release(rows, begin, end, bounds, []))
        self.count += 1

    def trim(self) -> None:
        """Forget the beginning; those who have not looked since then will look at everything."""
        if len(self._log) > _MOST:
            self._base = self.count
            self._log = []

    # -- those who cannot start ----------------------------------------------------------------------

    def revives(self, gang: Gang) -> bool:
        """Whether something was freed, since a gang could not start, with which it could."""
        since = gang.seen - self._base
        if since < 0:
            gang.revive()
            return True
        sole = gang.sole
        if sole is not None:
            gang.seen = self.count
            free = self._timeline.rows[sole.ground.rows[0]].free
            for kind, least in sole.need:
                if free[kind] < least:
                    return False
            gang.revive()
            return True
        if gang.is_bound and self._frees_bound(gang, since):
            gang.revive()
            return True
        rows = self._rows_since(since)
        gang.seen = self.count
        for piece in gang.pieces:
            gang.lack -= len(self._timeline.open_among(piece, rows))
        if gang.lack > 0:
            return False
        gang.relent()
        return True

    def warm(self, gang: Gang) -> None:
        """Count the rows freed since a gang for which one is enough found none at all."""
        hot, piece = gang.hot, gang.only
        since = gang.warm - self._base
        if hot is None or piece is None or gang.warm == self.count:
            return
        found = self._timeline.open_among(piece, self._rows_since(since)) if since >= 0 else [-1]
        gang.warm = self.count
        hot.update(found)
        if -1 in hot or len(hot) > _HOT:
            gang.hot = None

    def _frees_bound(self, gang: Gang, since: int) -> bool:
        bounds = gang.bounds
        return any(bound in bounds for release in self._log[since:] for bound in release.bounds)

    def _rows_since(self, since: int) -> tuple[int, ...]:
        """The rows on which something was freed; many ask for the same."""
        first, count, rows = self._freed
        if first != since + self._base or count != self.count:
            rows = tuple(dict.fromkeys(row for release in self._log[since:] for row in release.rows))
            self._freed = (since + self._base, self.count, rows)
        return rows

    # -- those who have a place ----------------------------------------------------------------------

    def rows_before(self, entry: Entry, start: float) -> set[int] | None:
        """The rows freed before a start since somebody was last tried; None where all must be asked."""
        since = entry.tested - self._base
        if since < 0:
            return None
        bounds = entry.gang.bounds
        rows: set[int] = set()
        for release in self._log[since:]:
            if release.begin < start:
                rows.update(release.rows)
                if bounds and any(bound in bounds for bound in release.bounds):
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
            rows, begin, end, _, peak = log[place]
            if begin < start and number in rows:
                if not peak and len(rows) == 1:
                    peak.extend(self._timeline.rows[number].profile.peak(begin, end))
                if not peak or peak[kind] >= least:
                    return True
        return False
