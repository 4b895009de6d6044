"""Which features the suite sees at work on an engine: those of documents that run to their end there.

Read from the scenarios as they are written, so that a page can say it and no run is needed. Where a scenario
may come out in several ways, it is not counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from jobman.api import loads
from jobman.engines.matrix import MATRIX
from jobman.plan.model import Plan
from tests.conformance.differences import DIFFERENCES
from tests.conformance.engines import ENGINES
from tests.conformance.site import SETTINGS

HERE = Path(__file__).parent


class Scenario(NamedTuple):
    """One way to run a scenario: its name, with its parameter where it has one, and its documents."""

    name: str
    whole: str
    documents: tuple[str, ...]


def seen(engine: str) -> frozenset[str]:
    """The features that were at work on an engine of the suite."""
    table, known = MATRIX[ENGINES[engine].table], DIFFERENCES.get(engine, {})
    differing = {name.partition("[")[0] for name in known}
    found: set[str] = set()
    for scenario in scenarios():
        if scenario.whole in known or scenario.name in known:
            continue
        if scenario.whole == scenario.name and scenario.name in differing:
            continue
        for document in scenario.documents:
            plan = plan_of(document)
            if plan is not None and all(table[feature].how != "refused" for feature in plan.features):
                found.update(plan.features)
    return frozenset(found)


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Every scenario that asks for an engine."""
    return tuple(
        scenario
        for file in sorted(HERE.glob("test_*.py"))
        for scenario in _in_module(ast.parse(file.read_text(encoding="utf-8")))
    )


@cache
def plan_of(document: str) -> Plan | None:
    """What a document means; None where it is wrong, or has several jobs in it."""
    spec = loads(document, name="scenario", settings=SETTINGS)
    return spec.plan() if spec.ok else None


def _in_module(module: ast.Module) -> Iterator[Scenario]:
    shared = {name: node for node in module.body for name in _names(node)}
    for node in module.body:
        if not isinstance(node, ast.FunctionDef) or "engine" not in {each.arg for each in node.args.args}:
            continue
        if not node.name.startswith("test_"):
            continue
        reached = list(_reached(node, shared))
        tables = [each for each in reached if isinstance(each, ast.Assign | ast.AnnAssign)]
        rows = [row for table in tables for row in _rows(table)]
        for key, document in rows:
            yield Scenario(node.name, f"{node.name}[{key}]", (document,))
        rest = [each for each in reached if not any(True for _ in _rows(each))]
        if documents := tuple(text for each in rest for text in _documents(each)):
            yield Scenario(node.name, node.name, documents)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _reached(start: ast.stmt, shared: dict[str, ast.stmt]) -> Iterator[ast.stmt]:
    """A scenario, and what of its module it uses."""
    waiting, done = [start], set()
    while waiting:
        node = waiting.pop()
        if id(node) in done:
            continue
        done.add(id(node))
        yield node
        names = {each.id for each in _walk(node) if isinstance(each, ast.Name)}
        waiting += [shared[name] for name in sorted(names & shared.keys())]


def _rows(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """A table of documents, whose keys are the parameters of a scenario."""
    value = getattr(node, "value", None)
    for key, text in zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ():
        for document in _documents(text):
            if isinstance(key, ast.Constant):
                yield str(key.value), document


def _documents(node: ast.AST) -> Iterator[str]:
    for each in _walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            text = dedent(each.value).strip()
            if text.startswith("version: 1\n") and "\n---\n" not in text:
                yield text


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below, but for what is meant to be refused."""
    if isinstance(node, ast.With) and any(_is_refusal(item.context_expr) for item in node.items):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _is_refusal(node: ast.expr) -> bool:
    """Whether this is `pytest.raises(Refused)`."""
    return isinstance(node, ast.Call) and any(
        isinstance(word, ast.Name) and word.id == "Refused" for word in node.args
    )
