"""Options by a table, read as getopt_long reads them: short ones joined, long ones shortened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from jobman.convert.remarks import Remarks
from jobman.convert.words import Word
from jobman.spec.problems import Place
from jobman.spec.suggest import closest, did_you_mean

Takes = Literal["value", "maybe", "nothing"]
"""Whether an option takes a value; `maybe` only one that is joined to it."""
Fate = Literal["carried", "engine", "left", "command"]
"""What becomes of it: part of the document, kept for its engine alone, left out, or of the command itself."""


class Option(NamedTuple):
    """An option of the original command. `words` say what it becomes, or why it does not."""

    name: str
    short: str = ""
    takes: Takes = "value"
    fate: Fate = "carried"
    words: str = ""
    also: tuple[str, ...] = ()
    """Other spellings."""
    advice: str = ""


class Given(NamedTuple):
    """An option as it was given; the place is None on a command line."""

    option: Option
    value: str | None
    written: str
    place: Place | None = None
    line_text: str = ""


class Where(NamedTuple):
    """The line that words stand in; a command line has no file."""

    file: str | None = None
    line: int = 0
    text: str = ""

    def span(self, start: int, end: int) -> Place | None:
        if self.file is None:
            return None
        return Place(self.file, self.line, start + 1, self.line, max(end, start + 1) + 1)


class Table:
    """The options of one command."""

    def __init__(self, options: Iterable[Option]) -> None:
        self.options = tuple(options)
        self.long = {name: each for each in self.options for name in (each.name, *each.also)}
        self.short = {each.short: each for each in self.options if each.short}

    def read(
        self, words: Sequence[Word], where: Where, remarks: Remarks, *, stops: bool = False
    ) -> tuple[list[Given], list[Word]]:
        """The options among words, and the rest; with `stops` they end at the first word that is none."""
        return _Reading(self, words, where, remarks).read(stops=stops)

    def find(self, name: str) -> list[str]:
        """The long options that a name or its beginning stands for; other spellings of one count once."""
        if name in self.long:
            return [name]
        found = {self.long[each].name: each for each in self.long if name and each.startswith(name)}
        return list(found.values())


class _Reading:
    def __init__(self, table: Table, words: Sequence[Word], where: Where, remarks: Remarks) -> None:
        self._table = table
        self._words = words
        self._where = where
        self._remarks = remarks
        self._next = 0
        self._given: list[Given] = []

    def read(self, *, stops: bool) -> tuple[list[Given], list[Word]]:
        rest: list[Word] = []
        while self._next < len(self._words):
            word = self._words[self._next]
            self._next += 1
            if word.text == "--":
                return self._given, [*rest, *self._words[self._next :]]
            if word.text.startswith("--"):
                self._long(word)
            elif word.text.startswith("-") and word.text != "-":
                self._short(word)
            elif stops:
                return self._given, list(self._words[self._next - 1 :])
            else:
                rest.append(word)
        return self._given, rest

    def _long(self, word: Word) -> None:
        name, equals, value = word.text[2:].partition("=")
        found = self._table.find(name)
        if len(found) != 1:
            self._unknown(f"--{name}", word, found, self._table.long)
            return
        option, written = self._table.long[found[0]], f"--{found[0]}"
        if option.takes == "nothing" and equals:
            self._tell("JC103", word, option=written)
        elif option.takes == "value" and not equals:
            self._take(option, word, written)
        else:
            self._give(option, value if equals else None, word, word.text)

    def _short(self, word: Word) -> None:
        """`-N2`, `-N 2`, `-Hn4`."""
        place = 1
        while place < len(word.text):
            letter = word.text[place]
            option = self._table.short.get(letter)
            place += 1
            if option is None:
                self._unknown(f"-{letter}", word, [], {})
                return
            if option.takes == "value":
                if place < len(word.text):
                    self._give(option, word.text[place:], word, f"-{letter} {word.text[place:]}")
                else:
                    self._take(option, word, f"-{letter}")
                return
            self._give(option, None, word, f"-{letter}")

    def _take(self, option: Option, word: Word, written: str) -> None:
        """A value that stands behind its option as a word of its own."""
        if self._next >= len(self._words):
            self._tell("JC102", word, option=written)
            return
        value = self._words[self._next]
        self._next += 1
        sign = "=" if written.startswith("--") else " "
        self._give(option, value.text, Word("", word.start, value.end), f"{written}{sign}{value.text}")

    def _give(self, option: Option, value: str | None, word: Word, written: str) -> None:
        place = self._where.span(word.start, word.end)
        self._given.append(Given(option, value, written, place, self._where.text))

    def _unknown(self, written: str, word: Word, candidates: list[str], known: Mapping[str, Option]) -> None:
        if candidates:
            names = ", ".join(f"`--{name}`" for name in sorted(candidates))
            self._tell("JC104", word, option=written, candidates=names)
            return
        meant = closest(written.lstrip("-"), known)
        advice = did_you_mean(meant and f"--{meant}", "remove it, or check how it is spelt")
        self._tell("JC101", word, option=written, advice=advice)

    def _tell(self, code: str, word: Word, **values: str) -> None:
        self._remarks.add(code, self._where.span(word.start, word.end), self._where.text, **values)
