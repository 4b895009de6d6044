"""The queue of a cluster from its pods, and the Jobs that have yet to make some. Pure.

How many wait and run, by flavor and by requests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import pod_state
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.indexes import Indexes, condition, is_over, width
from jobman.engines.kubernetes.needs import needs_of, spec_needs
from jobman.engines.kubernetes.objects import Job, Kept, Pod
from jobman.engines.kubernetes.quantities import Amounts

# Whose resources are GPUs. Slices of one are listed apart from whole ones, and counted like them.
_GPUS = {
    "MIG": re.compile(r"nvidia\.com/mig-.+"),
    "NVIDIA": re.compile(r"nvidia\.com/gpu(\..+)?"),
    "AMD": re.compile(r"amd\.com/(gpu|[sdqc]px_nps\d)"),
    "Intel": re.compile(r"gpu\.intel\.com/(i915|xe)|habana\.ai/gaudi"),
}
_PART_OF_A_NODE = ("DaemonSet", "Node")
_OVER = ("succeeded", "failed")


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are alike: how many wait and run, how many of them are yours, and what each asks for."""

    flavor: str = ""
    """Empty for pods that came from none."""
    requests: Amounts
    waiting: int = 0
    running: int = 0
    yours_waiting: int = 0
    yours_running: int = 0

    @property
    def gpus(self) -> dict[str, Fraction]:
        """GPUs of each by maker, slices apart."""
        return gpus_of(self.requests)


def queue(
    pods: Iterable[Pod], yours: Callable[[Kept], bool] = lambda _: False, jobs: Iterable[Job] = ()
) -> list[QueueRow]:
    """A row for each flavor and set of requests, the largest first; a flavor with two meanings has two rows.

    What belongs to the nodes themselves and what is over does not count. A pod runs from when it has a node:
    then it holds what it asked for. A Job that is suspended, stopped by a quota, or whose replicas take turns
    has fewer pods than it will have: those wait, too.
    """
    alike: dict[tuple[str, frozenset[tuple[str, Fraction]]], Counter[str]] = {}
    for pod in pods:
        if not queues(pod):
            continue
        key = pod.metadata.labels.get(names.FLAVOR, ""), frozenset(needs_of(pod).items())
        counts = alike.setdefault(key, Counter())
        state = "running" if pod.spec.node_name else "waiting"
        counts[state] += 1
        counts[f"yours_{state}"] += yours(pod)
    for job in jobs:
        if left := to_come(job):
            key = (
                job.metadata.labels.get(names.FLAVOR, ""),
                frozenset(spec_needs(job.spec.template.spec).items()),
            )
            counts = alike.setdefault(key, Counter())
            counts["waiting"] += left
            counts["yours_waiting"] += left if yours(job) else 0
    rows = [
        QueueRow(flavor=flavor, requests=dict(sorted(asked)), **counts)
        for (flavor, asked), counts in alike.items()
    ]
    return sorted(
        rows, key=lambda row: (-row.waiting - row.running, row.flavor, sorted(row.requests.items()))
    )


def queues(pod: Pod) -> bool:
    """Whether a pod is somebody's work that waits or runs."""
    owners = {owner.kind for owner in pod.metadata.owner_references}
    return owners.isdisjoint(_PART_OF_A_NODE) and pod_state(pod) not in _OVER


def to_come(job: Job) -> int:
    """How many pods a Job has yet to make, if all goes well."""
    if is_over(job) or CANCELLED in job.metadata.annotations or job.metadata.deletion_timestamp is not None:
        return 0
    decided = condition(job, "SuccessCriteriaMet", "FailureTarget")
    if decided is not None or job.spec.parallelism == 0:
        return 0
    status = job.status
    ended = max(status.succeeded, len(Indexes(status.completed_indexes))) + len(
        Indexes(status.failed_indexes)
    )
    wanted = width(job) if job.spec.completions is not None else job.spec.parallelism or 1
    return max(0, wanted - ended - status.active - status.terminating)


def owned_by(owner: str) -> Callable[[Kept], bool]:
    """Whether somebody submitted a pod or Job."""
    label = names.label_value(owner)
    return lambda each: each.metadata.labels.get(names.OWNER) == label


def gpus_of(amounts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The GPUs among resources, by maker."""
    found: dict[str, Fraction] = {}
    for maker, pattern in _GPUS.items():
        for name, amount in amounts.items():
            if pattern.fullmatch(name):
                found[maker] = found.get(maker, Fraction(0)) + amount
    return found
