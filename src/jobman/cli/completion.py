"""`jobman completion`: scripts for bash, zsh and fish."""

from __future__ import annotations

from typing import Annotated

import typer

SHELLS = ("bash", "zsh", "fish")


def register(app: typer.Typer) -> None:
    app.command("completion")(completion)


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="The shell to complete in.")],
) -> None:
    """Print a completion script: `source <(jobman completion bash)`."""
    from click.shell_completion import get_completion_class

    from jobman.cli.main import app

    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise typer.BadParameter(f"'{shell}' is not one of {', '.join(SHELLS)}", param_hint="SHELL")
    typer.echo(found(typer.main.get_command(app), {}, "jobman", "_JOBMAN_COMPLETE").source())
