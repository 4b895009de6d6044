"""What every engine is to the rest: a host offers nodes and runs what it is given.

A host never decides what runs where or what follows a failure; it launches, watches, stops and reports. Every
call may be made again: job, replica and attempt name what is meant, and an attempt runs once at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation

Address = tuple[str, str, int]
"""An attempt: the job's id, the replica's key and the number of the attempt."""


class Refused(msgspec.Struct, frozen=True):
    """A feature an engine cannot realise: who asked for it, and why it cannot be had."""

    feature: str
    units: tuple[str, ...]
    note: str


class Account(msgspec.Struct, frozen=True):
    """Somebody else than the service, as whom copies are to run."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Peer(msgspec.Struct, frozen=True):
    """A running task that others of its job, or of a connected job, can reach."""

    task: str
    replica: int
    address: str
    ports: dict[str, int] = {}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of one replica of a task, with everything that is needed to run it."""

    job: str
    job_name: str
    owner: str
    key: str
    attempt: int
    index: int
    unit: Unit
    """As this replica runs it: its matrix values are filled in."""
    allocation: Allocation
    """Where its copies go, one slot each. A local task has one slot, on the first node of its group."""
    nodes: tuple[str, ...]
    """The nodes of its group's allocation, or of its own: what JOBMAN_NODELIST says."""
    virtual: str | None = None
    cwd: str
    environment: str | None = None
    """The digest under which the environment of submission is kept."""
    coordinator: str | None = None
    peers: tuple[Peer, ...] = ()
    no_container: bool = False
    plan: Plan | None = None
    """The whole job, for engines that write some of it down beside each attempt."""
    connected: tuple[str, ...] = ()
    """The ids of the jobs that this one may talk with, and they with it."""
    extra: float = 0.0
    """Seconds it was given beyond the duration of its unit."""
    has_begun: bool = False
    """Whether it is known to have run already: it must not be started any more."""

    @property
    def address(self) -> Address:
        return self.job, self.key, self.attempt


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """News of an attempt."""

    job: str
    key: str
    attempt: int
    at: float

    @property
    def address(self) -> Address:
        return self.job, self.key, self.attempt


class OutputFile(msgspec.Struct, frozen=True):
    """Where a copy's output goes: from `start` on, and when it is over, up to `size`."""

    copy: int
    stream: str
    path: str
    node: str
    start: int = 0
    size: int = 0


class Running(Report, frozen=True, kw_only=True):
    """All copies have been started."""

    outputs: tuple[OutputFile, ...] = ()
    ports: dict[str, int] = {}


class Delayed(Report, frozen=True, kw_only=True):
    """It was launched and does not run yet; `message` says what it waits for."""

    message: str


class CheckPassed(Report, frozen=True, kw_only=True):
    """A check changed its mind: `kind` is started or ready."""

    kind: str
    passed: bool = True


class Unhealthy(Report, frozen=True, kw_only=True):
    """The `alive` or `started` check failed for good; the attempt should be stopped."""

    message: str = ""


class Over(Report, frozen=True, kw_only=True):
    """All copies have ended. `reason` is empty where the attempt succeeded."""

    reason: str = ""
    """One of jobman.spec.failures.REASONS."""
    exit_code: int | None = None
    """The first failing copy's; 128 + n after signal n."""
    signal: int | None = None
    message: str = ""
    started_at: float | None = None
    cpu_seconds: float = 0.0
    max_rss: int = 0
    result: str | None = None
    outputs: tuple[OutputFile, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be done as asked, and did not matter enough to fail."""


NodeState = Literal["up", "drained", "suspect", "down"]
"""A drained node keeps what runs on it and takes nothing new; a suspect one is expected back soon."""


class NodeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A node as a host sees it now."""

    node: ClusterNode
    state: NodeState = "up"
    reason: str = ""
    """In words, where it is not up."""
    foreign: dict[str, float] = {}
    """What is used of it by others than us, or missing from what it had, by kind."""


class NodesChanged(msgspec.Struct, frozen=True):
    """News of nodes: each is as it is said here from now on; one that is gone is down."""

    nodes: tuple[NodeSeen, ...]


News = Report | NodesChanged


class CopyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A running copy, for those who want to look at it from inside."""

    replica: str
    attempt: int
    copy: int
    node: str
    pid: int
    cwd: str
    container: str | None = None


class Host(Protocol):
    """An engine that runs what the control service places on its nodes."""

    name: str

    def nodes(self, virtual: str | None = None) -> Sequence[ClusterNode]:
        """The nodes it offers; with `virtual` such as 4x4, emulated ones. Raises ValueError for nonsense."""

    def refusals(self, plan: Plan, *, no_container: bool = False) -> Sequence[Refused]:
        """What of a plan it cannot do."""

    def account_of(self, owner: str) -> Account | None:
        """As whom the copies of an owner run; None for the service's own account.

        Raises PermissionError where they cannot run here at all.
        """

    def refusals_for(self, plan: Plan, account: Account) -> Sequence[Refused]:
        """What of a plan it does not do for somebody else than the service itself."""

    def host_of(self, job: str, key: str, copy: int = 0) -> str:
        """The name under which a copy of a replica is reached by others of its job and by connected jobs."""

    def overhead(self, plan: Plan, unit: Unit) -> Mapping[str, int]:
        """What each copy of a unit costs its node beyond what it asks for."""

    async def start(self, report: Callable[[News], None]) -> None:
        """Get ready; `report` is called in the event loop with all news from now on."""

    async def launch(self, orders: Sequence[Order]) -> None:
        """Start attempts. What cannot be started is reported as over."""

    async def recover(self, orders: Sequence[Order]) -> None:
        """After a restart: attempts that were begun, or may have been.

        Launch those that never ran, watch those that run, report those that are over. They are all there
        are: what is found of others is removed.
        """

    async def settle(self, address: Address) -> None:
        """The end of an attempt is written down: what it left where it ran may go."""

    async def connect(self, job: str, partners: Sequence[str]) -> None:
        """From now on these are the jobs that a job may talk with."""

    async def finish(self, job: str) -> None:
        """A job is over: what its attempts had in common may go. Its output stays."""

    async def drain(self, node: str, *, drained: bool) -> None:
        """An administrator or a maintenance window takes a node out of use, or gives it back."""

    async def stop(self, address: Address, why: str) -> None:
        """End an attempt in peace, and by force when its grace is over; also one that is frozen."""

    async def freeze(self, address: Address) -> None: ...

    async def thaw(self, address: Address) -> None: ...

    async def prolong(self, address: Address, seconds: float) -> None:
        """Give an attempt so many seconds more than its document says, in all."""

    def copies(self, job: str) -> Sequence[CopyInfo]:
        """The running copies of a job."""

    async def forget(self, job: str) -> None:
        """Remove everything a job that is over left behind."""

    def sweep(self, used: Collection[str]) -> None:
        """Remove the environments of submission that are no longer used, unless they are quite new."""

    def keep_environment(self, environment: Mapping[str, str]) -> str:
        """Keep an environment of submission; returns the digest it is found by."""

    async def close(self) -> None:
        """Let go; what runs goes on."""
