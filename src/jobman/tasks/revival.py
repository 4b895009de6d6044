"""Tasks that come back: dead letters that somebody tries again, and all of them when a broker begins anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from jobman.tasks.batches import Batch, Span, Status
from jobman.tasks.entries import AGAIN, DROPPED, ENDS, FETCHED, REVIVED, Entry, StoredBatch
from jobman.tasks.leases import spans_of
from jobman.tasks.model import Again, Ends, Head, Some, of_each
from jobman.tasks.quotas import Usage
from jobman.tasks.stock import Stock, kind_of

Tasks = Mapping[int, Sequence[int]]
"""Indexes by batch."""
_SAMPLES = 8
"""Tasks of a report from which is learned how long they take."""


class Revival(Stock):
    """Batches whose tasks come back."""

    # -- dead letters ---------------------------------------------------------------------------------

    def dead(self, tenant: str) -> Iterator[tuple[Batch, list[int]]]:
        """The tasks of a tenant that failed for good, and that nobody retried or dropped."""
        for batch in self.batches.values():
            if batch.tenant == tenant and batch.left < len(batch) and (found := batch.where(Status.FAILED)):
                yield batch, found

    def revive(self, tenant: str, tasks: Tasks | None, now: float) -> tuple[int, list[Entry]]:
        """Try dead letters again, these or all, but none whose deadline has passed; tells how many."""
        count, entries = 0, []
        for batch, indexes in self._among_dead(tenant, tasks):
            if batch.deadline is None or batch.deadline > now:
                count += len(indexes)
                self._revive(batch, indexes)
                entries.append(self._entry(batch, REVIVED, Some(indexes)))
                for span in spans_of(batch, indexes):
                    self._put_back(span)
        return count, entries

    def _among_dead(self, tenant: str, tasks: Tasks | None) -> list[tuple[Batch, list[int]]]:
        found = (
            (batch, indexes if tasks is None else sorted(set(indexes).intersection(tasks.get(batch.id, ()))))
            for batch, indexes in self.dead(tenant)
        )
        return [(batch, indexes) for batch, indexes in found if indexes]

    def _revive(self, batch: Batch, indexes: Sequence[int]) -> None:
        before = self._share(batch)
        for span in spans_of(batch, indexes):
            batch.mark(span.low, span.high, Status.QUEUED)
        for index in indexes:
            batch.attempts[index] = batch.attempt(index) + 1
        self.open += len(indexes)
        self.usage[batch.tenant].come_back(len(indexes), self._share(batch) - before)
        self.tallies.of(batch.tenant, batch.image).count(Status.FAILED, -len(indexes))

    def drop_dead(self, tenant: str, tasks: Tasks | None) -> tuple[int, list[Entry]]:
        """Forget dead letters, these or all; tells how many."""
        count, entries = 0, []
        for batch, indexes in self._among_dead(tenant, tasks):
            for span in spans_of(batch, indexes):
                batch.mark(span.low, span.high, Status.DROPPED)
            count += len(indexes)
            entries.append(self._entry(batch, DROPPED, Some(indexes)))
            if batch.is_fetched and not batch.left:
                self._finished.append(batch.id)
        return count, entries

    # -- after a restart ------------------------------------------------------------------------------

    def restore(
        self, batches: Iterable[StoredBatch], entries: Iterable[Entry], now: float, wall: float
    ) -> None:
        """Make the state again of what was written."""
        for stored in batches:
            self._add(stored, msgspec.msgpack.decode(stored.head, type=Head), now, wall)
            self.usage.setdefault(stored.tenant, Usage()).come_back(stored.size, stored.volume)
        for entry in entries:
            if (batch := self.batches.get(entry.batch)) is not None:
                self._replay(batch, entry)
        for batch in self.batches.values():
            for low, high in list(batch.queued(0, len(batch))):
                self._put_back(Span(batch, low, high))
        if self.open:
            self._gives_from = now + self._grace

    def _replay(self, batch: Batch, entry: Entry) -> None:
        if entry.kind == ENDS:
            self._replay_ends(batch, msgspec.msgpack.decode(entry.body, type=Ends))
        elif entry.kind == AGAIN:
            again = msgspec.msgpack.decode(entry.body, type=Again)
            self._failures |= {(batch.id, index): count for index, count in again.failures.items()}
            self.leases.remember(batch, again.deaths)
            for index in (*again.failures, *again.deaths):
                # The next is another attempt than any that is on record.
                batch.attempts[index] = max(batch.attempt(index), self._failed_attempts(batch, index) + 1)
        elif entry.kind == FETCHED:
            batch.is_fetched = True
            self._finished.append(batch.id)
        else:
            indexes = msgspec.msgpack.decode(entry.body, type=Some).indexes
            if entry.kind == REVIVED:
                self._revive(batch, indexes)
            for span in spans_of(batch, indexes) if entry.kind == DROPPED else ():
                batch.mark(span.low, span.high, Status.DROPPED)

    def _replay_ends(self, batch: Batch, ends: Ends) -> None:
        for span in spans_of(batch, ends.indexes):
            batch.mark(span.low, span.high, Status(ends.status))
        batch.attempts.update(ends.attempts)
        for index in ends.indexes if self.leases.has_suspects else ():
            self.leases.forgive(batch, index)
        self._count_ended(batch, ends.indexes, Status(ends.status))
        self.tallies.of(batch.tenant, batch.image).took(ends.seconds)
        if ends.seconds:
            self._learn_from(batch, ends.indexes, ends.seconds)

    def _learn_from(self, batch: Batch, indexes: Sequence[int], seconds: Sequence[float]) -> None:
        """From some of them, as a column costs no more than its sum."""
        head = self.heads[batch.id]
        for place in range(0, len(indexes), -(-len(indexes) // _SAMPLES)):
            index = indexes[place]
            size = of_each(head.sizes, index)
            self.estimator.learn(kind_of(head), seconds[place], batch.estimate(index), size)

    def _failed_attempts(self, batch: Batch, index: int) -> int:
        """As many are on record."""
        return self._failures.get((batch.id, index), 0) + self.leases.deaths(batch, index)
