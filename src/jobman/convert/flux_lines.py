"""Directives of a Flux batch script: `# flux:` lines, all with one mark, long texts between triple quotes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from jobman.convert.flux_options import FLUX_BATCH
from jobman.convert.options import Given, Where
from jobman.convert.remarks import Remarks
from jobman.convert.words import Word

_DIRECTIVE = re.compile(r"^(?P<prefix>[^\w]*)(?P<tag>flux:|FLUX:)(?P<rest>.*)$")
_MARK = re.compile(r"^([^\w\n]*)(flux|FLUX):", re.MULTILINE)
_PAIR = re.compile(r"(\"\"\"|''')(.*?)\1")
_QUOTES = ('"""', "'''")


class _Wrong(Exception):
    def __init__(self, where: Where, what: str, advice: str) -> None:
        super().__init__(what)
        self.where = where
        self.what = what
        self.advice = advice


def is_flux_script(text: str) -> bool:
    return any(_DIRECTIVE.match(line) for line in text.split("\n"))


def muted(text: str) -> str:
    """The script with its directives as mere comments: Flux may read what it is put into, too."""
    return _MARK.sub(r"\1\2-option:", text)


def read_directives(name: str, text: str, remarks: Remarks) -> tuple[Given, ...]:
    """The options of all directives."""
    given: list[Given] = []
    try:
        for where, rest in _texts(name, text):
            given += _read(where, rest, remarks)
    except _Wrong as wrong:
        place = wrong.where.span(0, len(wrong.where.text))
        remarks.add("JC113", place, wrong.where.text, what=wrong.what, advice=wrong.advice)
    return tuple(given)


def _read(where: Where, rest: str, remarks: Remarks) -> list[Given]:
    try:
        lexer = shlex.shlex(rest, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.escapedquotes = "\"'"
        words = [Word(text, 0, len(where.text)) for text in lexer]
    except ValueError:
        raise _Wrong(where, "a quote has no partner in this line", "close it") from None
    if words and not words[0].text.startswith("-"):
        raise _Wrong(where, f"`{words[0].text}` is no option", "a directive holds options of `flux batch`")
    given, left = FLUX_BATCH.read(words, where, remarks)
    for word in left:
        remarks.add("JC107", where.span(0, word.end), where.text, word=word.text)
    return given


def _texts(name: str, text: str) -> Iterator[tuple[Where, str]]:
    """What stands behind the mark; of several lines between triple quotes one text."""
    mark, is_over = "", False
    block: list[str] = []
    opened, opening = Where(), ""
    for number, line in enumerate(text.split("\n"), 1):
        where, found = Where(name, number, line), _DIRECTIVE.match(line)
        if found is None:
            if block:
                raise _Wrong(opened, "triple quotes are opened here and not closed", "close them")
            comment = mark.rstrip("fluxFLUX: ")
            is_over = is_over or bool(mark and line.strip() and not (comment and line.startswith(comment)))
            continue
        here = found["prefix"] + found["tag"]
        if is_over:
            raise _Wrong(where, "a directive stands behind the first command", "move it up to the others")
        if mark and here != mark:
            raise _Wrong(where, f"the mark changes from `{mark}` to `{here}`", f"write `{mark}` everywhere")
        mark = here
        rest = _PAIR.sub(lambda pair: shlex.quote(pair[2]), found["rest"]).rstrip()
        if not block and not rest.endswith(_QUOTES):
            yield where, rest
        elif not block:
            block, opened, opening = [rest[:-3]], where, rest[-3:]
        elif rest.endswith(opening):
            yield opened, block[0] + shlex.quote("\n".join([*block[1:], rest[:-3].strip()]).strip("\n"))
            block = []
        else:
            block.append(rest.strip())
    if block:
        raise _Wrong(opened, "triple quotes are opened here and not closed", "close them")
