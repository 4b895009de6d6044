"""Paths and queries of requests, from plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote


def quoted(path: str, *steps: str) -> str:
    """A path with steps below it, whatever letters they have."""
    return "/".join([path, *(quote(step, safe="") for step in steps)])


def query_string(values: Mapping[str, Any]) -> str:
    """A query; None is left out, and several values are given one by one."""
    pairs = [
        f"{name}={quote(_text(value), safe='')}"
        for name, given in values.items()
        for value in ([given] if isinstance(given, str | int | float) else given or [])
    ]
    return "?" + "&".join(pairs) if pairs else ""


def _text(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
