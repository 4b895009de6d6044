"""Why something waits: Slurm's own word for it, in plain ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from jobman.engines.scripts.delegate import NodeAt, Waiting
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import CLOSER
from jobman.engines.scripts.hosts import expanded
from jobman.engines.scripts.waits import asked, dependency, held, inside, unit_of

_WORDS: dict[str, tuple[str, str]] = {
    "Resources": ("resources", "its nodes are in use, and it is the next to get some"),
    "Priority": ("priority", "others come before it in the queue"),
    "Dependency": ("dependency", "it waits for another task of the job"),
    "DependencyNeverSatisfied": ("never", "what it waits for will not happen"),
    "JobHeldUser": ("hold", "it is held: `jobman release` lets it go"),
    "JobHeldAdmin": ("hold", "an administrator holds it"),
    "BeginTime": ("start", "its time has not come yet"),
    "Licenses": ("resources", "the licences it needs are in use"),
    "ReqNodeNotAvail": ("node", "a node that it needs is not available"),
    "NodeDown": ("node", "a node that it needs is down"),
    "BadConstraints": ("never", "no node has all that it asks for"),
    "PartitionDown": ("queue", "its partition is down"),
    "PartitionInactive": ("queue", "its partition starts nothing"),
    "PartitionNodeLimit": ("never", "it asks for more nodes than its partition gives to one job"),
    "PartitionTimeLimit": ("never", "it asks for more time than its partition gives"),
    "Reservation": ("reservation", "its reservation has not begun"),
    "InactiveLimit": ("limit", "it was inactive for too long"),
    "JobLaunchFailure": ("node", "it could not be launched"),
    "launch failed requeued held": (
        "node",
        "it could not be launched on its node, and is held: `jobman release` tries it again",
    ),
    "Prolog": ("node", "its nodes are being made ready"),
    "Cleaning": ("retry", "it is being cleaned up after its last try"),
    "DeadLine": ("never", "it cannot end before its deadline any more"),
    "FrontEndDown": ("node", "no front end is up"),
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "node",
        "the nodes it needs are down, drained or kept for others",
    ),
}
_LIMIT = re.compile(r"^(QOS|Assoc|MaxCpuPerAccount|Association)")


def waits(job: BatchJob, nodes: Callable[[], Sequence[NodeAt]]) -> list[Waiting]:
    """What each part of a job waits for, and what stands against the nodes of those that run."""
    found = list(inside(job))
    for native in job.natives:
        if native.state in ("waiting", "held") and native.piece != CLOSER:
            kind, message = _reason(native, job)
            if kind == "node" and (trouble := _troubles(nodes(), _wanted(native))):
                message = f"{message}: {trouble}"
            found.append(
                Waiting(kind=kind, replica=_replica(native), message=message, starts_at=native.starts_at)
            )
    return [*found, *_on_bad_nodes(job, nodes)]


def _on_bad_nodes(job: BatchJob, nodes: Callable[[], Sequence[NodeAt]]) -> Iterator[Waiting]:
    """What runs on a node that is drained may end there, and nothing more begins."""
    busy = [each for each in job.replicas if each.state == "running" and each.last is not None]
    tops = [each for each in busy if "/" not in each.key]
    if not tops:
        return
    there = nodes()
    for replica in tops:
        if trouble := _troubles(there, replica.last.nodes if replica.last is not None else ()):
            yield Waiting(kind="node", replica=replica.key, message=f"{replica.key} runs, but {trouble}")


def _wanted(native: Native) -> list[str]:
    """The nodes that Slurm names in its reason."""
    return expanded(native.reason.partition("UnavailableNodes:")[2])


def _troubles(nodes: Sequence[NodeAt], names: Sequence[str]) -> str:
    bad = [node for node in nodes if node.name in names and node.state != "up"]
    return ", ".join(
        f"{node.name} is {node.state}{f': {node.reason}' if node.reason else ''}" for node in bad
    )


def _replica(native: Native) -> str:
    return f"{native.piece}.{native.element or 0}"


def _reason(native: Native, job: BatchJob) -> tuple[str, str]:
    word = native.reason.split(",")[0]
    if "maintenance" in native.reason.lower():
        return "maintenance", "a window of maintenance comes before it could end"
    if word == "JobHeldUser" or native.reason == "job requeued in held state":
        return held(native, job)
    unit = unit_of(native, job)
    if word == "Resources" and unit is not None:
        return "resources", f"its nodes are in use, and it is the next to get some; it asks for {asked(unit)}"
    if word == "JobArrayTaskLimit" and unit is not None:
        return "parallelism", f"{unit.id}: at most {unit.policies.parallelism} run at once"
    if word == "Dependency":
        return dependency(native, job)
    if word in _WORDS:
        return _WORDS[word]
    if native.reason in _WORDS:
        return _WORDS[native.reason]
    if _LIMIT.match(word):
        return "limit", f"a limit of your account or QOS is used up ({native.reason})"
    if not word:
        return "turn", "Slurm has not looked at it yet"
    return "resources", f"Slurm says: {native.reason}"
