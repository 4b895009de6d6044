"""`jobman usage`: what was used in a time, and what it cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jobman.cli.options import a_moment
from jobman.cli.state import State, emit, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.cli.tables import Row
    from jobman.control.accounting.statements import Usage, UsageLine

_KEYS = {
    "account": ("account",),
    "user": ("user",),
    "job": ("job", "name", "user", "account"),
    "flavor": ("flavor",),
    "day": ("day",),
}
"""The columns that tell lines apart."""


def usage(
    context: typer.Context,
    account: Annotated[
        str | None, typer.Option("--account", metavar="ACCOUNT", help="Only this one and those below it.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="Only what this one used; others need rights."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="7d|MOMENT", help="What was used since then; all: ever.")
    ] = "30d",
    until: Annotated[
        str | None, typer.Option("--until", metavar="1d|MOMENT", help="What was used before then.")
    ] = None,
    by: Annotated[
        Literal["account", "user", "job", "flavor", "day"],
        typer.Option("--by", help="What is told apart; days are those of UTC."),
    ] = "account",
    most: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=100_000, metavar="N", help="At most so many lines.")
    ] = 1000,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="table|json|yaml|csv", help="Form of the answer.")
    ] = None,
) -> None:
    """Show what was used, and what it cost: yours, or for administrators everybody's."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    as_csv = (output or state.output) == "csv"
    form = "table" if as_csv else state.format(output)
    wanted: dict[str, Any] = {
        "account": account,
        "user": user,
        "since": None if since == "all" else a_moment(since, "--since"),
        "until": a_moment(until, "--until"),
        "by": by,
        "limit": most,
    }
    with Calling(form) as client:
        if as_csv:
            sys.stdout.write(client.usage_csv(**wanted))
            return
        found = client.usage(**wanted)
    if form == "table":
        _print(found)
    else:
        emit(found, form)


def _print(found: Usage) -> None:
    from jobman.cli.tables import Cell, Column, print_table

    if not found.items:
        say("nothing was used in this time")
        return
    keys = _KEYS[found.by]
    columns = [
        *(Column(name, rank=2 * number, least=12 if number else 0) for number, name in enumerate(keys)),
        Column("jobs", rank=7, right=True),
        Column("hours", rank=5, right=True),
        Column("core hours", rank=3, right=True),
        Column("gpu hours", rank=3, right=True),
        Column("node hours", rank=6, right=True),
        Column("units", right=True),
        Column("below", rank=1, right=True),
        Column("in all", rank=1, right=True),
        Column("refunded", rank=4, right=True),
    ]
    is_tree = any(line.below for line in found.items)
    depths = _depths(found.items)
    rows: list[Row] = [
        (*_indented(depth, *(str(getattr(line, name)) for name in keys)), *_sums(line, line.in_all, is_tree))
        for depth, line in zip(depths, found.items, strict=True)
    ]
    if len(found.items) > 1:
        total = ["total", *[""] * (len(keys) - 1), *_sums(found.total, found.total.units, is_tree)]
        rows.append([Cell(text, "bold") for text in total])
    print_table(columns, rows)
    if found.more:
        say(f"there are more than {len(found.items):,} lines; the total is of all, show them with -n")


def _depths(lines: Sequence[UsageLine]) -> list[int]:
    """How far below the topmost each account stands: those above come first."""
    depths: dict[str | None, int] = {}
    for line in lines:
        depths[line.account] = depths[line.parent] + 1 if line.parent in depths else 0
    return [depths[line.account] for line in lines] if len(depths) == len(lines) else [0] * len(lines)


def _indented(depth: int, first: str, *others: str) -> tuple[str, ...]:
    return "  " * depth + first, *others


def _sums(line: UsageLine, in_all: float | None, is_tree: bool) -> list[str]:
    amounts = (line.hours, line.core_hours, line.gpu_hours, line.node_hours)
    tree = [_number(line.below or 0.0), f"{in_all or 0.0:,.2f}"] if is_tree else ["", ""]
    return [
        f"{line.jobs:,}",
        *map(_number, amounts),
        f"{line.units:,.2f}",
        *tree,
        _number(line.refunded),
    ]


def _number(amount: float) -> str:
    """Two digits behind the point; nothing for nothing."""
    return f"{amount:,.2f}" if amount else ""
