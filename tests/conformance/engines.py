"""What a scenario may ask of an engine, and the engines there are.

An engine is opened as a site, once for a process of pytest, and closed at its end. A scenario gets it bound
to a folder of its own. A new engine adds itself to `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from jobman.control.answers import Attempt, Blocker, Details, Event, LogLine, Replica, Why
from tests.conformance.flux import open_flux
from tests.conformance.kubernetes import open_direct
from tests.conformance.local import open_local
from tests.conformance.managed import open_managed
from tests.conformance.outcome import Outcome
from tests.conformance.slurm import open_slurm


class Handle(Protocol):
    """A job that was submitted, and everything its author can do to it."""

    id: str

    def wait(self, timeout: float | None = None) -> Outcome:
        """Wait for its end."""

    def until(self, *moments: str, timeout: float | None = None) -> Outcome:
        """Wait until these moments have come, in this order."""

    def until_line(self, text: str, timeout: float | None = None) -> Outcome:
        """Wait until a copy has written this line."""

    def until_blocked(self, kind: str) -> Blocker:
        """Wait until something of this kind, and one thing only, holds a part of it back."""

    def look(self) -> Outcome:
        """The job as it is now."""

    def cancel(self) -> None: ...
    def hold(self) -> None: ...
    def release(self) -> None: ...
    def open_gate(self, gate: str) -> None: ...
    def extend(self, seconds: float, task: str | None = None) -> None: ...
    def why(self) -> Why: ...
    def logs(self, **filters: Any) -> Iterator[LogLine]: ...
    def events(self) -> Iterator[Event]: ...
    def replicas(self) -> Iterator[Replica]: ...
    def attempts(self) -> Iterator[Attempt]: ...
    def details(self) -> Details: ...


class Engine(Protocol):
    """An engine, bound to the folder of one scenario."""

    name: str
    gpu_variable: str
    """What says which of a node's GPUs a copy has: in a container they are counted anew."""
    os_label: str
    """What a node says its operating system by."""
    beat: float
    """Seconds after which what a copy did has been seen: waits of scenarios are made of them."""

    @property
    def folder(self) -> Path:
        """That of submission, which commands find, too; without it the scenario is skipped."""

    def submit(
        self,
        document: str,
        *,
        parameters: Mapping[str, object] | None = None,
        virtual: str | None = None,
        files: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Handle:
        """Submit a document with one job in it.

        `virtual` are nodes the scenario needs, as NODESxCORES: 1x1, 1x4, 1x4x4, 2x4, 3x4 are there on all
        engines, and on a cluster for later jobs of the scenario, too. `files` are in its folder before.
        Raises RefusedAsPromised where the plan uses what the engine says it refuses, and it did.
        """

    def alone(self) -> None:
        """From here on there is one node, and nobody but the jobs of this scenario uses it."""

    def submit_all(self, document: str, **options: Any) -> Sequence[Handle]:
        """Submit every job of a document."""

    def run(
        self,
        document: str,
        *,
        parameters: Mapping[str, object] | None = None,
        virtual: str | None = None,
        files: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Outcome:
        """Submit a document and wait for its end."""

    def secret(self, name: str, **entries: str) -> None:
        """Make a secret known."""

    def config(self, name: str, **entries: str) -> None:
        """Make a configuration known."""

    def leave(self) -> list[str]:
        """End what the scenario left running; says in words what should not have been left."""


def beats(engine: Engine, count: float) -> str:
    """So many beats, as a document writes a time and `sleep` reads it."""
    return f"{engine.beat * count:g}s"


class Site(Protocol):
    """An engine that is ready for scenarios."""

    def bind(self, folder: Path) -> Engine:
        """The engine for one scenario."""


class Opening(NamedTuple):
    """How to come by an engine, and the table of features that it keeps to.

    `component` is the part of the lab it needs.
    """

    open: Callable[[Path], AbstractContextManager[Site]]
    table: str
    component: str | None = None


ENGINES: dict[str, Opening] = {
    "local": Opening(open_local, "local"),
    "kubernetes-direct": Opening(open_direct, "kubernetes", component="kubernetes"),
    "slurm": Opening(open_slurm, "slurm", component="slurm"),
    "flux": Opening(open_flux, "flux", component="flux"),
    "kubernetes-managed": Opening(open_managed, "kubernetes-managed", component="kubernetes"),
}
