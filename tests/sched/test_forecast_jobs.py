"""What the forecast believes that requests need."""

from __future__ import annotations

from jobman.sched.forecast_jobs import needed
from jobman.sched.requests import Request
from tests.sched.clusters import cores


def test_the_price_of_a_runtime_is_counted_for_each_piece_in_the_units_of_the_planner() -> None:
    request = Request(id="a", alternatives=((cores(1, slots=4),),), overhead={"core": 250, "memory": 3})
    assert needed(request) == {"core": 5.0, "memory": 12.0}
