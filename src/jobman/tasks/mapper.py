"""From a task to what executes it: its type and version decide on an image, with resources and environment.

The default is a table; a task may name another mapper, a Python entry point or an HTTP service, which answers
with the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from jobman.tasks.versions import Range, version


class Executor(msgspec.Struct, frozen=True, kw_only=True):
    """What executes tasks of a type."""

    image: str
    resources: dict[str, str] = {}
    environment: dict[str, str] = {}
    size: str = ""
    """The parameter that says how large a task is: how long it takes depends on it."""


class TypeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table: the versions of a type that an image executes."""

    type: str
    versions: str = "*"
    image: str
    resources: dict[str, str] = {}
    environment: dict[str, str] = {}
    size: str = ""

    @property
    def executor(self) -> Executor:
        return Executor(
            image=self.image, resources=self.resources, environment=self.environment, size=self.size
        )


class Unmappable(Exception):
    """Nobody executes such a task."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class Table:
    """The default mapper: the last line that fits decides, so that what is newer stands below."""

    learns = True
    """Whether operators may add lines to it."""

    def __init__(self, lines: Iterable[TypeLine]) -> None:
        self._own = list(lines)
        self._lines: dict[str, list[tuple[Range, TypeLine]]] = {}
        self.learn(())

    def learn(self, lines: Iterable[TypeLine]) -> None:
        """Have these below its own, in the place of those that were learned before."""
        self._lines = {}
        for line in (*self._own, *lines):
            self._lines.setdefault(line.type, []).append((Range(line.versions), line))

    @property
    def types(self) -> dict[str, Sequence[TypeLine]]:
        return {name: [line for _, line in lines] for name, lines in self._lines.items()}

    def map(self, type_: str, wanted: str | None = None) -> Executor:
        """The image for a version of a type; without one, that of the newest versions."""
        known = self._lines.get(type_)
        if known is None:
            listed = ", ".join(sorted(self._lines)) or "none"
            raise Unmappable(f"nobody executes tasks of the type `{type_}`", f"the known types are: {listed}")
        if wanted is None:
            return max(reversed(known), key=lambda each: _newest(each[1].versions))[1].executor
        fitting = [line for span, line in known if wanted in span]
        if not fitting:
            listed = ", ".join(line.versions for _, line in known)
            raise Unmappable(
                f"nobody executes version {wanted} of `{type_}`", f"the known versions are: {listed}"
            )
        return fitting[-1].executor


def _newest(text: str) -> tuple[bool, tuple[tuple[int, str], ...]]:
    """What of two ranges is newer: that which begins later; any version stands behind all others."""
    bounds = [part.strip().lstrip("><=!").removesuffix(".x").removesuffix(".*") for part in text.split(",")]
    numbers = [version(bound) for bound in bounds if bound not in ("*", "x", "")]
    return (bool(numbers), max(numbers, default=()))
