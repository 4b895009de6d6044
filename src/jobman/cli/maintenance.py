"""`jobman maintenance`: times in which nothing runs on some nodes, or on all. Administrators plan them."""

from __future__ import annotations

from typing import Annotated

import typer

from jobman.cli import bookings
from jobman.cli.bookings import Booking, Every, Name, Nodes, On, Reason, Skip, Start, Times, Until, Zone
from jobman.cli.options import Output

maintenance = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Plan times in which nothing runs on some nodes."
)


@maintenance.command("add")
def add(
    context: typer.Context,
    name: Name,
    start: Start,
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long, such as 4h; without it, until it is removed."),
    ] = None,
    nodes: Nodes = None,
    every: Every = None,
    on: On = None,
    until: Until = None,
    times: Times = None,
    skip: Skip = None,
    zone: Zone = None,
    reason: Reason = "",
    output: Output = None,
) -> None:
    """Plan maintenance: what would run into it starts afterwards, what fits before still starts."""
    booking = Booking(name, start, length, nodes, every, on, until, times, skip, zone, reason)
    bookings.add(context, "maintenance", booking, output)


bookings.complete(
    maintenance,
    "maintenance",
    listing="List what is planned, that which comes first first.",
    removing="Call maintenance off, or end it: its nodes are used again at once.",
)
