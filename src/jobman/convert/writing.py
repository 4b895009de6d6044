"""A document as YAML that a person would write: scripts as blocks, shapes in a line, comments behind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_/-]*(?:[.:][A-Za-z0-9_/-]+)*\Z")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_NUMBER = re.compile(r"[0-9][0-9]*(?:Mi|Gi|Ti|[dhms])(?:[0-9]+[hms])*\Z")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WIDEST = 100
_LONGEST_COMMENT = 60
_FLOWING = ("resources", "start", "requires", "signal", "annotations", "with")
"""Keys whose value stands in one line where there is room."""


def write(document: Mapping[str, Any], comments: Mapping[Path, str]) -> str:
    """The text of a document; a comment stands behind the line of its key."""
    return "\n".join([*_mapping(document, (), comments), ""])


def _mapping(value: Mapping[str, Any], path: Path, comments: Mapping[Path, str]) -> Iterator[str]:
    for key, inner in value.items():
        here = (*path, key)
        yield from _entry(f"{_scalar(key)}:", inner, here, comments)


def _entry(head: str, value: Any, path: Path, comments: Mapping[Path, str]) -> Iterator[str]:
    aside = f"  # {_comment(comments[path])}" if path in comments else ""
    if isinstance(value, str) and (block := _block(value)):
        yield f"{head} {block[0]}{aside}"
        yield from block[1:]
    elif not isinstance(value, dict | list) or not value:
        yield f"{head} {_flow(value)}{aside}"
    elif path[-1] in _FLOWING and len(flow := _flow(value)) <= _WIDEST:
        yield f"{head} {flow}{aside}"
    elif isinstance(value, dict):
        yield f"{head}{aside}"
        yield from (f"  {line}" if line else "" for line in _mapping(value, path, comments))
    else:
        yield f"{head}{aside}"
        for number, inner in enumerate(value):
            yield from _item(inner, (*path, number), comments)


def _comment(text: str) -> str:
    """A comment that stays in its line."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    return plain if len(plain) <= _LONGEST_COMMENT else f"{plain[: _LONGEST_COMMENT - 1]}…"


def _item(value: Any, path: Path, comments: Mapping[Path, str]) -> Iterator[str]:
    if isinstance(value, list):
        yield f"- {_flow(value)}"
        return
    if not isinstance(value, dict) or not value:
        yield from _entry("-", value, path, comments)
        return
    first, *rest = _mapping(value, path, comments)
    yield f"- {first}"
    yield from (f"  {line}" if line else "" for line in rest)


def _block(text: str) -> list[str] | None:
    """A text of several lines as it stands; None for one that YAML would not give back."""
    if "\n" not in text or text[0] in " \t\n" or any(_is_odd(one) for one in text):
        return None
    body = text.rstrip("\n")
    end = text[len(body) :]
    sign = "|-" if not end else "|" if end == "\n" else "|+"
    lines = [*body.split("\n"), *[""] * (len(end) - 1)]
    return [sign, *(f"  {line}" if line else "" for line in lines)]


def _is_odd(one: str) -> bool:
    return one not in "\n\t" and not one.isprintable()


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else _scalar(str(value))


def _scalar(text: str) -> str:
    if _NUMBER.match(text) or (_PLAIN.match(text) and text.lower() not in _RESERVED):
        return text
    return (
        '"' + "".join(_ESCAPES.get(one) or (one if one.isprintable() else _escape(one)) for one in text) + '"'
    )


def _escape(one: str) -> str:
    number = ord(one)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 2**16 else f"\\U{number:08x}"
