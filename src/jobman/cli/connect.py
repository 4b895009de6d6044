"""`jobman connect`: a shell where a copy of a job runs, or a way to its ports."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobman.cli.commands import trailing
from jobman.cli.options import Job, JobName, one_job
from jobman.cli.state import ExitCode, misused, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.client import Client
    from jobman.client.sessions import Session
    from jobman.control.answers import Copy

_KEPT = ("TERM", "COLORTERM", "LANG", "LC_ALL", "DISPLAY", "SSH_AUTH_SOCK")
"""What belongs to the terminal and not to the job."""
_OTHER_PORT = "name another one: --port LOCAL:PORT; 0 is any that is free"
_LOOK_SECONDS = 3.0


def connect(
    context: typer.Context,
    job: Job = None,
    named: JobName = None,
    replica: Annotated[
        str | None,
        typer.Option("--replica", metavar="N", help="Which replica: a number, or a name like train.3."),
    ] = None,
    copy: Annotated[
        int | None, typer.Option("--copy", min=0, metavar="N", help="Which of its copies.")
    ] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            metavar="[LOCAL:]PORT",
            help="Instead: let a port of this machine lead to a port of the copy, until Ctrl-C. Repeatable.",
        ),
    ] = None,
) -> None:
    """Open a shell where a copy of a job runs, or run the command behind `--` there, or reach its ports."""
    from jobman.cli.calls import Calling

    ports = [_pair(text) for text in port or []]
    command = trailing(context) or []
    if ports and command:
        misused("a command and a port at once: connect twice", "--port")
    with Calling() as client:
        found = client.details(one_job(job, named))
        chosen = _choose(found.name, found.id, client.copies(found.id), replica, copy)
        if ports:
            _forward(client, found.id, chosen, ports)
        if _is_elsewhere(chosen):
            _visit(client, found.id, chosen, command)
    if chosen.container:
        _enter_container(chosen.container, command)
    _enter(chosen, command)


def _is_elsewhere(copy: Copy) -> bool:
    """Whether it runs on a cluster, and is entered through that."""
    return (copy.container or "").startswith("kubernetes:")


def _visit(client: Client, job: str, copy: Copy, command: list[str]) -> NoReturn:
    """Be a terminal for a command inside a copy."""
    from jobman.cli import terminal

    raw = terminal.is_here()
    session = client.enter(job, copy, command=command, terminal=raw, size=terminal.size())
    if not command:
        say(f"this is {copy.replica}/{copy.copy}; `exit` leaves it, and the job goes on")
    code = terminal.lend(session, raw=raw)
    if code is None:
        say(f"{copy.replica}/{copy.copy}: {session.trouble}")
    raise typer.Exit(ExitCode.UNABLE if code is None else code)


def _forward(client: Client, job: str, copy: Copy, ports: list[tuple[int, int]]) -> NoReturn:
    """Let ports of this machine lead to ports of a copy, until the copy or the user ends it."""
    from jobman.cli import forwarding

    def entering(there: int) -> Callable[[], Session]:
        if _is_elsewhere(copy):
            return lambda: client.enter(job, copy, port=there)
        return lambda: forwarding.LocalPort(there)

    for here, there in ports:
        try:
            listener = forwarding.listener_at(here)
        except OSError as error:
            say(f"cannot listen at port {here}: {(error.strerror or str(error)).lower()}", _OTHER_PORT)
            raise typer.Exit(ExitCode.UNABLE) from error
        address = f"{forwarding.HERE}:{listener.getsockname()[1]}"
        say(f"{address} is port {there} of {copy.replica}/{copy.copy}; Ctrl-C ends it")
        forwarding.begin(listener, entering(there))
    while any(_is_same(copy, each) for each in client.copies(job)):
        time.sleep(_LOOK_SECONDS)
    say(f"{copy.replica}/{copy.copy} has ended")
    raise typer.Exit(ExitCode.FAILED)


def _is_same(one: Copy, other: Copy) -> bool:
    return (one.replica, one.attempt, one.copy) == (other.replica, other.attempt, other.copy)


def _pair(text: str) -> tuple[int, int]:
    """The port here and the port there; 0 here is any that is free."""
    here, _, there = text.rpartition(":")
    here = here or there
    if not (_is_port(here, least=0) and _is_port(there, least=1)):
        misused(f"'{text}' is not PORT or LOCAL:PORT, of numbers up to 65535", "--port")
    return int(here), int(there)


def _is_port(text: str, *, least: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6 and least <= int(text) <= 65535


def _choose(name: str, job: str, copies: list[Copy], replica: str | None, number: int | None) -> Copy:
    """The one running copy that was meant."""
    if not copies:
        say(f"no copy of {name} runs now", f"`jobman why {job}` says what it waits for")
        raise typer.Exit(ExitCode.FAILED)
    meant = [
        one
        for one in copies
        if (replica is None or replica in (one.replica, one.replica.rpartition(".")[2]))
        and (number is None or number == one.copy)
    ]
    if not meant:
        say(f"{name} has no such copy running", f"running: {_listing(copies)}")
        raise typer.Exit(ExitCode.FAILED)
    if len(meant) > 1:
        say(f"{len(meant)} copies of {name} run; choose one with --replica and --copy", _listing(meant))
        raise typer.Exit(ExitCode.USAGE)
    return meant[0]


def _listing(copies: list[Copy], most: int = 8) -> str:
    names = [f"{one.replica}/{one.copy}" for one in copies]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _enter_container(container: str, command: list[str]) -> NoReturn:
    """`container` is `runtime:name`, or a name of podman."""
    runtime, _, name = container.rpartition(":")
    if runtime == "apptainer":
        _replace([runtime, "shell" if not command else "exec", f"instance://{name}", *command], None)
    terminal = ["-it"] if sys.stdin.isatty() else ["-i"]
    _replace([runtime or "podman", "exec", *terminal, name, *(command or ["sh"])], None)


def _enter(copy: Copy, command: list[str]) -> NoReturn:
    """Become a process like the copy, as far as another process can."""
    environment = _environment(copy)
    folder = _folder(copy)
    try:
        os.chdir(folder)
    except OSError as error:
        say(f"cannot enter {folder}: {error.strerror}")
        raise typer.Exit(ExitCode.REFUSED) from error
    if copy.pid is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, os.sched_getaffinity(copy.pid))
    shell = os.environ.get("SHELL") or "/bin/sh"
    if not command:
        say(f"this is {copy.replica}/{copy.copy}; `exit` leaves it, and the job goes on")
    _replace(command or [shell], environment)


def _environment(copy: Copy) -> dict[str, str]:
    """The environment of the copy, but for what belongs to this terminal."""
    try:
        text = os.fsdecode(Path(f"/proc/{copy.pid}/environ").read_bytes())
    except OSError as error:
        say(
            f"cannot look into {copy.replica}: {error.strerror}",
            "it may have ended, or run on another machine or as another user",
        )
        raise typer.Exit(ExitCode.REFUSED) from error
    pairs = [entry.partition("=") for entry in text.split("\0") if "=" in entry]
    own = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {name: value for name, _, value in pairs} | own


def _folder(copy: Copy) -> str:
    try:
        return os.readlink(f"/proc/{copy.pid}/cwd")  # noqa: PTH115 - a link whose target may be gone
    except OSError:
        return copy.cwd or "/"


def _replace(command: list[str], environment: dict[str, str] | None) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, os.environ if environment is None else environment)
    except OSError as error:
        say(f"cannot run {command[0]}: {error.strerror}")
        raise typer.Exit(ExitCode.UNABLE) from error
