"""Databases for short tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.conftest import POSTGRES, new_postgres


@pytest.fixture(params=["sqlite", POSTGRES])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that is empty."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/tasks.sqlite"
        return
    with new_postgres() as found:
        yield found
