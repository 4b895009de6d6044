"""The JSON schema (draft 2020-12) of the language, made from the same declarations the reader uses."""

from __future__ import annotations

from typing import Any

from jobman.spec.kinds import Forms, Items, Kind, Names, Schema
from jobman.spec.model import Document
from jobman.spec.records import Of, Record, keys_of, record_schema
from jobman.spec.resources import Shape
from jobman.spec.steps import STEP_KINDS, Step

ID = "https://jobman.io/schema/jobspec-1.json"
_REQUIRES: Schema = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": ["string", "number", "boolean"]}, {"$ref": "#/$defs/Requires"}],
    },
}


def json_schema() -> Schema:
    """The schema of one document."""
    definitions: dict[str, Schema] = {"Requires": _REQUIRES}
    for cls in record_classes(Document):
        definitions[cls.__name__] = record_schema(cls)
    _say_more(definitions)
    document = definitions.pop("Document")
    document["properties"]["version"] = {"const": 1, "description": "version of the language"}
    document["anyOf"] = [{"required": ["tasks"]}, {"required": ["groups"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "JobSpec, version 1",
        **document,
        "$defs": dict(sorted(definitions.items())),
    }


def record_classes(root: type[Record]) -> list[type[Record]]:
    """A record class and all that its keys lead to."""
    found: dict[type[Record], None] = {}
    waiting: list[type[Record]] = [root]
    while waiting:
        cls = waiting.pop()
        if cls in found:
            continue
        found[cls] = None
        for _, key in keys_of(cls).values():
            waiting.extend(_classes_of(key.kind))
    return list(found)


def _classes_of(kind: Kind) -> list[type[Record]]:
    if isinstance(kind, Of):
        return [kind.cls]
    if isinstance(kind, Items):
        return _classes_of(kind.item)
    if isinstance(kind, Names):
        return _classes_of(kind.value)
    if isinstance(kind, Forms):
        return [cls for form in kind.forms for cls in _classes_of(form)]
    if isinstance(kind, Step):
        return [step.cls for step in STEP_KINDS.values()]
    return [Shape] if "Shape" in str(kind.schema()) else []


def _say_more(definitions: dict[str, Schema]) -> None:
    """What the declarations of single keys cannot say."""
    for name in STEP_KINDS:
        step: Any = definitions[name.capitalize()]
        step["properties"] = {"name": {"const": name}, **step["properties"]}
        step["required"] = sorted([*step.get("required", []), "name"])
    definitions["Task"]["anyOf"] = [{"required": [key]} for key in ("command", "group", "steps")]
    definitions["Task"]["not"] = {
        "anyOf": [{"required": ["command", "group"]}, {"required": ["replicas", "matrix"]}],
    }
    definitions["Check"]["oneOf"] = [{"required": [key]} for key in ("exec", "http", "tcp")]
    definitions["EnvFrom"]["oneOf"] = [{"required": [key]} for key in ("secret", "config", "file")]
    definitions["FailureRule"]["anyOf"] = [
        {"required": [key]} for key in ("exit_codes", "reasons", "replicas")
    ]
    definitions["Success"]["anyOf"] = [{"required": [key]} for key in ("replicas", "count")]
