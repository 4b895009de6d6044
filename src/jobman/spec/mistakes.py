"""What authors get wrong in YAML itself: libyaml's complaints put into the author's words."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from jobman.spec.problems import Edit, Place, Problems
from jobman.spec.source import Source

_KEY_LINE = re.compile(r"(?P<indent> *)(?P<dashes>(?:- +)*)(?P<key>[^\s#'\"\[{&*!|>%@`-][^:#]*?) *:(?: |$)")
_NO_SPACE = re.compile(r" *(?:- +)*[A-Za-z_][\w.-]*:[^\s/:]")
_BLOCK_HEADER = re.compile(r"(?:^|[\s:-])[|>][0-9+-]*\s*(?:#.*)?$")
_ODD_STARTS = "@`%"


Repair = tuple[Edit, ...]


def explain_syntax_error(error: yaml.MarkedYAMLError, source: Source, problems: Problems) -> Repair:
    """Report a YAML error at the place an author must change; returns what lets reading go on, if any."""
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    column = mark.column + 1 if mark else 1
    what = error.problem or error.context or "this is not YAML"
    if any(problem.place is not None and problem.place.line == line for problem in problems):
        return ()  # The repair of this line did not help; one message about it is enough.
    for diagnose in _DIAGNOSES:
        repair = diagnose(what, line, column, source, problems, error)
        if repair is not None:
            return repair
    _add(problems, source, "JS020", line, column, what=what, hint=_hint(what))
    return ()


def _add(
    problems: Problems,
    source: Source,
    code: str,
    line: int,
    column: int,
    end: int | None = None,
    fix: tuple[Edit, ...] = (),
    **values: Any,
) -> None:
    shift = source.shifts.get(line - 1, 0)
    start = max(1, column - shift)
    place = Place(source.name, line, start, line, max((end or column + 1) - shift, start + 1))
    fix = () if source.original is not None else fix
    problems.add(code, place, fix=fix, line_text=source.line(line), **values)


def _tab(
    _what: str, line: int, _column: int, source: Source, problems: Problems, _error: Any
) -> Repair | None:
    """A tab in an indentation near the place libyaml stopped at."""
    for number in (line, line - 1, line + 1):
        text = text_of(source, number)
        indent = text[: len(text) - len(text.lstrip(" \t"))]
        if "\t" in indent:
            start = source.line_starts[number - 1]
            fix = (Edit(start, start + len(indent), indent.replace("\t", "  ")),)
            _add(problems, source, "JS021", number, indent.index("\t") + 1, fix=fix)
            return fix
    return None


def text_of(source: Source, number: int) -> str:
    """A line of the text being read, which may have been repaired."""
    return source.lines[number - 1] if 0 < number <= len(source.lines) else ""


def _unclosed(
    _what: str, _line: int, _column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A quote or a bracket that never ends: the place to look at is where it was opened."""
    context = error.context or ""
    mark = error.context_mark
    if mark is None:
        return None
    opened = {"quoted scalar": "quote", "flow sequence": "[", "flow mapping": "{"}
    for words, name in opened.items():
        if words in context:
            shown = text_of(source, mark.line + 1)[mark.column : mark.column + 1]
            _add(problems, source, "JS022", mark.line + 1, mark.column + 1, opened=shown or name)
            return ()
    return None


def _indentation(
    what: str, line: int, _column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A line that stands deeper or shallower than its siblings."""
    if not any(words in what for words in ("mapping values", "did not find expected", "block")):
        return None
    if repair := _missing_space(line, source, problems):
        return repair
    text = text_of(source, line)
    if not text.strip():
        return None
    here = len(text) - len(text.lstrip(" "))
    if repair := _left_block(line, here, source, problems):
        return repair
    is_item = text.lstrip().startswith("- ")
    levels = _open_levels(line, source)
    alike = [level for level in levels if level.is_item is is_item] or levels
    if not levels or here in {level.column for level in alike}:
        return _list_against_mapping(line, here, source, problems, error)
    sibling = min(alike, key=lambda level: (abs(level.column - here), -level.column))
    _add(
        problems,
        source,
        "JS023",
        line,
        here + 1,
        len(text.rstrip()) + 1,
        here=here - source.shifts.get(line - 1, 0),
        wanted=sibling.column,
        sibling=sibling.text,
        sibling_line=sibling.line,
    )
    return _reindented(line, here, sibling.column, source)


def _left_block(line: int, here: int, source: Source, problems: Problems) -> Repair:
    """A line of a text block (`|`) that is indented less than the lines above it."""
    number = line - 1
    inside = None
    while number > 0:
        text = text_of(source, number)
        indent = len(text) - len(text.lstrip(" "))
        if text.strip():
            if _BLOCK_HEADER.search(text) and inside is not None and indent < here:
                break
            if indent <= here:
                return ()
            inside = indent if inside is None else min(inside, indent)
        number -= 1
    if number <= 0 or inside is None:
        return ()
    width = len(text_of(source, line).rstrip())
    _add(problems, source, "JS029", line, here + 1, width + 1, here=here, wanted=inside, opened=number)
    start = source.line_starts[line - 1]
    return (Edit(start, start, " " * (inside - here)),)


def _reindented(line: int, here: int, wanted: int, source: Source) -> Repair:
    """Move a line, and what stands under it, to another indentation."""
    edits = []
    for number in range(line, len(source.lines) + 1):
        text = text_of(source, number)
        indent = len(text) - len(text.lstrip(" "))
        if text.strip() and indent < here:
            break
        start = source.line_starts[number - 1]
        if text.strip() and wanted > here:
            edits.append(Edit(start, start, " " * (wanted - here)))
        elif text.strip():
            edits.append(Edit(start, start + here - wanted, ""))
    return tuple(edits)


class _Level(NamedTuple):
    """An indentation that is open, with somebody who stands there."""

    column: int
    is_item: bool
    text: str
    line: int


def _open_levels(line: int, source: Source) -> list[_Level]:
    """The indentations that are open above a line, for keys and for list items."""
    levels: dict[tuple[int, bool], _Level] = {}
    lowest = 10**9
    for number in range(line - 1, 0, -1):
        text = text_of(source, number)
        match = _KEY_LINE.match(text)
        item = re.match(r" *- ", text)
        if not match and not item:
            continue
        key = match["key"].strip() if match else ""
        column = len(match["indent"]) + len(match["dashes"]) if match else lowest
        if match and column < lowest:
            levels.setdefault((column, False), _Level(column, False, key, number))
        dash = len(item.group()) - 2 if item else lowest
        if item and dash < lowest:
            levels.setdefault((dash, True), _Level(dash, True, f"- {key or text.strip()[2:12]}", number))
        lowest = min(lowest, len(text) - len(text.lstrip(" ")))
        if lowest == 0:
            break
    return list(levels.values())


def _list_against_mapping(
    line: int, here: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A list item where a key is expected, or a key where a list item is."""
    context = error.context_mark
    is_item = text_of(source, line).lstrip().startswith("- ")
    if context is None or "block" not in (error.context or ""):
        return None
    opened = text_of(source, context.line + 1)
    code = "JS024" if is_item else "JS025"
    width = len(text_of(source, line).rstrip())
    _add(
        problems, source, code, line, here + 1, width + 1, opened=opened.strip(), opened_line=context.line + 1
    )
    return ()


def _missing_space(line: int, source: Source, problems: Problems) -> Repair:
    for number in (line, line - 1):
        text = text_of(source, number)
        match = _NO_SPACE.match(text)
        if match and '"' not in text[: match.end()]:
            colon = match.end() - 2
            start = source.line_starts[number - 1] + colon
            fix = (Edit(start, start + 1, ": "),)
            _add(problems, source, "JS026", number, colon + 1, fix=fix, key=text[:colon].strip(" -"))
            return fix
    return ()


def _odd_start(
    what: str, line: int, column: int, source: Source, problems: Problems, _error: Any
) -> Repair | None:
    """A plain value that starts with a character YAML keeps for itself."""
    character = text_of(source, line)[column - 1 : column]
    if "cannot start any token" not in what or character not in _ODD_STARTS:
        return None
    _add(problems, source, "JS027", line, column, character=character)
    return ()


def _alias(
    what: str, line: int, column: int, source: Source, problems: Problems, _error: Any
) -> Repair | None:
    if "undefined alias" not in what:
        return None
    name = re.match(r"\*?([\w-]*)", text_of(source, line)[column - 1 :])
    shown = name.group(1) if name else ""
    _add(problems, source, "JS028", line, column, column + len(shown) + 1, name=shown)
    return ()


def _hint(what: str) -> str:
    if "duplicate anchor" in what:
        return "give every `&anchor` a name of its own"
    if "mapping values" in what:
        return "quote a value that contains `: `, and check the indentation of this line"
    return "check the indentation and the quotes here and in the line above"


_DIAGNOSES = (_tab, _alias, _unclosed, _odd_start, _indentation)
