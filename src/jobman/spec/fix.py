"""Mechanical repairs: applied as edits to the text, so that comments and layout stay."""

from __future__ import annotations

from collections.abc import Mapping

from jobman.spec.load import NO_OVERRIDES, load_jobs
from jobman.spec.problems import Edit, Problem, Problems
from jobman.spec.site import Site
from jobman.spec.source import Source

_MOST_ROUNDS = 20


def fix_source(source: Source, site: Site, overrides: Mapping[str, str] = NO_OVERRIDES) -> Source:
    """The source with everything repaired that can be repaired without a guess at the meaning."""
    for _ in range(_MOST_ROUNDS):
        problems = Problems()
        load_jobs(source, site, problems, overrides)
        edits = _compatible(problems.in_order())
        if not edits:
            return source
        source = Source(source.name, apply_edits(source.text, _with_line_ends(edits, source.text)))
    return source


def apply_edits(text: str, edits: list[Edit]) -> str:
    """A text with edits that do not overlap."""
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _with_line_ends(edits: list[Edit], text: str) -> list[Edit]:
    """Edits whose lines end as those of the file do."""
    if "\r\n" not in text:
        return edits
    return [Edit(edit.start, edit.end, edit.text.replace("\n", "\r\n")) for edit in edits]


def _compatible(problems: list[Problem]) -> list[Edit]:
    """The repairs of a round: a repair that would touch another one waits for the next round."""
    taken: list[Edit] = []
    for problem in problems:
        if problem.fix and not any(_touch(edit, other) for edit in problem.fix for other in taken):
            taken.extend(problem.fix)
    return taken


def _touch(one: Edit, other: Edit) -> bool:
    return one.start <= other.end and other.start <= one.end
