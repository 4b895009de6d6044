"""The ground: all nodes, as the host sees them and as administrators want them.

```
 host: up, drained, suspect, down; what others use ─┐
                                                    ├─▶ the worst of both ─▶ planner, `jobman nodes`
 administrators: drained or not ────────────────────┘
```

A node that comes back is what administrators said of it. Windows of maintenance are the calendar's: the
planner keeps nodes free for them whatever is said here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from jobman.control.planning import Planning
from jobman.engines.base import NodeSeen
from jobman.plan.nodes import ClusterNode

_WORSE = ("up", "suspect", "draining", "down")
"""Each is worse than those before it: a suspect node is expected back soon."""
_OURS = {"drained": "draining"}


class Condition(NamedTuple):
    """The state of a node, and why, where it is not up."""

    state: str
    cause: str


class Ground:
    """Knows every node that was ever seen; tells the planner what becomes of them."""

    def __init__(self, nodes: Iterable[ClusterNode], planning: Planning) -> None:
        self.nodes = {node.name: node for node in nodes}
        self._planning = planning
        self._seen: dict[str, NodeSeen] = {}
        self._drains: dict[str, str] = {}
        """Why administrators drained nodes, also those that are not there."""
        self._told: dict[str, str] = {}
        """The states that the planner knows of, where they are not `up`."""

    # -- what happens --------------------------------------------------------------------------------

    def see(self, seen: NodeSeen) -> bool:
        """Learn how a node is now; whether it is new, or not what it was."""
        node = seen.node
        known = self.nodes.get(node.name)
        before = self.foreign(node.name)
        self._seen[node.name] = seen
        self.nodes[node.name] = node
        if known is None:
            self._planning.add_node(node)
        elif known != node:
            self._planning.change_node(node)
        foreign = self.foreign(node.name)
        if foreign != before:
            self._planning.set_foreign(node.name, foreign)
        self._tell(node.name)
        return known != node

    def drain(self, name: str, cause: str) -> None:
        """An administrator takes a node out of use; without a cause it is to be used again."""
        self._drains.pop(name, None)
        if cause:
            self._drains[name] = cause
        if name in self.nodes:
            self._tell(name)

    def _tell(self, name: str) -> None:
        state, cause = self.condition(name)
        if state != self._told.get(name, "up"):
            self._told[name] = state
            self._planning.set_node(name, state, cause)

    # -- what is known -------------------------------------------------------------------------------

    def condition(self, name: str) -> Condition:
        """The worst of what the host and administrators say of a node."""
        found = [*self._by_host(name), *self._by_administrators(name)]
        return max(found, key=lambda each: _WORSE.index(each.state), default=Condition("up", ""))

    def _by_host(self, name: str) -> list[Condition]:
        seen = self._seen.get(name)
        if seen is None or seen.state == "up":
            return []
        return [Condition(_OURS.get(seen.state, seen.state), _words(seen))]

    def _by_administrators(self, name: str) -> list[Condition]:
        cause = self._drains.get(name)
        return [] if cause is None else [Condition("draining", cause)]

    def is_lost(self, name: str) -> bool:
        """Whether nothing can be run on a node that is held."""
        seen = self._seen.get(name)
        return name not in self.nodes or (seen is not None and seen.state in ("down", "suspect"))

    def reason(self, name: str) -> str:
        """Why the host does not count on a node, in words."""
        seen = self._seen.get(name)
        return "" if seen is None or seen.state == "up" else seen.reason or f"it is {seen.state}"

    def foreign(self, name: str) -> Mapping[str, float]:
        """What others use of a node, or what is missing of it."""
        seen = self._seen.get(name)
        return {} if seen is None else {kind: amount for kind, amount in seen.foreign.items() if amount}


def _words(seen: NodeSeen) -> str:
    """Why a node is not up, so that whoever reads it alone knows which."""
    name = seen.node.name
    if f"node {name}" in seen.reason:
        return seen.reason
    return f"node {name} is {seen.state}" + (f": {seen.reason}" if seen.reason else "")


def stand_in(name: str, amounts: Mapping[str, float]) -> ClusterNode:
    """A node that is not there any more, as far as something that was held of it tells."""
    return msgspec.convert({"name": name, "amounts": dict(amounts)}, ClusterNode)
