"""Options of flux: their names, long and short, which displaces which, and how a script holds them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from jobman.engines.scripts.options import grouped

SHORT = {
    "B": "bank",
    "c": "cores",
    "g": "gpus",
    "N": "nodes",
    "n": "slots",
    "o": "setopt",
    "q": "queue",
    "t": "time-limit",
    "u": "urgency",
    "x": "exclusive",
}
_LONG = {
    "ntasks": "slots",
    "nslots": "slots",
    "cores-per-task": "cores",
    "cores-per-slot": "cores",
    "gpus-per-task": "gpus",
    "gpus-per-slot": "gpus",
}
"""What `flux batch` calls in another way than `flux submit`."""
_SHAPE = frozenset(("nodes", "slots", "cores", "gpus", "exclusive"))
_WHOLE = frozenset(("tasks-per-node", "tasks-per-core", "cores-per-node", "gpus-per-node", "resources-shape"))
"""Whoever gives one of these says all there is of the shape."""
_DIRECTIVE = "#flux:"


def name_of(option: str) -> str | None:
    """The long name of a word that begins an option; None for one that is the value of another."""
    if option.startswith("--"):
        word = option[2:].partition("=")[0]
        return _LONG.get(word, word)
    if option.startswith("-") and len(option) > 1:
        return SHORT.get(option[1], option[1])
    return None


def displaced(generated: Sequence[str], given: Sequence[str]) -> list[str]:
    """What was generated, without what is given in its place; options of the shell add up."""
    names = {name for name, _ in grouped(given, name_of)} - {"setopt"}
    if names & _WHOLE:
        names |= _SHAPE
    return [word for name, words in grouped(generated, name_of) if name not in names for word in words]


def directives(words: Iterable[str]) -> Iterator[str]:
    """Lines of a script that `flux batch` reads as its options; an option stands with its value."""
    for _, each in grouped(list(words), name_of):
        yield f"{_DIRECTIVE} {' '.join(_quoted(word) for word in each)}"


def _quoted(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name}={shlex.quote(value)}" if equals and name.startswith("--") else shlex.quote(word)


def read_directives(text: str) -> list[str]:
    """The options that a script has in its head."""
    found: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("#"):
            break
        if line.startswith(_DIRECTIVE):
            found += shlex.split(line.removeprefix(_DIRECTIVE))
    return found
