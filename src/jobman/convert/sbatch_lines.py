"""The `#SBATCH` lines of a script, read as sbatch reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobman.convert.options import Given, Where
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch_options import SBATCH
from jobman.convert.words import Unclosed, sbatch_words
from jobman.spec.problems import Place

_MARK = "#SBATCH"
_SEPARATORS = ("hetjob", "packjob")
_MISPLACED = re.compile(r"^\s+#SBATCH\b|^#\s+SBATCH\b")
_OTHERS = re.compile(r"^#(PBS|BSUB|COBALT)\b")


class Script(NamedTuple):
    """A script: its name, its text and the options of each part of a heterogeneous job."""

    name: str
    text: str
    parts: tuple[tuple[Given, ...], ...]


def read_script(name: str, text: str, remarks: Remarks) -> Script:
    """Options stand before the first line that is neither blank nor a comment; later ones are told."""
    parts: list[list[Given]] = [[]]
    is_header = True
    for number, line in enumerate(text.split("\n"), 1):
        where = Where(name, number, line)
        is_header = is_header and (not line.strip() or line.lstrip().startswith("#"))
        if not line.startswith(_MARK):
            _look_aside(where, remarks, is_header=is_header)
        elif not is_header:
            _tell_unread(where, "it stands behind the first command", remarks)
        elif line[len(_MARK) :].split("#")[0].strip() in _SEPARATORS:
            parts.append([])
        else:
            parts[-1] += _read_line(where, remarks)
    return Script(name, text, tuple(tuple(part) for part in parts))


def _read_line(where: Where, remarks: Remarks) -> list[Given]:
    try:
        words = sbatch_words(where.text, len(_MARK))
    except Unclosed as found:
        place = where.span(found.start, found.start + 1)
        remarks.add("JC106", place, where.text, quote=found.quote)
        return []
    given, rest = SBATCH.read(words, where, remarks)
    for word in rest:
        remarks.add("JC107", where.span(word.start, word.end), where.text, word=word.text)
    return given


def _look_aside(where: Where, remarks: Remarks, *, is_header: bool) -> None:
    if is_header and _MISPLACED.match(where.text):
        _tell_unread(where, f"`{_MARK}` has to start it", remarks)
    elif is_header and (other := _OTHERS.match(where.text)):
        _tell_unread(where, f"`{other[0]}` is of another system", remarks)


def _tell_unread(where: Where, reason: str, remarks: Remarks) -> None:
    place = Place(where.file or "", where.line, 1, where.line, len(where.text) + 1)
    remarks.add("JC204", place, where.text, reason=reason)
