"""What a document becomes on a cluster: objects of Kubernetes, as YAML."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jobman.cli.files import write_files
from jobman.cli.render_refusals import lines, refuse, told_apart
from jobman.cli.state import State, emit, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.api import JobSpec
    from jobman.engines.base import Refused
    from jobman.engines.kubernetes.target import Target
    from jobman.plan.model import Plan

_ENGINE = "kubernetes"
_ID = 12


class Rendered(NamedTuple):
    """An object, and its text."""

    written: dict[str, Any]
    text: str

    @property
    def name(self) -> str:
        return f"{self.written['kind'].lower()}-{self.written['metadata']['name']}"


def render_objects(
    specs: Sequence[JobSpec],
    state: State,
    namespace: str | None,
    form: str,
    folder: Path | None,
    *,
    job_set: bool,
) -> None:
    """Print the objects of all documents, or write them to files."""
    found = _rendered(specs, state, namespace, form, job_set=job_set)
    if folder is not None:
        _write(found, folder, form)
    elif form == "json":
        emit({"apiVersion": "v1", "kind": "List", "items": [each.written for each in found]}, form)
    else:
        sys.stdout.write("".join(each.text for each in found))


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
            refused += error.refused if len(plans) == 1 else told_apart(error.refused, plan)
            continue
        lost.append((plan, [] if job_set else needs_driver(plan, target)))
        for unit, written in compiled.objects():
            placed = written if namespace is not None else _anywhere(written)
            found.append(Rendered(placed, document(unit, placed)))
    if refused:
        refuse(refused, _ENGINE, form)
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


def _warn(lost: Sequence[tuple[Plan, list[Refused]]]) -> None:
    """Say what gets lost when the objects are created and nobody drives them."""
    for plan, features in lost:
        if features:
            who = f"{plan.name}: " if plan.name else ""
            say(
                f"{who}whoever only creates these objects starts all at once, and loses this",
                lines(features),
            )


def _write(found: Sequence[Rendered], folder: Path, form: str) -> None:
    """A file for each object, numbered so that `kubectl create -f FOLDER` takes them in their order."""
    digits = len(str(len(found)))
    texts = {f"{number:0{digits}}-{each.name}.yaml": each.text for number, each in enumerate(found, 1)}
    advice = "name a folder that is empty: `kubectl create -f` takes all that it finds"
    write_files(texts, folder, form, advice)
