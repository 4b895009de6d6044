"""One Job to be: which copies of which replica it makes, and what they may know of the rest."""

from __future__ import annotations

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.slices import Slice
from jobman.engines.kubernetes.target import Target
from jobman.plan.model import Plan, Unit
from jobman.spec.shapes import Alternatives


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written down as a Job."""

    plan: Plan
    target: Target
    unit: Unit
    """As its replica runs it: matrix values are filled in."""
    name: str
    slice: Slice
    replica: int | None
    """None where the indexes of the Job are the replicas."""
    size: int
    """Copies of a replica, in this Job and others."""
    hosts: tuple[str, ...] = ()
    """A host for each node of the replica; empty where the indexes are the replicas."""
    subdomain: str | None = None
    """The Service that gives every pod a name."""
    alternatives: Alternatives
    """Shapes that differ only in what the nodes must be, the preferred one first."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    files: str | None = None
    """The ConfigMap that holds the files of its steps."""
    variable_files: dict[str, str] = {}
    """From the files that `env_from` names to the ConfigMaps that hold their variables."""
    peers: dict[str, str] = {}
    """Variables that say where other tasks are reached."""
    ports: dict[str, int] = {}
    """The numbers of its ports by name; a port without a name goes by its number."""
    claims: dict[str, str] = {}
    """From the name of a device's claim to the object that stands for it."""
    cores: int | None = None
    """What the copy is told to have; None where its shape says it."""
    attempt: int | None = None
    """Which attempt it is, where somebody drives the job; None where the Job makes its own."""

    @property
    def completions(self) -> int:
        return self.unit.replicas if self.replica is None else self.slice.count

    @property
    def is_gang(self) -> bool:
        """Whether its pods are copies of one replica, which have no meaning one by one."""
        return self.size > 1

    @property
    def selector(self) -> dict[str, str]:
        """The labels that all pods of the task carry."""
        return {names.JOB: self.target.job_id, names.TASK: names.label_value(self.unit.id)}


def host_name(job: str, index: int | str, subdomain: str | None) -> str:
    """Where a pod of an Indexed Job is reached from inside its namespace."""
    return f"{job}-{index}" if subdomain is None else f"{job}-{index}.{subdomain}"
