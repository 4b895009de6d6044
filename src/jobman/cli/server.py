"""`jobman server`: a service that many people share, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobman.cli.state import ExitCode, misused, say


def server(
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="Where to listen; no host is everywhere."),
    ],
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="postgresql://…; by default a file in the folder."),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option("--state", metavar="FOLDER", help="Where output is kept; by default beside your own."),
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate, in PEM.")
    ] = None,
    key: Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="Its key, in PEM.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen to other machines without TLS: tokens can be read.")
    ] = False,
) -> None:
    """Run a service that many people share, until Ctrl-C; the first start prints an administrator's token."""
    if (certificate is None) is not (key is None):
        misused("a certificate and its key belong together", "--tls-cert, --tls-key")
    try:
        import uvicorn  # noqa: F401 - only whether it is there
    except ImportError:
        say("a service needs uvicorn, which is missing", "pip install --force-reinstall jobman")
        raise typer.Exit(ExitCode.UNABLE) from None
    from jobman.control.places import Places, find_places
    from jobman.control.serving import ServeOptions, serve

    options = ServeOptions(
        Places(Path(folder).absolute() if folder else find_places().state / "server"),
        listen=listen,
        database=database,
        tls_cert=None if certificate is None else Path(certificate),
        tls_key=None if key is None else Path(key),
        insecure=insecure,
    )
    raise typer.Exit(serve(options))
