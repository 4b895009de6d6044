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
_ODD_STARTS = ("@", "`", "%", "*", "&")


Repair = tuple[Edit, ...]


def explain_syntax_error(error: yaml.MarkedYAMLError, source: Source, problems: Problems) -> Repair:
    """Report a YAML error at the place an author must change; returns what lets reading go on, if any."""
    mark = error.problem_mark or error.context_mark
    line = min(mark.line + 1, len(source.lines)) if mark else 1
    column = mark.column + 1 if mark and mark.line < len(source.lines) else 1
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
            spaces = _spaces_for(indent, number, source)
            fix = (Edit(start, start + len(indent), spaces),)
            _add(problems, source, "JS021", number, indent.index("\t") + 1, fix=fix)
            return fix
    return None


def _spaces_for(indent: str, line: int, source: Source) -> str:
    """What an indentation with tabs was meant to be: a width of a tab that leads to an open level, or two."""
    is_item = text_of(source, line).lstrip().startswith("- ")
    columns = {level.column for level in _open_levels(line, source) if level.is_item is is_item}
    widths = [len(indent.expandtabs(width)) for width in (2, 4, 8)]
    return " " * next((width for width in widths if width in columns), widths[0])


def text_of(source: Source, number: int) -> str:
    """A line of the text being read, which may have been repaired."""
    return source.lines[number - 1] if 0 < number <= len(source.lines) else ""


def _unclosed(
    _what: str, line: int, column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A quote or a bracket that never ends: the place to look at is where it was opened."""
    context = error.context or ""
    mark = error.context_mark
    if mark is None:
        return None
    if "flow" in context and (repair := _missing_comma(line, column, source, problems)):
        return repair
    opened = {"quoted scalar": "quote", "flow sequence": "[", "flow mapping": "{"}
    for words, name in opened.items():
        if words in context:
            shown = text_of(source, mark.line + 1)[mark.column : mark.column + 1]
            _add(problems, source, "JS022", mark.line + 1, mark.column + 1, opened=shown or name)
            return ()
    return None


def _missing_comma(line: int, column: int, source: Source, problems: Problems) -> Repair:
    """Two entries of a `{…}` or `[…]` with nothing between them: a quoted text where a comma should be."""
    if text_of(source, line)[column - 1 : column] not in _QUOTES or not source.line_starts:
        return ()
    here = source.line_starts[line - 1] + column - 1
    before = source.text[:here].rstrip()
    if not before or not (before[-1].isalnum() or before[-1] in _ENDS_OF_ENTRIES):
        return ()
    fix = (Edit(len(before), len(before), ","),)
    what = "a comma is missing before this entry"
    _add(
        problems,
        source,
        "JS020",
        line,
        column,
        fix=fix,
        what=what,
        hint="write `,` behind the entry before it",
    )
    return fix


_QUOTES = ('"', "'")
_ENDS_OF_ENTRIES = "\"'}]"


def _indentation(
    what: str, line: int, column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A line that stands deeper or shallower than its siblings."""
    if not any(words in what for words in ("mapping values", "did not find expected", "block")):
        return None
    if repair := _missing_space(line, source, problems):
        return repair
    text = text_of(source, line)
    here = len(text) - len(text.lstrip(" "))
    if not text.strip() or not (column == here + 1 or _is_colon_of_key(text, column)):
        return None
    if repair := _left_block(line, here, source, problems):
        return repair
    is_item = text.lstrip().startswith("- ")
    levels = _open_levels(line, source)
    keys = [level for level in levels if not level.is_item]
    if not keys or any(level.column == here for level in keys):
        return _list_against_mapping(line, here, source, problems, error)
    alike = [level for level in levels if level.is_item is is_item] or levels
    if not alike:
        return None
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


def _is_colon_of_key(text: str, column: int) -> bool:
    """Whether the place is the colon behind the first key of a line."""
    match = _KEY_LINE.match(text)
    return match is not None and column <= len(match.group().rstrip())


def _left_block(line: int, here: int, source: Source, problems: Problems) -> Repair:
    """A line of a text block (`|`) that is indented less than the lines above it."""
    header = _header_above(line, here, source)
    if not header:
        return ()
    inside = [text_of(source, number) for number in range(header + 1, line)]
    wanted = next(len(text) - len(text.lstrip(" ")) for text in inside if text.strip())
    width = len(text_of(source, line).rstrip())
    _add(problems, source, "JS029", line, here + 1, width + 1, here=here, wanted=wanted, opened=header)
    start = source.line_starts[line - 1]
    return (Edit(start, start, " " * (wanted - here)),)


def _header_above(line: int, here: int, source: Source) -> int:
    """The line that opens the text block whose lines stand right above, deeper than `here`; 0 without one."""
    inside: list[int] = []
    for number in range(line - 1, 0, -1):
        text = text_of(source, number)
        if not text.strip():
            continue
        if inside and _BLOCK_HEADER.search(text) and min(inside) == inside[-1]:
            return number
        indent = len(text) - len(text.lstrip(" "))
        if indent <= here:
            return 0
        inside.append(indent)
    return 0


def _no_colon(
    what: str, _line: int, _column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A line that is neither a key nor an item: the place to look at is where it starts."""
    mark = error.context_mark
    if "could not find expected ':'" not in what or mark is None:
        return None
    line = mark.line + 1
    text = text_of(source, line)
    here = len(text) - len(text.lstrip(" "))
    if repair := _left_block(line, here, source, problems):
        return repair
    hint = "write `key: value`, or indent the line as part of the text above"
    what = "this line is neither a key nor a list item"
    _add(problems, source, "JS020", line, here + 1, len(text.rstrip()) + 1, what=what, hint=hint)
    return ()


def _anchor_twice(
    what: str, line: int, column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    if "second occurrence" not in what and "duplicate anchor" not in (error.context or ""):
        return None
    name = re.match(r"&[^\s,\[\]{}]*", text_of(source, line)[column - 1 :])
    shown = name.group() if name else "&"
    what = f"the anchor `{shown}` is defined twice"
    hint = "give every `&anchor` a name of its own"
    _add(problems, source, "JS020", line, column, column + len(shown), what=what, hint=hint)
    return ()


def _reindented(line: int, here: int, wanted: int, source: Source) -> Repair:
    """Move a line, and what stands under it, to another indentation."""
    edits = []
    opens_list = text_of(source, line).rstrip().endswith(":")
    for number in range(line, len(source.lines) + 1):
        text = text_of(source, number)
        indent = len(text) - len(text.lstrip(" "))
        if not text.strip():
            continue
        is_its_item = opens_list and indent == here and text.lstrip().startswith("- ")
        if number > line and indent <= here and not is_its_item:
            break
        start = source.line_starts[number - 1]
        move = wanted - here
        edits.append(Edit(start, start, " " * move) if move > 0 else Edit(start, start - move, ""))
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
    code = "JS024" if is_item else "JS025"
    width = len(text_of(source, line).rstrip())
    _add(problems, source, code, line, here + 1, width + 1, opened_line=context.line + 1)
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
    what: str, line: int, column: int, source: Source, problems: Problems, error: Any
) -> Repair | None:
    """A plain value that starts with a character YAML keeps for itself."""
    mark = error.context_mark
    if mark is not None and any(
        w in (error.context or "") for w in ("scanning an alias", "scanning an anchor")
    ):
        line, column = mark.line + 1, mark.column + 1
    elif "cannot start any token" not in what:
        return None
    character = text_of(source, line)[column - 1 : column]
    if character not in _ODD_STARTS:
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
    if "mapping values" in what:
        return "quote a value that contains `: `, and check the indentation of this line"
    return "check the indentation and the quotes here and in the line above"


_DIAGNOSES = (_tab, _alias, _anchor_twice, _unclosed, _odd_start, _no_colon, _indentation)
