"""The survey: which nodes there are, how they are, and what others use of them, told as it changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from jobman.engines import base
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kinds import NODES, RUNTIME_CLASSES
from jobman.engines.kubernetes.managed import nodes
from jobman.engines.kubernetes.managed.foreign import Foreign
from jobman.engines.kubernetes.managed.mirror import Mirror
from jobman.engines.kubernetes.managed.nodes import Pool
from jobman.engines.kubernetes.managed.overheads import overhead
from jobman.engines.kubernetes.objects import Node, Pod
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode

_TOGETHER = 0.1
"""Seconds for which news are gathered: pods come and go in crowds."""
LookAgain = Callable[[Collection[str]], None]
"""Told the names of nodes that are not what they were."""
LOST = 300.0
"""Seconds after which what runs on a node that does not answer is given up."""


class Survey:
    """The nodes of a pool. What is planned with is the most that a node ever had.

    Where it has less by now, the difference counts as used by others: a device that failed, for one.
    """

    def __init__(self, api: Api, pool: Pool, *, lost_after: float = LOST) -> None:
        self._api = api
        self._pool = pool
        self._lost_after = lost_after
        self._mirror = Mirror(api, NODES, self._node_changed, namespace="")
        self._known: dict[str, ClusterNode] = {}
        self._foreign = Foreign(lambda resource: nodes.kind_of(resource, pool))
        self._told: dict[str, base.NodeSeen] = {}
        self._changed: set[str] = set()
        self._renewed: set[str] = set()
        """Of those, the nodes that changed themselves, and not only what others use of them."""
        self._wake = asyncio.Event()
        self._runtimes = Mirror(api, RUNTIME_CLASSES, lambda _before, _now: None)

    async def fill(self) -> None:
        await asyncio.gather(self._mirror.fill(), self._runtimes.fill())

    def nodes(self) -> Sequence[ClusterNode]:
        return list(self._known.values())

    # -- what is told to it --------------------------------------------------------------------------

    def _node_changed(self, before: Node | None, now: Node | None) -> None:
        node = now or before
        assert node is not None
        name = node.metadata.name
        if now is not None and self._pool.has(now):
            self._known[name] = nodes.grown(self._known.get(name), nodes.described(now, self._pool))
        if name in self._known:
            self._renewed.add(name)
            self._touch({name})

    def pod_changed(self, before: Pod | None, now: Pod | None, *, is_ours: bool) -> None:
        if now is not None:
            self._touch(self._foreign.put(now, is_ours=is_ours))
        elif before is not None:
            self._touch(self._foreign.drop(before))

    def claim(self, pod: Pod) -> None:
        """A pod that was there before is one of ours."""
        self._touch(self._foreign.put(pod, is_ours=True))

    def _touch(self, names: set[str]) -> None:
        if names:
            self._changed |= names
            self._wake.set()

    # -- what it tells -------------------------------------------------------------------------------

    async def follow(self, report: Callable[[base.News], None], look_again: LookAgain) -> None:
        """Follow the nodes for ever, and tell what is new of them."""
        await asyncio.gather(self._mirror.follow(), self._runtimes.follow(), self._tell(report, look_again))

    async def _tell(self, report: Callable[[base.News], None], look_again: LookAgain) -> None:
        self._changed |= self._known.keys()
        while True:
            self._wake.clear()
            changed, self._changed = self._changed, set()
            found = [self.seen(name) for name in sorted(changed) if name in self._known]
            fresh = tuple(each for each in found if self._told.get(each.node.name) != each)
            if fresh:
                self._told |= {each.node.name: each for each in fresh}
                report(base.NodesChanged(fresh))
            if self._renewed:
                renewed, self._renewed = self._renewed, set()
                look_again(renewed)
            await self._pause()

    async def _pause(self) -> None:
        due = min(filter(None, map(self._due, self._known)), default=None)
        wait = None if due is None else max(0.0, due - time.time()) + 0.1
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            self._renewed |= self._known.keys()
            self._changed |= self._renewed
        await asyncio.sleep(_TOGETHER)

    def _due(self, name: str) -> float | None:
        """When a node that does not answer is looked at again, though nobody says anything new of it."""
        node, now = self._mirror.get(name), time.time()
        since = None if node is None else nodes.away_since(node)
        if node is None or since is None:
            return None
        dues = [nodes.due_of(node, now), since + self._lost_after]
        return min((due for due in dues if due is not None and due > now), default=None)

    def all_seen(self) -> base.NodesChanged:
        """All nodes as they are now, for one who knows nothing of them yet."""
        self._told = {name: self.seen(name) for name in self._known}
        return base.NodesChanged(tuple(self._told.values()))

    def seen(self, name: str) -> base.NodeSeen:
        """A node as it is now."""
        node = self._mirror.get(name)
        known = self._known[name]
        if node is None or not self._pool.has(node):
            return base.NodeSeen(node=known, state="down", reason=f"node {name} is gone")
        found = nodes.seen(node, self._pool, time.time())
        return msgspec.structs.replace(
            found,
            node=msgspec.structs.replace(found.node, amounts=known.amounts),
            foreign=nodes.taken(known, node, self._foreign.of(name), self._pool),
        )

    # -- what the runner asks ------------------------------------------------------------------------

    def boot_of(self, node: str) -> str:
        found = self._mirror.get(node)
        return "" if found is None else found.status.node_info.boot_id

    def closed(self, node: str) -> str:
        found = self._mirror.get(node)
        if found is None:
            return f"there is no node {node}"
        state, reason = nodes.state_of(found, self._pool, time.time())
        return "" if state == "up" else reason

    def lost(self, node: str) -> str:
        found = self._mirror.get(node)
        if found is None:
            return f"its node {node} is gone"
        if any(taint.key == "node.kubernetes.io/out-of-service" for taint in found.spec.taints):
            return f"its node {node} is out of service"
        since = nodes.away_since(found)
        if since is not None and time.time() - since > self._lost_after:
            return f"its node {node} does not answer any more"
        return ""

    def overhead(self, plan: Plan, unit: Unit) -> Mapping[str, int]:
        """What each copy costs its node: a pod, and what its runtime does."""
        classes = {
            name: each.overhead.pod_fixed
            for (_, name), each in self._runtimes.items.items()
            if each.overhead is not None
        }
        return overhead(classes, plan, unit)

    # -- maintenance ---------------------------------------------------------------------------------

    async def drain(self, name: str, *, drained: bool) -> None:
        """Close a node to new pods, or open it again if it was closed by us."""
        node = self._mirror.get(name)
        if node is None:
            return
        is_ours = nodes.DRAINED in node.metadata.annotations
        if drained == node.spec.unschedulable or (not drained and not is_ours):
            return
        mark = "yes" if drained else None
        patch = {
            "metadata": {"annotations": {nodes.DRAINED: mark}},
            "spec": {"unschedulable": True if drained else None},
        }
        await self._api.merge_patch(NODES, name, patch)
