"""What a Job says of itself, and which pods are its own. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import by_age
from jobman.engines.kubernetes.objects import Condition, Job, Kept, Pod


def pods_of(job: Job, pods: Iterable[Pod]) -> list[Pod]:
    """The pods that a Job owns, oldest first."""
    return sorted((pod for pod in pods if owns(job, pod)), key=by_age)


def owns(job: Job, other: Kept) -> bool:
    """Whether an object is there for a Job."""
    return any(owner.uid == job.metadata.uid for owner in other.metadata.owner_references)


def replica_of(job: Job) -> int | None:
    """The replica that a Job is for; None where its indexes are the replicas."""
    written = job.metadata.labels.get(names.REPLICA, "")
    return int(written) if written.isdecimal() else None


def width(job: Job) -> int:
    """How many indexes a Job has."""
    return job.spec.completions if job.spec.completions is not None else 1


def is_over(job: Job) -> bool:
    """Whether a Job has ended and nothing of it is left running."""
    return condition(job, "Complete", "Failed") is not None


def is_decided(job: Job) -> bool:
    """Whether the cluster has said how a Job ends; what is left of it running is ended by the cluster."""
    return is_over(job) or condition(job, "SuccessCriteriaMet", "FailureTarget") is not None


def condition(job: Job, *types: str) -> Condition | None:
    """The first condition of these types that holds."""
    return next((one for one in job.status.conditions if one.type in types and one.status == "True"), None)


def ran_too_long(failed: Condition | None) -> bool:
    return failed is not None and failed.reason == "DeadlineExceeded"


class Indexes:
    """Indexes of a text such as `0,2-5`, which the cluster writes in order; there may be very many."""

    def __init__(self, written: str) -> None:
        spans = [part.partition("-") for part in written.split(",") if part]
        self._spans = [range(int(first), int(last or first) + 1) for first, _, last in spans]
        self._firsts = [span.start for span in self._spans]

    def __contains__(self, index: int) -> bool:
        place = bisect_right(self._firsts, index)
        return place > 0 and index in self._spans[place - 1]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._spans)

    def __len__(self) -> int:
        return sum(map(len, self._spans))
