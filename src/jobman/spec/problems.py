"""What is wrong with a document: values with a code, a place and an advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from jobman.spec.codes import CODES

Severity = Literal["error", "warning"]


class Place(msgspec.Struct, frozen=True, order=True):
    """A span of a source; lines and columns count from one, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Related(msgspec.Struct, frozen=True):
    """A second place that a problem is about."""

    place: Place
    text: str


class Edit(msgspec.Struct, frozen=True):
    """A mechanical repair: replace the characters from start to end."""

    start: int
    end: int
    text: str


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding, ready to be printed or sent."""

    code: str
    severity: Severity
    message: str
    advice: str
    place: Place | None = None
    related: tuple[Related, ...] = ()
    fix: tuple[Edit, ...] = ()
    line_text: str = ""


class SpecError(Exception):
    """A document that cannot be used, with every problem found in it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        errors = [problem for problem in self.problems if problem.severity == "error"]
        first = errors[0] if errors else None
        where = f"{first.place}: " if first and first.place else ""
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{where}{first.code}: {first.message}{more}" if first else "the document is wrong")


class Problems:
    """Collects the problems of one source and gives them back in file order."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._found: dict[tuple[str, Place | None, str], Problem] = {}

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.in_order())

    def __len__(self) -> int:
        return len(self._found)

    @property
    def has_errors(self) -> bool:
        return any(problem.severity == "error" for problem in self._found.values())

    def add(
        self,
        code: str,
        place: Place | None,
        *,
        related: tuple[Related, ...] = (),
        fix: tuple[Edit, ...] = (),
        line_text: str = "",
        **values: Any,
    ) -> None:
        """Record the problem `code` at `place`; `values` fill the catalogue's sentences."""
        entry = CODES[code]
        severity: Severity = "error" if self.strict and entry.strict else entry.severity
        problem = Problem(
            code,
            severity,
            entry.message.format_map(values),
            entry.advice.format_map(values),
            place,
            related,
            fix,
            line_text,
        )
        self._found.setdefault((code, place, problem.message), problem)

    def in_order(self) -> list[Problem]:
        """Problems without a place come first, the others as they stand in the file."""
        return sorted(self._found.values(), key=lambda p: (p.place is not None, p.place or _NOWHERE, p.code))


_NOWHERE = Place("", 0, 0, 0, 0)
