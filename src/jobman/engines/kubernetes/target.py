"""What a plan is compiled for, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from jobman.engines.base import Refused
from jobman.engines.kubernetes.kept_logs import KeptLogs
from jobman.engines.kubernetes.objects import Written
from jobman.settings.kubernetes import LogKeeper

TOPOLOGY = {
    "node": "kubernetes.io/hostname",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "rack": "topology.jobman.io/rack",
}


class StagedFile(msgspec.Struct, frozen=True):
    """A file to bring: where it lies below what was named (empty for that itself), and what is in it."""

    path: str
    content: bytes
    mode: int = 0o644


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job goes, and what only its submission knows."""

    namespace: str
    job_id: str
    """Twelve hexadecimal digits."""
    owner: str
    document: str
    name: str = ""
    """What the job is called where its document does not say."""
    gpu_resource: str = "nvidia.com/gpu"
    image_prefix: str = ""
    default_image: str | None = None
    topology: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(TOPOLOGY))
    files: Mapping[str, tuple[StagedFile, ...]] = {}
    """What `stage` steps and `env_from` name on the submitter's side, by the path as written."""
    chosen: Mapping[str, int] = {}
    """Which alternative of its shape a unit takes, where somebody has looked at the nodes."""
    keep_logs: KeptLogs | None = None
    """Where the output of copies is kept beside what the cluster remembers of it."""
    keeper: LogKeeper = LogKeeper()
    """Who carries it to an object store."""
    driven: bool = False
    """Whether somebody starts and stops each Job in turn, and decides what follows a failure."""


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a job. Whoever creates them makes the anchor the owner of all others."""

    anchor: Written
    """The only Job, a JobSet that makes them all, or a ConfigMap; deleting it deletes everything."""
    support: list[Written]
    """What the units need: files, Services, claims, rules of the network."""
    units: dict[str, list[Written]]
    """The Jobs of each unit, one for each of its replicas or parts where it needs several."""

    def objects(self) -> Iterator[tuple[str | None, Written]]:
        """Every object once, in an order in which they can be created, each with its unit."""
        if self.anchor["kind"] != "Job":
            yield None, self.anchor
        yield from ((None, each) for each in self.support)
        for unit, written in self.units.items():
            yield from ((unit, each) for each in written)


class CannotCompile(ValueError):
    """A plan asks for what a cluster cannot do."""

    def __init__(self, refused: list[Refused]) -> None:
        self.refused = refused
        super().__init__("\n".join(_line(each) for each in refused))


def owned(written: Written, owner: Mapping[str, Any]) -> Written:
    """An object that goes when its owner goes; `owner` is the anchor as the cluster returned it."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**written, "metadata": {**written["metadata"], "ownerReferences": [reference]}}


def _line(refused: Refused) -> str:
    who = f" ({', '.join(refused.units)})" if refused.units else ""
    return f"{refused.feature}{who}: {refused.note}"
