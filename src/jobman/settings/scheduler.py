"""The scheduler as the settings write it: times and what is kept."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import Node, ScalarNode

from jobman.spec.kinds import Duration, Kind, Schema, Size
from jobman.spec.names import NAME
from jobman.spec.reading import Reading
from jobman.spec.records import Element, Key, Of, Record

UNLIMITED = "none"
FOREVER = "forever"


class OrWord(Kind):
    """A value of another kind, or one word that is kept as it is."""

    def __init__(self, kind: Kind, word: str) -> None:
        self.kind = kind
        self.word = word
        self.noun = f"{kind.noun} or `{word}`"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode) and node.value == self.word:
            return self.word
        return self.kind.read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [{"const": self.word}, self.kind.schema()]}


class Logs(Record, frozen=True, kw_only=True):
    """How long output is kept after a job is over."""

    noun = "`logs`"
    habits = {"retention": "keep", "size": "keep_size"}
    keep: Annotated[float | str | None, Key(OrWord(Duration(), FOREVER), "how long, or forever")] = None
    keep_size: Annotated[int | None, Key(Size(), "the most there may be of all output")] = None


class Scheduler(Element, frozen=True, kw_only=True):
    noun = "the `scheduler`"
    habits = {"halflife": "half_life", "default_limit": "default_duration", "queue": "default_queue"}
    half_life: Annotated[
        float | None, Key(Duration(), "after which past usage counts half in fair share")
    ] = None
    default_duration: Annotated[
        float | str | None,
        Key(OrWord(Duration(), UNLIMITED), "the limit of jobs that give none; none: they have none"),
    ] = None
    default_queue: Annotated[str | None, Key(NAME, "of jobs that name no queue")] = None
    stop_margin: Annotated[
        float | None, Key(Duration(zero=True), "what is planned for the end of a job beside its grace")
    ] = None
    logs: Annotated[Logs | None, Key(Of(Logs), "how long output is kept")] = None


SCHEDULER = Of(Scheduler)
