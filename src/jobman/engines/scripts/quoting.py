"""Words of a shell: any text, exactly, and axes of a matrix as variables in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

AXIS = "axis_"
"""Before the names of variables that hold the axes of a matrix."""


def quoted(text: str, axes: Iterable[str] = ()) -> str:
    """A word that a shell reads as this text; `{{axis}}` in it is the value of that axis."""
    names = [re.escape(axis) for axis in axes]
    if not names or "{{" not in text:
        return shlex.quote(text)
    pieces = re.split(r"\{\{ *(" + "|".join(names) + r") *\}\}", text)
    # Every second piece is the name of an axis.
    words = [
        f'"${{{AXIS}{piece}}}"' if number % 2 else shlex.quote(piece)
        for number, piece in enumerate(pieces)
        if number % 2 or piece
    ]
    return "".join(words) or "''"


def array(name: str, words: Iterable[str], axes: Iterable[str] = ()) -> str:
    """An array of words."""
    names = tuple(axes)
    return f"{name}=({' '.join(quoted(word, names) for word in words)})"


def table(name: str, entries: Mapping[int, object]) -> str:
    """An array by number; entries that are empty are left out, and so is a table of nothing else."""
    inner = " ".join(
        f"[{key}]={shlex.quote(str(value))}" for key, value in entries.items() if value not in ("", None)
    )
    return f"declare -A {name}=({inner})" if inner else ""


def number(value: float) -> str:
    """A number of seconds, without a fraction where there is none."""
    return str(int(value)) if float(value).is_integer() else f"{value:.3f}".rstrip("0")


def spans(pairs: Iterable[tuple[int, int]]) -> str:
    """Spans as scripts read them: 1-3,7-7."""
    return ",".join(f"{low}-{high}" for low, high in pairs)
