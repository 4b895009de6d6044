"""Filters of lists, for clients that have the whole list before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Protocol


class Listed(Protocol):
    """What filters ask of a job."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def submitted_at(self) -> float: ...


def words(given: Any) -> set[str] | None:
    """The words of a filter that takes several; None where it was not given."""
    if given is None:
        return None
    return set(given.split(",")) if isinstance(given, str) else {str(one) for one in given}


def tests(filters: Mapping[str, Any]) -> Iterator[Callable[[Listed], bool]]:
    """What a job has to be like."""
    if (owner := filters.get("owner")) is not None:
        yield lambda job: job.owner == owner
    if states := words(filters.get("state")):
        yield lambda job: job.state in states
    if (name := filters.get("name")) is not None:
        yield lambda job: fnmatchcase(job.name, name)
    for label in words(filters.get("label")) or ():
        yield lambda job, label=label: _has_label(job, label)  # type: ignore[misc]
    if (since := filters.get("since")) is not None:
        yield lambda job: job.submitted_at >= since
    if (until := filters.get("until")) is not None:
        yield lambda job: job.submitted_at < until
    if (text := filters.get("search")) is not None:
        yield lambda job: text.lower() in f"{job.id} {job.name} {job.owner}".lower()


def _has_label(job: Listed, text: str) -> bool:
    key, _, value = text.partition("=")
    return job.labels.get(key) == value
