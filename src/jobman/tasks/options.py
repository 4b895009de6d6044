"""What a program says of tasks beside their payloads, and the submissions that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import msgspec

from jobman.tasks.failures import GridError
from jobman.tasks.model import Retries, Submission
from jobman.tasks.submissions import LARGEST, Refusal, check_reference

PRIORITIES = {"low": -10, "normal": 0, "high": 10}


class TaskOptions(TypedDict, total=False):
    """All that can be said of a task; what is left out is as usual."""

    version: str | None
    """Of its type: the newest that is known, where none is named."""
    estimate: float | None
    """Seconds that it takes; what others like it took, where nothing is said."""
    size: float | None
    """What its duration depends on, in any unit: it is learned how."""
    retries: int | Retries
    """How often it is tried again when it fails."""
    priority: str | int
    """`low`, `normal` or `high`, or a number; among the tasks of its tenant the highest is first."""
    deadline: float | None
    """Seconds from now after which nobody wants it any more."""
    name: str
    parameters: dict[str, str]
    """For its mapper."""
    mapper: str
    """Who chooses the image, of those that the site knows; the table of types, where nobody is named."""
    by_reference: bool
    """Whether the payloads are places of them, such as `s3://bucket/one.bin`, for the worker to read."""


class Template(msgspec.Struct, frozen=True):
    """A submission without its tasks."""

    submission: Submission
    by_reference: bool = False

    def of(self, payloads: Sequence[bytes], key: str = "") -> Submission:
        """The same with these tasks."""
        if self.by_reference:
            places = [payload.decode() for payload in payloads]
            return msgspec.structs.replace(self.submission, references=places, key=key)
        return msgspec.structs.replace(self.submission, payloads=list(payloads), key=key)

    def checked(self, payload: bytes) -> bytes:
        """The payload, or GridError where no broker would take it."""
        if self.by_reference:
            return _checked_place(payload)
        if len(payload) > LARGEST:
            message = f"a payload of {len(payload):,} bytes is larger than {LARGEST:,}"
            advice = "put it in a file or an object store, and give its place, with `by_reference=True`"
            raise GridError("too-large", message, advice)
        return payload


def template(type_: str, options: TaskOptions) -> Template:
    """How tasks of a type are submitted with these options; raises GridError."""
    retries, estimate = options.get("retries", 0), options.get("estimate")
    submission = Submission(
        type=type_,
        version=options.get("version"),
        estimates=None if estimate is None else float(estimate),
        sizes=options.get("size"),
        retries=Retries(limit=retries) if isinstance(retries, int) else retries,
        priority=priority_of(options.get("priority", "normal")),
        deadline=options.get("deadline"),
        name=options.get("name", ""),
        parameters=options.get("parameters", {}),
        mapper=options.get("mapper", ""),
    )
    return Template(submission, options.get("by_reference", False))


def priority_of(said: str | int) -> int:
    """A priority as a number; raises GridError."""
    if isinstance(said, int):
        return said
    if said not in PRIORITIES:
        advice = f"write a number, or one of {', '.join(PRIORITIES)}"
        raise GridError("wrong", f"`{said}` is no priority", advice)
    return PRIORITIES[said]


def _checked_place(payload: bytes) -> bytes:
    try:
        check_reference(payload.decode("utf-8", "replace"))
    except Refusal as error:
        raise GridError(error.code, str(error), error.advice) from None
    return payload
