"""`jobman task show`: a single task, where it is and what it was given."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobman.cli.state import emit
from jobman.cli.tasks.asking import Asking, asks

_SHOWN = 2000


@asks
def show(
    task: Annotated[str, typer.Argument(metavar="BATCH/INDEX", help="The task.")],
    *,
    asking: Asking,
) -> None:
    """Show a task: its payload, what executes it, and where it is."""
    from jobman.cli.tasks.names import Named

    with asking as grid:
        batch, index = Named(grid).task(task)
        found = grid.ask("GET", f"/v1/tasks/{batch}/{index}")
    if asking.form == "table":
        _print(found)
    else:
        emit(_as_data(found), asking.form)


def _as_data(found: dict[str, Any]) -> dict[str, Any]:
    from jobman.cli.tasks.told import text_or_base64

    task, rest = found["task"], {name: value for name, value in found.items() if name != "task"}
    said = {name: value for name, value in task.items() if name != "payload"}
    return {**said, **text_or_base64("payload", task["payload"]), **rest}


def _print(found: dict[str, Any]) -> None:
    from jobman.cli.colours import STATES
    from jobman.cli.tables import Cell, print_facts
    from jobman.cli.times import length

    task = found["task"]
    version = f" {task['version']}" if task["version"] else ""
    print_facts(
        [
            ("task", task["id"]),
            ("name", task["name"]),
            ("type", f"{task['type']}{version}"),
            ("parameters", ", ".join(f"{name}={value}" for name, value in task["parameters"].items())),
            ("mapper", task["mapper"]),
            ("image", found["image"]),
            ("status", Cell(found["status"], STATES.get(found["status"], ""))),
            ("attempt", str(found["attempt"])),
            ("agent", found["agent"]),
            ("estimate", length(found["estimate"])),
            ("payload", task["payload"][:_SHOWN].decode(errors="replace")),
        ]
    )
