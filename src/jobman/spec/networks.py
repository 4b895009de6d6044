"""Ports the copies listen on, and the networks that jobs share or keep apart."""

from __future__ import annotations

import re
from typing import Annotated, Any

from yaml.nodes import Node, ScalarNode

from jobman.spec.kinds import Choice, Flag, Forms, Items, Kind, Schema, Text, Whole
from jobman.spec.names import JOB_REFERENCE
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record, has_key

PORT_NUMBER = Whole(1, 65535, "a port number")
PORT_NAME = Text(
    "the name of a port", r"[A-Za-z][A-Za-z0-9_-]{0,14}", "at most 15 letters, digits, `-` and `_`"
)


class Port(Record, frozen=True, kw_only=True):
    """A port the copies listen on; without a number a free one is found."""

    noun = "a port"
    habits = {"container_port": "port", "number": "port", "containerport": "port"}
    name: Annotated[str | None, Key(PORT_NAME, "its name, for `PORT_NAME` variables")] = None
    port: Annotated[int | None, Key(PORT_NUMBER, "its number; without it a free one is found")] = None
    protocol: Annotated[str, Key(Choice(("tcp", "udp", "sctp"), "protocol", {"http": "tcp"}), "protocol")] = (
        "tcp"
    )
    expose: Annotated[bool, Key(Flag(), "reachable from outside the job")] = False


class _PortForm(Kind):
    noun = "a port number or name"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode) and re.fullmatch(r"\d+", reading.text(node)):
            number = PORT_NUMBER.read(node, reading)
            return BAD if number is BAD else Port(port=number)
        name = PORT_NAME.read(node, reading)
        return BAD if name is BAD else Port(name=name)

    def schema(self) -> Schema:
        return {"anyOf": [PORT_NUMBER.schema(), PORT_NAME.schema()]}


def _named_or_numbered(port: Port, node: Node, reading: Reading) -> Any:
    if not has_key(node, "name", "port"):
        reading.report("JS707", node)
        return BAD
    return port


PORTS = Items(
    Forms("a port", scalar=_PortForm(), mapping=Of(Port, _named_or_numbered)),
    "a list of ports",
    single=True,
)


class Network(Record, frozen=True, kw_only=True):
    noun = "`network`"
    connect: Annotated[
        tuple[str, ...],
        Key(Items(JOB_REFERENCE, single=True, unique=True), "jobs to overlap with and to reach"),
    ] = ()
    isolated: Annotated[bool, Key(Flag(), "no traffic from or to other jobs")] = False
