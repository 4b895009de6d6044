"""Commands: an argv, or a text split as a POSIX shell would split it. No shell is ever run."""

from __future__ import annotations

import re
import shlex
from typing import Any

from yaml.nodes import Node, ScalarNode, SequenceNode

from jobman.spec.kinds import Items, Kind, Schema, Text
from jobman.spec.reading import BAD, Reading
from jobman.spec.yaml import is_null

_SINGLE_QUOTED = re.compile(r"'[^']*'|\\.")
_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_VARIABLE = r"\$[A-Za-z_({0-9@#?!*$-]"
_IN_QUOTES = re.compile(rf"{_VARIABLE}|`")
_BARE = re.compile(
    rf"{_VARIABLE}|[|&;<>()`*?\n]|(?:^|(?<=\s))[~#]|\[[^\]\s]+\]|\{{[^}}\s]*(?:,|\.\.)[^}}\s]*\}}"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SIMPLE = re.compile(r"[\w./=:,@%+-]+(?: [\w./=:,@%+-]+)*", re.ASCII)
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash"}
_ARGUMENTS = Items(Text("an argument", empty=True), "a list of arguments", least=1)


class Command(Kind):
    """`["bash", "-c", "…"]` or `echo hello`; the value is a tuple of arguments."""

    noun = "a command"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, SequenceNode):
            return self._read_list(node, reading)
        if isinstance(node, ScalarNode) and not is_null(node):
            return self._read_text(node, reading)
        return self.refuse(node, reading)

    def _read_list(self, node: SequenceNode, reading: Reading) -> Any:
        argv = _ARGUMENTS.read(node, reading)
        if argv is BAD or len(argv) != len(node.value):
            return BAD
        program = argv[0]
        if not program.strip():
            reading.report("JS221", node.value[0])
            return BAD
        if " " in program.strip() and len(argv) == 1 and "{{" not in program:
            reading.report("JS222", node.value[0], program=program, argv=_as_list(program))
        _check_shell_script(argv, node, reading)
        return argv

    def _read_text(self, node: ScalarNode, reading: Reading) -> Any:
        text = reading.text(node)
        if "\0" in text:
            reading.report("JS202", node)
            return BAD
        try:
            argv = tuple(text.split(" ") if _SIMPLE.fullmatch(text) else shlex.split(text))
        except ValueError as error:
            reading.report("JS223", node, reason=str(error).lower())
            return BAD
        if not argv or not argv[0]:
            reading.report("JS221", node)
            return BAD
        if _ASSIGNMENT.match(argv[0]):
            name, _, value = argv[0].partition("=")
            reading.report("JS227", node, name=name, value=value)
        if not _SIMPLE.fullmatch(text) and (character := shell_character(text)):
            shown = f"`{character}`" if len(character) == 1 else character
            reading.report("JS224", node, character=shown, text=_shown(text))
        return argv

    def hint(self, _node: Node) -> str:
        return 'write a list such as `["echo", "hello"]`'

    def schema(self) -> Schema:
        item: Schema = {"type": ["string", "number", "boolean"]}
        program = {**item, "minLength": 1}
        many = {"type": "array", "prefixItems": [program], "items": item, "minItems": 1}
        return {"anyOf": [program, many]}


def shell_character(text: str) -> str | None:
    """The first thing in a command text that only a shell would understand."""
    outside_single = _SINGLE_QUOTED.sub(" ", text)
    for quoted in _DOUBLE_QUOTED.findall(outside_single):
        if match := _IN_QUOTES.search(quoted):
            return match[0].strip()[:1]
    match = _BARE.search(_DOUBLE_QUOTED.sub(" ", outside_single).strip())
    return None if match is None else match[0].strip()[:1] or "a line break"


def _check_shell_script(argv: tuple[str, ...], node: SequenceNode, reading: Reading) -> None:
    """`bash -c A B` runs A only; B becomes its $0, which nobody means when B is a whole command."""
    if argv[0].rsplit("/", 1)[-1] not in _SHELLS or "-c" not in argv[1:3]:
        return
    script = argv.index("-c") + 1
    if script >= len(argv):
        reading.report("JS226", node, shell=argv[0])
    elif len(argv) > script + 1 and " " in argv[script + 1].strip():
        reading.report("JS225", node.value[script + 1], shell=argv[0])


def _as_list(program: str) -> str:
    try:
        words = shlex.split(program)
    except ValueError:
        words = program.split()
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _shown(text: str) -> str:
    line = text.strip().split("\n")[0]
    return line.replace('"', '\\"') + (" …" if "\n" in text.strip() else "")
