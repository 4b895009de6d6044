"""Files that several copies or streams write to: every line of them is told once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jobman.control.logs.streams import LogStream


def apart(streams: Iterable[LogStream]) -> list[LogStream]:
    """Streams no two of which cover the same part of a file.

    Of those that overlap, the first to begin speaks for all of them, until the last of them ends; whose line
    is whose cannot be known. One that begins where another has ended, as a later attempt does, stands alone.
    """
    found: list[LogStream] = []
    speakers: dict[object, int] = {}
    for stream in sorted(streams, key=lambda each: (each.start, each.key)):
        place = speakers.get(stream.path)
        if place is not None and _overlap(found[place], stream):
            found[place] = _joined(found[place], stream)
        else:
            speakers[stream.path] = len(found)
            found.append(stream)
    return found


def _overlap(first: LogStream, second: LogStream) -> bool:
    return first.end is None or second.start < first.end


def _joined(first: LogStream, second: LogStream) -> LogStream:
    end = None if first.end is None or second.end is None else max(first.end, second.end)
    return msgspec.structs.replace(first, end=end, ended=first.ended and second.ended)
