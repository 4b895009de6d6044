"""What is said about sessions: a command inside a running copy, or a connection to one of its ports."""

from __future__ import annotations

from typing import Annotated

import msgspec

from jobman.control.answers import Body

MOST_INPUT = 256 * 1024
"""Bytes of one request."""
Word = Annotated[str, msgspec.Meta(pattern=r"^[^\u0000]*$", max_length=100_000)]
Size = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class NewSession(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request to enter a running copy: for a command, or with `port`, to connect there."""

    replica: Annotated[Word, msgspec.Meta(description="Its key, such as train.3.")]
    copy: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    command: Annotated[list[Word], msgspec.Meta(max_length=10_000)] = msgspec.field(
        default_factory=lambda: ["sh"]
    )
    port: Port | None = None
    terminal: Annotated[
        bool, msgspec.Meta(description="A terminal of its own; stderr is in stdout then.")
    ] = False
    rows: Size = 0
    columns: Size = 0


class Session(Body, kw_only=True):
    """A way into a copy that somebody has opened."""

    id: str
    job: str
    replica: str
    attempt: int
    copy: int
    inputs: int = 0
    """The number of the last input that was taken; one that was not has to be sent again."""


class SessionInput(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What goes in next. Numbers begin with 1; one that was there already does nothing."""

    number: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    data: bytes = b""
    end: Annotated[bool, msgspec.Meta(description="Nothing comes after this.")] = False
    rows: Annotated[Size, msgspec.Meta(description="With `columns`: the size of the terminal now.")] = 0
    columns: Size = 0


class SessionOutput(Body, omit_defaults=True, kw_only=True):
    """Some of what came out: the data of an event `stdout` or `stderr`."""

    data: bytes


class SessionEnd(Body, kw_only=True):
    """The data of the event `end`. Without an exit code, `trouble` says why there is none."""

    exit_code: int | None = None
    trouble: str = ""
