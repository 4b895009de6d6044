"""What an engine cannot do, as `jobman render` tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from jobman.cli.state import ExitCode, emit, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.engines.base import Refused
    from jobman.plan.model import Plan


def refuse(refused: Sequence[Refused], engine: str, form: str) -> NoReturn:
    """End the command because of features that cannot be had."""
    message = f"the {engine} engine cannot do what is asked"
    advice = f"{lines(refused)}\n`jobman features` lists what each engine can do"
    unable(message, advice, form, refused)


def unable(message: str, advice: str, form: str, refused: Sequence[Refused] = ()) -> NoReturn:
    """End the command because there is nothing to print."""
    import typer

    if form == "table":
        say(message, advice)
    else:
        emit({"code": "cannot", "message": message, "advice": advice, "refused": list(refused)}, form)
    raise typer.Exit(ExitCode.UNABLE)


def told_apart(refused: Sequence[Refused], plan: Plan) -> Iterator[Refused]:
    """Refusals of one of several jobs, with its name before those of its units."""
    from msgspec.structs import replace

    job = plan.name or "a job without a name"
    return (replace(each, units=tuple(f"{job}: {unit}" for unit in each.units) or (job,)) for each in refused)


def lines(refused: Sequence[Refused]) -> str:
    """One line for each: what, who asked for it, and why not."""
    return "\n".join(f"{each.feature} ({_who(each)}): {each.note}" for each in refused)


def _who(refused: Refused) -> str:
    return ", ".join(refused.units) or "the document"
