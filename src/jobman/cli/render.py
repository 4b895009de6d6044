"""`jobman render`: what a document becomes on an engine, as that engine's own files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobman.cli.options import NoContainer, Output, Parameters
from jobman.cli.render_refusals import unable
from jobman.cli.state import ENGINES, State, check_engine, misused

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OF_A_CLUSTER = "kubernetes"
_OF_SCRIPTS = ("slurm", "flux")


def render(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The document; - is standard input.")],
    folder: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write files: objects in their order, or scripts."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAMESPACE",
            help="Where objects of Kubernetes belong; else they do not say it.",
        ),
    ] = None,
    job_set: Annotated[
        bool, typer.Option("--job-set", help="One JobSet, for a cluster that makes the Jobs of a graph.")
    ] = False,
    no_container: NoContainer = False,
    engine: Annotated[
        str | None, typer.Option("-e", "--engine", metavar="ENGINE", help="Whose files to print.")
    ] = None,
    parameters: Parameters = None,
    output: Output = None,
) -> None:
    """Print what a document becomes on an engine, as its own YAML or scripts; nothing is submitted."""
    from jobman.cli.documents import read_good_documents

    state: State = context.obj
    form = state.format(output)
    if namespace is not None and not _NAMESPACE.fullmatch(namespace):
        misused(f"'{namespace}' is no name of a namespace", "-n")
    name = _known(engine or state.engine)
    _check_options(name, {"-n": namespace, "--job-set": job_set}, {"--no-container": no_container})
    specs = read_good_documents(file, state, form, parameters)
    if name == _OF_A_CLUSTER:
        from jobman.cli.render_kubernetes import render_objects

        render_objects(specs, state, namespace, form, folder, job_set=job_set)
    elif name in _OF_SCRIPTS:
        from jobman.cli.render_batch import render_scripts

        render_scripts(specs, file, state, form, folder, engine=name, no_container=no_container)
    else:
        _nothing(name, form)


def _known(engine: str) -> str:
    if engine not in ENGINES:
        misused(f"'{engine}' is not one of {', '.join(ENGINES)}", "-e")
    # Files can be made for a cluster that nobody here talks to.
    return engine if engine == _OF_A_CLUSTER else check_engine(engine)


def _check_options(engine: str, of_a_cluster: Mapping[str, object], of_scripts: Mapping[str, object]) -> None:
    others = of_a_cluster if engine in _OF_SCRIPTS else of_scripts if engine == _OF_A_CLUSTER else {}
    for option, value in others.items():
        if value:
            misused(f"it means nothing on {engine}", option)


def _nothing(engine: str, form: str) -> NoReturn:
    message = f"the engine {engine} reads documents as they are: there is nothing to render"
    unable(message, f"`-e {_OF_A_CLUSTER}` prints what a document becomes on a cluster", form)
