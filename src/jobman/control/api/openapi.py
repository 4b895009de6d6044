"""The description of the API in OpenAPI 3.1, made of the declarations of its endpoints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from jobman.control.answers import Failure
from jobman.control.api.endpoint import BODY_LIMIT, JSON, Endpoint
from jobman.control.refusals import CODES
from jobman.version import __version__

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_WORDS = {
    200: "Done.",
    201: "Made.",
    400: "The request is not as it should be.",
    401: "It is not known who asks.",
    403: "The caller may not do this.",
    404: "There is no such thing, or it belongs to somebody else.",
    405: "This method means nothing here.",
    408: "The body did not come in time.",
    409: "Not in this state, or not as it is meant.",
    410: "It was there once, and was removed.",
    413: f"The body is larger than {BODY_LIMIT >> 20} MiB.",
    415: "The body is not JSON.",
    422: "The request is well formed, but what it asks for cannot be done.",
    500: "A fault of the service.",
    502: "The cluster behind the service does not answer, or not as it should.",
    503: "Not now: the service is stopping, its store cannot be written, or another server leads.",
}
_PARTS = {
    "ref": "A job: its id, the start of its id, or its name (the newest of that name).",
    "gate": "The name of a gate.",
    "name": "The name of a token.",
    "entry": "The name of a window of maintenance or of a reservation.",
    "queue": "The name of a queue.",
    "node": "The name of a node.",
    "session": "The id of a session.",
}


def document(endpoints: Iterable[Endpoint]) -> Schema:
    """The whole description."""
    endpoints = list(endpoints)
    types = [*dict.fromkeys(kind for endpoint in endpoints for kind in _types(endpoint)), Failure]
    references, components = msgspec.json.schema_components(types, ref_template=_REF)
    known = dict(zip(types, references, strict=True))
    paths: dict[str, Schema] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "jobman", "version": __version__, "description": _INTRODUCTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_INTRODUCTION = (
    "Jobs of one service. On the Unix socket of a user's own service the peer is known by its credentials; "
    "a shared service asks for a bearer token. Every answer carries X-Request-Id. Lists are given in pages: "
    "ask again with the cursor of a page for the next."
)


def _types(endpoint: Endpoint) -> Iterator[Any]:
    if endpoint.body is not None:
        yield endpoint.body
    for answer in endpoint.answers.values():
        yield from (kind for kind in _kinds(answer) if not isinstance(kind, str))


def _kinds(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _operation(endpoint: Endpoint, known: dict[Any, Schema]) -> Schema:
    words = inspect.getdoc(endpoint.handler) or ""
    operation: Schema = {
        "tags": [endpoint.tag],
        "operationId": endpoint.handler.__name__,
        "summary": words.partition(". ")[0].rstrip("."),
        "description": words,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint), *_headers(endpoint)],
        "responses": _responses(endpoint, known),
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": known[endpoint.body]}}}
    if not endpoint.public:
        operation["security"] = [{"token": []}]
    return operation


def _path_parameters(endpoint: Endpoint) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARTS[name],
            "schema": {"type": "string", "minLength": 1, "pattern": r"^[^/\u0000]+$"},
        }
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[Schema]:
    if endpoint.query is None:
        return []
    _, components = msgspec.json.schema_components([endpoint.query], ref_template=_REF)
    described = components[endpoint.query.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in described["required"],
            "schema": (sendable := _without_null(schema)),
            "description": sendable.pop("description", ""),
        }
        for name, schema in described["properties"].items()
    ]


def _without_null(schema: Schema) -> Schema:
    """What can be sent of it: a parameter is left out, it is never null."""
    if "anyOf" not in schema:
        return dict(schema)
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    return dict(kinds[0])


def _headers(endpoint: Endpoint) -> list[Schema]:
    return [
        {"name": name, "in": "header", "description": words, "schema": {"type": "string"}}
        for name, words in endpoint.headers.items()
    ]


def _responses(endpoint: Endpoint, known: dict[Any, Schema]) -> dict[str, Schema]:
    responses = {
        str(status): {
            "description": _WORDS[status],
            "headers": _REQUEST_ID,
            "content": dict(_content(kind, known) for kind in _kinds(answer)),
        }
        for status, answer in endpoint.answers.items()
    }
    codes: dict[int, list[str]] = {}
    for code in dict.fromkeys([*_usual_refusals(endpoint), *endpoint.refuses]):
        codes.setdefault(CODES[code][0], []).append(code)
    for status, names in sorted(codes.items()):
        responses[str(status)] = {
            "description": f"{_WORDS[status]} Codes: {', '.join(names)}.",
            "headers": _REQUEST_ID,
            "content": {JSON: {"schema": known[Failure]}},
        }
    return responses


_REQUEST_ID = {
    "X-Request-Id": {"description": "Also in the log of the service.", "schema": {"type": "string"}}
}


def _content(kind: Any, known: dict[Any, Schema]) -> tuple[str, Schema]:
    if isinstance(kind, str):
        return kind, {"schema": {"type": "string"}}
    return JSON, {"schema": known[kind]}


def _usual_refusals(endpoint: Endpoint) -> list[str]:
    """What any request of its kind may meet."""
    found = ["bad-request", "stopping", "standby", "internal"]
    if not endpoint.public:
        found += ["unauthenticated", "forbidden"]
    if endpoint.body is not None:
        found += ["too-slow", "too-large", "not-json"]
    return found
