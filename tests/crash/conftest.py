"""Machines for a test: on SQLite, or on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.conftest import new_postgres
from tests.crash.entry import DATABASE
from tests.crash.machine import Machine

POSTGRES = pytest.param("postgres", marks=pytest.mark.component("postgres"))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JOBMAN_IDLE", "never")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("JOBMAN_FAILPOINTS", "JOBMAN_SERVER", "JOBMAN_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose service keeps its store in its folder."""
    made = Machine(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", POSTGRES])
def either(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    """A machine of each kind."""
    if request.param == "sqlite":
        made = Machine(tmp_path)
        yield made
        made.close()
        return
    with new_postgres() as url:
        monkeypatch.setenv(DATABASE, url)
        made = Machine(tmp_path, url)
        yield made
        made.close()
