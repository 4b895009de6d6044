"""Facts that are required, as features of nodes."""

from __future__ import annotations

import pytest

from jobman.engines.slurm.facts import constraint, feature

NAMES = {"os.name=linux": "rocky9", "gpu": "nv", "ssd": "has-ssd"}


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("os.name", "linux", "rocky9"),
        ("os.name", "plan9", "plan9"),
        ("gpu", "a100", "nva100"),
        ("ssd", "yes", "has-ssd"),
        ("fabric", "infiniband", "infiniband"),
        ("hardware.tpu", "yes", "tpu"),
        ("hardware.tpu", "no", "no-tpu"),
    ],
)
def test_a_fact_is_called_as_the_site_says_else_by_its_value(key: str, value: str, name: str) -> None:
    assert feature(key, value, NAMES) == name


def test_all_facts_are_required_at_once_and_none_twice() -> None:
    assert constraint({"a": "x", "b": "y", "c": "x"}, {}) == "x&y"
    assert constraint({}, {}) == ""
