"""What a registry says of how to log in (RFC 9110, section 11), and where it says there is more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

_PARAMETER = re.compile(r'[\s,]*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCHEME = re.compile(r"[\s,]*([A-Za-z][A-Za-z0-9_-]*)")
_LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[a-z*]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)', re.I)
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next(?![\w-]))', re.I)


class Challenge(NamedTuple):
    """A way to log in: `basic`, or `bearer` with where tokens are to be had."""

    scheme: str
    parameters: dict[str, str]


def challenges(headers: Iterable[str]) -> list[Challenge]:
    """All ways that the `WWW-Authenticate` headers offer."""
    return [found for header in headers for found in _challenges(header)]


def _challenges(header: str) -> list[Challenge]:
    found: list[Challenge] = []
    position = 0
    while position < len(header):
        if found and (given := _PARAMETER.match(header, position)):
            value = given[3] if given[2] is None else re.sub(r"\\(.)", r"\1", given[2])
            found[-1].parameters[given[1].lower()] = value
            position = given.end()
        elif named := _SCHEME.match(header, position):
            found.append(Challenge(named[1].lower(), {}))
            position = named.end()
        else:
            break
    return found


def next_page(header: str) -> str | None:
    """Path and query of the page that a `Link` header calls the next.

    Its host is not believed: behind a proxy it is often another than the one that can be reached.
    """
    for target, parameters in _LINK.findall(header):
        if _NEXT.search(parameters):
            try:
                parts = urlsplit(target)
            except ValueError:
                return None
            return f"{parts.path}?{parts.query}" if parts.query else parts.path or None
    return None
