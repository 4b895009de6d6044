"""The turns of a copy's life: commands before, after and at its stop, and a warning signal."""

from __future__ import annotations

import signal
from typing import Annotated, Any

from yaml.nodes import Node, ScalarNode

from jobman.spec.commands import Command
from jobman.spec.kinds import TEMPLATE_SCHEMA, Choice, Duration, Forms, Schema
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record
from jobman.spec.suggest import closest

SIGNALS = tuple(sorted(s.name.removeprefix("SIG") for s in signal.Signals if not s.name.startswith("SIGRT")))


class Hooks(Record, frozen=True, kw_only=True):
    """Commands at the turns of a life."""

    noun = "`hooks`"
    habits = {"prolog": "before", "epilog": "after", "pre": "before", "post": "after", "pre_stop": "on_stop"}
    before: Annotated[
        tuple[str, ...], Key(Command(), "runs before the command; its failure fails the copy")
    ] = ()
    after: Annotated[tuple[str, ...], Key(Command(), "runs after the command, whatever its outcome")] = ()
    on_stop: Annotated[tuple[str, ...], Key(Command(), "runs first when the copy is asked to stop")] = ()


class SignalName(Choice):
    """A signal, with or without its SIG."""

    def __init__(self) -> None:
        super().__init__(SIGNALS, "signal")

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode):
            name = reading.text(node).upper().removeprefix("SIG")
            if name in SIGNALS:
                return name
            if meant := closest(name, SIGNALS):
                reading.report(
                    "JS212", node, text=node.value, noun=self.noun, hint=f"did you mean `{meant}`?"
                )
                return BAD
        return super().read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": [*SIGNALS, *(f"SIG{name}" for name in SIGNALS)]}, TEMPLATE_SCHEMA]}


class Signal(Record, frozen=True, kw_only=True):
    """A warning before the time limit."""

    noun = "`signal`"
    name: Annotated[str, Key(SignalName(), "the signal to send", required=True)]
    before: Annotated[float, Key(Duration(), "how long before the limit")] = 60.0


class _SignalOnly(SignalName):
    def read(self, node: Node, reading: Reading) -> Any:
        name = super().read(node, reading)
        return BAD if name is BAD else Signal(name=name)


SIGNAL = Forms("a signal", scalar=_SignalOnly(), mapping=Of(Signal))
