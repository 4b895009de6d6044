"""Nodes as a person describes them, for matching without a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from yaml.nodes import MappingNode, Node, SequenceNode

from jobman.spec.kinds import Items, Names, Size, Whole
from jobman.spec.names import LABEL_KEY, LABEL_VALUE, TYPE
from jobman.spec.node_names import NodeRange, expand_names
from jobman.spec.problems import Place, Problems, SpecError
from jobman.spec.reading import BAD, Reading, describe
from jobman.spec.records import Element, Key, Of, Record
from jobman.spec.resources import Requires
from jobman.spec.shapes import Amount
from jobman.spec.source import read_source
from jobman.spec.yaml import compose, is_null

__all__ = ["COPY", "ClusterNode", "expand_names", "in_all", "read_nodes"]

COPY = "copy"
"""Of this a node has as many as it takes copies at one time, whatever they ask for. Nobody asks for it."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node: what it has and what is true of it."""

    name: str
    amounts: dict[str, Amount] = {}
    facts: dict[str, str] = {}
    labels: dict[str, str] = {}


def in_all(nodes: Iterable[ClusterNode]) -> dict[str, float]:
    """What nodes have together, by kind; `node` counts them."""
    found: dict[str, float] = {"node": 0}
    for node in nodes:
        found["node"] += 1
        for kind, amount in node.amounts.items():
            found[kind] = found.get(kind, 0) + amount
    return found


class _Described(Element, frozen=True, kw_only=True):
    """One entry of a file of nodes."""

    noun = "a node"
    habits = {
        "cpus": "cores",
        "cpu": "cores",
        "gpu": "gpus",
        "core": "cores",
        "mem": "memory",
        "properties": "facts",
    }
    name: Annotated[tuple[str, ...], Key(NodeRange(), "its name, or a range such as n[1-4]", required=True)]
    cores: Annotated[int | None, Key(Whole(1, 10**6), "cores")] = None
    sockets: Annotated[int | None, Key(Whole(1, 10**4), "sockets")] = None
    gpus: Annotated[int | None, Key(Whole(0, 10**4), "GPUs")] = None
    memory: Annotated[int | None, Key(Size(), "memory")] = None
    storage: Annotated[int | None, Key(Size(), "storage")] = None
    resources: Annotated[dict[str, int], Key(Names(TYPE, Whole(0, 10**9)), "a site's own types")] = {}
    facts: Annotated[dict[str, str], Key(Requires(), "what `requires` is compared with")] = {}
    labels: Annotated[
        dict[str, str], Key(Names(LABEL_KEY, LABEL_VALUE), "what `placement.labels` is compared with")
    ] = {}


_ENTRIES = Items(Of(_Described), "a list of nodes", least=1)


class _File(Record, frozen=True, kw_only=True):
    noun = "the file of nodes"
    nodes: Annotated[tuple[_Described, ...], Key(_ENTRIES, "the nodes", required=True)]


_FILE = Of(_File)
_FIELDS = {"cores": "core", "sockets": "socket", "gpus": "gpu", "memory": "memory", "storage": "storage"}


def read_nodes(path: str | Path) -> list[ClusterNode]:
    """The nodes of a file; raises SpecError with every problem of it."""
    problems = Problems()
    source = read_source(path, problems)
    nodes, source = compose(source, problems) if source is not None else ([], source)
    found: list[ClusterNode] = []
    for node in nodes:
        if source is not None and not is_null(node):
            found.extend(_read(node, Reading(source, problems)))
    if source is not None and not found and not problems.has_errors:
        problems.add("JS213", Place(source.name, 1, 1, 1, 2), noun="the list of nodes")
    if problems.has_errors:
        raise SpecError(problems)
    return found


def _read(node: Node, reading: Reading) -> list[ClusterNode]:
    if isinstance(node, SequenceNode):
        entries = _ENTRIES.read(node, reading)
    elif isinstance(node, MappingNode):
        file = _FILE.read(node, reading)
        entries = BAD if file is BAD else file.nodes
    else:
        reading.report(
            "JS103", node, noun="a list of nodes", found=describe(node), hint="write `- {name: n1, cores: 8}`"
        )
        return []
    return [] if entries is BAD else _expanded(entries, reading)


def _expanded(entries: tuple[_Described, ...], reading: Reading) -> list[ClusterNode]:
    found: dict[str, ClusterNode] = {}
    for entry in entries:
        amounts: dict[str, Amount] = dict(entry.resources)
        for field, kind in _FIELDS.items():
            if getattr(entry, field) is not None:
                amounts[kind] = getattr(entry, field)
        for name in entry.name:
            if name in found:
                reading.report("JS720", entry.node, what="node", name=name)
            found[name] = ClusterNode(name=name, amounts=amounts, facts=entry.facts, labels=entry.labels)
    return list(found.values())
