"""Checks as a script tries them."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.engines.scripts.quoting import array, number
from jobman.plan.model import Unit
from jobman.spec.checks import Check

_NAMES = {"ready": "ready", "alive": "alive", "started": "begun"}


def lines(unit: Unit) -> Iterator[str]:
    """Each check: its kind and times, and then what it asks."""
    checks = unit.policies.checks
    if checks is None:
        return
    for kind, name in _NAMES.items():
        check: Check | None = getattr(checks, kind)
        if check is not None:
            yield array(name, _words(check))


def _words(check: Check) -> list[str]:
    times = [number(check.delay), number(check.every), number(check.timeout)]
    counts = [str(check.failures), str(check.successes)]
    if check.exec:
        return [*times, *counts, "exec", *check.exec]
    if check.http is not None:
        headers = [f"{name}: {value}" for name, value in check.http.headers.items()]
        return [*times, *counts, "http", check.http.scheme, check.http.port, check.http.path, *headers]
    return [*times, *counts, "tcp", check.tcp.port if check.tcp is not None else ""]
