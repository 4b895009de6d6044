"""Where copies may go: facts of nodes, nearness and distance, as the scheduler of a cluster reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.piece import Piece
from jobman.engines.kubernetes.target import Target
from jobman.plan.model import Plan
from jobman.spec.placement import Placement, Relation

_NO_PLACEMENT = Placement()
_STRONGEST = 100
Term = dict[str, Any]


def topology_key(level: str, target: Target) -> str | None:
    """The label of nodes that stands for a level: one the target knows, or a label by its full name."""
    return target.topology.get(level) or (level if "/" in level and names.is_label_key(level) else None)


def placement(piece: Piece) -> dict[str, Any]:
    """The fields of a pod that say where it may go."""
    wanted = piece.unit.policies.placement or _NO_PLACEMENT
    runtime = piece.unit.policies.runtime
    selector = dict(wanted.labels)
    if runtime is not None and runtime.os is not None:
        selector.setdefault("kubernetes.io/os", runtime.os)
    fields: dict[str, Any] = {}
    if selector:
        fields["nodeSelector"] = selector
    if affinity := _affinity(piece, wanted):
        fields["affinity"] = affinity
    if wanted.spread is not None:
        fields["topologySpreadConstraints"] = [
            {
                "maxSkew": wanted.spread.skew,
                "topologyKey": topology_key(wanted.spread.by, piece.target),
                "whenUnsatisfiable": "DoNotSchedule" if wanted.spread.required else "ScheduleAnyway",
                "labelSelector": {"matchLabels": piece.selector},
            }
        ]
    return fields


def _affinity(piece: Piece, wanted: Placement) -> dict[str, Any]:
    near, preferred_near = _relations(piece, wanted.near, one_term_each=True)
    apart, preferred_apart = _relations(piece, wanted.apart, one_term_each=False)
    found = {
        "nodeAffinity": _node_affinity(piece),
        "podAffinity": _strengths([*_together(piece), *near], preferred_near),
        "podAntiAffinity": _strengths([*_alone(piece, wanted), *_own_nodes(piece), *apart], preferred_apart),
    }
    return {kind: rules for kind, rules in found.items() if rules}


def _strengths(required: list[Term], preferred: list[Term]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if required:
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred:
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": _STRONGEST, "podAffinityTerm": term} for term in preferred
        ]
    return rules


# -- nodes ---------------------------------------------------------------------------------------------------


def _node_affinity(piece: Piece) -> dict[str, Any]:
    """Facts the node must have. Of several alternatives one is enough, and the first is liked best."""
    choices = [parts[0].requires for parts in piece.alternatives] or [piece.slice.part.requires]
    rules: dict[str, Any] = {}
    if all(choices):
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [_node_term(facts) for facts in choices]
        }
    liked = [
        {"weight": max(1, _STRONGEST - number), "preference": _node_term(facts)}
        for number, facts in enumerate(choices[:-1])
        if facts
    ]
    if liked:
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = liked
    return rules


def _node_term(facts: dict[str, str]) -> Term:
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": [value]} for key, value in facts.items()
        ]
    }


# -- the copies of a replica ---------------------------------------------------------------------------------


def _own_replica(piece: Piece) -> dict[str, str]:
    own = dict(piece.selector)
    if names.KEY in piece.labels:
        return {**own, names.KEY: piece.labels[names.KEY]}
    return own if piece.replica is None else {**own, names.REPLICA: str(piece.replica)}


def _together(piece: Piece) -> Iterator[Term]:
    """Copies of one node stay on it, and levels of which there is one hold the whole replica."""
    if piece.slice.is_together:
        node = {**_own_replica(piece), names.NODE: str(piece.slice.first_node)}
        yield _term(node, topology=piece.target.topology["node"])
    for level, _ in piece.slice.part.within:
        yield _term(_own_replica(piece), topology=topology_key(level, piece.target) or level)


def _own_nodes(piece: Piece) -> Iterator[Term]:
    """Nodes that were asked for are different nodes."""
    if not piece.slice.has_node or piece.size == 1:
        return
    others: list[Term] = [{"key": names.NODE, "operator": "Exists"}]
    if piece.slice.is_together:
        others.append({"key": names.NODE, "operator": "NotIn", "values": [str(piece.slice.first_node)]})
    yield _term(_own_replica(piece), others, topology=piece.target.topology["node"])


def _alone(piece: Piece, wanted: Placement) -> Iterator[Term]:
    """Nothing else of jobman's on the node, in any namespace."""
    if not (wanted.exclusive or piece.slice.part.is_whole):
        return
    others: list[Term] = [{"key": names.JOB, "operator": "Exists"}]
    if allocation := piece.labels.get(names.ALLOCATION):
        others.append({"key": names.ALLOCATION, "operator": "NotIn", "values": [allocation]})
    yield {**_term({}, others, topology=piece.target.topology["node"]), "namespaceSelector": {}}


# -- other tasks ---------------------------------------------------------------------------------------------


def _relations(
    piece: Piece, relation: Relation | None, *, one_term_each: bool
) -> tuple[list[Term], list[Term]]:
    """Required and preferred terms. Near means near each of the tasks, apart means away from all of them."""
    if relation is None:
        return [], []
    key = topology_key(relation.by, piece.target) or relation.by
    job = {names.JOB: piece.target.job_id}
    groups = [tasks_of(piece.plan, name) for name in relation.tasks or (piece.unit.id,)]
    if not one_term_each:
        groups = [tuple(task for tasks in groups for task in tasks)]
    terms = [_term(job, [_any_task(tasks)], topology=key) for tasks in groups]
    return (terms, []) if relation.required else ([], terms)


def tasks_of(plan: Plan, name: str) -> tuple[str, ...]:
    """The tasks that a name stands for: itself, or those of a group."""
    unit = plan.unit(name)
    if unit.kind == "task":
        return (name,)
    return tuple(task for child in plan.children(name) for task in tasks_of(plan, child.id))


def _any_task(tasks: Iterable[str]) -> Term:
    return {"key": names.TASK, "operator": "In", "values": [names.label_value(task) for task in tasks]}


def _term(labels: dict[str, str], expressions: Iterable[Term] = (), *, topology: str) -> Term:
    selector: dict[str, Any] = {}
    if labels:
        selector["matchLabels"] = labels
    if expressions := list(expressions):
        selector["matchExpressions"] = expressions
    return {"labelSelector": selector, "topologyKey": topology}
