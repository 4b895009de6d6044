"""Causes: how something failed, and what it happened to."""

from __future__ import annotations

import msgspec


class Failure(msgspec.Struct, frozen=True):
    """How an attempt failed: the reason, and the exit code where there was one."""

    reason: str
    exit_code: int | None = None


Cause = tuple[str, Failure]
"""A failure, and the key of the replica it happened to."""
