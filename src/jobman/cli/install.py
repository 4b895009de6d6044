"""`jobman install`: what a service needs in a cluster, printed, written into a folder, or applied."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobman.cli.files import write_files
from jobman.cli.options import Output
from jobman.cli.state import State, emit, misused, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.engines.kubernetes.api import Api
    from jobman.engines.kubernetes.errors import KubernetesError
    from jobman.engines.kubernetes.installation.bundle import Item
    from jobman.engines.kubernetes.installation.site import Site

install = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Print or apply what a service needs in a cluster."
)


@install.callback()
def _kinds() -> None:
    """Print or apply what a service needs in a cluster."""


@install.command("kubernetes")
def kubernetes(
    context: typer.Context,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply it to the cluster of your kubeconfig; may be repeated.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --apply: also what somebody else has changed.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write files, for `kubectl apply -k FOLDER`."),
    ] = None,
    containerfile: Annotated[
        bool, typer.Option("--containerfile", help="Print only how the image is made.")
    ] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Where the server is.")
    ] = "jobman",
    jobs_namespace: Annotated[
        str, typer.Option("--jobs-namespace", metavar="NAME", help="Where jobs run.")
    ] = "jobman-jobs",
    image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="Of the server; as the Containerfile says.")
    ] = None,
    replicas: Annotated[
        int, typer.Option("--replicas", metavar="N", help="Servers, of which one leads.")
    ] = 2,
    database_secret: Annotated[
        str,
        typer.Option("--database-secret", metavar="NAME", help="The Secret with the URL of PostgreSQL."),
    ] = "jobman-database",
    tls_secret: Annotated[
        str, typer.Option("--tls-secret", metavar="NAME", help="The Secret with a certificate and its key.")
    ] = "jobman-tls",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Without TLS: tokens can be read on the cluster's network.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", metavar="[CLASS/]SIZE", help="A volume that servers share, for the output of jobs."
        ),
    ] = None,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Also what short tasks need: a broker, and who keeps workers.")
    ] = False,
    tasks_namespace: Annotated[
        str, typer.Option("--tasks-namespace", metavar="NAME", help="Where workers of short tasks run.")
    ] = "jobman-tasks",
    prometheus: Annotated[
        str,
        typer.Option("--prometheus", metavar="URL", help="With --tasks: where KEDA, if it is there, asks."),
    ] = "",
    output: Output = None,
) -> None:
    """Print, write or apply all that a service needs in a Kubernetes cluster.

    The settings that the service goes by are those of `jobman -s FILE install kubernetes`.
    """
    from jobman.engines.kubernetes.errors import KubernetesError
    from jobman.engines.kubernetes.installation import bundle
    from jobman.engines.kubernetes.installation.site import Site, Tasks, parse_storage

    state: State = context.obj
    form = state.format(output)
    _check_ways(apply=apply, force=force, folder=folder, containerfile=containerfile)
    if prometheus and not tasks:
        misused("only workers of short tasks are scaled by what Prometheus knows", "--prometheus")
    if containerfile:
        sys.stdout.write(bundle.containerfile())
        return
    image_given = {} if image is None else {"image": image}
    try:
        site = Site(
            namespace=namespace,
            jobs_namespace=jobs_namespace,
            replicas=replicas,
            database_secret=database_secret,
            tls_secret=None if insecure else tls_secret,
            storage=None if storage is None else parse_storage(storage),
            settings=_settings(state, form),
            tasks=Tasks(namespace=tasks_namespace, prometheus=prometheus) if tasks else None,
            **image_given,
        )
        site.check()
        if apply:
            _apply(site, form, force=force)
        elif folder is not None:
            write_files(bundle.files(site), folder, form, "name a folder that is empty")
            _tell(site, f"kubectl apply -k {folder}")
        else:
            _print(bundle.objects(site), form)
            _tell(site, "jobman install kubernetes --apply")
    except KubernetesError as error:
        _refused(error, form)


@install.command("dashboard")
def dashboard() -> None:
    """Print a dashboard of short tasks for Grafana, which is imported there."""
    from importlib.resources import files

    sys.stdout.write((files("jobman.tasks") / "dashboards" / "tasks.json").read_text(encoding="utf-8"))


def _check_ways(*, apply: bool, force: bool, folder: Path | None, containerfile: bool) -> None:
    if sum((apply, folder is not None, containerfile)) > 1:
        misused("print it, write it or apply it", "--apply, --to, --containerfile")
    if force and not apply:
        misused("only what is applied can meet the changes of others", "--force")


def _settings(state: State, form: str) -> str:
    """The settings of the server, if some are named; they are checked here, before a server stumbles."""
    if state.settings_file is None:
        return ""
    state.settings(form)
    return Path(state.settings_file).expanduser().read_text(encoding="utf-8")


def _print(items: Sequence[Item], form: str) -> None:
    if form == "json":
        emit({"apiVersion": "v1", "kind": "List", "items": [item.written for item in items]}, form)
    else:
        sys.stdout.write("".join(item.text for item in items))


# -- applying -----------------------------------------------------------------------------------------------


def _apply(site: Site, form: str, *, force: bool) -> None:
    import asyncio

    done, missing = asyncio.run(_apply_all(site, force=force))
    if form == "table":
        sys.stdout.write("".join(f"{name} {what}\n" for name, what in done))
    else:
        emit([{"object": name, "outcome": what} for name, what in done], form)
    _tell(site, missing=missing)


async def _apply_all(site: Site, *, force: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """What became of each object, and the Secrets that are not there yet."""
    from jobman.engines.kubernetes.api import Api
    from jobman.engines.kubernetes.installation.bundle import objects
    from jobman.engines.kubernetes.installation.secrets import secrets
    from jobman.engines.kubernetes.kinds import SECRETS
    from jobman.engines.kubernetes.kubeconfig import load

    async with Api(load()) as api:
        done = [(item.name, await _applied(api, item, force=force)) for item in objects(site)]
        wanted = [(advice.name, advice.namespace) for advice in secrets(site)]
        missing = [name for name, place in wanted if await api.find(SECRETS, name, place) is None]
    return done, missing


async def _applied(api: Api, item: Item, *, force: bool) -> str:
    metadata = item.written["metadata"]
    kind = await api.kind_of(item.written)
    before = await api.find(kind, metadata["name"], metadata.get("namespace", ""))
    after = await api.apply_patch(item.written, force=force)
    if before is None:
        return "created"
    is_same = before.metadata.resource_version == after.metadata.resource_version
    return "unchanged" if is_same else "configured"


# -- what is left to do -------------------------------------------------------------------------------------


def _tell(site: Site, next_step: str = "", missing: Sequence[str] | None = None) -> None:
    """Say what jobman cannot do itself; secrets never pass through it."""
    from jobman.engines.kubernetes.installation.secrets import secrets

    wanted = [each.advice for each in secrets(site) if missing is None or each.name in missing]
    if next_step:
        say("nothing was applied", next_step)
    if wanted:
        say(
            "these Secrets are yours to make, before the server can start",
            "\n".join(wanted),
        )
    if site.tls_secret is None:
        say("without TLS, whoever can listen on the cluster's network can read tokens")
    if site.storage is None:
        say(
            "the output of jobs is kept with the server's pod, and is gone with it",
            "--storage CLASS/SIZE keeps it on a volume that several nodes can mount",
        )
    say(
        f"the service is found at {site.address}; its first start prints the token of an administrator",
        f"kubectl -n {site.namespace} logs -l app.kubernetes.io/name=jobman --tail=-1 | grep token",
    )


def _refused(error: KubernetesError, form: str) -> NoReturn:
    from jobman.engines.kubernetes.errors import Conflict

    advice = "`--apply --force` writes over it" if isinstance(error, Conflict) else error.advice
    if form == "table":
        say(error.message, advice)
    else:
        emit({"code": "cannot", "message": error.message, "advice": advice}, form)
    raise typer.Exit(error.exit_code)
