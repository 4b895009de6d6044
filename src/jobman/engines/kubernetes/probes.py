"""Checks as probes. Kubernetes counts whole seconds, so times are rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from jobman.spec.checks import Check, Checks

_PROBES = {"started": "startupProbe", "ready": "readinessProbe", "alive": "livenessProbe"}


def probes(checks: Checks | None, ports: Mapping[str, int]) -> dict[str, Any]:
    """The probes of a container."""
    found = {}
    for kind, field in _PROBES.items():
        check = getattr(checks, kind, None)
        if check is not None:
            found[field] = _probe(check, ports)
    return found


def _probe(check: Check, ports: Mapping[str, int]) -> dict[str, Any]:
    probe: dict[str, Any] = {
        **_way(check, ports),
        "periodSeconds": seconds(check.every),
        "timeoutSeconds": seconds(check.timeout),
        "failureThreshold": check.failures,
        "successThreshold": check.successes,
    }
    if check.delay:
        probe["initialDelaySeconds"] = seconds(check.delay)
    return probe


def _way(check: Check, ports: Mapping[str, int]) -> dict[str, Any]:
    if check.http is not None:
        request: dict[str, Any] = {
            "path": check.http.path,
            "port": _port(check.http.port, ports),
            "scheme": check.http.scheme.upper(),
        }
        if check.http.headers:
            request["httpHeaders"] = [
                {"name": name, "value": value} for name, value in check.http.headers.items()
            ]
        return {"httpGet": request}
    if check.tcp is not None:
        return {"tcpSocket": {"port": _port(check.tcp.port, ports)}}
    return {"exec": {"command": list(check.exec)}}


def _port(text: str, ports: Mapping[str, int]) -> int:
    return int(text) if text.isdigit() else ports[text]


def seconds(duration: float) -> int:
    """Whole seconds, one at least."""
    return max(1, ceil(duration))
