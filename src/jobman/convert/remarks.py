"""Collecting what is told of a conversion, in the order of the file."""

from __future__ import annotations

from typing import Any

from jobman.convert.codes import CONVERSION_CODES
from jobman.spec.problems import Place, Problem, Severity


class Remarks:
    """Errors and remarks of one conversion; `strict` makes errors of all of them."""

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._found: dict[tuple[str, Place | None, str], Problem] = {}

    def add(self, code: str, place: Place | None, line_text: str = "", **values: Any) -> None:
        entry = CONVERSION_CODES[code]
        severity: Severity = "error" if self._strict else entry.severity
        message, advice = entry.message.format_map(values), entry.advice.format_map(values)
        problem = Problem(code, severity, message, advice, place, line_text=line_text)
        self._found.setdefault((code, place, message), problem)

    def have_errors(self) -> bool:
        return any(problem.severity == "error" for problem in self._found.values())

    def in_order(self) -> list[Problem]:
        """What has no place, such as an option of the command line, comes first."""
        return sorted(
            self._found.values(), key=lambda found: (found.place is not None, found.place or _NOWHERE)
        )


_NOWHERE = Place("", 0, 0, 0, 0)
