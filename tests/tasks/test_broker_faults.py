"""A real broker whose clock jumps, or whose disk is full for a while, under real agents and workers."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import msgspec
import pytest

from jobman.tasks import Grid
from jobman.tasks.model import Problem, Submission
from tests.tasks.crowd import GATED, Crowd, crowd, wait_until
from tests.tasks.entry import WALL
from tests.tasks.test_agent import url_of
from tests.tasks.test_faults import fill, small_disk
from tests.tasks.test_serving import Somebody
from tests.tasks.told import all_results, counters, events, held_by

pytestmark = pytest.mark.slow

DAY = 86_400.0
LONG = 600.0
"""A deadline that is far away on every clock but one that jumps."""


class Wall:
    """The clock of the wall of a broker, which can be set."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "wall"
        self.jump(0.0)

    def jump(self, seconds: float) -> None:
        """From now on it is wrong by so much."""
        new = self.path.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self.path)


def let_time_pass(grid: Grid) -> float:
    """A short deadline passes on the broker; tells when that was, on the wall of the broker."""
    batch = grid.submit_many("nobodys", [b"0"], deadline=0.5)
    wait_until(lambda: events(grid, "deadline", batch=batch))
    (line,) = events(grid, "deadline", batch=batch)
    assert line["words"] == "while they waited"
    return float(line["at"])


def test_a_clock_that_jumps_moves_no_deadline_and_no_lease_before_the_next_start(tmp_path: Path) -> None:
    wall, gate = Wall(tmp_path), tmp_path / "gate"
    types = [{"type": "square", "image": "squares"}, {"type": "nobodys", "image": "nowhere"}]
    with (
        crowd(
            tmp_path,
            url_of(tmp_path),
            GATED,
            environment={WALL: str(wall.path), "GATE": str(gate)},
            settings={"types": types},
            grace=1.0,
        ) as them,
        Grid(them.url) as grid,
    ):
        them.start_broker()
        them.wait_for_broker()
        them.start_agent("one", id="one")
        running = grid.submit_many("square", [b"7"], deadline=LONG)
        waiting = grid.submit_many("nobodys", [b"0"], deadline=LONG)
        wait_until(them.executed)
        for jump in (DAY, -DAY):
            wall.jump(jump)
            assert let_time_pass(grid) - time.time() == pytest.approx(jump, abs=DAY / 2)
        assert counters(grid) == {"open": 2, "queued": 1, "running": 1, "expired": 2}
        # It starts anew in the past: all the time is left that there was, and the agent has what it had.
        them.restart_broker()
        let_time_pass(grid)
        wait_until(lambda: held_by(grid, "one") == 1)
        gate.touch()
        assert all_results(grid, 4)[running, 0].result == b"49"
        assert len(them.executed()) == 1
        assert counters(grid) == {"open": 1, "queued": 1, "completed": 1, "expired": 3}
        # Over a restart there is no other clock than that of the wall.
        wall.jump(DAY)
        them.restart_broker()
        wait_until(lambda: events(grid, "deadline", batch=waiting))
        assert all_results(grid, 5)[waiting, 0].status == "expired"
        assert counters(grid) == {"open": 0, "completed": 1, "expired": 4}
        assert not events(grid, "agent-lost")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
def test_while_the_disk_is_full_what_is_there_is_executed_and_it_is_recorded_once_when_there_is_room(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    # More than fits into what the store has set aside.
    special = {"GATE": str(gate), "SIZE": "500000"}
    with (
        small_disk(tmp_path / "disk") as disk,
        crowd(tmp_path, url_of(disk), GATED, environment=special, grace=1.0) as them,
        Grid(them.url) as grid,
    ):
        them.start_broker()
        them.wait_for_broker()
        them.start_agent("one")
        # So long that only one of them is with the agent.
        batch = grid.submit_many("square", [b"2", b"3", b"4"], estimate=1.0)
        wait_until(them.executed)
        fill(disk / "filler")
        refuses(them)
        gate.touch()
        wait_until(lambda: len(them.executed()) == 3)
        refuses(them)
        assert list(grid.results()) == []
        (disk / "filler").unlink()
        found = all_results(grid, 3)
        assert [found[batch, index].result.strip() for index in range(3)] == [b"4", b"9", b"16"]
        grid.submit_many("square", [b"5"])
        all_results(grid, 4)
        them.restart_broker()
        assert all_results(grid, 4).keys() >= found.keys()
        assert counters(grid) == {"open": 0, "completed": 4}
        # What was refused has left nothing behind.
        assert len(grid.ask("GET", "/v1/tasks/batches")) == 2
        assert len(them.executed()) == 4


def refuses(them: Crowd) -> None:
    """A submission that does not fit is answered at once, with what to do."""

    async def ask() -> None:
        asked = Submission(type="square", payloads=[b"x" * 200_000] * 5)
        answer = await Somebody(them.port, "default").ask("POST", "/v1/tasks", asked)
        problem = msgspec.msgpack.decode(answer.body, type=Problem)
        assert (answer.status, problem.code) == (507, "not-written")
        assert "full" in problem.message
        assert problem.advice == "nothing was accepted; try again later"

    asyncio.run(asyncio.wait_for(ask(), 60))
