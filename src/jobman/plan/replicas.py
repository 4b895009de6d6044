"""One replica of a unit: what its axes stand for, and the unit with them filled in."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from jobman.plan.model import Unit
from jobman.spec.policies import Policies

_FILLED = ("command", "steps", "image", "cwd", "stdout", "stderr", "flags")


def replica_values(unit: Unit, replica: int) -> dict[str, str]:
    """The value of each axis for a replica; empty without a matrix."""
    if not 0 <= replica < unit.replicas:
        raise IndexError(f"{unit.id} has replicas 0 to {unit.replicas - 1}, not {replica}")
    values: dict[str, str] = {}
    for axis, choices in reversed(unit.matrix.items()):
        replica, position = divmod(replica, len(choices))
        values[axis] = choices[position]
    return dict(reversed(values.items()))


def for_replica(unit: Unit, replica: int) -> Unit:
    """The unit as one replica runs it: axes filled in, and in the environment."""
    values = replica_values(unit, replica)
    if not values:
        return unit
    pattern = re.compile(r"\{\{ *(" + "|".join(values) + r") *\}\}")

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda match: values[match[1]], value)
        if isinstance(value, tuple):
            return tuple(fill(item) for item in value)
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, msgspec.Struct):
            return type(value)(**{name: fill(getattr(value, name)) for name in value.__struct_fields__})
        return value

    filled = {
        name: fill(getattr(unit, name)) for name in ("command", "steps", "image", "cwd", "stdout", "stderr")
    }
    policies: Policies = msgspec.structs.replace(
        unit.policies, hooks=fill(unit.policies.hooks), result_file=fill(unit.policies.result_file)
    )
    environment = {**values, **fill(unit.environment)}
    return msgspec.structs.replace(unit, **filled, policies=policies, environment=environment)
