"""Retention: how long the output of jobs that are over is kept, and its removal when that is over.

A removal is decided in the store first, then its files go, then the store is told that they are gone. From
the first of these steps on readers are told that the output was removed; where a later one did not happen,
the next sweep finds the decision and completes it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobman.control.logs.removal import OddPath, Room, entered
from jobman.control.logs.times import times_beside
from jobman.control.store.errors import StoreError
from jobman.control.store.outputs import KeptOutput
from jobman.control.store.records import Changes, LogRecord
from jobman.control.store.store import Store
from jobman.engines.failpoints import failpoint
from jobman.plan.wording import format_duration
from jobman.spec.quantities import format_size

log = logging.getLogger("jobman.retention")
_JOBS_AT_ONCE = 2_000
_FILES_AT_ONCE = 500
"""So many are one piece of work: others who write to the store wait for no longer than that takes."""
_SOONEST, _LATEST = 60.0, 3600.0
"""Seconds between two sweeps: a hundredth of what is kept, within these."""
_CALM = 10.0
"""Seconds before the first sweep of a service."""
_FRESH = 600.0
"""Seconds for which output is never too much: somebody may be reading it to its end."""
_LOOK_AGAIN = 600.0
"""Seconds after which sizes are looked at again, and what could not be removed is tried again."""


class Rule(NamedTuple):
    """How much output is kept: for so many seconds after the end of a job, and so many bytes in all."""

    keep: float | None = None
    keep_size: int | None = None

    def is_old(self, ended_at: float, now: float) -> bool:
        return self.keep is not None and ended_at + self.keep <= now

    def is_too_much(self, size: int) -> bool:
        return self.keep_size is not None and size > self.keep_size

    def words(self, ended_at: float, removed_at: float) -> str:
        """What is said in the place of output that was removed."""
        day = time.strftime("%Y-%m-%d", time.localtime(removed_at))
        why = self._why(ended_at, removed_at)
        return f"its output was removed on {day}" + (f": {why}" if why else "")

    def _why(self, ended_at: float, removed_at: float) -> str:
        """The part of the rule that fits; none does where the settings were others then."""
        if self.keep is not None and self.is_old(ended_at, removed_at):
            return f"output is kept for {format_duration(self.keep)}"
        if self.keep_size is not None:
            return f"at most {format_size(self.keep_size)} of output is kept"
        return ""


def overdue(outputs: Sequence[KeptOutput], total: int, rule: Rule, now: float) -> list[KeptOutput]:
    """Which outputs have to go, of those that are the oldest of `total` bytes, in their order."""
    chosen = []
    for output in outputs:
        is_begun = output.removed_at is not None
        is_in_the_way = rule.is_too_much(total) and output.ended_at + _FRESH <= now
        if is_begun or rule.is_old(output.ended_at, now) or is_in_the_way:
            chosen.append(output)
            total -= output.size
    return chosen


class Retention:
    """Keeps to the rule in one state folder. Files that people placed elsewhere are theirs, and stay."""

    def __init__(
        self,
        store: Store,
        state_folder: Path,
        keep: float | None,
        keep_size: int | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.rule = Rule(keep, keep_size)
        self._store = store
        self._jobs = state_folder / "jobs"
        # Records name the folder as it was written when their service was started.
        self._folders = tuple(dict.fromkeys((str(self._jobs), str(state_folder.resolve() / "jobs"))))
        self._clock = clock
        self._is_sweeping = False
        self._looked_at = clock()
        # What an earlier service began is completed, but not while those wait who started this one.
        self._due: float | None = self._looked_at + _CALM

    def next_due(self, now: float) -> float | None:
        """When to sweep next; None for never, or while a sweep is under way."""
        if self._is_sweeping:
            return None
        # After a clock was set back, what is due cannot be told by it.
        return now if now < self._looked_at else self._due

    async def sweep(self) -> int:
        """Remove the output that is kept no longer; returns of how many jobs.

        May be cancelled: it ends with the piece of work that is under way. What cannot be removed now is
        tried again by the next sweep.
        """
        if self._is_sweeping:
            return 0
        self._is_sweeping = True
        sweep = _Sweep(self._store, self._jobs, self._folders, self.rule, self._clock)
        pieces = sweep.pieces()
        try:
            while await _in_a_thread(lambda: next(pieces, None)) is not None:
                pass
        except (StoreError, OSError) as error:
            sweep.trouble = error
        finally:
            self._is_sweeping = False
            self._looked_at = self._clock()
            self._due = self._next(self._looked_at, sweep)
        if sweep.trouble is not None:
            log.warning("some output that is kept no longer cannot be removed now: %s", sweep.trouble)
        if sweep.removed:
            log.info("removed the output of %d jobs", len(sweep.removed))
        return len(sweep.removed)

    def _next(self, now: float, sweep: _Sweep) -> float | None:
        """When something may have to go that stayed in a sweep."""
        keep, keep_size = self.rule
        dues = []
        if keep is not None:
            pause = min(max(keep / 100, _SOONEST), _LATEST)
            dues.append(max((now if sweep.oldest is None else sweep.oldest) + keep, now + pause))
        if keep_size is not None or sweep.trouble is not None:
            dues.append(now + _LOOK_AGAIN)
        return min(dues, default=None)


class _Sweep:
    """One look at all output there is, in a thread; `pieces` does the work piece by piece."""

    def __init__(
        self, store: Store, jobs: Path, folders: Sequence[str], rule: Rule, clock: Callable[[], float]
    ) -> None:
        self.removed: set[str] = set()
        self.oldest: float | None = None
        """When the oldest job ended whose output is kept."""
        self.trouble: Exception | None = None
        """Why something could not be removed."""
        self._store = store
        self._jobs = jobs
        self._folders = folders
        self._rule = rule
        self._clock = clock
        self._tried: set[str] = set()

    def pieces(self) -> Iterator[int]:
        """Do a piece of the work and say of how many files it was, until there is no more."""
        while chosen := self._choose():
            for records in self._batches(chosen):
                with entered(self._jobs) as room:
                    self._remove(records, room)
                yield len(records)

    def _choose(self) -> list[str]:
        """Jobs that were not tried yet in this sweep."""
        outputs = self._store.kept_outputs(self._folders, _JOBS_AT_ONCE + len(self._tried))
        total = 0 if self._rule.keep_size is None else self._store.kept_bytes(self._folders)
        chosen = overdue(outputs, total, self._rule, self._clock())
        jobs = {output.job for output in chosen}
        self.oldest = min((output.ended_at for output in outputs if output.job not in jobs), default=None)
        fresh = [output.job for output in chosen if output.job not in self._tried]
        self._tried.update(fresh)
        return fresh

    def _batches(self, jobs: Sequence[str]) -> Iterator[list[LogRecord]]:
        batch: list[LogRecord] = []
        for record in self._records(jobs):
            batch.append(record)
            if len(batch) == _FILES_AT_ONCE:
                yield batch
                batch = []
        if batch:
            yield batch

    def _records(self, jobs: Sequence[str]) -> Iterator[LogRecord]:
        """What is kept of the output of jobs."""
        for job in jobs:
            cursor = None
            while True:
                page = self._store.logs(job, cursor=cursor)
                yield from (record for record in page.items if self._place(record) is not None)
                cursor = page.cursor
                if cursor is None:
                    break

    def _place(self, record: LogRecord) -> str | None:
        """Where a file is below the folder of jobs; None for one that is not in that of its own job."""
        for folder in self._folders:
            if record.path.startswith(f"{folder}/{record.job}/"):
                return record.path.removeprefix(f"{folder}/")
        return None

    def _remove(self, records: Sequence[LogRecord], room: Room) -> None:
        plain = [record for record in records if self._is_plain(record, room)]
        now = self._clock()
        self._write([_with(record, removed_at=now) for record in plain if record.removed_at is None])
        failpoint("retention.decided")
        gone = [record for record in plain if self._unlink(record, room)]
        failpoint("retention.unlinked")
        self._write([_with(record, removed_at=record.removed_at or now, path="") for record in gone])
        self.removed.update(record.job for record in gone)

    def _is_plain(self, record: LogRecord, room: Room) -> bool:
        try:
            room.check(self._place(record) or "")
        except OddPath as odd:
            log.warning("output of %s is left alone: %s", record.job, odd)
            return False
        return True

    def _unlink(self, record: LogRecord, room: Room) -> bool:
        place = Path(self._place(record) or "")
        try:
            for path in (place, times_beside(place)):
                failpoint("retention.unlink")
                room.remove(str(path))
        except OSError as error:
            self.trouble = error
            return False
        return True

    def _write(self, records: Sequence[LogRecord]) -> None:
        if not records:
            return
        try:
            self._store.write(_changes(records))
        except StoreError:
            # Somebody may have deleted one of the jobs at this very moment.
            there = {job for job in {record.job for record in records} if self._store.job(job) is not None}
            rest = [record for record in records if record.job in there]
            if len(rest) == len(records):
                raise
            self._write(rest)


def _with(record: LogRecord, *, removed_at: float, path: str | None = None) -> LogRecord:
    path = record.path if path is None else path
    return msgspec.structs.replace(record, removed_at=removed_at, path=path)


def _changes(records: Sequence[LogRecord]) -> Changes:
    return Changes(logs={(r.job, r.key, r.attempt, r.copy, r.stream): r for r in records})


async def _in_a_thread(work: Callable[[], int | None]) -> int | None:
    """Have it done elsewhere; who is cancelled still waits for its end, for it may hold the store."""
    under_way = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        await asyncio.gather(under_way, return_exceptions=True)
        raise
