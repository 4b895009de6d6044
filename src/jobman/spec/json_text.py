"""JSON is almost YAML: the two things libyaml refuses in it are put into YAML's words."""

from __future__ import annotations

import json
import re

from jobman.spec.problems import Edit
from jobman.spec.source import Source

_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def json_as_yaml(source: Source) -> Source:
    """The source itself, or for JSON with tabs or surrogate pairs a text that libyaml reads as the same."""
    text = source.text
    if text[:1] not in "{[" and text.lstrip()[:1] not in ("{", "["):
        return source
    has_pairs = _SURROGATES.search(text) is not None
    if ("\t" not in text and not has_pairs) or not _is_json(text):
        return source
    if "\t" in text:
        # A JSON string holds no raw tab, so every tab is white space and keeps its column as a space.
        spaced = Source(source.name, text.replace("\t", " "))
        spaced.original = source
        source = spaced
    return source.repaired(tuple(map(_escape, _SURROGATES.finditer(source.text)))) if has_pairs else source


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _escape(match: re.Match[str]) -> Edit:
    high, low = int(match[1], 16), int(match[2], 16)
    character = 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00)
    return Edit(match.start(), match.end(), f"\\U{character:08x}")
