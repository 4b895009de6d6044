"""Placement: which nodes the copies may go to, how they lie to each other, what runs them there."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import Node

from jobman.spec.kinds import Choice, Flag, Forms, Items, Names, Text, Whole
from jobman.spec.names import LABEL_KEY, LABEL_VALUE, NAME, WORD
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record


class Relation(Record, frozen=True, kw_only=True):
    """Copies that belong together or apart."""

    noun = "a placement relation"
    tasks: Annotated[
        tuple[str, ...], Key(Items(NAME, single=True, unique=True), "tasks; without it the task's own copies")
    ] = ()
    by: Annotated[str, Key(WORD, "topology level: `node`, or a site's own such as `rack`")] = "node"
    required: Annotated[bool, Key(Flag(), "false: a preference only")] = True


class _RelationTo(Items):
    """`near: [a, b]` or `near: a`."""

    def __init__(self) -> None:
        super().__init__(NAME, "a list of task names", least=1, unique=True, single=True)

    def read(self, node: Node, reading: Reading) -> Any:
        names = super().read(node, reading)
        return BAD if names is BAD else Relation(tasks=names)


RELATION = Forms(
    "a task's name or a relation", scalar=_RelationTo(), items=_RelationTo(), mapping=Of(Relation)
)


class Spread(Record, frozen=True, kw_only=True):
    noun = "`spread`"
    by: Annotated[str, Key(WORD, "topology level to spread over", required=True)]
    skew: Annotated[int, Key(Whole(1, 10_000), "largest difference in copies")] = 1
    required: Annotated[bool, Key(Flag(), "false: a preference only")] = True


class _SpreadBy(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        by = super().read(node, reading)
        return BAD if by is BAD else Spread(by=by)


class Placement(Record, frozen=True, kw_only=True):
    noun = "`placement`"
    habits = {"node_selector": "labels", "affinity": "near", "anti_affinity": "apart", "selector": "labels"}
    labels: Annotated[dict[str, str], Key(Names(LABEL_KEY, LABEL_VALUE), "labels the nodes must carry")] = {}
    near: Annotated[Relation | None, Key(RELATION, "close to these tasks' copies")] = None
    apart: Annotated[Relation | None, Key(RELATION, "away from these tasks' copies")] = None
    spread: Annotated[
        Spread | None,
        Key(
            Forms("a topology level", scalar=_SpreadBy(), mapping=Of(Spread)), "evenly over a topology level"
        ),
    ] = None
    exclusive: Annotated[bool, Key(Flag(), "nothing else on its nodes: each replica has its own")] = False


class Runtime(Record, frozen=True, kw_only=True, rename={"class_": "class"}):
    noun = "`runtime`"
    class_: Annotated[str | None, Key(NAME, "runtime class", name="class")] = None
    os: Annotated[str | None, Key(Choice(("linux", "windows"), "operating system"), "operating system")] = (
        None
    )


class _RuntimeClass(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = NAME.read(node, reading)
        return BAD if name is BAD else Runtime(class_=name)


RUNTIME = Forms("a runtime class", scalar=_RuntimeClass(), mapping=Of(Runtime))
