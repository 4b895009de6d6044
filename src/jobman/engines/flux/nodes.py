"""The nodes of an instance, from the sets of resources that `flux resource R` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from jobman.engines.scripts.delegate import NodeAt
from jobman.engines.scripts.hosts import expanded

_KINDS = ("core", "gpu")


class _Lite(msgspec.Struct):
    rank: str
    children: dict[str, str] = {}


class _Execution(msgspec.Struct):
    R_lite: list[_Lite] = []
    nodelist: list[str] = []
    properties: dict[str, str] = {}


class _Resources(msgspec.Struct):
    execution: _Execution


class Held(msgspec.Struct, frozen=True):
    """What is on one node."""

    name: str
    amounts: dict[str, float]
    facts: tuple[str, ...]


def read_resources(text: str) -> dict[int, Held]:
    """The nodes of a set of resources, by their ranks."""
    found = msgspec.json.decode(text.encode(), type=_Resources).execution
    amounts = {rank: _amounts(each.children) for each in found.R_lite for rank in numbers(each.rank)}
    names = [name for text in found.nodelist for name in expanded(text)]
    facts = {name: set(numbers(ranks)) for name, ranks in found.properties.items()}
    return {
        rank: Held(name, amounts[rank], tuple(sorted(fact for fact, ranks in facts.items() if rank in ranks)))
        for rank, name in zip(sorted(amounts), names, strict=False)
    }


def read_nodes(every: str, used: str, down: str, drained: Mapping[str, str]) -> Iterator[NodeAt]:
    """All nodes; `drained` says why no more jobs come to some."""
    in_use, gone = read_resources(used), read_resources(down)
    for rank, held in read_resources(every).items():
        state = "draining" if held.name in drained else "down" if rank in gone else "up"
        yield NodeAt(
            name=held.name,
            state=state,
            reason=drained.get(held.name, ""),
            amounts=held.amounts,
            used=in_use[rank].amounts if rank in in_use else {},
            facts=held.facts,
        )


def read_drained(text: str) -> dict[str, str]:
    """Lines of `nodes|reason`."""
    pairs = (line.partition("|") for line in text.splitlines() if line.strip())
    return {name: reason.strip() for hosts, _, reason in pairs for name in expanded(hosts.strip())}


def with_memory(node: NodeAt, per_core: int | None) -> NodeAt:
    """The node with what its cores come with, where the settings say so."""
    if per_core is None:
        return node
    amounts = {**node.amounts, "memory": node.amounts.get("core", 0) * per_core}
    return msgspec.structs.replace(node, amounts=amounts)


def with_lacks(nodes: Sequence[NodeAt]) -> list[NodeAt]:
    """The nodes with what others have and they do not, as Flux writes that: `^gpu`."""
    known = sorted({fact for node in nodes for fact in node.facts})
    return [
        msgspec.structs.replace(
            node, facts=(*node.facts, *(f"^{fact}" for fact in known if fact not in node.facts))
        )
        for node in nodes
    ]


def numbers(idset: str) -> Iterator[int]:
    """The numbers of a set such as `0-3,7`."""
    for span in filter(None, idset.split(",")):
        low, _, high = span.partition("-")
        yield from range(int(low), int(high or low) + 1)


def _amounts(children: Mapping[str, Any]) -> dict[str, float]:
    return {kind: float(len(list(numbers(children[kind])))) for kind in _KINDS if kind in children}
