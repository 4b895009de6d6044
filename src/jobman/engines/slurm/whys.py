"""Why something waits: Slurm's own word for it, in plain ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobman.engines.scripts.delegate import Waiting
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import CLOSER

_WORDS: dict[str, tuple[str, str]] = {
    "Resources": ("resources", "its nodes are in use; it is the next to get some"),
    "Priority": ("priority", "others come before it in the queue"),
    "Dependency": ("dependency", "it waits for another task of the job"),
    "DependencyNeverSatisfied": ("never", "what it waits for will not happen"),
    "JobHeldUser": ("hold", "it is held: `jobman release` lets it go"),
    "JobHeldAdmin": ("hold", "an administrator holds it"),
    "BeginTime": ("start", "its time has not come yet"),
    "JobArrayTaskLimit": ("parallelism", "as many of its replicas run as may run at once"),
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


def waits(job: BatchJob) -> list[Waiting]:
    """What each part of a job waits for."""
    found = list(_inside(job))
    for native in job.natives:
        if native.state in ("waiting", "held") and native.piece != CLOSER:
            kind, message = _reason(native, job)
            found.append(
                Waiting(kind=kind, replica=_replica(native), message=message, starts_at=native.starts_at)
            )
    return found


def _inside(job: BatchJob) -> Iterator[Waiting]:
    """What scripts wait for."""
    for replica in job.replicas:
        if replica.state == "resting":
            yield Waiting(
                kind="retry", replica=replica.key, message=f"{replica.key} is tried again in a while"
            )


def _replica(native: Native) -> str:
    return f"{native.piece}.{native.element or 0}"


def _reason(native: Native, job: BatchJob) -> tuple[str, str]:
    word = native.reason.split(",")[0]
    if "maintenance" in native.reason.lower():
        return "maintenance", "a window of maintenance comes before it could end"
    if word == "JobHeldUser":
        return _held(native, job)
    if word == "Dependency":
        return "dependency", _dependency(native, job)
    if word in _WORDS:
        return _WORDS[word]
    if native.reason in _WORDS:
        return _WORDS[native.reason]
    if _LIMIT.match(word):
        return "limit", f"a limit of your account or QOS is used up ({native.reason})"
    if not word:
        return "turn", "Slurm has not looked at it yet"
    return "resources", f"Slurm says: {native.reason}"


def _held(native: Native, job: BatchJob) -> tuple[str, str]:
    """Held by jobman itself, and for what."""
    unit = next(unit for unit in job.plan.children() if unit.name == native.piece)
    for who, gates in (("", job.plan.policies.gates), (f"{unit.id}: ", unit.policies.gates)):
        for gate in gates:
            if not job.gates[gate]:
                return "gate", f"{who}the gate {gate} is closed"
    if not job.is_whole:
        return "hold", f"its submission was interrupted: `jobman release {job.id}` completes it"
    if job.folder.has("held") or (job.plan.policies.hold and not job.folder.has("released")):
        return "hold", "the job is held"
    if unit.policies.hold and not job.folder.has("released"):
        return "hold", f"{unit.id} is held"
    waits_for = [edge.after for edge in job.plan.edges if edge.unit == unit.id and edge.when == "ready"]
    return (
        ("dependency", f"it waits until {', '.join(waits_for)} is ready")
        if waits_for
        else _WORDS["JobHeldUser"]
    )


def _dependency(native: Native, job: BatchJob) -> str:
    after = [edge.after for edge in job.plan.edges if edge.unit == native.piece]
    return f"it waits for {', '.join(after)}" if after else "it waits for the other tasks of the job"
