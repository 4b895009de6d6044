"""From changes to rows: what one transaction writes, ready for the database.

Rows are made at once and hold only plain values: a record that changes afterwards changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from typing import Any

from sqlalchemy import Table

from jobman.control.store import schema
from jobman.control.store.columns import Words
from jobman.control.store.records import Changes, JobRecord

Row = tuple[Any, ...]

LIFE = ("state", "held", "reason", "exit_code", "started_at", "ended_at", "counts", "conductor")
"""The part of a job that follows its life."""

KINDS: dict[str, tuple[str, ...]] = {
    "tasks": ("job", "scope", "unit"),
    "replicas": ("job", "key"),
    "attempts": ("job", "key", "attempt"),
    "allocations": ("job", "key", "attempt"),
    "logs": ("job", "key", "attempt", "copy", "stream"),
    "events": (
        "number",
        "job",
        "at",
        "kind",
    ),  # two with one number are a mistake, and must not hide each other
    "submissions": ("owner", "key"),
    "promises": ("job", "key"),
    "revisions": ("job", "number", "key"),
    "slices": ("job", "key", "attempt", "number", "kind"),
    "balances": ("account", "owner", "queue"),
    "calendar": ("name",),
    "queue_states": ("name",),
    "node_states": ("name",),
}
"""What tells the records of each kind apart, by the name of the kind in Changes."""

TABLES: dict[str, Table] = {
    "jobs": schema.jobs,
    "lives": schema.jobs,
    "documents": schema.documents,
    "labels": schema.labels,
    **{kind: schema.metadata.tables[kind] for kind in KINDS if kind != "logs"},
    "logs": schema.log_positions,
}
"""The table of each kind of rows."""

COLUMNS: dict[str, tuple[str, ...]] = {
    **{kind: tuple(table.c.keys()) for kind, table in TABLES.items()},
    "lives": ("number", "id", *LIFE),
}
"""The values of a row of each kind, in their order."""

_JOB_PLACE = {kind: columns.index("job") if "job" in columns else None for kind, columns in COLUMNS.items()}


class Batch:
    """The rows of one transaction. Those that belong to a job still name it by its id."""

    __slots__ = ("deleted", "gone", "numbers", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, dict[Hashable, Row]] = {}
        self.gone: dict[str, dict[Hashable, Row]] = {}
        """Of rows to be taken away, what tells them apart."""
        self.numbers: dict[str, int] = {}
        """The numbers of the jobs that are written here, by their ids."""
        self.deleted: set[str] = set()

    def __len__(self) -> int:
        return sum(map(len, (*self.rows.values(), *self.gone.values()))) + len(self.deleted)

    def jobs(self) -> set[str]:
        """The ids of the jobs that rows belong to."""
        found = {
            row[place]
            for kind, rows in self.rows.items()
            if (place := _JOB_PLACE[kind]) is not None
            for row in rows.values()
        }
        return found - {""}

    def former_jobs(self) -> set[str]:
        """The ids of jobs that may be gone already: those to be deleted, and of rows to be taken away."""
        of_jobs = [rows for kind, rows in self.gone.items() if KINDS[kind][0] == "job"]
        return self.deleted | {row[0] for rows in of_jobs for row in rows.values()}

    def numbered(self, kind: str, numbers: dict[str, int]) -> list[Row]:
        """Rows of one kind, with the numbers of jobs in the place of their ids."""
        rows = self.rows[kind].values()
        place = _JOB_PLACE[kind]
        if place is None:
            return list(rows)
        return [(*row[:place], numbers.get(row[place]), *row[place + 1 :]) for row in rows]

    def numbered_gone(self, kind: str, numbers: dict[str, int]) -> list[Row]:
        """The same for rows to be taken away; with their jobs they are gone already."""
        rows = self.gone[kind].values()
        if KINDS[kind][0] != "job":
            return list(rows)
        return [(numbers[row[0]], *row[1:]) for row in rows if row[0] in numbers]

    def put(self, kind: str, keyed: Iterable[tuple[Hashable, Row]]) -> None:
        """Add rows; a later one replaces an earlier one with the same key."""
        _replace(self.rows, self.gone, kind, dict(keyed))

    def take(self, kind: str, keys: Iterable[Hashable]) -> None:
        """Take rows away, also those that were to be written."""
        keyed = {key: _key_row(key) for key in keys}
        _replace(self.gone, self.rows, kind, keyed)

    def merge(self, other: Batch) -> None:
        """Add what follows."""
        for kind, rows in other.rows.items():
            _replace(self.rows, self.gone, kind, rows)
        for kind, rows in other.gone.items():
            _replace(self.gone, self.rows, kind, rows)
        self.numbers.update(other.numbers)
        self.deleted |= other.deleted


Tables = dict[str, dict[Hashable, Row]]


def _replace(these: Tables, others: Tables, kind: str, rows: dict[Hashable, Row]) -> None:
    """Put rows among these; whatever was said of them before counts no longer."""
    if not rows:
        return
    these.setdefault(kind, {}).update(rows)
    if kind in others:
        others[kind] = {key: row for key, row in others[kind].items() if key not in rows}


def _key_row(key: Hashable) -> Row:
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(_words(part) if isinstance(part, str) else part for part in parts)


def batch_of(changes: Changes) -> Batch:
    """The rows of changes."""
    batch = Batch()
    batch.deleted |= changes.deleted
    new = [changes.jobs[id] for id in changes.new_jobs]
    batch.put("jobs", ((job.id, _job_row(job)) for job in new))
    batch.put("documents", ((job.id, _DOCUMENT(job)) for job in new))
    batch.put("labels", (((job.id, row[1]), row) for job in new for row in _label_rows(job)))
    lives = (job for id, job in changes.jobs.items() if id not in changes.new_jobs)
    batch.put("lives", ((job.id, _LIFE(job)) for job in lives))
    batch.numbers = {id: job.number for id, job in changes.jobs.items()}
    for kind, encode in _ENCODERS.items():
        records = getattr(changes, kind)
        if not records:
            continue
        if isinstance(records, dict):
            batch.put(kind, ((key, encode(one)) for key, one in records.items() if one is not None))
            batch.take(kind, (key for key, one in records.items() if one is None))
        else:
            key_of = attrgetter(*KINDS[kind])
            batch.put(kind, ((key_of(record), encode(record)) for record in records))
    return batch


def _encoder(table: Table, fields: Iterable[str], columns: Iterable[str]) -> Callable[[Any], Row]:
    """A function from a record to a row: its fields, each as its column keeps it."""
    get = attrgetter(*fields)
    types = [table.c[column].type for column in columns]
    converted = [
        (place, convert)
        for place, type in enumerate(types)
        if (convert := getattr(type, "process_bind_param", None)) is not None
    ]

    def encode(record: Any) -> Row:
        row = list(get(record))
        for place, convert in converted:
            row[place] = convert(row[place], None)
        return tuple(row)

    return encode


def _of_records(kind: str) -> Callable[[Any], Row]:
    return _encoder(TABLES[kind], COLUMNS[kind], COLUMNS[kind])


_JOB = _encoder(
    schema.jobs, (name if name != "search" else "name" for name in COLUMNS["jobs"]), COLUMNS["jobs"]
)
_LIFE = _of_records("lives")
_DOCUMENT = _encoder(schema.documents, ("id", "document", "plan"), COLUMNS["documents"])
_ENCODERS = {kind: _of_records(kind) for kind in KINDS}
_WORDS = Words()
_SEARCH = COLUMNS["jobs"].index("search")


def _job_row(job: JobRecord) -> Row:
    row = _JOB(job)
    return (*row[:_SEARCH], _words(searched(job)), *row[_SEARCH + 1 :])


def searched(job: JobRecord) -> str:
    """The words among which a search looks for a text, without regard to case."""
    labels = (f"{name}={value}" for name, value in job.labels.items())
    words = (job.id, job.name, job.queue, job.flavor, job.account, *labels)
    return "\n".join(word for word in words if word).casefold()


def _label_rows(job: JobRecord) -> list[Row]:
    return [(job.id, _words(name), _words(value)) for name, value in job.labels.items()]


def _words(text: str) -> str | None:
    return _WORDS.process_bind_param(text, None)
