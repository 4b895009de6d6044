"""Files for all nodes of a job: Slurm sends them, and where it cannot, the step that takes them does."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.outcome import Outcome
from tests.engines.slurm.ground import Ground, on_a_real_slurm, wrapped

pytestmark = on_a_real_slurm
WIDE = """
- name: sum
  resources: {type: node, count: 3, with: [{type: core, count: 1}]}
  command: [sh, -c, "sha256sum <there/data"]
  steps: [{name: stage, path: data, to: there/data}]
"""


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    place = Ground("", Path(os.environ["JOBMAN_LAB_SLURM_CONF"]), tmp_path)
    # Where archives are, so that nothing of others is looked at.
    place.environment["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    yield place
    place.end()


def staged(ground: Ground) -> tuple[Outcome, str]:
    """How a job came out whose three nodes read some megabytes, and what they should have read."""
    data = random.Random(7).randbytes(5_000_000)
    (ground.folder / "data").write_bytes(data)
    return ground.submit(WIDE).wait(), f"{hashlib.sha256(data).hexdigest()}  -"


def test_slurm_sends_them_once_and_nothing_of_it_is_left(ground: Ground) -> None:
    wrapped(ground, "sbcast", 'echo called >>"$here/called"; exec "$real" "$@"')
    outcome, digest = staged(ground)
    assert (outcome.state, outcome.lines()) == ("succeeded", [digest] * 3)
    assert (ground.folder / "called").read_text() == "called\n"
    assert list((ground.folder / "tmp").iterdir()) == []


def test_where_slurm_cannot_the_step_does(ground: Ground) -> None:
    wrapped(ground, "sbcast", 'echo called >>"$here/called"; "$real" "$@"; exit 1')
    outcome, digest = staged(ground)
    assert (outcome.state, outcome.lines()) == ("succeeded", [digest] * 3)
    assert (ground.folder / "called").exists()
    assert list((ground.folder / "tmp").iterdir()) == []
