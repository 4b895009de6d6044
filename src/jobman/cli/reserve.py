"""`jobman reserve`: nodes kept free in advance, for people or accounts. Administrators reserve them."""

from __future__ import annotations

from typing import Annotated

import typer

from jobman.cli import bookings
from jobman.cli.bookings import Booking, Every, Name, Nodes, On, Reason, Skip, Start, Times, Until, Zone
from jobman.cli.options import Output
from jobman.cli.state import misused

reserve = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Keep nodes free in advance, for people or accounts."
)


@reserve.command("add")
def add(
    context: typer.Context,
    name: Name,
    start: Start,
    length: Annotated[str, typer.Option("--for", metavar="TIME", help="How long, such as 4h.")],
    nodes: Nodes = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="So many nodes, whichever.")
    ] = None,
    requires: Annotated[
        list[str] | None,
        typer.Option("--requires", metavar="FACT=VALUE", help="A fact of the nodes that are counted."),
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option("--user", metavar="USER", help="Who may use it; by default whoever makes it."),
    ] = None,
    accounts: Annotated[
        list[str] | None, typer.Option("--account", metavar="ACCOUNT", help="An account that may use it.")
    ] = None,
    every: Every = None,
    on: On = None,
    until: Until = None,
    times: Times = None,
    skip: Skip = None,
    zone: Zone = None,
    reason: Reason = "",
    output: Output = None,
) -> None:
    """Reserve nodes; jobs use them by `--reservation NAME`."""
    if (nodes is None) is (count is None):
        misused("name the nodes, or say how many", "--nodes, --count")
    booking = Booking(name, start, length, nodes, every, on, until, times, skip, zone, reason)
    bookings.add(
        context,
        "reservation",
        booking,
        output,
        count=count,
        requires=_facts(requires or []),
        users=users or [],
        accounts=accounts or [],
    )


bookings.complete(
    reserve,
    "reservation",
    listing="List what is reserved, that which comes first first.",
    removing="Give reserved nodes back to everybody; what runs there goes on.",
)


def _facts(written: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in written]
    if not all(name and equals for name, equals, _ in pairs):
        misused("write a fact and its value, such as hardware.gpu.available=yes", "--requires")
    return {name: value for name, _, value in pairs}
