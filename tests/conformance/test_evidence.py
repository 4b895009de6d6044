"""What the page of engines says of the suite is what the suite does."""

from __future__ import annotations

import pytest

from jobman.engines.matrix import MATRIX
from tests.conformance import evidence
from tests.conformance.differences import DIFFERENCES, not_run
from tests.conformance.engines import ENGINES
from tests.conformance.evidence import scenarios, seen
from tools.generate_docs import DOCS

NOT_SEEN: dict[str, set[str]] = {"local": set(), "slurm": {"checks.http", "image"}}
"""Features of an engine whose scenarios all ask for something else that it refuses there."""


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_an_engine_offers_is_seen_at_work_there(name: str) -> None:
    offered = {key for key, support in MATRIX[ENGINES[name].table].items() if support.how != "refused"}
    assert offered - seen(name) <= NOT_SEEN[name]


@pytest.mark.parametrize("name", ENGINES)
def test_nothing_that_is_refused_is_seen_at_work(name: str) -> None:
    refused = {key for key, support in MATRIX[ENGINES[name].table].items() if support.how == "refused"}
    assert seen(name) & refused == set()


def test_documents_of_a_table_are_told_apart_by_their_keys() -> None:
    name = "test_a_rare_feature_works_or_is_refused_by_its_name"
    assert f"{name}[volumes.nfs]" in {each.whole for each in scenarios() if each.name == name}


def test_a_scenario_that_is_not_run_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "checks.http" in seen("local")
    users = [each.name for each in scenarios() if "http" in str(each.documents)]
    monkeypatch.setitem(DIFFERENCES, "local", not_run("it is not run", *users))
    assert "checks.http" not in evidence.seen("local")


def test_every_engine_of_the_suite_stands_on_the_page() -> None:
    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    assert all(f"\n| {opening.table} | " in page for opening in ENGINES.values())
