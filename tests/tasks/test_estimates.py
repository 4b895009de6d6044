"""Estimates follow what tasks took, by their sizes where they say one, and know how wrong they were."""

from __future__ import annotations

from random import Random
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.tasks.estimates import DEFAULT, Estimator, History

SECONDS = st.floats(1e-6, 1e5)


def history_of(seconds: list[float], sizes: list[float] | None = None) -> History:
    history = History()
    for index, each in enumerate(seconds):
        history.add(each, size=None if sizes is None else sizes[index])
    return history


@given(st.lists(SECONDS, min_size=1, max_size=300))
def test_the_mean_and_the_quantiles_are_among_what_tasks_took(seconds: list[float]) -> None:
    history = history_of(seconds)
    assert min(seconds) * 0.99 <= history.mean <= max(seconds) * 1.01
    found = [history.quantile(part) for part in (0.0, 0.1, 0.5, 0.9, 1.0)]
    assert found == sorted(found)
    assert min(seconds) * 0.9 <= found[0]
    assert found[-1] <= max(seconds) * 1.1


def test_quantiles_are_right_to_a_tenth() -> None:
    random = Random(7)
    seconds = [random.lognormvariate(-3, 1) for _ in range(900)]
    history = history_of(seconds)
    tenths = quantiles(seconds, n=10)
    assert history.quantile(0.5) == pytest.approx(tenths[4], rel=0.25)
    assert history.quantile(0.9) == pytest.approx(tenths[8], rel=0.25)


def test_an_image_that_became_faster_is_known_as_such() -> None:
    history = history_of([10.0] * 5000 + [0.1] * 7000)
    assert history.mean == pytest.approx(0.1, rel=0.2)
    assert history.quantile(0.9) == pytest.approx(0.1, rel=0.1)


@given(st.floats(0.001, 10), st.floats(0.001, 10))
def test_a_size_that_decides_is_found_out(fixed: float, each: float) -> None:
    sizes = [float(size) for size in (1, 5, 2, 8, 3, 9, 4, 7, 6, 10)]
    history = history_of([fixed + each * size for size in sizes], sizes)
    assert history.estimate(100.0) == pytest.approx(fixed + each * 100, rel=1e-2)


def test_a_size_that_says_nothing_changes_nothing() -> None:
    history = history_of([2.0] * 20, [5.0] * 20)
    assert history.estimate(500.0) == pytest.approx(2.0)


def test_the_author_knows_best_and_nobody_knows_nothing() -> None:
    estimator = Estimator()
    kind = ("price", "2", "image")
    assert estimator.estimate(kind) == DEFAULT
    estimator.learn(kind, 0.25, DEFAULT)
    assert estimator.estimate(kind) == pytest.approx(0.25)
    assert estimator.estimate(kind, hint=3.0) == 3.0
    assert estimator.estimate(("other", "2", "image")) == DEFAULT


def test_errors_tell_how_far_and_which_way() -> None:
    history = History()
    for _ in range(50):
        history.add(2.0, estimate=1.0)
        history.add(0.5, estimate=1.0)
    assert history.errors.factor == pytest.approx(2.0, rel=0.01)
    assert history.errors.bias == pytest.approx(1.0, rel=0.05)
