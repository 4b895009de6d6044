"""Queues as the settings write them: nodes and shares, policy and depth, limits in words of people."""

from __future__ import annotations

from re import fullmatch
from typing import Annotated, Any, Literal

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec import quantities
from jobman.spec.kinds import Choice, Duration, Items, Kind, Number, Schema, Whole
from jobman.spec.names import FREE, NAME, TYPE
from jobman.spec.node_names import NODE_SET
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of, Record
from jobman.spec.resources import PLURALS
from jobman.spec.shapes import SIZED_TYPES
from jobman.spec.yaml import is_null

INTERACTIVE = "interactive"
MOST = 10**9
_OF_BATCH = ("depth", "order", "weights")
"""What means nothing where nobody passes anybody."""


class Share(Kind):
    """A part of the whole: `0.3` or `30%`."""

    noun = "a part of the whole such as `0.3` or `30%`"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node).strip()
        match = fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,15})?)\s*(%?)", text)
        part = 0.0 if match is None else float(match[1]) / (100 if match[2] else 1)
        if not 0 < part <= 1:
            reading.report("JS904", node, text=text[:60])
            return BAD
        return part

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {"type": "string"}]}


class Depth(Kind):
    """`all`, or a number; written values are kept, so that `all` stays `all`."""

    noun = "a depth"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        value = reading.scalar(node)
        if value == "all":
            return value
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
            reading.report("JS905", node, text=node.value[:60])
            return BAD
        return value

    def schema(self) -> Schema:
        return {"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 0}]}


class Resources(Kind):
    """Amounts by kind: `{cores: 64, memory: 512Gi, nodes: 4}`; which kinds there are is known later."""

    noun = "a mapping of amounts"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        amounts: dict[str, int] = {}
        for key, value in node.value:
            name = TYPE.read(key, reading)
            amount = BAD if name is BAD else self._amount(PLURALS.get(name, name), value, reading)
            if amount is not BAD:
                amounts[PLURALS.get(name, name)] = amount
        return amounts

    def _amount(self, kind: str, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node).strip()
        sized = kind in SIZED_TYPES
        amount = quantities.parse_size(text) if sized else _whole(text)
        if amount is None:
            hint = quantities.size_hint(text) if sized else "write a whole number, from 0"
            reading.report("JS908", node, text=text[:60], name=kind, hint=hint)
            return BAD
        return amount

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": {"type": ["integer", "string"]}}


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) <= MOST else None


class Limits(Record, frozen=True, kw_only=True):
    """The most there may be at one time."""

    noun = "`limits`"
    habits = {"running": "jobs", "queued": "waiting", "duration": "longest", "amounts": "resources"}
    jobs: Annotated[int | None, Key(Whole(0, MOST), "running jobs")] = None
    waiting: Annotated[int | None, Key(Whole(0, MOST), "jobs that wait; more are refused")] = None
    longest: Annotated[float | None, Key(Duration(), "the longest time a job may ask for")] = None
    resources: Annotated[dict[str, int], Key(Resources(), "resources held at one time")] = {}
    budget: Annotated[float | None, Key(Number(0, 1e15), "charged units that may be used in all")] = None


LIMITS = Of(Limits)
_WEIGHT = Number(0, 1e12, "a weight")


class Weights(Record, frozen=True, kw_only=True):
    """What counts how much in the priority of a batch queue."""

    noun = "`weights`"
    habits = {"fairshare": "fair_share", "max_age": "longest_age"}
    priority: Annotated[float | None, Key(_WEIGHT, "the named class of the document")] = None
    age: Annotated[float | None, Key(_WEIGHT, "how long it waits")] = None
    size: Annotated[float | None, Key(_WEIGHT, "how much it asks for")] = None
    fair_share: Annotated[float | None, Key(_WEIGHT, "how little its account has used")] = None
    queue: Annotated[float | None, Key(_WEIGHT, "the factor of the queue")] = None
    longest_age: Annotated[float | None, Key(Duration(), "waiting after which age counts fully")] = None


class Queue(Element, frozen=True, kw_only=True):
    noun = "a queue"
    habits = {"backfill": "depth", "partition": "nodes", "priority": "factor"}
    name: Annotated[str, Key(NAME, "its name", required=True)]
    description: Annotated[str | None, Key(FREE, "what it is for")] = None
    policy: Annotated[
        Literal["batch", "interactive"] | None,
        Key(
            Choice(("batch", INTERACTIVE), "policy"),
            "by priority with backfill, or strictly in order; the queue `interactive` is interactive",
        ),
    ] = None
    depth: Annotated[
        int | str | None, Key(Depth(), "how many of those who wait have a reservation: all, 0, 1, K")
    ] = None
    order: Annotated[
        Literal["priority", "shortest-first"] | None,
        Key(
            Choice(
                ("priority", "shortest-first"),
                "order",
                {"sjbf": "shortest-first", "sjf": "shortest-first", "shortest": "shortest-first"},
            ),
            "in which order those who may pass are looked at",
        ),
    ] = None
    nodes: Annotated[tuple[str, ...], Key(NODE_SET, "its own nodes, such as n[1-4]; all by default")] = ()
    share: Annotated[
        float | None, Key(Share(), "the part of its nodes' resources it may use at one time")
    ] = None
    borrow: Annotated[
        tuple[str, ...],
        Key(
            Items(NAME, "a list of queues", unique=True, single=True),
            "queues whose nodes it may use up to their next promise",
        ),
    ] = ()
    factor: Annotated[float | None, Key(Number(0, 1, "a factor"), "its own part in the priority")] = None
    weights: Annotated[Weights | None, Key(Of(Weights), "what counts how much in the priority")] = None
    limits: Annotated[Limits | None, Key(LIMITS, "of the queue as a whole")] = None
    each_user: Annotated[Limits | None, Key(LIMITS, "of each user in it")] = None
    each_account: Annotated[Limits | None, Key(LIMITS, "of each account in it")] = None
    state: Annotated[
        Literal["open", "draining", "closed"] | None,
        Key(
            Choice(
                ("open", "draining", "closed"),
                "state of a queue",
                {"drain": "draining", "drained": "draining", "close": "closed", "down": "closed"},
            ),
            "whether it takes jobs in and starts them; an administrator may change it",
        ),
    ] = None

    @property
    def is_interactive(self) -> bool:
        return (self.policy or self.name) == INTERACTIVE


def _sound(queue: Queue, node: Node, reading: Reading) -> Any:
    if queue.is_interactive:
        for key in _OF_BATCH:
            if key in queue.given:
                reading.report("JS903", child(node, key), key=key)
    return queue


QUEUES = Items(Of(Queue, _sound), "a list of queues")
