"""What happened that somebody may want to know of: workers that died, answers that were wrong, agents lost.

Of many tasks to which the same happens at once one line tells, with their number and the first of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

import msgspec

MOST_WORDS = 500
"""Letters of what is told in words."""
KEPT = 10_000
"""Lines that are kept; the oldest go."""


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to tasks, to an agent or to the broker."""

    seq: int
    at: float
    """On the clock of the wall."""
    kind: str
    tenant: str = ""
    """Whose tasks; empty where it is about agents and the broker."""
    image: str = ""
    agent: str = ""
    batch: int | None = None
    index: int | None = None
    """The first of the tasks."""
    count: int = 1
    words: str = ""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent tells of its worker."""

    kind: str
    words: str = ""


class Diary:
    """What happened lately; each line is told once to whoever writes it down."""

    def __init__(self, first: int, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._seq = first
        self._clock = clock
        self.lines: deque[Happening] = deque(maxlen=kept)
        self._new: list[Happening] = []

    def add(
        self,
        kind: str,
        *,
        tenant: str = "",
        image: str = "",
        agent: str = "",
        batch: int | None = None,
        index: int | None = None,
        count: int = 1,
        words: str = "",
    ) -> None:
        self._seq += 1
        line = Happening(
            seq=self._seq,
            at=self._clock(),
            kind=kind,
            tenant=tenant,
            image=image,
            agent=agent,
            batch=batch,
            index=index,
            count=count,
            words=words[:MOST_WORDS],
        )
        self.lines.append(line)
        self._new.append(line)

    def restore(self, lines: Iterable[Happening]) -> None:
        """What was written before anything happened here."""
        self.lines.extend(lines)

    @property
    def has_news(self) -> bool:
        return bool(self._new)

    def news(self) -> list[Happening]:
        """Lines that were not asked for yet."""
        found, self._new = self._new, []
        return found

    def after(self, place: int, wanted: Callable[[Happening], bool], most: int) -> list[Happening]:
        """Lines behind a place that somebody wants, so many at most."""
        found = (line for line in self.lines if line.seq > place and wanted(line))
        return list(islice(found, most))

    @property
    def place(self) -> int:
        """The last line."""
        return self._seq
