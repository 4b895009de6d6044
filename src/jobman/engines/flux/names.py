"""What a job of Flux is called: a listing tells no more of whose it is.

`train/fit[3/10] jobman:ID`, and behind it `@24` where it has an urgency of its own, which one that is held
does not show. The number behind the replica is how many were submitted with it.
"""

from __future__ import annotations

import re

import msgspec

_TITLE = re.compile(
    r".*/(?P<piece>[^/\[\]]+)(?:\[(?P<element>\d+)/(?P<all>\d+)\])?"
    r" jobman:(?P<job>[^\s@]+)(?P<urgency>@\d+)?"
)


class Whose(msgspec.Struct, frozen=True):
    """A piece of a job, or an element of one."""

    job: str
    piece: str
    element: int | None = None
    all: int = 1
    urgency: str = ""
    """Behind its id, this says what a release gives it back."""


def title(
    job_name: str, piece: str, job: str, element: object = None, all_: int = 1, urgency: str = ""
) -> str:
    """The name of a job of Flux."""
    place = "" if element is None else f"[{element}/{all_}]"
    return f"{job_name}/{piece}{place} jobman:{job}{urgency}"


def whose(name: str) -> Whose | None:
    """Whose job it is; None for a stranger's."""
    found = _TITLE.fullmatch(name)
    if found is None:
        return None
    element = found["element"]
    return Whose(
        found["job"],
        found["piece"],
        None if element is None else int(element),
        int(found["all"] or 1),
        found["urgency"] or "",
    )
