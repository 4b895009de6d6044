"""Two tenants on real workers: each has its share of their seconds, however long its tasks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.tasks import Grid
from tests.tasks.crowd import crowd, wait_until

SLEEPS = """
import time
from jobman.tasks.worker import serve

def sleeps(payload: bytes) -> bytes:
    time.sleep(float(payload))
    return b""

serve(sleeps)
"""
SETTINGS = {
    "types": [{"type": "sleep", "image": "squares"}],
    "quotas": {"many": {"weight": 3}, "few": {"weight": 1}},
}


def used(grid: Grid) -> float:
    """Seconds that workers spent for it so far."""
    images = grid.ask("GET", "/v1/tasks/stats")["images"]
    return float(sum(image["seconds_used"] for image in images))


@pytest.mark.slow
def test_weights_of_three_to_one_are_kept_whatever_tasks_take(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tasks.sqlite"
    with crowd(tmp_path, store, SLEEPS, settings=SETTINGS) as them:
        them.start_broker()
        them.wait_for_broker()
        with Grid(them.url, tenant="many") as many, Grid(them.url, tenant="few") as few:
            # What they say of their tasks is wrong, in both directions.
            for grid, seconds, count, said in ((many, 0.005, 20_000, 0.05), (few, 0.1, 1000, 0.01)):
                grid.submit_many("sleep", [str(seconds).encode()] * count, estimate=said)
            for name in ("one", "two"):
                them.start_agent(name)
            wait_until(lambda: used(many) + used(few) > 8)
            before = used(many), used(few)
            wait_until(lambda: used(many) + used(few) > 40)
            spent = used(many) - before[0], used(few) - before[1]
            assert spent[0] / sum(spent) == pytest.approx(0.75, abs=0.0375)
            for grid in (many, few):
                assert grid.ask("GET", "/v1/tasks/stats")["open"] > 0
                grid.cancel(grid.ask("GET", "/v1/tasks/batches")[0]["batch"])
