"""The book: prices, meter, spending and permissions in one place, for the floor to tell and to ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jobman.control.accounting.ledger import Metered
from jobman.control.accounting.meter import Meter
from jobman.control.accounting.paths import Inspection, inspection_of
from jobman.control.accounting.permissions import account_of, check
from jobman.control.accounting.prices import Nodes, Prices, amounts_of, flavors_of, load_of
from jobman.control.accounting.spending import HALF_LIFE, Spending
from jobman.control.store.records import BalanceRecord, Changes, JobRecord, SliceRecord
from jobman.control.store.views import Charged
from jobman.engines.base import Address
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import in_all
from jobman.sched.accounts import AccountTree
from jobman.sched.allocation import Allocation
from jobman.settings.accounting import Accounting

EVENT = "permission-lost"
"""The kind of the event that tells why a job is stopped that lost what it needs to run."""


class Grant(NamedTuple):
    """What a replica of a job was given, and when."""

    record: JobRecord
    plan: Plan
    unit: Unit
    key: str
    attempt: int
    allocation: Allocation
    nodes: Nodes
    """Those the job may use, by name."""
    at: float
    """The same moment as in the record of the allocation: after a restart nothing else is known."""
    queue: str = ""
    """The queue it waited in, also where its job names none."""
    price: float | None = None
    """Units an hour as they were when it was given; None where it is given now."""


class Book:
    """What is charged to whom. Everything it has to say goes into the changes of a batch.

    What is inside a group is paid for with the group, and emulated nodes cost nothing.
    """

    def __init__(
        self,
        settings: Accounting,
        accounts: AccountTree,
        balances: Iterable[BalanceRecord] = (),
        *,
        half_life: float = HALF_LIFE,
    ) -> None:
        self.meter = Meter(settings.slice)
        self.spending = Spending(accounts, balances, half_life=half_life)
        self.set(settings, accounts)
        self._jobs: dict[str, tuple[JobRecord, Inspection]] = {}
        self._cluster: dict[str, float] = {}
        self._told: set[str] = set()
        """Jobs that may not run on, and are being stopped."""

    def set(self, settings: Accounting, accounts: AccountTree) -> None:
        """Take over settings that were read anew: prices count for what begins from now on, the rest at once.

        The length of slices stays as it is until the service starts again.
        """
        self.prices = Prices(settings.price, settings.prices)
        self.accounts = accounts
        self.spending.group(accounts)

    # -- what the floor tells ----------------------------------------------------------------------

    def given(self, grant: Grant) -> None:
        """A replica was given something."""
        if metered := self._metered(grant):
            self.meter.begin(metered)

    def resumed(self, grant: Grant, charged: Mapping[Address, Charged]) -> None:
        """The same after a restart, of what was held before; `charged` is what the store knows of it."""
        if metered := self._metered(grant):
            self.meter.resume(metered, charged.get(metered.address))

    def _metered(self, grant: Grant) -> Metered | None:
        record, allocation = grant.record, grant.allocation
        if "/" in grant.key or not allocation.held or record.options.get("virtual"):
            return None
        if record.id not in self._jobs:
            self._jobs[record.id] = record, inspection_of(record, grant.plan)
        alternatives = grant.unit.alternatives
        parts = alternatives[allocation.alternative] if alternatives else ()
        return Metered(
            job=record.id,
            key=grant.key,
            attempt=grant.attempt,
            start=grant.at,
            price=self.prices.an_hour(allocation, parts, grant.nodes) if grant.price is None else grant.price,
            owner=record.owner,
            account=account_of(record, self.accounts),
            flavor=flavors_of(parts),
            queue=grant.queue or record.queue or "",
            job_name=record.name,
            amounts={**amounts_of(allocation), "load": load_of(allocation, self._all_of(grant.nodes))},
        )

    def _all_of(self, nodes: Nodes) -> Mapping[str, float]:
        """What all nodes have together: they are the same for all jobs."""
        self._cluster = self._cluster or in_all(nodes.values())
        return self._cluster

    def resized(self) -> None:
        """There are others nodes than before: what begins from now on is measured by them."""
        self._cluster = {}

    def price(self, address: Address) -> float | None:
        """What an hour of something that is held costs; None where it costs nothing."""
        return self.meter.price(address)

    def returned(self, job: str, key: str, attempt: int, at: float, reason: str, changes: Changes) -> None:
        """A replica gave back what it had, at the end of its attempt; `reason` is how that failed."""
        self._write(self.meter.end(job, key, attempt, at, reason), changes)

    def forget(self, job: str) -> None:
        """A job is over, or never was."""
        self.meter.forget(job)
        self._jobs.pop(job, None)
        self._told.discard(job)

    # -- time --------------------------------------------------------------------------------------

    def next_due(self, now: float) -> float | None:
        """When to ring."""
        return self.meter.next_due(now)

    def ring(self, now: float, changes: Changes) -> dict[str, str]:
        """Charge what is due; what `lost` says of accounts and budgets."""
        charged = self.meter.ring(now)
        self._write(charged, changes)
        return self.lost({}) if charged else {}

    def _write(self, slices: Sequence[SliceRecord], changes: Changes) -> None:
        if slices:
            changes.slices.extend(slices)
            changes.balances.update(self.spending.add(slices))

    # -- permissions -------------------------------------------------------------------------------

    def inspections(self) -> list[Inspection]:
        """The jobs whose paths are to be looked at, for `paths.unreadable`."""
        return [self._jobs[job][1] for job in self.meter.jobs()]

    def why_not(self, record: JobRecord) -> str | None:
        """Why a job may not begin to run, in a sentence; None where it may."""
        return check(record, self.accounts, self.spending)

    def lost(self, unreadable: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Jobs that may not run on, with a sentence that says why. Of each it is told once."""
        found = {}
        for job in self.meter.jobs():
            if job not in self._told:
                why = check(self._jobs[job][0], self.accounts, self.spending, unreadable.get(job, ()))
                if why is not None:
                    found[job] = why
        self._told.update(found)
        return found
