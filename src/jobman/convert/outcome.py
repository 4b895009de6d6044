"""What a conversion gives: a document with its comments, and everything that is to be told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobman.convert.writing import Path, write
from jobman.spec.problems import Problem

_TEMPLATE = re.compile(r"\{\{(?= *[A-Za-z_][\w.]* *\}\})")
_BRACE = "brace"
_NAME = re.compile(r"[^A-Za-z0-9._-]")


class Converted(NamedTuple):
    """A document as data and as text; there is none where there were errors."""

    document: dict[str, Any] | None
    problems: list[Problem]
    comments: Mapping[Path, str] = {}
    asked: Mapping[str, str | None] = {}
    """Options that are of the original command itself, such as `wait`."""

    @property
    def ok(self) -> bool:
        return self.document is not None

    def text(self) -> str:
        """The document in YAML, with a comment where a line came from."""
        return "" if self.document is None else write(self.document, self.comments)


def literal(document: dict[str, Any]) -> dict[str, Any]:
    """The same document with every `{{word}}` meant as it stands: the language has no other way to say so."""
    found = _with_braces(document)
    if found == document:
        return document
    head = {"version": found.pop("version"), "parameters": {_BRACE: "{"}}
    return {**head, **found}


def _with_braces(value: Any) -> Any:
    if isinstance(value, str):
        return _TEMPLATE.sub("{{" + _BRACE + "}}{", value)
    if isinstance(value, dict):
        return {key: _with_braces(inner) for key, inner in value.items()}
    return [_with_braces(inner) for inner in value] if isinstance(value, list) else value


def as_name(text: str) -> str:
    """The nearest name that a JobSpec takes."""
    return _NAME.sub("-", text).lstrip("._-")[:63] or "job"


def is_name(text: str) -> bool:
    return bool(text) and as_name(text) == text
