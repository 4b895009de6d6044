"""Options of sbatch and srun: their names, long and short, and which displaces which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jobman.engines.scripts.options import grouped

SHORT = {
    "A": "account",
    "a": "array",
    "b": "begin",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "G": "gpus",
    "H": "hold",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "v": "verbose",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
_ALIKE = (
    {"mem", "mem-per-cpu", "mem-per-gpu"},
    {"gres", "gpus", "gpus-per-node", "gpus-per-task"},
    {"exclusive", "oversubscribe"},
)
"""Options that say the same thing in different ways: one displaces the others."""
_PLAIN = re.compile(r"[^\s\\\"'#]+")


def name_of(option: str) -> str | None:
    """The long name of a word that begins an option; None for one that is the value of another."""
    if option.startswith("--"):
        return option[2:].partition("=")[0]
    if option.startswith("-") and len(option) > 1:
        return SHORT.get(option[1], option[1])
    return None


def displaced(generated: Iterable[str], given: Sequence[str]) -> list[str]:
    """What was generated, without what is given in its place."""
    names = {name for name, _ in grouped(given, name_of)}
    names |= {name for alike in _ALIKE if alike & names for name in alike}
    return [word for word in generated if name_of(word) not in names]


def lines(given: Sequence[str]) -> Iterator[str]:
    """Given options as lines of a header: each with its value."""
    for _, (first, *rest) in grouped(given, name_of):
        name, equals, own = first.partition("=")
        if not first.startswith("--"):
            yield " ".join([value(first), *map(value, rest)])
        elif equals or rest:
            yield f"{name}={value(' '.join([*([own] if equals else []), *rest]))}"
        else:
            yield first


def value(text: str) -> str:
    """A value in a line of a header, which sbatch takes apart in its own way."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
