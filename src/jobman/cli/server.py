"""`jobman server`: a service that many people share, in the foreground."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.state import ExitCode, misused, say

if TYPE_CHECKING:
    from jobman.control.leading import LeaseOptions
    from jobman.control.places import Places


def server(
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Where to listen; no host is everywhere."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            envvar="JOBMAN_DATABASE",
            show_envvar=False,
            help="postgresql://…, or JOBMAN_DATABASE; by default a file in the folder.",
        ),
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
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="Who runs the jobs: local or kubernetes.")
    ] = "local",
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="NAME", help="Of the cluster: where jobs run; the context's."),
    ] = None,
    kubeconfig: Annotated[
        str | None, typer.Option("--kubeconfig", metavar="FILE", help="The cluster; as kubectl finds it.")
    ] = None,
    kube_context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="Of the kubeconfig; its current one.")
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease",
            metavar="[NAMESPACE/]NAME",
            help="Wait for this Lease of a Kubernetes cluster first: of several servers one leads.",
        ),
    ] = None,
    lease_seconds: Annotated[
        int,
        typer.Option("--lease-seconds", metavar="SECONDS", help="How long a silent leader is waited for."),
    ] = 15,
    advertise: Annotated[
        str | None,
        typer.Option(
            "--advertise",
            metavar="SERVICE",
            help="While it leads, be the only endpoint of this Service beside the Lease; POD_IP says where.",
        ),
    ] = None,
    new_token: Annotated[
        bool,
        typer.Option(
            "--new-token",
            help="Only make an administrator's token in the database, print it and end; the service goes on.",
        ),
    ] = False,
) -> None:
    """Run a service that many people share, until Ctrl-C; the first start prints an administrator's token."""
    # A Secret that was made from a file ends with a line break.
    url = None if database is None else database.strip()
    if new_token:
        _print_token(url, folder)
        return
    if listen is None:
        misused("it says where to listen, such as localhost:7070", "--listen")
    if (certificate is None) is not (key is None):
        misused("a certificate and its key belong together", "--tls-cert, --tls-key")
    try:
        import uvicorn  # noqa: F401 - only whether it is there
    except ImportError:
        say("a service needs uvicorn, which is missing", "pip install --force-reinstall jobman")
        raise typer.Exit(ExitCode.UNABLE) from None
    from jobman.control.serving import ServeOptions, serve

    options = ServeOptions(
        _places(folder),
        listen=listen,
        database=url,
        tls_cert=None if certificate is None else Path(certificate),
        tls_key=None if key is None else Path(key),
        insecure=insecure,
        engine=_engine(engine, namespace),
        kubeconfig=None if kubeconfig is None else Path(kubeconfig).expanduser(),
        context=kube_context,
        namespace=namespace,
        lease=_lease(lease, lease_seconds, advertise, engine=engine, database=database),
    )
    raise typer.Exit(serve(options))


def _places(folder: str | None) -> Places:
    from jobman.control.places import Places, find_places

    return Places(Path(folder).absolute() if folder else find_places().state / "server")


def _print_token(database: str | None, folder: str | None) -> None:
    """Make a token for somebody who has the database, and no token."""
    from jobman.control.administrators import another_token
    from jobman.control.store.errors import StoreError

    try:
        record, token = another_token(database or _places(folder).database)
    except StoreError as error:
        say(error.message, error.advice)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    sys.stdout.write(f"{token}\n")
    say(f"the token {record.name}, of an administrator; it is not shown again")


def _engine(name: str, namespace: str | None) -> str:
    """Who runs the jobs, where that can be."""
    if name not in ("local", "kubernetes"):
        misused(f"there is no engine '{name}': it is local or kubernetes", "--engine")
    if name == "local":
        if namespace is not None:
            misused("only a cluster has namespaces: add --engine kubernetes", "--namespace")
        return name
    try:
        import httpx  # noqa: F401 - only whether it is there
    except ImportError:
        say("a cluster needs httpx, which is missing", "pip install 'jobman[kubernetes]'")
        raise typer.Exit(ExitCode.UNABLE) from None
    from jobman.engines.kubernetes.names import is_object_name

    if namespace is not None and (not is_object_name(namespace) or "." in namespace):
        misused(f"'{namespace}' is no name of a namespace", "--namespace")
    return name


def _lease(
    name: str | None, seconds: int, service: str | None, *, engine: str, database: str | None
) -> LeaseOptions | None:
    """The Lease to wait for. Who waits for one shares a database, which therefore is a server."""
    if name is None:
        if service is not None:
            misused("a server that takes turns with others is told by --lease with whom", "--advertise")
        return None
    if engine != "kubernetes":
        misused("jobs on this machine cannot be looked after elsewhere: add --engine kubernetes", "--lease")
    from jobman.control.leading import LeaseOptions
    from jobman.engines.kubernetes.managed.lease import SHORTEST
    from jobman.engines.kubernetes.names import is_object_name

    namespace, _, own = name.rpartition("/")
    if not is_object_name(own) or (namespace and not is_object_name(namespace)):
        misused(f"'{name}' is no name of a Lease", "--lease")
    if not SHORTEST <= seconds <= 3600:
        misused(f"a Lease lasts {SHORTEST} seconds at least, and an hour at most", "--lease-seconds")
    if database is None or not database.startswith("postgres"):
        misused("servers that take turns share a database: name one of PostgreSQL", "--database")
    return LeaseOptions(own, namespace or None, seconds, service, _own_address(service))


def _own_address(service: str | None) -> str:
    """Where this server is found by those who look for the leader."""
    if service is None:
        return ""
    from ipaddress import ip_address

    from jobman.engines.kubernetes.names import is_object_name

    if not is_object_name(service):
        misused(f"'{service}' is no name of a Service", "--advertise")
    address = os.environ.get("POD_IP", "")
    try:
        ip_address(address)
    except ValueError:
        misused(f"the environment does not say where this server is: POD_IP={address}", "--advertise")
    return address
