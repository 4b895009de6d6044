"""`jobman task serve`, `agent` and `broker`: the processes of short tasks, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobman.cli.commands import trailing
from jobman.cli.state import ExitCode, misused, say
from jobman.cli.tasks.options import CaFile, operators_token

if TYPE_CHECKING:
    from jobman.tasks.addresses import Place
    from jobman.tasks.settings import SiteSettings


def serve(
    function: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="What executes a task.")],
    initialize: Annotated[
        str | None, typer.Option("--initialize", metavar="MODULE:FUNCTION", help="Called before all tasks.")
    ] = None,
    finalize: Annotated[
        str | None, typer.Option("--finalize", metavar="MODULE:FUNCTION", help="Called after all tasks.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="HOST:PORT|SOCKET", help="Where; without it as the agent says that starts it."
        ),
    ] = None,
    no_batches: Annotated[
        bool, typer.Option("--no-batches", help="Take one task in a call, however short they are.")
    ] = False,
) -> None:
    """Be a worker made of a Python function, for an agent; modules of this folder are found too."""
    from jobman.tasks.worker import WrongFunction, serve_named

    place = None if listen is None else _place(listen, "--listen")
    try:
        serve_named(function, initialize=initialize, finalize=finalize, batches=not no_batches, place=place)
    except WrongFunction as error:
        say(str(error))
        raise typer.Exit(ExitCode.DOCUMENT) from None
    except OSError as error:
        say(f"it cannot listen at {listen or 'the place that its agent said'}: {error.strerror or error}")
        raise typer.Exit(ExitCode.UNABLE) from None


def agent(
    context: typer.Context,
    broker: Annotated[
        str,
        typer.Option(
            "--broker", metavar="URL|HOST:PORT|SOCKET", envvar="JOBMAN_BROKER", help="Who has the tasks."
        ),
    ],
    image: Annotated[
        str, typer.Option("--image", metavar="IMAGE", help="Whose tasks: the name in the table of types.")
    ],
    slots: Annotated[
        int, typer.Option("--slots", min=1, metavar="N", help="Tasks that the worker executes at once.")
    ] = 1,
    worker: Annotated[
        str, typer.Option("--worker", metavar="HOST:PORT|SOCKET", help="A worker that runs already.")
    ] = "",
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT|SOCKET", help="Where that worker calls /complete.")
    ] = "",
    on_port: Annotated[
        bool, typer.Option("--on-port", help="A worker that is started gets a port and no Unix socket.")
    ] = False,
    id_: Annotated[str, typer.Option("--id", metavar="ID", help="Its name at the broker; made up.")] = "",
    token: Annotated[str, operators_token("Of an operator; or JOBMAN_TOKEN.")] = "",
    ca_file: CaFile = None,
) -> None:
    """Be the agent of a worker, one that runs or the COMMAND behind `--`; TERM lets it finish first."""
    from jobman.tasks.agent_process import run_agent
    from jobman.tasks.station import AgentOptions

    command = tuple(trailing(context) or ())
    if bool(command) is bool(worker):
        misused("name a worker that runs, or write its command behind --", "--worker, COMMAND")
    if command and listen:
        misused("a worker that is started here is told where to call", "--listen")
    for text, option in ((broker, "--broker"), (worker, "--worker"), (listen, "--listen")):
        if text:
            _place(text, option)
    options = AgentOptions(
        broker=broker,
        image=image,
        command=command,
        worker=worker,
        listen=listen,
        slots=slots,
        token=token.strip(),
        id=id_,
        on_port=on_port,
        ca_file=ca_file,
    )
    raise typer.Exit(run_agent(options))


def broker(
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT|SOCKET", help="Where; no host is everywhere.")
    ],
    database: Annotated[
        str,
        typer.Option(
            "--database",
            metavar="URL",
            envvar="JOBMAN_DATABASE",
            show_envvar=False,
            help="sqlite:///FILE or postgresql://…; or JOBMAN_DATABASE.",
        ),
    ],
    settings: Annotated[
        str | None, typer.Option("--settings", metavar="FILE", help="Types, tokens and quotas; YAML or JSON.")
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate, in PEM.")
    ] = None,
    key: Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="Its key, in PEM.")] = None,
) -> None:
    """Run a broker that many people share, until Ctrl-C."""
    from jobman.control.store.errors import StoreError
    from jobman.tasks.broker_process import BrokerOptions, run_broker

    if (certificate is None) is not (key is None):
        misused("a certificate and its key belong together", "--tls-cert, --tls-key")
    place = f"0.0.0.0{listen}" if listen.startswith(":") else listen
    _place(place, "--listen")
    options = BrokerOptions(
        listen=place,
        # A Secret that was made from a file ends with a line break.
        store=database.strip(),
        settings=_settings(settings),
        tls_cert=None if certificate is None else Path(certificate),
        tls_key=None if key is None else Path(key),
    )
    try:
        run_broker(options, lambda port: say(f"the broker listens at {_with_port(place, port)}"))
    except StoreError as error:
        say(error.message, error.advice)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    except ValueError as error:  # a mapper that is not there
        _wrong(f"{settings} is wrong: {error}", "")
    except OSError as error:
        say(f"the broker cannot listen at {place}: {error.strerror or error}")
        raise typer.Exit(ExitCode.UNABLE) from None


def _with_port(place: str, port: int) -> str:
    """Where it really listens: whoever says 0 gets a port that is free."""
    return f"{place.rpartition(':')[0]}:{port}" if port and place.endswith(":0") else place


def _settings(file: str | None) -> SiteSettings:
    """What the file says; the command ends where it says nothing that can be understood."""
    from jobman.tasks.settings import SiteSettings, WrongSettings, read_settings

    if file is None:
        return SiteSettings()
    try:
        return read_settings(Path(file).read_bytes())
    except OSError as error:
        _wrong(f"{file} cannot be read: {error.strerror}", "")
    except WrongSettings as error:
        _wrong(f"{file} is wrong: {error}", error.advice)


def _wrong(message: str, advice: str) -> NoReturn:
    say(message, advice)
    raise typer.Exit(ExitCode.DOCUMENT)


def _place(text: str, option: str) -> Place:
    from jobman.tasks.addresses import WrongAddress, parse

    try:
        return parse(text).place
    except WrongAddress as error:
        misused(f"{error}: {error.advice}", option)
