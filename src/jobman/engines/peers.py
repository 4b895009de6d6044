"""What a copy is told of the tasks it can reach: the same variables on every engine that hosts copies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jobman.engines.base import Peer


def shouted(name: str) -> str:
    """A name as part of a variable's."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def peer_variables(peers: Iterable[Peer]) -> dict[str, str]:
    """Each task by its first replica, and where it has several by each of them too."""
    everyone = list(peers)
    several = {peer.task for peer in everyone if peer.replica}
    found: dict[str, str] = {}
    for peer in everyone:
        if peer.replica == 0:
            found.update(_reach(peer, ""))
        if peer.task in several:
            found.update(_reach(peer, f"_{peer.replica}"))
    return found


def _reach(peer: Peer, suffix: str) -> Iterator[tuple[str, str]]:
    task = shouted(peer.task)
    yield f"JOBMAN_HOST_{task}{suffix}", peer.address
    for name, port in peer.ports.items():
        yield f"JOBMAN_PORT_{task}_{shouted(name)}{suffix}", str(port)
