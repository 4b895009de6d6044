"""Checks: the probes that say whether a copy has started, is ready and is alive."""

from __future__ import annotations

import re
from typing import Annotated, Any

from yaml.nodes import Node, ScalarNode

from jobman.spec.commands import Command
from jobman.spec.kinds import Choice, Duration, Forms, Kind, Names, Schema, Text, Whole
from jobman.spec.names import FREE, WORD
from jobman.spec.networks import PORT_NAME, PORT_NUMBER
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record, has_key


class _PortReference(Kind):
    """A port by number, or by its name in `ports`."""

    noun = "a port number or the name of a port"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode) and re.fullmatch(r"\d+", reading.text(node)):
            number = PORT_NUMBER.read(node, reading)
            return BAD if number is BAD else str(number)
        return PORT_NAME.read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [PORT_NUMBER.schema(), PORT_NAME.schema()]}


class HttpCheck(Record, frozen=True, kw_only=True):
    noun = "`http`"
    port: Annotated[str, Key(_PortReference(), "port number or name", required=True)]
    path: Annotated[str, Key(Text("a path", r"/\S*", "it starts with `/`"), "path of the request")] = "/"
    scheme: Annotated[str, Key(Choice(("http", "https"), "scheme"), "http or https")] = "http"
    headers: Annotated[dict[str, str], Key(Names(WORD, FREE), "request headers")] = {}


class TcpCheck(Record, frozen=True, kw_only=True):
    noun = "`tcp`"
    port: Annotated[str, Key(_PortReference(), "port number or name", required=True)]


class _TcpPort(_PortReference):
    def read(self, node: Node, reading: Reading) -> Any:
        port = super().read(node, reading)
        return BAD if port is BAD else TcpCheck(port=port)


class Check(Record, frozen=True, kw_only=True):
    """One probe: exactly one of exec, http and tcp."""

    noun = "a check"
    habits = {
        "command": "exec",
        "interval": "every",
        "period": "every",
        "retries": "failures",
        "start_period": "delay",
        "http_get": "http",
        "initialdelayseconds": "delay",
        "periodseconds": "every",
        "timeoutseconds": "timeout",
        "failurethreshold": "failures",
    }
    exec: Annotated[tuple[str, ...], Key(Command(), "a command that exits 0")] = ()
    http: Annotated[HttpCheck | None, Key(Of(HttpCheck), "a request answered with 200 to 399")] = None
    tcp: Annotated[
        TcpCheck | None,
        Key(Forms("a port", scalar=_TcpPort(), mapping=Of(TcpCheck)), "a port that accepts connections"),
    ] = None
    delay: Annotated[float, Key(Duration(zero=True), "wait before the first try")] = 0.0
    every: Annotated[float, Key(Duration(), "time between tries")] = 10.0
    timeout: Annotated[float, Key(Duration(), "time for one try")] = 1.0
    failures: Annotated[int, Key(Whole(1, 10_000), "tries in a row that must fail")] = 3
    successes: Annotated[int, Key(Whole(1, 10_000), "tries in a row that must succeed")] = 1


def _one_probe(check: Check, node: Node, reading: Reading) -> Any:
    given = [name for name in ("exec", "http", "tcp") if has_key(node, name)]
    if len(given) != 1:
        reading.report(
            "JS703", node, found=" and ".join(given) or "none of them", do="keep" if given else "add"
        )
        return BAD
    return check


CHECK = Of(Check, _one_probe)


class Checks(Record, frozen=True, kw_only=True):
    noun = "`checks`"
    habits = {"readiness": "ready", "liveness": "alive", "startup": "started", "live": "alive"}
    ready: Annotated[Check | None, Key(CHECK, "when the copy can serve others")] = None
    alive: Annotated[Check | None, Key(CHECK, "a copy that fails it is restarted or failed")] = None
    started: Annotated[Check | None, Key(CHECK, "holds the other checks back until it succeeds")] = None
