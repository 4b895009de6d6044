"""What a broker tells of its tasks, as tests ask for it."""

from __future__ import annotations

from typing import Any

import msgspec

from jobman.tasks import Grid
from jobman.tasks.grid import Result
from tests.tasks.crowd import wait_until


def all_results(grid: Grid, count: int) -> dict[tuple[int, int], Result]:
    """What became of so many tasks: by batch and index, none of them told twice."""
    found: list[Result] = []

    def is_all() -> bool:
        # From where to read on is another matter with every reading.
        found[:] = (msgspec.structs.replace(each, place=0) for each in grid.results())
        return len(found) >= count

    wait_until(is_all)
    by_task = {(each.batch, each.index): each for each in found}
    assert len(by_task) == len(found) == count
    return by_task


def events(grid: Grid, kind: str, **wanted: object) -> list[dict[str, Any]]:
    """What is told of this kind, in order."""
    found = grid.ask("GET", "/v1/tasks/events")["events"]
    return [
        line
        for line in found
        if line["kind"] == kind and all(line[name] == value for name, value in wanted.items())
    ]


def counters(grid: Grid) -> dict[str, int]:
    """How many tasks are open, and how many of all are in each state that has any."""
    stats = grid.ask("GET", "/v1/tasks/stats")
    names = ("queued", "running", "completed", "failed", "killed", "expired")
    sums = {name: sum(image[name] for image in stats["images"]) for name in names}
    return {"open": stats["open"], **{name: count for name, count in sums.items() if count}}


def held_by(grid: Grid, agent: str) -> int | None:
    """How many tasks an agent has; None where it is not known."""
    found = grid.ask("GET", "/v1/agents").get(agent)
    return None if found is None else int(found["held"])
