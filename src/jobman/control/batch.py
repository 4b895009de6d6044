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
        changes = self.changes
        return not (
            changes.jobs
            or changes.events
            or changes.replicas
            or changes.tasks
            or changes.attempts
            or changes.allocations
            or changes.logs
            or changes.submissions
            or changes.deleted
        )

    def take_back(self, jobs: set[str]) -> list[EventRecord]:
        """Drop everything about jobs that were never committed."""
        changes = self.changes
        tables: tuple[dict[Any, Any], ...] = (
            changes.tasks,
            changes.replicas,
            changes.attempts,
            changes.allocations,
            changes.logs,
        )
        for table in tables:
            for key in [key for key in table if key[0] in jobs]:
                del table[key]
        for job in jobs:
            changes.jobs.pop(job, None)
        changes.new_jobs -= jobs
        changes.submissions = [one for one in changes.submissions if not jobs.intersection(one.jobs)]
        dropped = [event for event in changes.events if event.job in jobs]
        changes.events = [event for event in changes.events if event.job not in jobs]
        self.launches = [order for order in self.launches if order.job not in jobs]
        self.acts = [act for act in self.acts if act[1][0] not in jobs]
        return dropped
