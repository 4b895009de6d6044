"""What may be submitted, and how that which may not is refused."""

from __future__ import annotations

from math import inf, isfinite, nan

import msgspec

from jobman.tasks.model import Submission

LARGEST = 256 * 1024
"""Bytes of a payload; what is larger is handed over by reference."""
_LONGEST_REFERENCE = 4096


class Refusal(Exception):
    """A request that is not done, and why."""

    def __init__(self, code: str, message: str, advice: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.advice = advice
        self.retry_after = retry_after


def check(asked: Submission) -> None:
    """Raises Refusal where a submission is wrong by itself."""
    if not asked.size:
        raise Refusal("empty", "a batch has at least one task", "give payloads, or references to them")
    if asked.payloads and asked.references:
        raise Refusal("wrong", "there are both payloads and references", "submit them as two batches")
    for noun, column in (("estimates", asked.estimates), ("sizes", asked.sizes)):
        if isinstance(column, list) and len(column) != asked.size:
            advice = f"give as many {noun} as tasks, {asked.size:,}"
            raise Refusal("wrong", f"there are {len(column):,} {noun}", advice)
    _check_numbers(asked)
    if (largest := max(map(len, asked.payloads), default=0)) > LARGEST:
        message = f"a payload of {largest:,} bytes is larger than {LARGEST:,}"
        raise Refusal("too-large", message, "put it in a file or an object store, and give its place")
    for reference in asked.references:
        check_reference(reference)


def _check_numbers(asked: Submission) -> None:
    """Whoever could say that a task takes less than nothing would be served before all others for ever."""
    retries = asked.retries
    columns = {
        "estimates": asked.estimates,
        "deadline": asked.deadline,
        "retries": [float(retries.limit), retries.delay, retries.factor],
    }
    for noun, column in columns.items():
        numbers = column if isinstance(column, list) else [] if column is None else [column]
        if not all(0 <= number < inf for number in numbers):
            raise Refusal("wrong", f"{noun} are numbers from 0 on", f"give {noun} of seconds that can pass")
    sizes = asked.sizes if isinstance(asked.sizes, list) else [asked.sizes or 0.0]
    if not all(map(isfinite, sizes)):
        raise Refusal("wrong", "sizes are numbers", "leave sizes out where they are not known")


def with_size(asked: Submission, parameter: str) -> Submission:
    """The same, with the size that a parameter of its type says, where nothing else was said."""
    said = asked.parameters.get(parameter) if parameter else None
    if said is None or asked.sizes is not None:
        return asked
    try:
        size = float(said)
    except ValueError:
        size = nan
    if not isfinite(size):
        advice = f"`{asked.type}` takes longer the larger `{parameter}` is: give a number"
        raise Refusal("wrong", f"`{said[:40]}` is no number for the parameter `{parameter}`", advice)
    return msgspec.structs.replace(asked, sizes=size)


def check_reference(text: str) -> None:
    """A reference becomes a header: it has a scheme, and nothing that could end a line."""
    scheme, colon, rest = text.partition(":")
    if not (colon and scheme.isalnum() and rest and text.isascii() and text.isprintable()):
        message = f"`{text[:80]}` is no reference"
        raise Refusal("wrong", message, "write such as `file:/data/one.bin` or `s3://bucket/one.bin`")
    if len(text) > _LONGEST_REFERENCE:
        message = f"a reference of {len(text):,} letters is longer than {_LONGEST_REFERENCE:,}"
        raise Refusal("wrong", message, "give a shorter place")
