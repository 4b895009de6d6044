"""Benchmarks: each module's `main` measures one subject and returns its rows, ours beside a peer's.

Numbers of one run are comparable with each other only, so a row is read by its ratio.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One number of ours and, where there is one, the peer's number in the same unit."""

    what: str
    ours: float
    unit: str
    peer: str = ""
    theirs: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours by theirs."""
        return self.ours / self.theirs if self.theirs else None
