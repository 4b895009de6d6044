"""`jobman task agents`: who executes tasks, for operators."""

from __future__ import annotations

from jobman.cli.state import emit, say
from jobman.cli.tasks.asking import Asking, asks


@asks
def agents(*, asking: Asking) -> None:
    """List the agents there are, what they have in hand, and since when they were not heard of."""
    from jobman.cli.tables import Column, print_table
    from jobman.cli.times import length

    with asking as grid:
        found = grid.ask("GET", "/v1/agents")
    if asking.form != "table":
        emit({"items": [{"id": name, **each} for name, each in found.items()]}, asking.form)
        return
    if not found:
        say("there are no agents: they come when there is work")
        return
    columns = (
        Column("agent", least=16),
        Column("image", least=16),
        Column("slots", rank=2, right=True),
        Column("tasks", right=True),
        Column("wants", rank=3, right=True),
        Column("silent for", rank=1, right=True),
    )
    rows = [
        (
            name,
            each["image"],
            f"{each['slots']:,}",
            f"{each['held']:,}",
            length(each["credit"]),
            length(each["silent"]),
        )
        for name, each in found.items()
    ]
    print_table(columns, rows)
