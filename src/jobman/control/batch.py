"""A batch: what was decided in one go, to be committed together before any of it is acted on."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from jobman.control.store.records import Changes, EventRecord
from jobman.engines.base import Address, Host, Order


class Act(NamedTuple):
    """A call of the host: its name, the attempt, the job or the node it is about, and what else it takes."""

    call: str
    subject: Address | str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = {}

    @property
    def is_of_a_job(self) -> bool:
        """Whether it concerns a job, and not a node."""
        return self.call != "drain"

    def is_about(self, jobs: set[str]) -> bool:
        subject = self.subject if isinstance(self.subject, str) else self.subject[0]
        return self.is_of_a_job and subject in jobs

    async def on(self, host: Host) -> None:
        await getattr(host, self.call)(self.subject, *self.arguments, **self.options)


class Batch:
    """Records to write, and what follows once they are written."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.launches: list[Order] = []
        self.acts: list[Act] = []
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
        self.acts = [act for act in self.acts if not act.is_about(jobs)]
        return self.changes.take_back(jobs)
