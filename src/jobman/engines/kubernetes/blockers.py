"""What stands in the way of a job, as it is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

Kind = Literal[
    "hold",
    "gate",
    "dependency",
    "parallelism",
    "start",
    "retry",
    "resources",
    "limit",
    "node",
    "never",
    "queue",
    "image",
    "volume",
    "configuration",
    "refused",
    "health",
    "failed",
]
"""Somebody's act (hold, gate); its turn (dependency, parallelism); under way (start, retry); room on nodes,
up to queue; what its pods need and do not find (image, volume, configuration); what is not allowed; a check;
its end."""


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that replicas wait for or suffer from, in words, and what to do about it."""

    kind: Kind
    message: str
    """A sentence without a full stop; `it` is the job or the replica."""
    advice: str = ""
    """A sentence without a full stop; empty where nothing has to be done."""
    replicas: tuple[int, ...] = ()
    """Those concerned; none where it is the whole Job."""


class Trouble(NamedTuple):
    """The same, before it is known whom else it concerns."""

    kind: Kind
    message: str
    advice: str = ""


def gathered(told: Iterable[tuple[int | None, Trouble]]) -> list[Blocker]:
    """One blocker for all replicas that suffer from the same."""
    concerned: dict[Trouble, list[int]] = {}
    for replica, trouble in told:
        replicas = concerned.setdefault(trouble, [])
        if replica is not None and replica not in replicas:
            replicas.append(replica)
    return [
        Blocker(kind=trouble.kind, message=trouble.message, advice=trouble.advice, replicas=tuple(replicas))
        for trouble, replicas in concerned.items()
    ]
