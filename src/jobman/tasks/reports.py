"""What agents report, looked at before it is believed."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

import msgspec

from jobman.tasks.batches import Status
from jobman.tasks.model import Report
from jobman.tasks.submissions import Refusal

_REPORTED = (Status.COMPLETED, Status.FAILED, Status.KILLED)


def check_report(report: Report) -> None:
    """Raises Refusal where it does not say how each task came out."""
    columns = {len(report.indexes), len(report.seconds), len(report.results) or len(report.indexes)}
    if report.status not in _REPORTED or len(columns) > 1 or not 0 <= sum(report.seconds) < inf:
        message = f"the report of batch {report.batch} does not say how each task came out"
        raise Refusal("wrong", message, "give a status that is an end, and columns of one length")


def seconds_of(report: Report, indexes: Collection[int]) -> float:
    """What some of a report took."""
    wanted = set(indexes)
    return sum(
        seconds for index, seconds in zip(report.indexes, report.seconds, strict=True) if index in wanted
    )


def only(report: Report, indexes: set[int]) -> Report:
    """What a report says of these, each once."""
    places = {index: place for place, index in enumerate(report.indexes) if index in indexes}
    at = list(places.values())
    return msgspec.structs.replace(
        report,
        indexes=list(places),
        seconds=[report.seconds[place] for place in at],
        results=[report.results[place] for place in at] if report.results else [],
    )
