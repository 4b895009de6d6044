"""What an instance is told by its configuration, as far as jobs are concerned: its queues."""

from __future__ import annotations

from typing import Any

import msgspec

from jobman.engines.scripts.delegate import NodeAt


class Queue(msgspec.Struct, frozen=True):
    """A queue, and the properties of its nodes."""

    requires: tuple[str, ...] = ()


class Config(msgspec.Struct, frozen=True):
    """A nested instance has none, and neither have most that somebody starts for himself."""

    queues: dict[str, Queue] = {}
    policy: dict[str, Any] = {}

    @property
    def default_queue(self) -> str | None:
        """That of whoever names none."""
        found: Any = self.policy
        for key in ("jobspec", "defaults", "system", "queue"):
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, str) else None

    def requires(self, queue: str | None) -> tuple[str, ...]:
        """The properties that every node has which a job of this queue can get."""
        return self.queues.get(queue or self.default_queue or "", Queue()).requires

    def with_queues(self, node: NodeAt) -> NodeAt:
        """The node with the queues whose jobs it takes."""
        own = tuple(name for name, queue in self.queues.items() if set(queue.requires) <= set(node.facts))
        return msgspec.structs.replace(node, partitions=own)


def read_config(text: str) -> Config:
    return msgspec.json.decode(text.encode(), type=Config)
