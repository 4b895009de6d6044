"""What people do to jobs while the service dies at every point on the way; a small model knows the truth."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.crash.conftest import POSTGRES
from tests.crash.machine import machine_on
from tests.crash.model import KINDS, Kind, Known, Life

pytestmark = pytest.mark.slow

POINTS = (
    "director.before-commit",
    "director.after-commit",
    "director.before-acts",
    "director.after-acts",
    "store.before-commit",
    "store.after-commit",
)
KILLS = ("kill@1", "kill@1", "kill@2", "kill@2", "kill@3", "kill@4", "")
FULL_DISKS = ("disk-full@1", "disk-full@2-3")
STEPS = 6
EXAMPLES = {"sqlite": 4, "postgres": 2}

Act = Callable[[Life, Known], None]
ACTS: list[Act] = [
    Life.submit_again,
    Life.cancel,
    Life.hold,
    Life.hold,
    Life.release,
    Life.release,
    Life.open_gates,
    Life.let_go,
    Life.await_the_end,
    Life.await_the_end,
    Life.lose_the_launcher,
]


class Step(NamedTuple):
    """Something that is done, to a new job or to one that is there, and what goes wrong meanwhile."""

    kind: Kind | None
    hold: bool
    act: Act
    which: int
    trouble: str

    def __str__(self) -> str:
        what = f"{self.act.__name__} {self.which}" if self.kind is None else f"submit {self.kind.name}"
        return f"{what}{', held' * (self.kind is not None and self.hold)}: {self.trouble or 'no trouble'}"


def steps(seed: int, point: str) -> list[Step]:
    """A walk that begins with a job that is started and a death; few say much, so none is a simple one."""
    chance = random.Random(seed)
    troubles = KILLS + FULL_DISKS if point.startswith("store.") else KILLS
    begins = [kind for kind in KINDS if not kind.gates]
    walk = [Step(chance.choice(begins), False, Life.submit_again, 0, "kill@1")]
    for _ in range(1, STEPS):
        kind = chance.choice(KINDS) if chance.random() < 0.4 else None
        which = chance.randrange(STEPS)
        walk.append(Step(kind, chance.random() < 0.2, chance.choice(ACTS), which, chance.choice(troubles)))
    return walk


def take(life: Life, step: Step, point: str) -> None:
    if step.trouble:
        life.meet()
        life.machine.arm(f"{point}={step.trouble}")
    if step.kind is not None:
        life.submit(step.kind, hold=step.hold)
    else:
        step.act(life, life.known[step.which % len(life.known)])
    life.check()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("database", ["sqlite", POSTGRES])
def test_what_people_were_told_stays_true_when_the_service_dies_at(database: str, point: str) -> None:
    @settings(
        max_examples=EXAMPLES[database],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # a walk takes seconds, and a simpler one would take another way
        database=None,
    )
    @given(st.integers(0, 2**32))
    def live(seed: int) -> None:
        with (
            tempfile.TemporaryDirectory(prefix="crash-") as folder,
            machine_on(database, Path(folder)) as machine,
        ):
            life = Life(machine)
            for step in steps(seed, point):
                note(str(step))
                take(life, step, point)
            life.end_well()
            assert len(life.services) > 1, "it died nowhere, so nothing was shown"

    live()
