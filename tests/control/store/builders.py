"""Records with whatever is left out filled in, and changes made of them."""

from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    BalanceRecord,
    CalendarRecord,
    Changes,
    EventRecord,
    JobRecord,
    LogRecord,
    PromiseRecord,
    ReplicaRecord,
    RevisionRecord,
    SliceRecord,
    StateRecord,
    SubmissionRecord,
    TaskRecord,
    TokenRecord,
)

NOON = 1_700_000_000.0


def job(number=1, **values):
    """A job whose id tells its number."""
    return JobRecord(
        **{
            "id": f"{number:04x}-job",
            "number": number,
            "name": "train",
            "owner": "ada",
            "submitted_at": NOON + number,
            "document": f"name: job {number}\n",
            "plan": b'{"units":[]}',
            **values,
        }
    )


def task(job, **values):
    return TaskRecord(**{"job": job.id, "scope": "", "unit": "train", **values})


def replica(job, index=0, **values):
    unit = values.get("unit", "train")
    return ReplicaRecord(
        **{
            "job": job.id,
            "key": f"{unit}.{index}",
            "unit": unit,
            "index": index,
            "state": "running",
            **values,
        }
    )


def attempt(job, number=1, **values):
    return AttemptRecord(**{"job": job.id, "key": "train.0", "attempt": number, "granted_at": NOON, **values})


def allocation(job, number=1, **values):
    return AllocationRecord(
        **{"job": job.id, "key": "train.0", "attempt": number, "given_at": NOON, **values}
    )


def log(job, **values):
    known = {"key": "train.0", "attempt": 1, "copy": 0, "stream": "out", "path": "/logs/train.0.out"}
    return LogRecord(**{"job": job.id, **known, **values})


def event(number, job=None, **values):
    id = "" if job is None else job.id
    return EventRecord(**{"number": number, "job": id, "at": NOON + number, "kind": "started", **values})


def submission(**values):
    known = {"owner": "ada", "key": "k1", "digest": "d1", "jobs": ("0001-job",), "at": NOON}
    return SubmissionRecord(**{**known, **values})


def token(name="laptop", **values):
    known = {"user": "ada", "role": "user", "hash": f"hash of {name}", "created_at": NOON}
    return TokenRecord(**{"name": name, **known, **values})


def promise(job, **values):
    return PromiseRecord(**{"job": job.id, "key": "train.0", "given_at": NOON, **values})


def revision(job, number=1, **values):
    known = {"key": "train.0", "at": NOON, "before": None, "after": NOON + 60, "cause": "node n1 was lost"}
    return RevisionRecord(**{"job": job.id, "number": number, **known, **values})


def window(name="upgrade", **values):
    known = {"kind": "maintenance", "definition": {"nodes": ["n1"]}, "created_by": "root", "created_at": NOON}
    return CalendarRecord(**{"name": name, **known, **values})


def state(name="batch", **values):
    return StateRecord(**{"name": name, "state": "draining", "by": "root", "at": NOON, **values})


def slice_of(job, number=0, **values):
    """A minute of one core."""
    start = values.get("start", NOON + 60 * number)
    end = values.get("end", start + 60)
    known = {
        "key": "train.0",
        "attempt": 1,
        "start": start,
        "end": end,
        "seconds": end - start,
        "units": (end - start) / 3600,
        "account": job.account or "default",
        "owner": job.owner,
        "job_name": job.name,
        "amounts": {"core": 1.0, "node": 1.0},
    }
    return SliceRecord(**{"job": job.id, "number": number, **known, **values})


def refund_of(job, *charged, **values):
    """What takes slices back."""
    known = {
        "number": 0,
        "kind": "refund",
        "start": charged[0].start,
        "end": charged[-1].end,
        "seconds": -sum(one.seconds for one in charged),
        "units": -sum(one.units for one in charged),
        "reason": "node-lost",
    }
    return slice_of(job, **{**known, **values})


def balance(account="physics", owner="ada", **values):
    return BalanceRecord(**{"account": account, "owner": owner, "at": NOON, **values})


_FIELDS: dict[type, tuple[str, ...]] = {
    TaskRecord: ("tasks", "job", "scope", "unit"),
    ReplicaRecord: ("replicas", "job", "key"),
    AttemptRecord: ("attempts", "job", "key", "attempt"),
    AllocationRecord: ("allocations", "job", "key", "attempt"),
    LogRecord: ("logs", "job", "key", "attempt", "copy", "stream"),
    PromiseRecord: ("promises", "job", "key"),
    BalanceRecord: ("balances", "account", "owner", "queue"),
}
_LISTS: dict[type, str] = {
    EventRecord: "events",
    SubmissionRecord: "submissions",
    RevisionRecord: "revisions",
    SliceRecord: "slices",
}


def changes(*records, new=True, deleted=()):
    """Changes with these records, jobs among them new ones unless it says otherwise."""
    made = Changes(deleted=set(deleted))
    for record in records:
        if isinstance(record, JobRecord):
            made.jobs[record.id] = record
            made.new_jobs |= {record.id} if new else set()
        elif type(record) in _LISTS:
            getattr(made, _LISTS[type(record)]).append(record)
        elif isinstance(record, CalendarRecord):
            made.calendar[record.name] = record
        else:
            field, *key = _FIELDS[type(record)]
            getattr(made, field)[tuple(getattr(record, name) for name in key)] = record
    return made
