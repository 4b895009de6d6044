"""Machines for a test: on SQLite, or on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.machine import Machine, machine_on

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
    with machine_on("sqlite", tmp_path) as made:
        yield made


@pytest.fixture(params=["sqlite", POSTGRES])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """A machine of each kind."""
    with machine_on(request.param, tmp_path) as made:
        yield made
