"""A document drafted from a command: one task with its image and resources, as a person would write it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jobman.cli.state import ExitCode, say

SOURCE = "<command>"
"""The name that messages use for such a document."""
_SLOT = "{type: slot, count: 1, with: [{type: core, count: 1}]}"
_TEMPLATE = re.compile(r"\{\{(?= *([A-Za-z_][\w.]*) *\}\})")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*\Z")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_BRACE = "brace"


def draft(
    command: Sequence[str],
    *,
    name: str | None = None,
    image: str | None = None,
    flavor: str | None = None,
    default_flavor: bool = False,
    duration: str | None = None,
    queue: str | None = None,
    account: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> str:
    """The text of a document that runs a command.

    Without a flavor the settings' default one is used, or one core where there is none. `parameters` fill
    `{{name}}` in the command; what else looks like a parameter there is meant as it stands.
    """
    parameters = dict(parameters or {})
    words = [_literal(word, parameters) for word in command]
    name = name or name_of(command[0])
    resources = _scalar(flavor) if flavor else "" if default_flavor else _SLOT
    head = {"name": name, "queue": queue, "account": account}
    task = {
        "image": image and _scalar(image),
        "resources": resources,
        "attributes": duration and f"{{duration: {_scalar(duration)}}}",
        "command": f"[{', '.join(map(_quoted, words))}]",
    }
    return "\n".join(_lines(head, name, task, parameters))


def name_of(program: str) -> str:
    """A name for a job that runs a program."""
    base = program.rstrip("/").rpartition("/")[2]
    name = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "-" for one in base)
    return name.lstrip("._-")[:63] or "job"


def _lines(
    head: Mapping[str, str | None], name: str, task: Mapping[str, str | None], parameters: Mapping[str, str]
) -> Iterator[str]:
    """The lines of a document; keys without a value are left out."""
    yield "version: 1"
    yield from (f"{key}: {_scalar(value)}" for key, value in head.items() if value)
    if parameters:
        yield "parameters:"
        yield from (f"  {_scalar(key)}: {_quoted(value)}" for key, value in parameters.items())
    yield "tasks:"
    yield f"- name: {_scalar(name)}"
    yield from (f"  {key}: {value}" for key, value in task.items() if value)
    yield ""


def _literal(word: str, parameters: dict[str, str]) -> str:
    """A word in which only the given parameters are parameters; the language has no other way to say so."""

    def brace(match: re.Match[str]) -> str:
        if match[1] in parameters and match[1] != _BRACE:
            return match[0]
        parameters[_BRACE] = "{"
        return "{{" + _BRACE + "}}{"

    return _TEMPLATE.sub(brace, word) if "{{" in word else word


def _scalar(text: str) -> str:
    return text if _PLAIN.match(text) and text.lower() not in _RESERVED else _quoted(text)


def _quoted(text: str) -> str:
    """A text in double quotes; what YAML does not allow to stand for itself is escaped."""
    escaped = "".join(_ESCAPES.get(one) or (one if one.isprintable() else _escape(one)) for one in text)
    return f'"{escaped}"'


def _escape(one: str) -> str:
    number = ord(one)
    if 0xD800 <= number <= 0xDFFF:
        say("a word of the command is not UTF-8, and a document is", "pass such a name in a file instead")
        raise SystemExit(ExitCode.USAGE)
    return (
        f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 2**16 else f"\\U{number:08x}"
    )


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
