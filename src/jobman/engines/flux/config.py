"""What an instance is told by its configuration, as far as it concerns jobs: its queues and their limits."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from jobman.engines.scripts.delegate import NodeAt

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Queue(msgspec.Struct, frozen=True):
    """A queue, the properties of its nodes, and what it has in the place of what holds for all."""

    requires: tuple[str, ...] = ()
    policy: dict[str, Any] = {}


class Config(msgspec.Struct, frozen=True):
    """A nested instance has none, and neither have most that somebody starts for himself."""

    queues: dict[str, Queue] = {}
    policy: dict[str, Any] = {}

    @property
    def default_queue(self) -> str | None:
        """That of whoever names none."""
        found = _at(self.policy, "jobspec", "defaults", "system", "queue")
        return found if isinstance(found, str) else None

    def longest(self, queue: str | None) -> float | None:
        """Seconds that a job of this queue may ask for; None where that is up to it."""
        own = self.queues.get(queue or self.default_queue or "", Queue()).policy
        found = (_at(policy, "limits", "duration") for policy in (own, self.policy))
        return _seconds(next((limit for limit in found if limit is not None), None))

    def requires(self, queue: str | None) -> tuple[str, ...]:
        """The properties that every node has which a job of this queue can get."""
        return self.queues.get(queue or self.default_queue or "", Queue()).requires

    def with_queues(self, node: NodeAt) -> NodeAt:
        """The node with the queues whose jobs it takes."""
        own = tuple(name for name, queue in self.queues.items() if set(queue.requires) <= set(node.facts))
        return msgspec.structs.replace(node, partitions=own)


def read_config(text: str) -> Config:
    return msgspec.json.decode(text.encode(), type=Config)


def _at(values: Any, *keys: str) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _seconds(limit: object) -> float | None:
    """A duration as Flux writes it: `90`, `1.5h`; none, and one of 0, is no limit."""
    found = re.fullmatch(r"(\d*\.?\d+)(ms|[smhd]?)", str(limit))
    return float(found[1]) * _UNITS[found[2]] or None if found is not None else None
