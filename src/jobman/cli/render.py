"""`jobman render`: what a document becomes on an engine, as that engine's own files."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from jobman.cli.files import write_files
from jobman.cli.options import Output, Parameters
from jobman.cli.state import ENGINES, ExitCode, State, check_engine, emit, misused, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.api import JobSpec
    from jobman.engines.base import Refused
    from jobman.engines.kubernetes.target import Target
    from jobman.plan.model import Plan

_ID = 12
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_RENDERED = "kubernetes"


class Rendered(NamedTuple):
    """An object, and its text."""

    written: dict[str, Any]
    text: str

    @property
    def name(self) -> str:
        return f"{self.written['kind'].lower()}-{self.written['metadata']['name']}"


def render(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The document; - is standard input.")],
    folder: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write a file for each object, in the order to create."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAMESPACE",
            help="Where the objects belong; else they do not say it.",
        ),
    ] = None,
    job_set: Annotated[
        bool, typer.Option("--job-set", help="One JobSet, for a cluster that makes the Jobs of a graph.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option("-e", "--engine", metavar="ENGINE", help="Whose files to print.")
    ] = None,
    parameters: Parameters = None,
    output: Output = None,
) -> None:
    """Print what a document becomes on an engine, as its own YAML; nothing is submitted."""
    from jobman.cli.documents import read_good_documents

    state: State = context.obj
    form = state.format(output)
    if namespace is not None and not _NAMESPACE.fullmatch(namespace):
        misused(f"'{namespace}' is no name of a namespace", "-n")
    name = _known(engine or state.engine)
    specs = read_good_documents(file, state, form, parameters)
    if name != _RENDERED:
        _nothing(name, form)
    found = _rendered(specs, state, namespace, form, job_set=job_set)
    if folder is not None:
        _write(found, folder, form)
    elif form == "json":
        emit({"apiVersion": "v1", "kind": "List", "items": [each.written for each in found]}, form)
    else:
        sys.stdout.write("".join(each.text for each in found))


def _known(engine: str) -> str:
    if engine not in ENGINES:
        misused(f"'{engine}' is not one of {', '.join(ENGINES)}", "-e")
    # Files can be made for a cluster that nobody here talks to.
    return engine if engine == _RENDERED else check_engine(engine)


def _nothing(engine: str, form: str) -> NoReturn:
    message = f"the engine {engine} reads documents as they are: there is nothing to render"
    _unable(message, f"`-e {_RENDERED}` prints what a document becomes on a cluster", form)


def _rendered(
    specs: Sequence[JobSpec], state: State, namespace: str | None, form: str, *, job_set: bool
) -> list[Rendered]:
    from jobman.engines.kubernetes.compile import CannotCompile, compile_plan
    from jobman.engines.kubernetes.driving import needs_driver
    from jobman.engines.kubernetes.manifest import document
    from jobman.engines.kubernetes.sets import compile_set

    plans = [spec.plan() for spec in specs]
    found: list[Rendered] = []
    refused: list[Refused] = []
    lost: list[tuple[Plan, list[Refused]]] = []
    for spec, plan, job_id in zip(specs, plans, _ids(plans), strict=True):
        target = _target(spec, plan, job_id, state, namespace, form)
        try:
            compiled = (compile_set if job_set else compile_plan)(plan, target)
        except CannotCompile as error:
            refused += error.refused if len(plans) == 1 else _told_apart(error.refused, plan)
            continue
        lost.append((plan, [] if job_set else needs_driver(plan, target)))
        for unit, written in compiled.objects():
            placed = written if namespace is not None else _anywhere(written)
            found.append(Rendered(placed, document(unit, placed)))
    if refused:
        _refuse(refused, form)
    _warn(lost)
    return found


def _ids(plans: Sequence[Plan]) -> Iterator[str]:
    """An id from the plan itself, so that the same document is always rendered the same."""
    import hashlib

    seen: Counter[str] = Counter()
    for plan in plans:
        number, digest = seen[plan.digest], plan.digest.rpartition(":")[2]
        seen[plan.digest] += 1
        # A job that stands in a file twice is two jobs.
        again = hashlib.sha256(f"{digest} {number}".encode()).hexdigest() if number else digest
        yield again[:_ID]


def _target(spec: JobSpec, plan: Plan, job_id: str, state: State, namespace: str | None, form: str) -> Target:
    from jobman.engines.kubernetes.site import of_site
    from jobman.engines.kubernetes.staging import files_at_hand
    from jobman.engines.kubernetes.target import Target

    return Target(
        namespace=namespace or "",
        job_id=job_id,
        owner="",
        document=spec.source.text if spec.source is not None else "",
        files=files_at_hand(plan, Path.cwd()),
        **of_site(state.settings(form)),
    )


def _anywhere(written: dict[str, Any]) -> dict[str, Any]:
    """An object that goes where whoever creates it is at home."""
    metadata = {key: value for key, value in written["metadata"].items() if key != "namespace"}
    return {**written, "metadata": metadata}


# -- what cannot be had -------------------------------------------------------------------------------------


def _warn(lost: Sequence[tuple[Plan, list[Refused]]]) -> None:
    """Say what gets lost when the objects are created and nobody drives them."""
    for plan, features in lost:
        if features:
            who = f"{plan.name}: " if plan.name else ""
            say(
                f"{who}whoever only creates these objects starts all at once, and loses this",
                _lines(features),
            )


def _refuse(refused: list[Refused], form: str) -> NoReturn:
    message = f"the {_RENDERED} engine cannot do what is asked"
    advice = f"{_lines(refused)}\n`jobman features` lists what each engine can do"
    _unable(message, advice, form, refused)


def _told_apart(refused: Sequence[Refused], plan: Plan) -> Iterator[Refused]:
    """Refusals of one of several jobs, with its name before those of its units."""
    from msgspec.structs import replace

    job = plan.name or "a job without a name"
    return (replace(each, units=tuple(f"{job}: {unit}" for unit in each.units) or (job,)) for each in refused)


def _lines(refused: Sequence[Refused]) -> str:
    return "\n".join(f"{each.feature} ({_who(each)}): {each.note}" for each in refused)


def _who(refused: Refused) -> str:
    return ", ".join(refused.units) or "the document"


def _unable(message: str, advice: str, form: str, refused: Sequence[Refused] = ()) -> NoReturn:
    if form == "table":
        say(message, advice)
    else:
        emit({"code": "cannot", "message": message, "advice": advice, "refused": list(refused)}, form)
    raise typer.Exit(ExitCode.UNABLE)


# -- files --------------------------------------------------------------------------------------------------


def _write(found: Sequence[Rendered], folder: Path, form: str) -> None:
    """A file for each object, numbered so that `kubectl create -f FOLDER` takes them in their order."""
    digits = len(str(len(found)))
    texts = {f"{number:0{digits}}-{each.name}.yaml": each.text for number, each in enumerate(found, 1)}
    advice = "name a folder that is empty: `kubectl create -f` takes all that it finds"
    write_files(texts, folder, form, advice)
