"""Worlds for the tests of the API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.api.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A user's own service."""
    with World(tmp_path) as made:
        yield made


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[World]:
    """A service with tokens; `http` is its administrator's."""
    with World(tmp_path, shared=True) as made:
        yield made
