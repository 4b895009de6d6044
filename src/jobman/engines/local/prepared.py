"""What an attempt finds on this machine, and its copies as they come out of it. Plain values."""

from __future__ import annotations

import msgspec

from jobman.engines.local.containers import Container, exec_argv
from jobman.engines.local.orders import Order
from jobman.engines.local.ports import PortsOfCopy
from jobman.engines.local.runtimes import Runtime
from jobman.engines.local.volumes import Mount


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is decided on this machine before the first copy of an attempt starts."""

    id: str
    """Begins the ids of its copies; no other attempt has it, also none of another service."""
    folder: str
    scratch: dict[str, str] = {}
    """A folder for each node."""
    submitted: dict[str, str] = {}
    """The environment of submission."""
    elsewhere: dict[str, str] = {}
    """The variables of `env_from`."""
    secrets: dict[str, str] = {}
    """The variables of secrets, and those that say where their files are."""
    ports: tuple[PortsOfCopy, ...] = ()
    mounts: tuple[tuple[Mount, ...], ...] = ()
    """For each copy; outside a container they are links."""
    private: str = ""
    """A folder in memory that only the copies can look into."""
    runtime: Runtime | None = None
    """Where the copies run in containers."""
    client: dict[str, str] = {}
    """The variables of this process, some of which a container runtime needs."""


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy as the launcher runs it, and as those see it who run something beside it."""

    order: Order
    node: str
    ports: PortsOfCopy = {}
    container: Container | None = None
    runtime: Runtime | None = None

    def beside(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A command, as it is run where the copy is."""
        if self.container is None or self.runtime is None:
            return argv
        return exec_argv(self.runtime, self.container, argv)
