"""What an engine that queues for itself is to the rest: jobman compiles, submits and follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from jobman.engines.base import Refused
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.site import Job
from jobman.plan.model import Plan
from jobman.plan.satisfy import Match
from jobman.settings.slurm import BatchSite


class Script(Protocol):
    """A piece of a job, ready to be submitted."""

    @property
    def name(self) -> str: ...
    @property
    def piece(self) -> Piece: ...
    @property
    def text(self) -> str: ...
    @property
    def beside(self) -> Mapping[str, str]:
        """What it reads from other files in the folder of scripts, by their names; several may share one."""


def texts_of(scripts: Sequence[Script]) -> dict[str, str]:
    """All files in the folder of scripts, by their names."""
    found = {script.name: script.text for script in scripts}
    return found | {name: text for script in scripts for name, text in script.beside.items()}


class NodeAt(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the manager sees it."""

    name: str
    state: str = "up"
    reason: str = ""
    amounts: dict[str, float] = {}
    used: dict[str, float] = {}
    uncounted: dict[str, float] = {}
    """What it has, and nobody says how much of it is in use."""
    facts: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Why something waits, in words."""

    kind: str
    """One of those of jobman.control.answers.BlockerKind."""
    replica: str
    message: str
    starts_at: float | None = None


class QueueRowAt(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one partition."""

    name: str
    waiting: int = 0
    running: int = 0
    yours_waiting: int = 0
    yours_running: int = 0


class Delegate(Protocol):
    """A manager of batch jobs."""

    name: str
    title: str
    picks_replicas: bool
    """Whether some replicas of a task can be submitted without the others."""

    def site(self, values: Mapping[str, Any]) -> BatchSite:
        """What the settings say of it."""

    def refusals(self, plan: Plan, site: Any, *, no_container: bool = False) -> Sequence[Refused]:
        """What of a plan it cannot do."""

    def compile(self, plan: Plan, job: Job, site: Any) -> Sequence[Script]:
        """The scripts of a plan, in the order in which they can be submitted."""

    def choose(self, plan: Plan, job: Job, site: Any) -> tuple[Plan, list[str]]:
        """The plan with one alternative for each unit, and what is to be said of that."""

    def by_hand(self, job: Job, scripts: Sequence[Script]) -> str:
        """A script that submits these as jobman would, for whoever has no jobman."""

    def submit(self, piece: Piece, folder: Folder, ids: Mapping[str, str], *, held: bool) -> str:
        """Submit the script of a piece, once; `ids` are those before it. Returns its id."""

    def known(self, job: str) -> dict[str, str]:
        """The pieces of a job that the manager has."""

    def queue(self) -> list[Native]:
        """All jobs of this user that the manager remembers."""

    def finished(self, ids: Iterable[str]) -> list[Native]:
        """What became of jobs that are no longer in the queue, where anybody remembers."""

    def folder_of(self, native: str) -> Path | None:
        """The folder of the job that a piece belongs to, where the manager can tell."""

    def cancel(self, waiting: Iterable[str], running: Iterable[str] = ()) -> None: ...
    def kill(self, ids: Iterable[str]) -> None: ...
    def hold(self, ids: Iterable[str]) -> None: ...
    def release(self, ids: Iterable[str]) -> None: ...
    def requeue(self, ids: Iterable[str]) -> None: ...
    def freeze(self, ids: Iterable[str]) -> None:
        """Tell scripts to look whether they are to stand still, or to go on."""

    def add_time(self, id_: str, seconds: float) -> None: ...
    def why(self, job: BatchJob) -> list[Waiting]: ...
    def nodes(self) -> list[NodeAt]: ...
    def matches(self, plan: Plan, nodes: Sequence[NodeAt], site: Any) -> list[Match]:
        """Which of these nodes could take each unit."""

    def queues(self) -> list[QueueRowAt]: ...
