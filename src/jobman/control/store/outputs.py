"""Reading about the output of jobs that are over: whose is still kept, how much it is, what was removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, case, func, literal, or_, select

from jobman.control.store.reader import Reader, Where, of_job
from jobman.control.store.schema import ALIVE, jobs, log_positions


class KeptOutput(msgspec.Struct, frozen=True, gc=False):
    """What is kept of the output of a job that is over."""

    job: str
    ended_at: float
    size: int
    """Bytes of it whose removal is not decided."""
    removed_at: float | None = None
    """Since when its removal is decided, but not completed."""


class OutputReads(Reader):
    """What can be asked about output. Only what lies below one of `folders`, in that of its job, counts."""

    def kept_outputs(self, folders: Iterable[str], limit: int) -> list[KeptOutput]:
        """The output there is of jobs that are over: first what is being removed, then the oldest."""
        removed_at = func.max(log_positions.c.removed_at)
        query = (
            _of_finished(folders, jobs.c.id, jobs.c.ended_at, _bytes(), removed_at)
            .group_by(jobs.c.number)
            .order_by(case((removed_at.is_(None), 1), else_=0), jobs.c.ended_at, jobs.c.number)
            .limit(limit)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return [KeptOutput(job, ended_at, int(size), at) for job, ended_at, size, at in rows]

    def kept_bytes(self, folders: Iterable[str]) -> int:
        """How much output there is of jobs that are over."""
        with self._database.read() as connection:
            return int(connection.execute(_of_finished(folders, _bytes())).scalar() or 0)

    def output_removed_at(self, job: str) -> float | None:
        """When output of a job was removed; None where all of it is there."""
        query = select(func.max(log_positions.c.removed_at)).where(of_job(log_positions, job))
        with self._database.read() as connection:
            found: float | None = connection.execute(query).scalar()
        return found


def _of_finished(folders: Iterable[str], *columns: ColumnElement[Any]) -> Select[Any]:
    mine = or_(*(_is_below(folder) for folder in folders))
    alive = select(jobs.c.number).where(ALIVE).correlate(None)
    return (
        select(*columns)
        .select_from(log_positions)
        .join(jobs, jobs.c.number == log_positions.c.job)
        .where(log_positions.c.job.not_in(alive), jobs.c.ended_at.is_not(None), mine)
    )


def _is_below(folder: str) -> Where:
    """That output lies in the folder of its own job; a way back up leads anywhere."""
    start = literal(f"{folder}/") + jobs.c.id + literal("/")
    path: ColumnElement[str] = log_positions.c.path
    return (func.substr(path, 1, func.length(start)) == start) & ~path.contains("/../")


def _bytes() -> ColumnElement[int]:
    """What copies wrote themselves; a file may have had a beginning before."""
    rows = log_positions.c
    counted = rows.removed_at.is_(None) & (rows.size > rows.start)
    return func.sum(case((counted, rows.size - rows.start), else_=0))
