"""Random histories of a service that charges, and crashes wherever a history says so."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from jobman.control.accounting.book import Book
from jobman.control.store.records import AllocationRecord, Changes
from jobman.control.store.store import Store
from jobman.control.store.views import Charged
from jobman.sched.accounts import Account, AccountTree
from jobman.settings.accounting import Accounting
from jobman.spec.failures import REASONS
from tests.control.accounting.builders import grant, part
from tests.control.store.builders import NOON, job

TREE = AccountTree(
    [Account(name="science"), Account(name="physics", parent="science", users={"ada": 1, "bob": 1})]
)
OWNERS = ("ada", "bob", "eve")
KEPT, LOST, UNHEARD = "kept", "lost", "unheard"
"""What becomes of a commit: it is made; the service dies before it; the service dies right after it."""

fates = st.sampled_from([KEPT] * 6 + [LOST, UNHEARD])
lengths = st.floats(0.0, 400.0)


class Give(NamedTuple):
    owner: str
    cores: int
    fate: str
    again: bool = False
    """Whether it is the next attempt of a replica that had one before."""


class End(NamedTuple):
    which: int
    before: float
    """How long ago it ended."""
    reason: str
    fate: str


class Wait(NamedTuple):
    seconds: float
    fate: str


class Back(NamedTuple):
    """The clock of the day is put back."""

    seconds: float


class Price(NamedTuple):
    """An hour of a core costs something else from now on."""

    units: float


class Away(NamedTuple):
    """The service is gone for a while."""

    seconds: float


steps = st.one_of(
    st.builds(Give, st.sampled_from(OWNERS), st.integers(1, 8), fates, st.booleans()),
    st.builds(
        End, st.integers(0, 20), st.one_of(st.just(0.0), lengths), st.sampled_from(["", *REASONS]), fates
    ),
    st.builds(Wait, lengths, fates),
    st.builds(Wait, lengths, st.just(KEPT)),
    st.builds(Away, lengths),
    st.builds(Back, lengths),
    st.builds(Price, st.sampled_from([0.0, 0.3, 1.0, 24.0])),
)
histories = st.lists(steps, min_size=1, max_size=40)


class MemoryDisk:
    """What a store keeps of all this, in dictionaries: quick enough for many histories."""

    def __init__(self):
        self.rows = {}
        self.sums = {}
        self.held = {}

    def commit(self, changes):
        for one in changes.slices:
            self.rows.setdefault((one.job, one.key, one.attempt, one.number, one.kind), one)
        self.sums |= changes.balances
        for address, record in changes.allocations.items():
            self.held[address] = record

    def slices(self):
        return list(self.rows.values())

    def balances(self):
        return list(self.sums.values())

    def charged(self):
        found: dict[Any, Charged] = {}
        for one in self.rows.values():
            address = (one.job, one.key, one.attempt)
            is_later = one.number >= found.get(address, Charged()).slices
            if one.kind == "use" and is_later and self.held[address].returned_at is None:
                found[address] = Charged(one.number + 1, one.end, one.charged)
        return found

    def open(self):
        return {address: record for address, record in self.held.items() if record.returned_at is None}


class StoreDisk:
    """The same on a real store."""

    def __init__(self, path):
        self.store = Store.open(path)
        self.store.claim("a test")

    def commit(self, changes):
        self.store.write(changes)

    def slices(self):
        ids = [one.id for one in self.store.jobs(limit=1000).items]
        return [one for id in ids for one in self.store.slices(id)]

    def balances(self):
        return self.store.balances()

    def charged(self):
        return self.store.charged()

    def open(self):
        return {(one.job, one.key, one.attempt): one for one in self.store.allocations(open_only=True)}


class Service:
    """Plays a history against a disk. `runs` says how long each allocation lasted, and how it ended."""

    def __init__(self, disk, length):
        self.disk = disk
        self.length = length
        self.now = NOON + 0.123
        self.grants = {}
        self.prices = {}
        self.runs = {}
        self._price = 1.0
        self._number = 0
        self._start()

    def play(self, history):
        for step in history:
            match step:
                case Give():
                    self._give(step)
                case End():
                    self._end(step)
                case Wait():
                    self.now += step.seconds
                    self._ring(step.fate)
                case Back():
                    self.now -= step.seconds
                case Price():
                    self._price = step.units
                    self.book.set(self._settings(), TREE)
                case Away():
                    self.now += step.seconds
                    self._start()
        for _ in range(len(self.disk.open())):
            self._end(End(0, 0.0, "", KEPT))

    def _start(self):
        """A new process that knows what is on disk and nothing else."""
        self.book = Book(self._settings(), TREE, self.disk.balances())
        charged = self.disk.charged()
        for address, held in self.disk.open().items():
            made = self.grants[address]._replace(at=held.given_at, price=held.allocation["price"])
            self.book.resumed(made, charged)

    def _settings(self):
        return Accounting(slice=self.length, price=self._price)

    def _commit(self, changes, fate):
        """Whether the changes are on disk; unless all went well, there is a new process."""
        if fate != LOST:
            self.disk.commit(changes)
        if fate == UNHEARD:
            self.disk.commit(changes)
        if fate != KEPT:
            self._start()
        return fate != LOST

    def _give(self, step):
        record, attempt = self._next(step)
        made = grant(record, parts=(part(core=step.cores),), at=self.now, attempt=attempt)
        address = (record.id, made.key, attempt)
        self.book.given(made)
        price = self.book.price(address)
        held = AllocationRecord(
            job=record.id, key=made.key, attempt=attempt, given_at=self.now, allocation={"price": price}
        )
        changes = Changes(jobs={record.id: record}, allocations={address: held})
        changes.new_jobs = {record.id} if attempt == 1 else set()
        self.grants[address] = made
        self.prices[address] = self._price * step.cores
        self._commit(changes, step.fate)

    def _next(self, step):
        """Whose attempt begins: a new job's first, or the one after the last that came to its end."""
        ended = {record: attempt for record, _, attempt in self.runs}
        going = {record for record, _, _ in self.disk.open()}
        free = [record for record in ended if record not in going]
        if step.again and free:
            last = max(attempt for record, _, attempt in self.grants if record == free[-1])
            return self.grants[free[-1], "train.0", 1].record, last + 1
        self._number += 1
        account = "physics" if step.owner != "eve" else None
        return job(self._number, owner=step.owner, account=account), 1

    def _end(self, step):
        held = self.disk.open()
        if not held:
            return
        address: Any = list(held)[step.which % len(held)]
        given_at = held[address].given_at
        at = self.now - step.before
        changes = Changes()
        changes.allocations[address] = AllocationRecord(
            job=address[0], key=address[1], attempt=address[2], given_at=given_at, returned_at=self.now
        )
        job, key, attempt = address
        self.book.returned(job, key, attempt, at, step.reason, changes)
        if self._commit(changes, step.fate):
            self.runs[address] = max(at, given_at) - given_at, step.reason

    def _ring(self, fate):
        while (due := self.book.next_due(self.now)) is not None and due <= self.now:
            changes = Changes()
            self.book.ring(self.now, changes)
            if not changes.is_empty:
                self._commit(changes, fate)
                fate = KEPT
