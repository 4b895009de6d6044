"""Nodes of known sizes that a scenario on a cluster has to itself: in the lab, where nobody else goes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

ONE_NODE = "1x4"
"""Where a scenario needs a node that its jobs fill, however large."""
BEAT = 2.0
"""Seconds in which a node tells what became of a pod, and everybody has heard of it."""
_TAINT = "jobman.io/sized"


@contextmanager
def taken(size: str) -> Iterator[None]:
    """Nobody else uses the nodes of this size meanwhile."""
    if "JOBMAN_LAB_SIZED_NODES" not in os.environ:
        pytest.skip("this cluster has no nodes of known sizes that a scenario may have to itself")
    pools = dict(pool.split(":") for pool in os.environ["JOBMAN_LAB_SIZED_NODES"].split())
    assert size in pools, f"the lab has nodes of the sizes {', '.join(pools)}, and not of {size}"
    with ExitStack() as locks:
        for node in pools[size].split(","):
            lock = locks.enter_context((Path(gettempdir()) / f"jobman-{node}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def settings(size: str) -> str:
    """Of a service that plans with the nodes of a size."""
    return f"kubernetes: {{nodes: {{{_label(size)}: pool}}, tolerates: [{_TAINT}]}}\n"


def on_nodes(pod: dict[str, Any], size: str) -> dict[str, Any]:
    """The spec of a pod that goes there."""
    return {
        **pod,
        "nodeSelector": {**pod.get("nodeSelector", {}), _label(size): "pool"},
        "tolerations": [*pod.get("tolerations", ()), {"key": _TAINT, "operator": "Exists"}],
    }


def _label(size: str) -> str:
    return f"jobman.io/{size}"
