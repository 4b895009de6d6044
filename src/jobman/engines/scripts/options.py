"""Options of commands as people write them: words that begin one, and words that are its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


def grouped(words: Sequence[str], name_of: Callable[[str], str | None]) -> Iterator[tuple[str, list[str]]]:
    """Options with their values, as they were written; `name_of` gives None for a word that is a value."""
    current: tuple[str, list[str]] | None = None
    for word in words:
        name = name_of(word)
        if name is None and current is not None:
            current[1].append(word)
            continue
        if current is not None:
            yield current
        current = (name or word, [word])
    if current is not None:
        yield current
