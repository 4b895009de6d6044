"""What tests of the local engine may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.local.workshop import Workshop, opened


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """A launcher that is alive, and gone with all it started when the test is over."""
    with opened(tmp_path) as made:
        yield made
