"""The promise of the table of features: what an engine refuses there, it refuses by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

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
    with pytest.raises(Refused) as refusal:
        submit()
    assert refusal.value.code == "cannot"
    assert refusal.value.exit_code == 4
    for feature in refused[:_MOST_NAMED]:
        assert feature in str(refusal.value)
    raise RefusedAsPromised(", ".join(refused))
