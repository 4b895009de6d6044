"""Why a pod finds no node: the scheduler's sentence taken apart, and explained by the nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from jobman.engines.kubernetes import facts
from jobman.engines.kubernetes.blockers import Trouble
from jobman.engines.kubernetes.needs import needs_of
from jobman.engines.kubernetes.objects import Event, Node, Pod, Taint, Toleration, VolumeClaim
from jobman.engines.kubernetes.quantities import largest, named, parse_amounts, spoken

_SENTENCE = re.compile(r"\d+/(\d+) nodes are available: (.*)", re.DOTALL)
_AFTERTHOUGHT = re.compile(r"\. (?:no new claims|preemption:|not found$)")
_ENTRIES = re.compile(r", (?=\d+ )")
_ENTRY = re.compile(r"(\d+) (?:node\(s\) )?(.*)", re.DOTALL)
_ALONE = ("NoSchedule", "NoExecute")
_FEW = 5
"""Labels that are told where the one that was asked for is missing."""
_OF_ONE = {"have": "has", "are": "is", "do": "does", "run": "runs"}
_KNOWN_TAINTS = {
    "node.kubernetes.io/not-ready": "not ready",
    "node.kubernetes.io/unreachable": "out of reach",
    "node.kubernetes.io/unschedulable": "cordoned",
    "node.kubernetes.io/memory-pressure": "short of memory",
    "node.kubernetes.io/disk-pressure": "short of disk space",
    "node.kubernetes.io/pid-pressure": "short of process numbers",
    "node.kubernetes.io/network-unavailable": "without a network",
    "node-role.kubernetes.io/control-plane": "for the control plane alone",
}


class Finding(NamedTuple):
    """What keeps a pod from some nodes."""

    words: str
    """The end of a sentence that begins with how many nodes, as it is said of many."""
    advice: str = ""
    for_ever: bool = False
    """Whether waiting does not help, as the nodes are now."""
    room: bool = False
    """Whether others have to end first."""


class Excluded(NamedTuple):
    """A pod and the nodes it could not have."""

    pod: Pod
    nodes: Sequence[Node]
    said: str


def why_unschedulable(
    pod: Pod, message: str, nodes: Sequence[Node], claims: Sequence[VolumeClaim], events: Iterable[Event]
) -> Trouble:
    """The scheduler's message in plain words; `nodes` is empty where one may not look at them."""
    match = _SENTENCE.fullmatch(message.strip())
    if match is None:
        return _without_nodes(message.strip(), claims, events)
    in_all, body = int(match[1]), _AFTERTHOUGHT.split(match[2], maxsplit=1)[0].rstrip(".")
    entries = [_ENTRY.fullmatch(entry) for entry in _ENTRIES.split(body)]
    if not all(entries):
        return _without_nodes(body, claims, events)
    findings = [
        (int(entry[1]), _finding(Excluded(pod, nodes, entry[2].strip()))) for entry in entries if entry
    ]
    return _told(in_all, findings)


def untolerated(pod: Pod, node: Node) -> list[Taint]:
    """The taints of a node that keep a pod away."""
    return [
        taint
        for taint in node.spec.taints
        if taint.effect in _ALONE and not any(_tolerates(one, taint) for one in pod.spec.tolerations)
    ]


def _told(in_all: int, findings: Sequence[tuple[int, Finding]]) -> Trouble:
    parts = [f"{_of(count, in_all)} {_agreeing(count, finding.words)}" for count, finding in findings]
    advice = "; or ".join(dict.fromkeys(finding.advice for _, finding in findings if finding.advice))
    if all(finding.for_ever for _, finding in findings):
        return Trouble("never", f"as the nodes are, none will ever take it: {', '.join(parts)}", advice)
    room = any(finding.room for _, finding in findings)
    return Trouble("resources" if room else "node", f"no node can take it now: {', '.join(parts)}", advice)


def _of(count: int, in_all: int) -> str:
    if count == in_all:
        return {1: "the only node", 2: "both nodes"}.get(in_all, f"all {in_all} nodes")
    return f"{count} of {in_all} nodes"


def _agreeing(count: int, words: str) -> str:
    """Findings are of many nodes; this is how they are said of one."""
    verb, _, rest = words.partition(" ")
    return f"{_OF_ONE.get(verb, verb)} {rest}" if count == 1 else words


def _finding(excluded: Excluded) -> Finding:
    for beginning, explain in _EXPLANATIONS.items():
        if excluded.said.startswith(beginning):
            return explain(excluded)
    return Finding(f"cannot: {excluded.said}")


# -- resources -----------------------------------------------------------------------------------------------


def _insufficient(excluded: Excluded) -> Finding:
    resource = excluded.said.removeprefix("Insufficient ")
    asked = needs_of(excluded.pod).get(resource)
    most = largest(parse_amounts(node.status.allocatable) for node in excluded.nodes).get(resource)
    asks = f"it asks for {spoken(resource, asked)}" if asked else "it asks for more"
    if excluded.nodes and not most:
        advice = f"check the name {resource}, and that the device plugin of the cluster runs"
        return Finding(f"have no {resource} at all", advice, for_ever=True)
    if asked and most and asked > most:
        words = f"have too little {resource} ({asks}, the largest node has {spoken(resource, most)})"
        return Finding(words, f"ask for at most {named(resource, most)} a copy", for_ever=True)
    words = f"have too little {resource} free ({asks})"
    return Finding(words, "wait until others end, which `jobman queue` shows, or ask for less", room=True)


def _full(_: Excluded) -> Finding:
    return Finding("run as many pods as is allowed", "wait until others end", room=True)


# -- what nodes are like -------------------------------------------------------------------------------------


def _tainted(excluded: Excluded) -> Finding:
    taints = {
        (taint.key, taint.value, taint.effect): taint
        for node in excluded.nodes
        for taint in untolerated(excluded.pod, node)
    }
    known = sorted({_KNOWN_TAINTS[key] for key, _, _ in taints if key in _KNOWN_TAINTS})
    own = sorted(_taint_words(taint) for taint in taints.values() if taint.key not in _KNOWN_TAINTS)
    said = excluded.said.partition("{")[2].rstrip("} ").rstrip(":")
    names = own or ([said] if said and said not in _KNOWN_TAINTS else [])
    if not names and (known or said):
        away = " or ".join(known) or _KNOWN_TAINTS[said]
        return Finding(f"are {away}", "wait, or ask who runs the cluster")
    words = f"have a taint that it does not tolerate{f': {_and(names)}' if names else ''}"
    advice = "add a toleration under `flags: {kubernetes: …}` if the node is meant for it"
    return Finding(words, advice, for_ever=bool(own) and not known)


def _taint_words(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return (toleration.key, toleration.value) == (taint.key, taint.value)


def _mismatched(excluded: Excluded) -> Finding:
    wanted, nodes = facts.alternatives(excluded.pod), excluded.nodes
    if missing := facts.unmet(wanted, nodes) if nodes else []:
        there = _values(wanted, nodes, missing)
        seen = f"; there is {', '.join(there)}" if there else ""
        words = f"do not have the label it asks for (none has {' or '.join(missing)}{seen})"
        return Finding(words, "change `requires` or `placement`, or have a node labelled", for_ever=True)
    kinds = " or ".join(_and([facts.written(one) for one in alternative]) for alternative in wanted)
    asked = f" ({kinds})" if kinds else ""
    if nodes and wanted and not any(facts.matches(node, one) for node in nodes for one in wanted):
        words = f"are not of the kind it asks for: none is all of it at once{asked}"
        return Finding(words, "change `requires` or `placement`", for_ever=True)
    words = f"are not of the kind it asks for{asked}"
    return Finding(words, "look at `requires` and `placement`", for_ever=bool(nodes))


def _values(wanted: Sequence[facts.Alternative], nodes: Sequence[Node], missing: Sequence[str]) -> list[str]:
    """What nodes have instead."""
    keys = {one.key for alternative in wanted for one in alternative if facts.written(one) in missing}
    seen = {
        f"{key}={labels[key]}"
        for labels in (node.metadata.labels for node in nodes)
        for key in keys & labels.keys()
    }
    return sorted(seen)[:_FEW]


def _and(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def _said(words: str, advice: str = "", *, room: bool = False) -> Callable[[Excluded], Finding]:
    return lambda _: Finding(words, advice, room=room)


_EXPLANATIONS: dict[str, Callable[[Excluded], Finding]] = {
    "Insufficient ": _insufficient,
    "Too many pods": _full,
    "had untolerated taint": _tainted,
    "had taint": _tainted,
    "were unschedulable": _said("are cordoned", "wait, or ask who runs the cluster"),
    "were not ready": _said("are not ready", "wait, or ask who runs the cluster"),
    "didn't match Pod's node affinity": _mismatched,
    "didn't match node selector": _mismatched,
    "didn't match pod anti-affinity rules": _said(
        "have another from which it must stay apart",
        "wait until that ends, or ask for less in `placement: {apart: …}`",
        room=True,
    ),
    "didn't satisfy existing pods anti-affinity rules": _said(
        "have a pod that wants to stay apart from it", "wait until that ends", room=True
    ),
    "didn't match pod affinity rules": _said(
        "do not have those near which it must run", "look at `placement: {near: …}`"
    ),
    "didn't match pod topology spread constraints": _said(
        "would hold more of its copies than an even spread allows",
        "wait until others end, or look at `placement: {spread: …}`",
        room=True,
    ),
    "didn't have free ports": _said("have its ports in use", "wait until others end", room=True),
    "had volume node affinity conflict": _said(
        "cannot reach its volume", "let it run where the volume is, or use another volume"
    ),
    "had no available volume zone": _said(
        "are in another zone than its volume", "let it run where the volume is, or use another volume"
    ),
    "didn't find available persistent volumes": _said(
        "have no volume for its claim", "ask who runs the cluster for a volume of that class"
    ),
    "exceed max volume count": _said(
        "have as many volumes as is allowed", "wait until others end", room=True
    ),
    "cannot allocate all claims": _said(
        "do not have the devices it claims free", "wait until others end, or look at `devices`", room=True
    ),
}


# -- claims --------------------------------------------------------------------------------------------------

_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')


def _without_nodes(said: str, claims: Sequence[VolumeClaim], events: Iterable[Event]) -> Trouble:
    if match := _NO_CLAIM.match(said):
        message = f"there is no volume claim {match[1]} in its namespace"
        return Trouble("volume", message, "create the claim, or correct its name under `volumes`")
    if "unbound immediate PersistentVolumeClaims" in said:
        return _unbound(claims, events)
    return Trouble("node", f"the scheduler says: {said}")


def _unbound(claims: Sequence[VolumeClaim], events: Iterable[Event]) -> Trouble:
    waiting = [claim for claim in claims if claim.status.phase != "Bound"]
    if not waiting:
        return Trouble("volume", "a volume claim of it has no volume yet", "look at its claims with kubectl")
    names = _and([claim.metadata.name for claim in waiting])
    uids = {claim.metadata.uid for claim in waiting}
    said = [
        event.message for event in events if event.involved_object.uid in uids and event.type == "Warning"
    ]
    told = f": {said[-1]}" if said else ""
    classes = sorted({claim.spec.storage_class_name for claim in waiting} - {""})
    of_class = f" of class {_and(classes)}" if classes else ""
    advice = f"use a storage class that the cluster has, or ask for a volume{of_class}"
    return Trouble("volume", f"there is no volume{of_class} for its claim {names} yet{told}", advice)
