"""A batch: what was decided in one go, to be committed together before any of it is acted on."""

from __future__ import annotations

import asyncio
from typing import Any

from jobman.control.store.records import Changes, EventRecord
from jobman.engines.base import Address, Order


class Batch:
    """Records to write, and what follows once they are written."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.launches: list[Order] = []
        self.acts: list[tuple[str, Address, Any]] = []
        """Calls of the host, by name, for an attempt each."""
        self.waiting: list[tuple[asyncio.Future[Any], Any]] = []
        """Who is to be answered after the commit, and with what."""
        self.fresh: dict[str, asyncio.Future[Any]] = {}
        """Submissions in it: they can still be taken back while nothing is committed."""

    @property
    def is_empty(self) -> bool:
        return self.changes.is_empty

    def take_back(self, jobs: set[str]) -> list[EventRecord]:
        """Drop everything about jobs that were never committed."""
        self.launches = [order for order in self.launches if order.job not in jobs]
        self.acts = [act for act in self.acts if act[1][0] not in jobs]
        return self.changes.take_back(jobs)
