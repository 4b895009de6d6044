"""The reader of nodes beside pydantic: the same document, composed once, then read by each.

The pydantic side checks types and keys only: durations, sizes, expressions and texts of commands stay as
written, and nothing knows its line. Its numbers are what a reader built on it would start from.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.nodes import Node, ScalarNode, SequenceNode

from bench import Row
from bench.spec import LARGE, ROOT, Measured, best, interleaved, measured, typical, written
from jobman import api
from jobman.spec.model import DOCUMENT
from jobman.spec.problems import Problems
from jobman.spec.reading import BAD, Reading
from jobman.spec.source import Source, read_source
from jobman.spec.yaml import compose, scalar_value

IMPORT_ROUNDS = 15
Scalar = str | bool | int | float


# -- the language as pydantic models ----------------------------------------------------------------------


class Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Shape(Model):
    type: str
    count: int | str
    with_: list[Shape] = Field(default=[], alias="with")
    exclusive: bool = False
    requires: dict[str, Scalar | dict[str, Scalar]] = {}


class Attributes(Model):
    duration: int | str | None = None
    environment: dict[str, Scalar] | None = None
    cwd: str | None = None
    watch: bool | None = None
    stdout: str | None = None
    stderr: str | None = None


class Condition(Model):
    exit_codes: list[int | str] = []
    reasons: list[str] = []


class Retries(Model):
    limit: int
    delay: int | str = 0
    factor: float = 1.0
    on: Condition | None = None


class Dependency(Model):
    name: str
    when: Literal["success", "failure", "any", "started", "ready"] | None = None


class Task(Model):
    name: str | None = None
    command: str | list[Scalar] | None = None
    group: str | None = None
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    matrix: dict[str, list[Scalar]] | None = None
    depends_on: str | list[str | Dependency] = []
    local: bool = False
    service: bool = False
    when: Literal["success", "failure", "always"] | None = None
    image: str | None = None
    resources: str | Shape | None = None
    requires: dict[str, Scalar | dict[str, Scalar]] | None = None
    attributes: Attributes | None = None
    retries: int | Retries | None = None


class Document(Model):
    version: int = 1
    name: str | None = None
    labels: dict[str, Scalar] = {}
    resources: dict[str, str | Shape] = {}
    attributes: Attributes | None = None
    tasks: list[Task] = []


# -- one measurement, in its own process ------------------------------------------------------------------


def _composed(path: Path) -> tuple[Node, Source]:
    problems = Problems()
    source = read_source(path, problems)
    assert source is not None
    # The collector stays off: what it costs belongs to the composed tree, not to either reader.
    gc.disable()
    nodes, source = compose(source, problems)
    return nodes[0], source


def _data(node: Node) -> Any:
    """Plain data with the scalars of YAML 1.2."""
    if isinstance(node, ScalarNode):
        return scalar_value(node)
    if isinstance(node, SequenceNode):
        return [_data(item) for item in node.value]
    return {key.value: _data(value) for key, value in node.value}


def read_nodes(path: Path) -> Callable[[], object]:
    """Our reader, from nodes to records."""
    node, source = _composed(path)

    def read() -> object:
        document = DOCUMENT.read(node, Reading(source, Problems()))
        assert document is not BAD
        return document

    return read


def construct(path: Path) -> Callable[[], object]:
    """From nodes to plain data, which pydantic needs first."""
    node, _ = _composed(path)
    return lambda: _data(node)


def read_models(path: Path) -> Callable[[], object]:
    """From nodes to plain data to models."""
    node, _ = _composed(path)
    return lambda: Document.model_validate(_data(node))


WORK = {work.__name__: work for work in (read_nodes, construct, read_models)}


# -- importing and mistakes -------------------------------------------------------------------------------

_IMPORTS = {
    "jobman.spec.model": "import jobman.spec.model",
    "pydantic": "from pydantic import BaseModel, ConfigDict, Field",
}
_TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def _import_times() -> dict[str, float]:
    """Milliseconds of an import in a fresh interpreter, with all it brings along."""
    found: dict[str, list[float]] = {name: [] for name in _IMPORTS}
    for _ in range(IMPORT_ROUNDS):
        for name, statement in _IMPORTS.items():
            command = [sys.executable, "-c", _TIMED.format(statement)]
            answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
            found[name].append(1000 * float(answer.stdout))
    return {name: median(times) for name, times in found.items()}


MISTAKE = """\
version: 1
tasks:
- command: [hostname]
  resources: {type: node, count: 1, with: [{type: slot, count: 2, wiht: [{type: core, count: 1}]}]}
"""


def _our_messages() -> int:
    return len(api.loads(MISTAKE).problems)


def _pydantic_messages() -> int:
    nodes, _ = compose(Source("<text>", MISTAKE), Problems())
    try:
        Document.model_validate(_data(nodes[0]))
    except ValidationError as error:
        return error.error_count()
    return 0


# -- the rows ---------------------------------------------------------------------------------------------


def main() -> list[Row]:
    """Reading, importing and what is said about one mistake."""
    with written(LARGE) as path:
        results = interleaved("bench.pydantic_reader", list(WORK), path)
    return [*_times(results), _importing(), _messages()]


def _importing() -> Row:
    times = _import_times()
    ours, theirs = times["jobman.spec.model"], times["pydantic"]
    return Row("importing", ours, "ms", "pydantic", theirs, "ours brings yaml and msgspec")


def _messages() -> Row:
    what = "messages for one mistake"
    return Row(what, _our_messages(), "", "pydantic", _pydantic_messages(), "`wiht` in a shape")


def _times(results: dict[str, list[Measured]]) -> list[Row]:
    what = f"reading {LARGE:,} tasks from nodes"
    return [
        Row(
            f"{what}, {word}",
            pick(results["read_nodes"]),
            "s",
            "pydantic",
            pick(results["read_models"]),
            f"of pydantic's, {pick(results['construct']):.3g} s make the data it reads",
        )
        for word, pick in (("median", typical), ("best", best))
    ]


if __name__ == "__main__":
    print(json.dumps(measured(WORK[sys.argv[1]](Path(sys.argv[2])))))
