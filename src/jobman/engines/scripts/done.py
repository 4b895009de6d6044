"""What an earlier run of a job has done, and a new one need not do again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from jobman.engines.scripts.found import BatchJob
from jobman.engines.scripts.program import goal
from jobman.plan.model import Plan, Unit


def done_of(job: BatchJob, *, in_part: bool = True) -> dict[str, tuple[int, ...]]:
    """Replicas at the top that succeeded. Services and cleanup belong to each run.

    Without `in_part`, a task or group is run again as a whole where one of its replicas must be.
    """
    found: dict[str, tuple[int, ...]] = {}
    for unit in job.plan.children():
        if not unit.service and unit.when == "success":
            indexes = [
                each.index for each in job.replicas if each.unit == unit.id and each.state == "succeeded"
            ]
            if indexes and (in_part or len(indexes) == unit.replicas):
                found[unit.name] = tuple(sorted(indexes))
    return found


def left_word(plan: Plan, done: Mapping[str, Sequence[int]], whose: str) -> dict[str, bytes]:
    """What is in the folder of the new job from the beginning, as if its own scripts had left it."""
    found: dict[str, bytes] = {}
    for unit in plan.children():
        if indexes := done.get(unit.name):
            found.update((place, text.encode()) for place, text in _word(unit, indexes, whose))
    return found


def _word(unit: Unit, indexes: Sequence[int], whose: str) -> Iterator[tuple[str, str]]:
    for index in indexes:
        key = f"{unit.name}.{index}"
        fields = (f"{time.time():.6f}", "succeeded", key, "", "0", "", "", f"it succeeded in {whose}")
        yield f"log/{key}", "\t".join(fields) + "\n"
        yield f"began/{key}", ""
    if len(indexes) == unit.replicas:
        yield f"outcome/{unit.name}", f"succeeded 0 {unit.name}.{indexes[-1]}\n"
        yield f"ready/{unit.name}", ""
    else:
        yield f"outcome/{unit.name}.ends", "".join(_ends(unit, indexes))


def _ends(unit: Unit, indexes: Sequence[int]) -> list[str]:
    """As elements of an array count each other: how many succeeded, and how many of those that must."""
    wanted = 0
    aim = goal(unit)
    lines = []
    for number, index in enumerate(indexes, 1):
        wanted += aim is None or not aim[2] or _among(index, aim[2])
        lines.append(f"{index} succeeded {number} 0 0 0 {wanted} 0\n")
    return lines


def _among(index: int, spans: str) -> bool:
    pairs = (span.split("-") for span in spans.split(","))
    return any(int(low) <= index <= int(high) for low, high in pairs)
