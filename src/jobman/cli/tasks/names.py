"""Batches and tasks as people name them: by number, by the name of batches, or as BATCH/INDEX."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from jobman.cli.state import misused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobman.tasks.grid import Grid

_SINGLE = re.compile(r"(.+)/([0-9,-]+)")
_NEARLY = re.compile(r"[0-9]+/")
_INDEXES = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_TASK = "BATCH[/INDEX]"
Meant = dict[int, list[range] | None]
"""The indexes of each batch; None: all that it has."""


class Single(NamedTuple):
    """Some tasks of one batch."""

    batch: str
    indexes: list[range]


def single_of(word: str) -> Single | None:
    """Tasks of `12/3`, `12/3-7`, `12/0,3-7` and `night/3`; None for anything else."""
    if (found := _SINGLE.fullmatch(word)) is None:
        return None
    matched = [_INDEXES.fullmatch(piece) for piece in found[2].split(",")]
    indexes = [range(int(each[1]), int(each[2] or each[1]) + 1) for each in matched if each]
    return Single(found[1], indexes) if len(indexes) == len(matched) and all(indexes) else None


class Named:
    """What a broker has, looked at only where somebody names it otherwise than by number."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    @cached_property
    def known(self) -> dict[str, list[int]]:
        """Batches by their name."""
        found: dict[str, list[int]] = {}
        for each in batches_of(self._grid):
            found.setdefault(each["name"], []).append(each["batch"])
        found.pop("", None)
        return found

    def batches(self, words: Iterable[str]) -> list[int]:
        """The batches that are meant; raises GridError."""
        return list(dict.fromkeys(batch for word in words for batch in self._batches(word)))

    def tasks(self, words: Iterable[str]) -> Meant:
        """The batches that are meant, or tasks of them; raises GridError."""
        found: Meant = {}
        for word in words:
            if (single := single_of(word)) is None or word in self.known:
                found |= dict.fromkeys(self._batches(word))
            elif (some := found.setdefault(self._batch(single.batch), [])) is not None:
                some += single.indexes
        return found

    def task(self, word: str) -> tuple[int, int]:
        """The task that is meant, of a batch alone the first; raises GridError."""
        if word.isdecimal():
            return int(word), 0
        single = single_of(word)
        if single is None or [len(each) for each in single.indexes] != [1]:
            misused(f"'{word}' is no task such as 12/3", "BATCH/INDEX")
        return self._batch(single.batch), single.indexes[0][0]

    def _batch(self, word: str) -> int:
        """The one of a name."""
        from jobman.tasks.failures import GridError

        found = self._batches(word)
        if len(found) > 1:
            numbers = ", ".join(map(str, sorted(found)))
            raise GridError("unknown", f"several batches are named `{word}`", f"say which one: {numbers}")
        return found[0]

    def _batches(self, word: str) -> list[int]:
        from jobman.tasks.failures import GridError

        if word.isdecimal():
            return [int(word)]
        if word not in self.known:
            if _NEARLY.match(word):
                misused(f"'{word}' names no tasks: write 12/3, 12/3-7 or 12/0,3-7", _TASK)
            names = ", ".join(sorted(self.known)) or "none"
            raise GridError("unknown", f"there is no batch `{word}`", f"the known names are: {names}")
        return self.known[word]


def batches_of(grid: Grid) -> list[dict[str, Any]]:
    """All batches that the broker still has."""
    found: list[dict[str, Any]] = grid.ask("GET", "/v1/tasks/batches")
    return found


def size_of(grid: Grid, batch: int) -> int:
    """How many tasks a batch has; raises GridError where there is no such batch."""
    from jobman.tasks.failures import GridError

    for each in batches_of(grid):
        if each["batch"] == batch:
            return int(each["size"])
    raise GridError("unknown", f"there is no batch {batch}", "`jobman task batches` shows what there is")


def indexes_of(grid: Grid, batch: int, some: list[range]) -> list[int]:
    """The indexes, in order; raises GridError where a batch has not so many, before they are counted."""
    grid.ask("GET", f"/v1/tasks/{batch}/{max(each[-1] for each in some)}")
    return sorted({index for each in some for index in each})
