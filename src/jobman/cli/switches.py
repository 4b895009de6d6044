"""Switching queues and nodes: the states of several are changed, and told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from jobman.cli.state import State, emit

if TYPE_CHECKING:
    import typer

    from jobman.client import Client


class Switched(Protocol):
    """A queue or a node in its new state."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...


def switch(
    context: typer.Context,
    names: Sequence[str],
    output: str | None,
    change: Callable[[Client, str], Switched],
) -> None:
    """Change each of those named, and print the states they are in."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    found = []
    with Calling(form) as client:
        for name in names:
            found.append(change(client, name))
            if form == "table":  # at once: what is done is told although the next one may be refused
                sys.stdout.write(f"{found[-1].name}  {found[-1].state}\n")
    if form != "table":
        emit(found[0] if len(found) == 1 else found, form)
