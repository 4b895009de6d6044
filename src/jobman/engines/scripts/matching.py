"""Which nodes of a manager could take each task: nodes have words, and documents ask for facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from jobman.engines.scripts.delegate import NodeAt
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import AlternativeMatch, Match, Obstacle, PartMatch, satisfy

Word = Callable[[str, str], str]
"""What a fact with a value is called there."""
_STATE, _QUEUE = "state", "queue"
ELSEWHERE = (_QUEUE,)
"""What rules nodes out that nobody meant."""


def matches(plan: Plan, nodes: Sequence[NodeAt], queue: str | None, word: Word) -> list[Match]:
    """Nodes that are up and in the queue, with the words that stand for what is required."""
    units = tuple(_asking(unit, queue) for unit in plan.units)
    facts = {fact for unit in units for fact in _facts(unit)}
    cluster = [_node(node, facts, queue, word) for node in nodes]
    found = satisfy(msgspec.structs.replace(plan, units=units), cluster)
    return [_told(match, word) for match in found]


def _asking(unit: Unit, queue: str | None) -> Unit:
    """The unit with every fact and label as one that is there or not: a node may have several words."""
    always = {_STATE: "up"} if queue is None else {_STATE: "up", _QUEUE: queue}
    placement = unit.policies.placement
    labels = placement.labels if placement is not None else {}
    alternatives = tuple(
        tuple(
            msgspec.structs.replace(part, requires={**always, **_marked({**part.requires, **labels})})
            for part in parts
        )
        for parts in unit.alternatives
    )
    policies = unit.policies
    if placement is not None:
        policies = msgspec.structs.replace(policies, placement=msgspec.structs.replace(placement, labels={}))
    return msgspec.structs.replace(unit, alternatives=alternatives, policies=policies)


def _marked(facts: dict[str, str]) -> dict[str, str]:
    return {f"{key}\0{value}": "there" for key, value in facts.items()}


def _facts(unit: Unit) -> Iterator[str]:
    return (key for parts in unit.alternatives for part in parts for key in part.requires if "\0" in key)


def _node(node: NodeAt, facts: set[str], queue: str | None, word: Word) -> ClusterNode:
    own = {fact: "there" for fact in facts if word(*fact.split("\0", 1)) in ("", *node.facts)}
    place = queue if queue in node.partitions else ", ".join(node.partitions)
    return ClusterNode(
        name=node.name,
        amounts={**node.uncounted, **node.amounts},
        facts={**own, _STATE: node.state, **({_QUEUE: place} if queue is not None and place else {})},
    )


def _told(match: Match, word: Word) -> Match:
    """In the words of the document again, with those of the site where they differ."""
    alternatives = tuple(
        AlternativeMatch(tuple(_part(part, word) for part in found.parts), found.satisfied)
        for found in match.alternatives
    )
    return msgspec.structs.replace(match, alternatives=alternatives)


def _part(part: PartMatch, word: Word) -> PartMatch:
    return msgspec.structs.replace(part, obstacles=tuple(_obstacle(each, word) for each in part.obstacles))


def _obstacle(found: Obstacle, word: Word) -> Obstacle:
    key, mark, value = found.key.partition("\0")
    if not mark:
        return found
    name = word(key, value)
    wanted = value if name == value else f"{value}, called {name} there,"
    return msgspec.structs.replace(found, key=key, wanted=wanted)
