"""The API `external.metrics.k8s.io/v1beta1`, by which an HPA asks for the work of an image. Pure: no socket.

| path | answer |
| --- | --- |
| `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION` | what there is |
| `/apis/GROUP/VERSION/namespaces/NAMESPACE/METRIC?labelSelector=…` | the values whose labels fit |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

import msgspec

from jobman.engines.kubernetes.quantities import format_quantity
from jobman.tasks.label_selectors import WrongSelector, selects
from jobman.tasks.pods import BUSY, OUTSTANDING

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
METRICS = (OUTSTANDING, BUSY)
_ROOT = f"/apis/{GROUP}/{VERSION}"


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric was at a time, for something with labels."""

    metric: str
    labels: Mapping[str, str]
    value: float
    at: datetime


class Said(NamedTuple):
    """An answer: the status of HTTP and the JSON."""

    status: int
    body: dict[str, Any]


def answer(path: str, query: str, values: Iterable[Value], namespace: str) -> Said:
    """What is said to a question; values are known in one namespace only."""
    words = [unquote(word) for word in path.strip("/").split("/")]
    match words:
        case ["apis"]:
            return Said(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]})
        case ["apis", group] if group == GROUP:
            return Said(200, {"kind": "APIGroup", "apiVersion": "v1", **_group()})
        case ["apis", group, version] if (group, version) == (GROUP, VERSION):
            return Said(200, _resources(METRICS))
        case ["apis", group, version, "namespaces", place, metric] if (group, version) == (GROUP, VERSION):
            return _values(metric, query, [each for each in values if place == namespace])
    return problem(404, "NotFound", f"there is no {path}")


def problem(status: int, reason: str, message: str) -> Said:
    """Why there is no other answer."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return Said(status, {**body, "message": message, "reason": reason, "code": status})


def _group() -> dict[str, Any]:
    version = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
    return {"name": GROUP, "versions": [version], "preferredVersion": version}


def _resources(metrics: Sequence[str]) -> dict[str, Any]:
    one = {"singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [{"name": metric, **one} for metric in metrics],
    }


def _values(metric: str, query: str, values: Iterable[Value]) -> Said:
    if metric not in METRICS:
        known = ", ".join(METRICS)
        return problem(404, "NotFound", f"there is no metric {metric}; those there are: {known}")
    try:
        fits = selects(parse_qs(query).get("labelSelector", [""])[-1])
    except WrongSelector as error:
        return problem(400, "BadRequest", str(error))
    found = [_item(each) for each in values if each.metric == metric and fits(each.labels)]
    return Said(
        200,
        {
            "kind": "ExternalMetricValueList",
            "apiVersion": f"{GROUP}/{VERSION}",
            "metadata": {},
            "items": found,
        },
    )


def _item(value: Value) -> dict[str, Any]:
    # Thousandths are what an HPA counts in.
    exact = Fraction(round(value.value * 1000), 1000)
    return {
        "metricName": value.metric,
        "metricLabels": dict(value.labels),
        "timestamp": value.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "value": format_quantity(exact),
    }
