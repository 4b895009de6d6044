"""What a broker decides goes to the journal, in the order of the decisions, then to those who wait for it.

Batches that are over are deleted together with the slices that charge for them: so nothing that was used is
left out, whenever the broker ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from jobman.tasks.broker import Broker
from jobman.tasks.charging import LENGTH, Key, Meter, cores_of, seconds_in
from jobman.tasks.entries import Entry, StoredBatch
from jobman.tasks.journal import Journal, Replaced
from jobman.tasks.results import Results

_MOST_FORGOTTEN = 500
"""Batches that are over before they are deleted at once."""


class Unwritten(Exception):
    """The journal could not be written."""


class Recorder:
    """The journal of a broker, for one event loop."""

    def __init__(
        self, journal: Journal, broker: Broker, *, price: float, refused: Callable[[int], None]
    ) -> None:
        """`refused` is called with each batch that could not be written."""
        self.journal = journal
        self.results = Results(journal.entries)
        self.replaced = asyncio.Event()
        """Set when another broker has taken over: nothing can be written here any more."""
        self._broker = broker
        self._refused = refused
        self._meter = Meter(price, self._cores, time.time())
        self._sliced = 0.0
        self._forgotten: list[int] = []
        self._later: list[Entry] = []
        self._writing: dict[int, asyncio.Future[None]] = {}

    # -- beginning ---------------------------------------------------------------------------------

    def restore(self, now: float) -> None:
        """Make the state of the broker again of what was written; may be called from any thread."""
        journal, broker = self.journal, self._broker
        broker.diary.restore(journal.happenings())
        broker.restore(journal.batches(), journal.entries(), now, time.time())
        owners = {batch.id: (batch.tenant, batch.image) for batch in broker.batches.values()}
        uncharged = seconds_in(journal.entries(journal.charged_upto()), owners)
        self._meter.begin(self._spent(), uncharged)
        self._sliced = now
        self.results.start(journal.first)

    def _cores(self, image: str) -> float:
        known = self._broker.executors.get(image)
        return 1.0 if known is None else cores_of(known.resources)

    def _spent(self) -> dict[Key, float]:
        return {key: tally.seconds for key, tally in self._broker.tallies.all.items()}

    # -- writing -----------------------------------------------------------------------------------

    async def write(
        self,
        *,
        batches: Iterable[StoredBatch] = (),
        entries: Iterable[Entry] = (),
        patience: float = 0.0,
    ) -> None:
        """On disk when this returns, and told to those who wait for it; raises Unwritten.

        With patience, seconds in which something else may come that is written together with it.
        """
        # Who asked may be gone before; what was decided is written and told all the same.
        await asyncio.shield(self.begin(list(batches), list(entries), patience))

    async def written(self, batch: int) -> None:
        """Wait until a batch that somebody else submitted is on disk; raises Unwritten."""
        if (writing := self._writing.get(batch)) is not None:
            await asyncio.shield(writing)

    def later(self, entries: list[Entry]) -> None:
        """Nobody waits for these: they are written with whatever comes next."""
        self._later += entries

    def begin(
        self, batches: list[StoredBatch], entries: list[Entry], patience: float = 0.0
    ) -> asyncio.Future[None]:
        """Hand over to the journal at once, so that it has everything in the order of the decisions."""
        loop = asyncio.get_running_loop()
        if not batches:
            # Not with a batch, which the disk may refuse.
            entries, self._later = self._later + entries, []
        written: asyncio.Future[None] = loop.create_future()
        # A batch may be refused by the disk, and what is told beside it is not to be lost with it.
        news = [] if batches else self._broker.diary.news()
        if not entries and not batches and not news:
            written.set_result(None)
            return written
        for batch in batches:
            self._writing[batch.id] = written

        def done(error: Exception | None) -> None:
            self._settle(written, batches, entries, error)

        if patience:
            # Not when it is written: then another may wait that has patience as well.
            hurrying = loop.call_later(patience, self.journal.hurry)
            written.add_done_callback(lambda _: hurrying.cancel())
        self.journal.write(done, batches=batches, entries=entries, happenings=news, is_urgent=not patience)
        return written

    def _settle(
        self,
        written: asyncio.Future[None],
        batches: list[StoredBatch],
        entries: list[Entry],
        error: Exception | None,
    ) -> None:
        for batch in batches:
            self._writing.pop(batch.id, None)
        if error is None:
            self.results.add(entries)
            written.set_result(None)
            return
        if isinstance(error, Replaced):
            self.replaced.set()
        # Whether or not anybody still waits for it, it is as if it had never come.
        for batch in batches:
            self._refused(batch.id)
        written.set_exception(Unwritten(str(error)))
        # Where nobody waits for it, `replaced` has told it.
        written.exception()

    # -- slices ------------------------------------------------------------------------------------

    def forget(self, batches: Iterable[int], now: float) -> None:
        """These are over; they go with the next slices, which are written when it is time."""
        self._forgotten += batches
        if now - self._sliced >= LENGTH or len(self._forgotten) >= _MOST_FORGOTTEN:
            self.slice(now)

    def slice(self, now: float) -> None:
        """Charge for what was used since the last slices."""
        self._sliced = now
        slices = self._meter.close(self._spent(), self._broker.last, time.time())
        forgotten, self._forgotten = self._forgotten, []
        if not slices and not forgotten:
            return

        def done(error: Exception | None) -> None:
            if isinstance(error, Replaced):
                self.replaced.set()

        self.journal.write(done, slices=slices, forgotten=forgotten)

    async def clean(self) -> None:
        """Forget what happened long ago."""
        lines = self._broker.diary.lines
        if lines:
            await asyncio.to_thread(self.journal.forget_happenings, lines[0].seq - 1)
