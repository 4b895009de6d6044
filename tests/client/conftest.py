"""A service for the client to speak to, and a cluster for commands that have none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.commanding import Jobman, command_with, config_for
from tests.control.api.world import World
from tests.engines.kubernetes.cluster import a_namespace, kubeconfig


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


@pytest.fixture
def namespace() -> Iterator[str]:
    with a_namespace() as name:
        yield name


@pytest.fixture
def config(namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig for that namespace."""
    return config_for(namespace, tmp_path, kubeconfig())


@pytest.fixture
def jobman(config: Path, tmp_path: Path) -> Jobman:
    return command_with(config, tmp_path)
