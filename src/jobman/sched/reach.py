"""The reach of queues: which nodes their jobs may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobman.plan.nodes import ClusterNode, in_all
from jobman.sched.queues import Queue


def own_nodes(queue: Queue, queues: Sequence[Queue], nodes: Sequence[ClusterNode]) -> list[ClusterNode]:
    """The nodes that a queue names, or all that no other queue does."""
    if queue.nodes:
        return [node for node in nodes if node.name in queue.nodes]
    named = {name for other in queues for name in other.nodes}
    return [node for node in nodes if node.name not in named]


def within_reach(queue: Queue, queues: Sequence[Queue], nodes: Sequence[ClusterNode]) -> list[ClusterNode]:
    """The nodes of a queue, and those of others on which its jobs may run at times."""
    lenders = [other for other in queues if other.name in queue.borrow]
    names = {node.name for each in (queue, *lenders) for node in own_nodes(each, queues, nodes)}
    return [node for node in nodes if node.name in names]


def share_of(queue: Queue, own: Iterable[ClusterNode]) -> dict[str, float]:
    """What the jobs of a queue may use of its own nodes at one time; everything where it has no share."""
    share = 1.0 if queue.share is None else queue.share
    return {kind: amount * share for kind, amount in in_all(own).items() if kind != "node"}
