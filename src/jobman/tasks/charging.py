"""What tenants used, in the slices that jobs are charged in: one for each tenant and image in a minute.

A slice knows up to which entry of the journal it counts: after a crash the rest is counted from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from sqlalchemy import Connection, desc, func, insert, select

from jobman.control.accounting.units import units_of
from jobman.control.store.schema import slices
from jobman.tasks.entries import AGAIN, ENDS, Entry
from jobman.tasks.model import Again, Ends

LENGTH = 60.0
"""Seconds of a slice."""
JOB = "tasks"
"""What stands in the place of a job in statements."""
_NO_JOB = 0
"""Jobs are counted from one."""
_BITS = 32

Key = tuple[str, str]
"""A tenant and an image."""
Spent = Mapping[Key, float]
"""Seconds that workers spent so far."""
Cores = Callable[[str], float]
"""How many cores a slot of an image holds."""


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant used of an image in a stretch of time."""

    tenant: str
    image: str
    start: float
    end: float
    seconds: float
    cores: float
    units: float
    upto: int
    """The last entry of the journal that counts."""

    @property
    def row(self) -> dict[str, object]:
        """As it stands among the slices of jobs."""
        return {
            "job": _NO_JOB,
            "key": f"{self.tenant}/{self.image}",
            "attempt": self.upto >> _BITS,
            "number": self.upto & ((1 << _BITS) - 1),
            "kind": "use",
            "start": self.start,
            "end": self.end,
            "seconds": self.seconds,
            "units": self.units,
            "charged": self.units,
            "account": self.tenant,
            "owner": self.tenant,
            "flavor": self.image,
            "queue": "",
            "job_id": JOB,
            "job_name": self.image,
            "amounts": {"core": self.cores},
            "reason": "",
        }


class Meter:
    """What of all that was used is charged."""

    def __init__(self, price: float, cores: Cores, now: float) -> None:
        self._price = price
        """Of a core, for an hour."""
        self._cores = cores
        self._start = now
        self._charged: dict[Key, float] = {}

    def begin(self, used: Spent, uncharged: Spent) -> None:
        """Go on behind what is charged already, of what was used before."""
        self._charged = {key: seconds - uncharged.get(key, 0.0) for key, seconds in used.items()}
        for key, seconds in uncharged.items():
            self._charged.setdefault(key, -seconds)

    def close(self, used: Spent, upto: int, now: float) -> list[Slice]:
        """End the slices of this stretch of time, and begin the next."""
        found = []
        # A clock that was set back makes a stretch short; what was used in it counts all the same.
        now = max(now, self._start)
        for tenant, image in used.keys() | self._charged.keys():
            key = tenant, image
            more = used.get(key, 0.0) - self._charged.get(key, 0.0)
            if more <= 0:
                continue
            cores = self._cores(image)
            found.append(
                Slice(
                    tenant=tenant,
                    image=image,
                    start=self._start,
                    end=now,
                    seconds=more,
                    cores=cores,
                    units=units_of(self._price * cores, more),
                    upto=upto,
                )
            )
        self._charged = dict(used)
        self._start = now
        return found


def cores_of(resources: Mapping[str, str]) -> float:
    """The cores that a mapper asks for, such as `2` or `500m`; one where it asks for none."""
    asked = resources.get("cpu", "1")
    return float(asked[:-1]) / 1000 if asked.endswith("m") else float(asked)


def seconds_in(entries: Iterable[Entry], owners: Mapping[int, Key]) -> dict[Key, float]:
    """What attempts took that are over, by tenant and image of their batches."""
    found: dict[Key, float] = {}
    for entry in entries:
        if (key := owners.get(entry.batch)) is not None:
            found[key] = found.get(key, 0.0) + _seconds(entry)
    return found


def _seconds(entry: Entry) -> float:
    if entry.kind == ENDS:
        return sum(msgspec.msgpack.decode(entry.body, type=Ends).seconds)
    return msgspec.msgpack.decode(entry.body, type=Again).seconds if entry.kind == AGAIN else 0.0


# -- the table of slices -------------------------------------------------------------------------------------


def write_slices(connection: Connection, found: Iterable[Slice]) -> None:
    """Put slices beside those of jobs."""
    if rows := [each.row for each in found]:
        connection.execute(insert(slices), rows)


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant used of an image in a time."""

    tenant: str
    image: str
    seconds: float
    """That workers spent."""
    units: float
    """What that cost."""


def used(connection: Connection, tenant: str | None, since: float, until: float) -> list[Used]:
    """What was charged for slices that ended in a time, of one tenant or of all."""
    what = (slices.c.owner, slices.c.flavor, func.sum(slices.c.seconds), func.sum(slices.c.charged))
    asked = select(*what).where(slices.c.job == _NO_JOB, slices.c.end > since, slices.c.end <= until)
    if tenant is not None:
        asked = asked.where(slices.c.owner == tenant)
    rows = connection.execute(asked.group_by(slices.c.owner, slices.c.flavor))
    return [Used(tenant=owner, image=image, seconds=spent, units=cost) for owner, image, spent, cost in rows]


def charged_upto(connection: Connection) -> int:
    """The last entry of the journal that is charged."""
    newest = select(slices.c.attempt, slices.c.number).where(slices.c.job == _NO_JOB)
    row = connection.execute(newest.order_by(desc("attempt"), desc("number")).limit(1)).first()
    return 0 if row is None else (row.attempt << _BITS) | row.number
