"""Every feature an engine has is used in some scenario."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from jobman.api import loads
from jobman.engines.matrix import MATRIX
from tests.conformance.differences import DIFFERENCES
from tests.conformance.engines import ENGINES
from tests.conformance.site import SETTINGS

HERE = Path(__file__).parent
UNUSED: dict[str, str] = {}
"""Features no scenario uses, and why."""


def documents() -> Iterator[tuple[str, str]]:
    """Every document written in a scenario, with its file."""
    for file in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = dedent(node.value).strip()
                if text.startswith("version: 1\n") and "\n---\n" not in text:
                    yield f"{file.name}:{node.lineno}", text


def used() -> dict[str, str]:
    """The features of all documents that are right, each with the first who uses it."""
    found: dict[str, str] = {}
    for place, text in documents():
        spec = loads(text, name=place, settings=SETTINGS)
        if spec.ok:
            for feature in spec.plan().features:
                found.setdefault(feature, place)
    return found


@pytest.mark.parametrize("name", ENGINES)
def test_every_feature_of_an_engine_is_used_in_a_scenario(name: str) -> None:
    table = MATRIX[ENGINES[name].table]
    offered = {feature for feature, support in table.items() if support.how != "refused"}
    assert offered - used().keys() == UNUSED.keys() & offered


def test_every_refused_feature_is_asked_for_in_a_scenario() -> None:
    tables = {opening.table for opening in ENGINES.values()}
    refused = {
        feature for name in tables for feature, support in MATRIX[name].items() if support.how == "refused"
    }
    assert refused - used().keys() == set()


def test_there_are_scenarios_enough() -> None:
    assert len(list(documents())) >= 70


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_difference_is_of_a_scenario_there_is(name: str) -> None:
    assert name in ENGINES
    scenarios = {
        node.name
        for file in HERE.glob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert {known.partition("[")[0] for known in DIFFERENCES[name]} <= scenarios
    assert all(bool(known.why) is not bool(known.says) for known in DIFFERENCES[name].values())
