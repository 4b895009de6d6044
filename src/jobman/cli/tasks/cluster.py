"""`jobman task cluster`: keeps workers of short tasks in a Kubernetes cluster, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobman.cli.state import ExitCode, misused, say
from jobman.cli.tasks.options import CaFile, operators_token

if TYPE_CHECKING:
    from jobman.engines.kubernetes.access import Access
    from jobman.engines.kubernetes.errors import KubernetesError
    from jobman.tasks.cluster import Plan, Way
    from jobman.tasks.cluster_process import Metrics
    from jobman.tasks.pods import Place, Toleration

_WAYS = ("best", "own", "hpa", "keda")
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def cluster(
    broker: Annotated[
        str,
        typer.Option("--broker", metavar="URL", help="The broker, as pods reach it: http://HOST:PORT."),
    ],
    image: Annotated[
        str, typer.Option("--agent-image", metavar="IMAGE", help="An image with this program, for agents.")
    ],
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", metavar="FILE", help="The types and the scaling of the broker's settings."
        ),
    ] = None,
    token: Annotated[str, operators_token("Of an operator of the broker; or JOBMAN_TOKEN.")] = "",
    token_secret: Annotated[
        str, typer.Option("--token-secret", metavar="NAME", help="The Secret with the token of agents.")
    ] = "",
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", help="Where workers run; the context's.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="The cluster; as kubectl finds it.")
    ] = None,
    scaler: Annotated[
        str,
        typer.Option(
            "--scaler", metavar="WAY", help="Who changes the number of pods: best, own, hpa or keda."
        ),
    ] = "best",
    prometheus: Annotated[
        str,
        typer.Option("--prometheus", metavar="URL", help="Where KEDA asks for the metrics of the broker."),
    ] = "",
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="HOST:PORT", help="Serve metrics to an HPA there; with TLS."),
    ] = None,
    service: Annotated[
        str,
        typer.Option("--service", metavar="NAMESPACE/NAME", help="The Service that leads to the metrics."),
    ] = "",
    certificate: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="Of the metrics, in PEM; beside it ca.crt."),
    ] = None,
    key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key, in PEM.")] = None,
    ca_file: CaFile = None,
    node_labels: Annotated[
        list[str] | None,
        typer.Option("--node-label", metavar="KEY=VALUE", help="Of the nodes for workers; may be repeated."),
    ] = None,
    tolerations: Annotated[
        list[str] | None,
        typer.Option(
            "--toleration",
            metavar="KEY[=VALUE][:EFFECT]",
            help="A taint that does not keep workers from a node; may be repeated.",
        ),
    ] = None,
    grace: Annotated[
        int, typer.Option("--grace", metavar="SECONDS", help="What an agent has to finish its tasks.")
    ] = 900,
    forget: Annotated[
        float,
        typer.Option("--forget", metavar="SECONDS", help="When a Deployment that nobody needs is deleted."),
    ] = 3600.0,
) -> None:
    """Make pods for the images that tasks need, as many as the work asks for, until Ctrl-C."""
    import asyncio
    import logging

    from jobman.engines.kubernetes.errors import KubernetesError
    from jobman.tasks.cluster_process import Options, run
    from jobman.tasks.pods import Place

    if scaler not in _WAYS:
        misused(f"'{scaler}' is not one of {', '.join(_WAYS)}", "--scaler")
    if scaler == "keda" and not prometheus:
        misused("KEDA asks a Prometheus, which is to be named", "--prometheus")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        access = _access(kubeconfig)
        place = Place(
            namespace=namespace or access.namespace,
            broker=broker,
            agent_image=image,
            token_secret=token_secret,
            grace=grace,
            authority="" if ca_file is None else _text(Path(ca_file), "--ca-file"),
            node_labels=dict(map(_label, node_labels or ())),
            tolerations=tuple(map(_toleration, tolerations or ())),
        )
        options = Options(
            plan=_plan(place, settings, prometheus, forget),
            broker=broker,
            token=token.strip(),
            ca_file=None if ca_file is None else Path(ca_file),
            way=_way(scaler),
            metrics=_metrics(metrics, service, certificate, key),
        )
        asyncio.run(run(access, options))
    except KubernetesError as error:
        _refused(error)


def _access(kubeconfig: Path | None) -> Access:
    from jobman.engines.kubernetes.kubeconfig import load

    return load() if kubeconfig is None else load(kubeconfig.expanduser())


def _plan(place: Place, settings: Path | None, prometheus: str, forget: float) -> Plan:
    from jobman.tasks.cluster import Plan
    from jobman.tasks.cluster_process import settings_of

    found = settings_of("{}" if settings is None else _text(settings, "--settings"))
    return Plan(
        place=place,
        executors=found.executors,
        limits=found.scaling,
        prometheus=prometheus,
        forget=forget,
    )


def _text(file: Path, option: str) -> str:
    from jobman.engines.kubernetes.errors import ConfigError

    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{option}: {file} cannot be read: {error.strerror}.") from None


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        misused(f"'{text}' is no label, such as pool=tasks", "--node-label")
    return key, value


def _toleration(text: str) -> Toleration:
    from jobman.tasks.pods import Toleration

    what, _, effect = text.partition(":")
    key, _, value = what.partition("=")
    if not key or effect not in _EFFECTS:
        misused(f"'{text}' is no taint, such as pool=tasks:NoSchedule", "--toleration")
    return Toleration(key=key, value=value, effect=effect)


def _way(scaler: str) -> Way | None:
    from jobman.tasks.cluster import Way

    return None if scaler == "best" else Way(scaler)


def _metrics(listen: str | None, service: str, certificate: Path | None, key: Path | None) -> Metrics | None:
    from jobman.tasks.cluster_process import Metrics
    from jobman.tasks.front_proxy import Certificate

    if listen is None:
        return None
    host, _, port = listen.rpartition(":")
    namespace, _, name = service.partition("/")
    if not port.isdecimal():
        misused("it says where to listen, such as :7081", "--metrics")
    if certificate is None or key is None:
        misused("metrics are served with TLS, by a certificate and its key", "--tls-cert, --tls-key")
    if not name:
        misused("it names the Service that leads to the metrics, as NAMESPACE/NAME", "--service")
    return Metrics(
        listen=(host or "0.0.0.0", int(port)),
        certificate=Certificate(certificate, key),
        service=(name, namespace),
    )


def _refused(error: KubernetesError) -> NoReturn:
    say(error.message, error.advice)
    raise typer.Exit(ExitCode(error.exit_code))
