"""What there is: batches as they are submitted, counted, ended and forgotten, and what is written of it.

Whoever gives their tasks out, and has them come back, builds on this.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

import msgspec

from jobman.tasks.batches import Batch, Span, Status
from jobman.tasks.entries import ENDS, FETCHED, Entry, StoredBatch
from jobman.tasks.estimates import Estimator, Kind
from jobman.tasks.happenings import Diary
from jobman.tasks.leases import Leases
from jobman.tasks.mapper import Executor, Table, Unmappable
from jobman.tasks.model import Again, Ends, Head, Some, Submission
from jobman.tasks.queues import Queue
from jobman.tasks.quotas import Quota, Usage
from jobman.tasks.submissions import Refusal, check, with_size
from jobman.tasks.tallies import Tallies

EXPIRY = 24 * 3600.0
"""Seconds for which results are kept that nobody fetches."""
_LEASE = 10.0
BAD_ANSWER = "bad-answer"
"""How the reasons of agents begin whose worker said something that nobody understands."""
_encode = msgspec.msgpack.encode


class Accepted(msgspec.Struct, frozen=True):
    """A batch that is there."""

    id: int
    stored: StoredBatch | None
    """What must be written before anybody is told; nothing where it was there before."""


class Stock:
    """All batches, and what is known of them."""

    def __init__(
        self,
        table: Table,
        *,
        first: int = 0,
        quotas: Mapping[str, Quota] | None = None,
        lease: float = _LEASE,
        expiry: float = EXPIRY,
        grace: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` is that of the wall, for people who read what happened; decisions have theirs given.

        `grace` are seconds after a restart in which nothing is given out: agents come again meanwhile, and
        keep what they have.
        """
        self.table = table
        self.quotas = {} if quotas is None else quotas
        self.estimator = Estimator()
        self.leases = Leases(lease, lambda batch, seconds: self._charge(batch, -seconds))
        self.queues: dict[str, Queue] = {}
        self.batches: dict[int, Batch] = {}
        self.heads: dict[int, Head] = {}
        self.executors: dict[str, Executor] = {}
        """By image, as mappers said last."""
        self.usage: dict[str, Usage] = {}
        self.tallies = Tallies()
        self.diary = Diary(first, clock)
        self.suspects: dict[str, deque[Span]] = {}
        """Those that are given out alone, by image."""
        self.open = 0
        """Tasks that have not ended."""
        self._expiry = expiry
        self._keys: dict[tuple[str, str], int] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._unhinted: dict[Kind, set[Batch]] = {}
        self._leans: dict[tuple[str, Kind], float] = {}
        """What tasks of a tenant and a kind take beside their estimates, lately."""
        self._reserved: dict[str, str] = {}
        """By image, the agent that gets nothing more until it has nothing: then it gets a suspect."""
        self._grace = grace
        self._gives_from = -inf
        self._resting: list[tuple[float, int, int]] = []
        self._deadlines: list[tuple[float, int]] = []
        self._finished: list[int] = []
        """Batches whose tasks have all ended since the last tick."""
        self._expiring: list[tuple[float, int]] = []
        self._failures: dict[tuple[int, int], int] = {}
        self._ticked: float | None = None
        self._number = first
        self._seq = first

    # -- submitting -----------------------------------------------------------------------------------

    def known(self, tenant: str, key: str) -> int | None:
        """The batch that is there under a key."""
        return self._keys.get((tenant, key)) if key else None

    def key_of(self, batch_id: int) -> str:
        """The key under which a batch was submitted."""
        return self._names[batch_id][1]

    def own(self, tenant: str, batch_id: int, index: int = 0) -> Batch:
        """A batch of a tenant, which has a task of this index; raises Refusal."""
        batch = self.batches.get(batch_id)
        if batch is None or batch.tenant != tenant:
            advice = "`jobman task batches` shows what there is; what was fetched is gone"
            raise Refusal("unknown", f"there is no batch {batch_id}", advice)
        if not 0 <= index < len(batch):
            advice = f"its tasks have the indexes 0 to {len(batch) - 1}"
            raise Refusal("unknown", f"batch {batch_id} has no task {index}", advice)
        return batch

    def submit(
        self, tenant: str, asked: Submission, now: float, wall: float, executor: Executor | None = None
    ) -> Accepted:
        """Take a batch, or raise Refusal; the table says who executes it, unless somebody else did."""
        if (known := self.known(tenant, asked.key)) is not None:
            return Accepted(known, None)
        check(asked)
        executor = executor or self._mapped(asked)
        asked = with_size(asked, executor.size)
        blob = _encode(asked.references or asked.payloads)
        self._admit(tenant, asked.size, len(blob))
        self._number += 1
        head = Head(
            type=asked.type,
            version=asked.version,
            image=executor.image,
            estimates=self._estimates(asked, executor.image),
            size=asked.size,
            name=asked.name,
            parameters=asked.parameters,
            mapper=asked.mapper,
            resources=executor.resources,
            environment=executor.environment,
            sizes=asked.sizes,
            priority=asked.priority,
            ends_at=None if asked.deadline is None else wall + asked.deadline,
            retries=asked.retries,
            is_hinted=asked.estimates is not None,
            by_reference=bool(asked.references),
        )
        stored = StoredBatch(
            id=self._number,
            tenant=tenant,
            key=asked.key or f"{self._number:x}",
            size=head.size,
            volume=len(blob),
            at=wall,
            head=_encode(head),
            payloads=blob,
        )
        batch = self._add(stored, head, now, wall)
        self._queue(batch.image).put(Span(batch, 0, len(batch)))
        return Accepted(batch.id, stored)

    def _mapped(self, asked: Submission) -> Executor:
        try:
            return self.table.map(asked.type, asked.version)
        except Unmappable as error:
            raise Refusal("unmappable", str(error), error.advice) from None

    def _admit(self, tenant: str, tasks: int, size: int) -> None:
        usage, quota = self.usage.setdefault(tenant, Usage()), self.quotas.get(tenant, Quota())
        if (refused := usage.admit(tasks, size, quota)) is not None:
            advice = "submit fewer at once" if refused.is_hopeless else "submit again when some are done"
            wait = None if refused.is_hopeless else refused.retry_after
            raise Refusal("quota", refused.message, advice, wait)

    def _estimates(self, asked: Submission, image: str) -> float | list[float]:
        kind = (asked.type, asked.version, image)
        if asked.estimates is not None:
            return asked.estimates
        if isinstance(asked.sizes, list):
            return [self.estimator.estimate(kind, size=size) for size in asked.sizes]
        return self.estimator.estimate(kind, size=asked.sizes)

    def _add(self, stored: StoredBatch, head: Head, now: float, wall: float) -> Batch:
        batch = Batch(
            stored.id,
            image=head.image,
            tenant=stored.tenant,
            estimates=head.estimates,
            size=head.size,
            priority=head.priority,
            deadline=None if head.ends_at is None else now + head.ends_at - wall,
            volume=stored.volume,
            since=min(now, now + stored.at - wall),
        )
        self.batches[batch.id] = batch
        self.heads[batch.id] = head
        self.executors[head.image] = Executor(
            image=head.image, resources=head.resources, environment=head.environment
        )
        self._keys[stored.tenant, stored.key] = batch.id
        self._names[batch.id] = (stored.tenant, stored.key)
        self.open += head.size
        self.tallies.of(batch.tenant, batch.image).submitted += head.size
        if batch.deadline is not None:
            heappush(self._deadlines, (batch.deadline, batch.id))
        if not head.is_hinted and isinstance(batch.estimates, float):
            self._unhinted.setdefault(kind_of(head), set()).add(batch)
        return batch

    def _queue(self, image: str) -> Queue:
        if image not in self.queues:
            weights = {tenant: quota.weight for tenant, quota in self.quotas.items()}
            self.queues[image] = Queue(weights)
        return self.queues[image]

    def _lean_of(self, batch: Batch) -> float:
        return self._leans.get((batch.tenant, kind_of(self.heads[batch.id])), 1.0)

    def _charge(self, batch: Batch, seconds: float) -> None:
        """What a tenant pays: for what agents have as it is thought, for what has ended as it was."""
        self._queue(batch.image).charge(batch.tenant, seconds)

    # -- waiting --------------------------------------------------------------------------------------

    def _put_back(self, span: Span, *, first: bool = False) -> None:
        batch = span.batch
        for index in range(span.low, span.high) if self.leases.has_suspects else ():
            if self.leases.is_suspect(batch, index):
                self._set_apart(Span(batch, index, index + 1))
        for low, high in list(batch.queued(span.low, span.high)):
            self._queue(batch.image).put(Span(batch, low, high), first=first)

    def _set_apart(self, span: Span) -> None:
        """It is suspected to kill workers, and given out alone."""
        span.batch.mark(span.low, span.high, Status.RESTING)
        self.suspects.setdefault(span.batch.image, deque()).append(span)

    # -- what is over ---------------------------------------------------------------------------------

    def fetched(self, tenant: str, batch_id: int) -> list[Entry]:
        """Nobody will ask for the results of a batch again."""
        batch = self.own(tenant, batch_id)
        if batch.is_fetched:
            return []
        batch.is_fetched = True
        if not batch.left:
            self._finished.append(batch.id)
        return [self._entry(batch, FETCHED, Some([]))]

    def over(self, now: float) -> list[int]:
        """Batches that have ended and are fetched, or that nobody fetched for too long: forgotten here."""
        for id_ in self._finished:
            heappush(self._expiring, (now + self._expiry, id_))
        gone = [id_ for id_ in self._finished if self._is_done_with(id_)]
        self._finished.clear()
        while self._expiring and self._expiring[0][0] <= now:
            id_ = heappop(self._expiring)[1]
            if id_ in self.batches and not self.batches[id_].left:
                gone.append(id_)
        gone = list(dict.fromkeys(gone))
        for id_ in gone:
            self._forget(id_)
        return gone

    def _is_done_with(self, batch_id: int) -> bool:
        """A batch with dead letters waits for somebody who looks at them, or for its expiry."""
        batch = self.batches.get(batch_id)
        return batch is not None and batch.is_fetched and not batch.left and not batch.count(Status.FAILED)

    def _forget(self, batch_id: int) -> None:
        batch, head = self.batches.pop(batch_id), self.heads.pop(batch_id)
        self._keys.pop(self._names.pop(batch_id), None)
        if not head.is_hinted and (some := self._unhinted.get(kind_of(head))) is not None:
            some.discard(batch)
            if not some:
                del self._unhinted[kind_of(head)]

    # -- what is written, and told --------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The last entry of the journal that was decided."""
        return self._seq

    def _ended(
        self,
        batch: Batch,
        indexes: Sequence[int],
        status: Status,
        *,
        seconds: list[float] | None = None,
        results: list[bytes] | None = None,
        reason: str = "",
        reasons: Mapping[int, str] | None = None,
        deaths: int = 0,
    ) -> Entry:
        self._count_ended(batch, indexes, status)
        ends = Ends(
            indexes=list(indexes),
            status=status,
            attempts=attempts_of(batch, indexes),
            seconds=seconds or [],
            results=results or [],
            reason=reason,
            reasons={index: reasons[index] for index in indexes if index in reasons} if reasons else {},
            deaths=deaths,
        )
        return self._entry(batch, ENDS, ends)

    def _count_ended(self, batch: Batch, indexes: Sequence[int], status: Status) -> None:
        for index in indexes if self._failures else ():
            self._failures.pop((batch.id, index), None)
        count = len(indexes)
        self.open -= count
        self.usage[batch.tenant].leave(count, self._share(batch, count) - self._share(batch))
        self.tallies.of(batch.tenant, batch.image).count(status, count)
        if not batch.left:
            self._finished.append(batch.id)

    def _share(self, batch: Batch, more: int = 0) -> int:
        """Bytes of those that are open, and so many more: each counts for its part of the bytes of all."""
        return batch.volume * (batch.left + more) // len(batch)

    def _entry(self, batch: Batch, kind: int, body: Ends | Again | Some) -> Entry:
        self._seq += 1
        return Entry(self._seq, batch.id, kind, _encode(body))

    def _tell(
        self,
        batch: Batch,
        kind: str,
        indexes: Sequence[int],
        agent: str = "",
        reasons: Mapping[int, str] | None = None,
        words: str = "",
    ) -> None:
        """Write down what happened to some tasks; an answer that made no sense is another matter."""
        words = (
            words or next((reasons[index] for index in indexes if index in reasons), "") if reasons else words
        )
        kind = BAD_ANSWER if words.startswith(BAD_ANSWER) else kind
        self.diary.add(
            kind,
            tenant=batch.tenant,
            image=batch.image,
            agent=agent,
            batch=batch.id,
            index=min(indexes),
            count=len(indexes),
            words=words,
        )


def kind_of(head: Head) -> Kind:
    """What is learned of together."""
    return head.type, head.version, head.image


def attempts_of(batch: Batch, indexes: Iterable[int]) -> dict[int, int]:
    """Of those that were given out before."""
    if not batch.attempts:
        return {}
    return {index: batch.attempts[index] for index in indexes if index in batch.attempts}
