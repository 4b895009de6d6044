"""Windows: when nodes are closed to everybody, or to all but those who reserved them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jobman.sched.blocks import Block
from jobman.sched.lanes import Entry
from jobman.sched.requests import Request
from jobman.sched.timeline import Timeline


class Window:
    """A block on rows of a timeline."""

    __slots__ = ("block", "rows")

    def __init__(self, block: Block, rows: frozenset[int]) -> None:
        self.block = block
        self.rows = rows

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def start(self) -> float:
        return self.block.start

    @property
    def end(self) -> float:
        return self.block.end

    @property
    def words(self) -> str:
        kind = "maintenance" if self.block.kind == "maintenance" else "the reservation"
        return f"{kind} {self.block.name}"

    @property
    def names(self) -> tuple[str, str, str]:
        """The names by which a request can ask for it."""
        return self.block.definition, self.block.name, self.block.name.partition("+")[0]


class Windows:
    """All windows, which close their rows on the timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._windows: dict[str, Window] = {}

    def get(self, name: str) -> Window | None:
        return self._windows.get(name)

    def add(self, window: Window) -> None:
        self._windows[window.name] = window
        self._timeline.plan(self._timeline.closing(window.rows), window.start, window.end)

    def remove(self, name: str) -> Window:
        window = self._windows.pop(name)
        self._timeline.unplan(self._timeline.closing(window.rows), window.start, window.end)
        return window

    def of(self, request: Request) -> list[Window]:
        """The windows a request may run in, in order of time."""
        found = [
            window
            for window in self._windows.values()
            if window.block.admits(request.reservation, request.user, request.account)
        ]
        return sorted(found, key=lambda window: (window.start, window.name))

    @contextmanager
    def opened(self, window: Window) -> Iterator[None]:
        """As if a window were not there: for those who may run in it."""
        closing = self._timeline.closing(window.rows)
        self._timeline.unplan(closing, window.start, window.end)
        try:
            yield
        finally:
            self._timeline.plan(closing, window.start, window.end)

    def around(self, entry: Entry) -> Window | None:
        """The window in which an entry is, on all of its rows and at the end of its time."""
        if not entry.request.reservation or entry.spot is None:
            return None
        rows = set(entry.spot.rows)
        for window in self.of(entry.request):
            if window.start <= entry.spot.start and entry.end <= window.end and rows <= window.rows:
                return window
        return None

    def meeting(self, rows: set[int], start: float, end: float, but: str = "") -> Window | None:
        """The first window that closes one of some rows in between."""
        met = [
            window
            for window in self._windows.values()
            if window.name != but and window.block.meets(start, end) and not rows.isdisjoint(window.rows)
        ]
        return min(met, key=lambda window: (window.start, window.name), default=None)

    def closed_until(self, now: float) -> frozenset[int]:
        """The rows of windows that are over."""
        return frozenset().union(*(window.rows for window in self._windows.values() if window.end <= now))

    def all_meeting(self, rows: set[int], start: float, end: float) -> list[Window]:
        """The windows that close one of some rows in between, in order of time."""
        met = (window for window in self._windows.values() if window.block.meets(start, end))
        found = [window for window in met if not rows.isdisjoint(window.rows)]
        return sorted(found, key=lambda window: (window.start, window.name))
