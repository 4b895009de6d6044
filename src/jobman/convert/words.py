"""Splitting a line of options into words, as sbatch does and as a shell would; each word keeps its place."""

from __future__ import annotations

from typing import NamedTuple

_BLANKS = " \t\r\f\v"
_META = ";&|<>()`\n"


class Word(NamedTuple):
    """A word as it is meant, and where in its line it was written."""

    text: str
    start: int
    end: int


class Unclosed(Exception):
    """A quote that has no partner in its line."""

    def __init__(self, quote: str, start: int) -> None:
        super().__init__(quote)
        self.quote = quote
        self.start = start


def sbatch_words(line: str, start: int) -> list[Word]:
    """The words of a line from a column on.

    A backslash takes the next character as it is, within quotes of both kinds, too, but for a blank outside
    of them, which ends the word all the same. `#` outside of quotes ends the line, also inside of a word.
    """
    words: list[Word] = []
    place = start
    while True:
        while place < len(line) and line[place] in _BLANKS:
            place += 1
        if place >= len(line) or line[place] == "#":
            return words
        word = _sbatch_word(line, place)
        words.append(word)
        place = word.end


def _sbatch_word(line: str, start: int) -> Word:
    text: list[str] = []
    quote, opened, place = "", start, start
    while place < len(line) and (quote or line[place] not in _BLANKS):
        one = line[place]
        if one == "\\" and (quote or line[place + 1 : place + 2] not in _BLANKS):
            text.append(line[place + 1 : place + 2])
            place += 1
        elif one == "\\":
            pass
        elif one == quote:
            quote = ""
        elif quote:
            text.append(one)
        elif one in "\"'":
            quote, opened = one, place
        elif one == "#":
            break
        else:
            text.append(one)
        place += 1
    if quote:
        raise Unclosed(quote, opened)
    return Word("".join(text), start, min(place, len(line)))


def shell_words(line: str) -> list[Word] | None:
    """The words of a plain command; None where a shell would do more with it than start it.

    Variables stay as they are written: who runs the line again expands them again.
    """
    words: list[Word] = []
    place = 0
    while place < len(line):
        if line[place] in _BLANKS:
            place += 1
            continue
        if line[place] == "#":
            break
        word = _shell_word(line, place)
        if word is None:
            return None
        words.append(word)
        place = word.end
    return words


def _shell_word(line: str, start: int) -> Word | None:
    text: list[str] = []
    quote, place = "", start
    while place < len(line) and (quote or line[place] not in _BLANKS):
        one = line[place]
        if (not quote and one in _META) or (quote != "'" and line.startswith(("$(", "`"), place)):
            return None
        if one == "\\" and quote != "'":
            text.append(line[place + 1 : place + 2])
            place += 1
        elif one == quote:
            quote = ""
        elif not quote and one in "\"'":
            quote = one
        else:
            text.append(one)
        place += 1
    return None if quote else Word("".join(text), start, min(place, len(line)))


def expanded(line: str) -> str:
    """What of a line a shell would expand: all that is not in single quotes."""
    kept: list[str] = []
    quote, escaped = "", False
    for one in line:
        if quote != "'":
            kept.append(one)
        if escaped:
            escaped = False
        elif one == "\\" and quote != "'":
            escaped = True
        elif one == quote:
            quote = ""
        elif not quote and one in "\"'":
            quote = one
    return "".join(kept)
