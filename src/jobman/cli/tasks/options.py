"""Options that several commands of short tasks have, each declared once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobman.cli.state import misused

Broker = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="URL|HOST:PORT|SOCKET",
        help="The broker; or JOBMAN_BROKER, or the settings; else your own, which is started.",
    ),
]
Token = Annotated[
    str | None, typer.Option("--token", metavar="TOKEN", help="Who you are there; or JOBMAN_TOKEN.")
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="Whose tasks, where the broker asks for no tokens."),
]
CaFile = Annotated[
    str | None,
    typer.Option("--ca-file", metavar="FILE", help="Who signed the certificate of the broker, in PEM."),
]
Batches = Annotated[
    list[str] | None,
    typer.Argument(metavar="BATCH…", help="Numbers that `task submit` has printed, or names of batches."),
]
_MILLI = "ms"


def operators_token(words: str) -> Any:
    """The token of a process that serves a broker."""
    return typer.Option("--token", metavar="TOKEN", envvar="JOBMAN_TOKEN", show_envvar=False, help=words)


def seconds_of(text: str | None, option: str) -> float | None:
    """Seconds of `20ms`, `0.02`, `90s` or `5m`."""
    from jobman.cli.times import parse_length

    if text is None:
        return None
    is_milli = text.endswith(_MILLI)
    found = parse_length(text.removesuffix(_MILLI)) if is_milli else parse_length(text)
    if not found:
        misused(f"'{text}' is no length of time such as 20ms, 0.5, 30s or 5m", option)
    return found / 1000 if is_milli else found


def pairs_of(written: list[str] | None, option: str) -> dict[str, str]:
    """`NAME=VALUE`, of several for one name the last."""
    found = {}
    for text in written or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            misused(f"'{text}' is not NAME=VALUE", option)
        found[name] = value
    return found
