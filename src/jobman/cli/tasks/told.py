"""A result as it is printed: a line of JSON, a document of YAML, or words."""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobman.tasks.grid import Result

_ID = len("4294967297/9999")
"""Columns of most ids; lines are printed as they come, before anybody knows the longest."""


def as_data(result: Result) -> dict[str, Any]:
    """Bytes that are UTF-8 are a text, `result`; others are `result_base64`."""
    found: dict[str, Any] = {
        "batch": result.batch,
        "index": result.index,
        "status": result.status,
        "attempts": result.attempts,
        "seconds": round(result.seconds, 6),
    }
    if result.status != "completed":
        return {**found, "reason": result.reason}
    return {**found, **text_or_base64("result", result.result)}


def text_or_base64(name: str, content: bytes) -> dict[str, str]:
    """Bytes in JSON."""
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def print_result(result: Result, form: str) -> None:
    """One line, or one document; whoever writes many flushes when there are no more for now."""
    if form == "json":
        import msgspec

        sys.stdout.write(msgspec.json.encode(as_data(result)).decode() + "\n")
    elif form == "yaml":
        from jobman.cli.state import emit

        sys.stdout.write("---\n")
        emit(as_data(result), form)
    else:
        sys.stdout.write(_words(result) + "\n")


def _words(result: Result) -> str:
    from jobman.cli.colours import STATES, clean, paint, wanted

    said = result.reason or result.result[:200].decode(errors="replace")
    status = paint(f"{result.status:<9}", STATES.get(result.status, ""), on=wanted())
    task = f"{result.batch}/{result.index}"
    return f"{task:<{_ID}}  {status}  {_spent(result.seconds):>7}  {clean(said)}".rstrip()


def _spent(seconds: float) -> str:
    """As far as it matters for short tasks; nothing for one that never ran."""
    from jobman.cli.times import length

    if not seconds:
        return ""
    return f"{seconds * 1000:.2g} ms" if seconds < 0.00995 else length(seconds)
