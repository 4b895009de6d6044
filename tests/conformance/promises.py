"""The promise of the features table: what an engine refuses there, it refuses by name, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jobman.client import Refused
from jobman.engines.matrix import MATRIX
from jobman.plan.model import Plan

T = TypeVar("T")
_MOST_NAMED = 5


class RefusedAsPromised(Exception):
    """A plan was refused for the features that the table says are refused: the scenario ends well here."""


def keep_promise(engine: str, plan: Plan, submit: Callable[[], T]) -> T:
    """Submit a plan. One that uses a refused feature must be refused, and the feature named."""
    refused = [feature for feature in plan.features if MATRIX[engine][feature].how == "refused"]
    if not refused:
        return submit()
    try:
        submit()
    except Refused as refusal:
        assert refusal.code == "cannot", refusal
        assert refusal.exit_code == 4, refusal
        for feature in refused[:_MOST_NAMED]:
            assert feature in str(refusal), f"{feature} is not named: {refusal}"
        raise RefusedAsPromised(", ".join(refused)) from None
    raise AssertionError(f"the {engine} engine took what it says it refuses: {', '.join(refused)}")
