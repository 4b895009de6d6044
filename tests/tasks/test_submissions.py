"""What may be submitted."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from jobman.tasks.batches import Status
from jobman.tasks.broker import Broker
from jobman.tasks.mapper import Table, TypeLine
from jobman.tasks.model import Pull, Report, Retries, Submission
from jobman.tasks.submissions import Refusal, check

TABLE = Table([TypeLine(type="price", image="pricing", size="paths")])


def a_submission(**more: Any) -> Submission:
    return Submission(**{"type": "price", "payloads": [b"1", b"2"], **more})


@pytest.mark.parametrize(
    "more",
    [
        {"estimates": -1.0},
        {"estimates": nan},
        {"estimates": [1.0, inf]},
        {"estimates": [1.0]},
        {"deadline": -1.0},
        {"sizes": [1.0, nan]},
        {"sizes": [1.0]},
        {"retries": Retries(limit=-1)},
        {"retries": Retries(limit=1, delay=nan)},
        {"payloads": []},
        {"references": ["file:/a"]},
        {"payloads": [], "references": ["no reference"]},
        {"payloads": [], "references": ["file:/a\r\nx: y"]},
    ],
)
def test_what_makes_no_sense_is_refused_with_an_advice(more: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as caught:
        check(a_submission(**more))
    assert caught.value.advice


def test_what_makes_sense_is_not() -> None:
    check(a_submission(estimates=[0.0, 2.5], sizes=3.0, deadline=0.5, retries=Retries(limit=2, delay=0.1)))
    check(a_submission(payloads=[], references=["s3://bucket/one", "file:/two"]))


def executed(broker: Broker, paths: int) -> None:
    """Have a batch done whose tasks take a millisecond for each path."""
    broker.submit("a", a_submission(parameters={"paths": str(paths)}), now=0.0, wall=0.0)
    for given in broker.pull("x", Pull(image="pricing", seconds=1e9, have={}), now=0.0):
        indexes = list(range(given.low, given.high))
        seconds = [paths / 1000] * len(indexes)
        broker.report(
            "x",
            [
                Report(
                    batch=given.batch,
                    indexes=indexes,
                    status=Status.COMPLETED,
                    seconds=seconds,
                    results=[b""] * len(indexes),
                )
            ],
            now=0.0,
        )


def test_a_parameter_that_a_type_declares_tells_how_long_tasks_take() -> None:
    broker = Broker(TABLE)
    for paths in (100, 200, 500, 1000, 2000):
        executed(broker, paths)
    accepted = broker.submit("a", a_submission(parameters={"paths": "1500"}), now=0.0, wall=0.0)
    assert broker.batches[accepted.id].estimate(0) == pytest.approx(1.5, rel=0.01)


def test_a_size_that_is_no_number_is_refused() -> None:
    with pytest.raises(Refusal, match="no number for the parameter `paths`"):
        Broker(TABLE).submit("a", a_submission(parameters={"paths": "many"}), now=0.0, wall=0.0)
