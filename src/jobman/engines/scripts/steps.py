"""Steps: files that are written or brought before a command runs, on each of its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobman.engines.scripts.quoting import quoted
from jobman.plan.model import Unit
from jobman.spec.steps import Stage, Write


def function(unit: Unit, tag: int, axes: Sequence[str]) -> Iterator[str]:
    """What brings the files of a unit; it runs once on every node."""
    if not unit.steps:
        return
    yield f"steps_{tag}() {{"
    for step in unit.steps:
        if isinstance(step, Write):
            words = " ".join((quoted(step.path, axes), step.mode, quoted(step.content, axes)))
            yield f"    write_file {words} || return"
        else:
            words = " ".join((quoted(step.path, axes), quoted(step.to or step.path, axes)))
            yield f"    stage_file {words} || return"
    yield "}"
    if staged := [quoted(step.path, axes) for step in unit.steps if isinstance(step, Stage)]:
        yield f"staged_{tag}() {{ staged=({' '.join(staged)}); }}"
