"""Steps: what is staged and written before a command runs."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.kinds import Kind, Schema, Text
from jobman.spec.names import FREE, PATH
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Key, Of, Record
from jobman.spec.suggest import closest, did_you_mean, listing


class Stage(Record, frozen=True, kw_only=True, tag="stage", tag_field="name"):
    """Make a file or folder present on every node of the task."""

    noun = "a stage step"
    habits = {"source": "path", "from": "path", "target": "to", "destination": "to"}
    path: Annotated[str, Key(PATH, "what to bring", required=True)]
    to: Annotated[str | None, Key(PATH, "where to; without it the same path")] = None


_MODE = Text("an octal mode", r"(?:0o?)?[0-7]{3,4}", "three or four octal digits such as `0755`")


class Write(Record, frozen=True, kw_only=True, tag="write", tag_field="name"):
    """Write a file without a shell."""

    noun = "a write step"
    habits = {"text": "content", "to": "path", "contents": "content", "file": "path"}
    path: Annotated[str, Key(PATH, "where to", required=True)]
    content: Annotated[str, Key(FREE, "what to write", required=True)]
    mode: Annotated[str, Key(_MODE, "mode of the file, octal")] = "0644"


def _octal(step: Write, _node: Node, _reading: Reading) -> Any:
    digits = step.mode.lower().removeprefix("0o").lstrip("0") or "0"
    return Write(path=step.path, content=step.content, mode=f"0{digits:0>3}")


STEP_KINDS: dict[str, Of] = {"stage": Of(Stage), "write": Of(Write, _octal)}
_STEP_HABITS = {"copy": "stage", "files": "write", "file": "write", "script": "write", "archive": "stage"}


_STEP_NAME = Text("the kind of a step")


class Step(Kind):
    """A step: its `name` says its kind."""

    noun = "a step such as `{name: stage, path: data}`"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        name = child(node, "name")
        if name is node or name is None:
            reading.report("JS604", node, known=listing(STEP_KINDS))
            return BAD
        if not isinstance(name, ScalarNode):
            return _STEP_NAME.read(name, reading)
        kind = STEP_KINDS.get(str(name.value))
        if kind is None:
            meant = closest(str(name.value), STEP_KINDS, _STEP_HABITS)
            hint = did_you_mean(meant, f"known steps are {listing(STEP_KINDS)}")
            reading.report("JS603", name, name=name.value, hint=hint)
            return BAD
        pairs = [(key, value) for key, value in node.value if key.value != "name"]
        return kind.read(
            MappingNode(node.tag, pairs, node.start_mark, node.end_mark, node.flow_style), reading
        )

    def schema(self) -> Schema:
        return {"anyOf": [{"$ref": f"#/$defs/{kind.cls.__name__}"} for kind in STEP_KINDS.values()]}
