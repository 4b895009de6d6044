"""The Standard Workload Format: one line of 18 numbers for each job, and a head of comments."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobman.sim.trace import LeftOut, Trace, TraceError, TraceJob, in_order

FIELDS = 18
_KIB = 1024
_GZIP = b"\x1f\x8b"
_BURSTS = (2, 3, 4)
"""States of lines that are only a part of an execution; one line more has the whole of it."""
_CANCELLED = 5
_LAYOUT = "a line of SWF has 18 numbers, -1 for what is not known"


def read_swf(path: str | Path) -> Trace:
    """Read a trace from a file, gzipped or not, or from standard input for `-`; raises TraceError."""
    lines = _text(path).splitlines()
    trace = _Reading().read(lines, str(path))
    if not trace.jobs:
        raise _without_jobs(trace, lines)
    return trace


def _text(path: str | Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except IsADirectoryError:
        raise TraceError(f"{path} is a folder", "name a file such as trace.swf or trace.swf.gz") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path} is not a whole gzip file: {error}", "fetch or pack it again") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}", "is the name right?") from None
    if b"\0" in data[:4096]:
        raise TraceError(f"{path} is no text", _LAYOUT)
    return data.decode("utf-8", "replace")


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines:,} lines"


def _without_jobs(trace: Trace, lines: Sequence[str]) -> TraceError:
    if not trace.left_out:
        return TraceError(f"{trace.name} has no jobs ({_count(len(lines))})", _LAYOUT)
    first = trace.left_out[0]
    return TraceError(
        f"{trace.name} has no job that could be replayed; line {first.line}: {first.words}", _LAYOUT
    )


class _Reading:
    """What is known while the lines of one trace are read."""

    def __init__(self) -> None:
        self.jobs: list[TraceJob] = []
        self.left_out: list[LeftOut] = []
        self.header: dict[str, str] = {}
        self._lines: dict[int, int] = {}

    def read(self, lines: Iterable[str], name: str) -> Trace:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if not fields:
                continue
            if fields[0][0] == ";":
                self._comment(line)
            else:
                self._job(number, fields)
        return Trace(
            name=name,
            jobs=in_order(self.jobs),
            processors=self._whole("MaxProcs") or self._whole("MaxNodes"),
            began=self._whole("UnixStartTime"),
            header=self.header,
            left_out=self.left_out,
        )

    def _comment(self, line: str) -> None:
        key, colon, value = line.lstrip("; \t").partition(":")
        if colon and value.strip():
            self.header.setdefault(key.strip(), value.strip())

    def _whole(self, key: str) -> int | None:
        """A positive number of the head; others stand for nothing known."""
        text = self.header.get(key, "").split(" ")[0]
        return int(text) if text.isdecimal() and int(text) > 0 else None

    def _job(self, line: int, fields: list[str]) -> None:
        try:
            values = list(map(int, fields))
        except ValueError:
            try:
                values = list(map(_number, fields))
            except (ValueError, OverflowError):
                bad = next(text for text in fields if not _is_number(text))
                return self._leave(line, f"{bad[:40]!r} is no number")
        if len(values) < FIELDS:
            return self._leave(line, f"it has {len(values)} fields; {_LAYOUT}")
        if reason := self._unusable(values):
            return self._leave(line, reason)
        self._lines[values[0]] = line
        self.jobs.append(_job(values, fields))
        return None

    def _leave(self, line: int, words: str) -> None:
        self.left_out.append(LeftOut(line, words))

    def _unusable(self, values: list[int]) -> str:
        number, submit, _, run, allocated, _, _, asked, _, _, state = values[:11]
        if run < 0 or (run == 0 and state == _CANCELLED):
            return f"job {number} never ran"
        if asked <= 0 and allocated <= 0:
            return f"job {number} has no processors"
        if state in _BURSTS:
            return f"job {number} has a line of a part of it, its status is {state}"
        if submit < 0:
            return f"job {number} was submitted before the trace began"
        if number in self._lines:
            return f"job {number} was on line {self._lines[number]} already"
        return ""


def _job(values: list[int], fields: list[str]) -> TraceJob:
    number, submit, wait, run, allocated, _, _, asked, requested, memory, _, user, _, program = values[:14]
    if requested <= 0:
        requested = max(run, 1)
    return TraceJob(
        number,
        submit,
        run if run < requested else requested,
        asked if asked > 0 else allocated,
        requested,
        fields[11] if user >= 0 else "",
        fields[13] if program >= 0 else "",
        memory * _KIB if memory > 0 else 0,
        wait if wait >= 0 else None,
    )


def _number(text: str) -> int:
    """A number; one with a fraction, which some logs have for times, is taken down to the second."""
    return int(float(text))


def _is_number(text: str) -> bool:
    try:
        _number(text)
    except (ValueError, OverflowError):
        return False
    return True


def write_swf(path: str | Path, trace: Trace, starts: Sequence[float] | None = None) -> None:
    """Write a trace, gzipped where the name ends in .gz; with starts, their waits are in it."""
    text = swf_text(trace, starts)
    data = text.encode()
    # Without the moment in its head the same trace is the same file.
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def swf_text(trace: Trace, starts: Sequence[float] | None = None) -> str:
    """A trace as text; with starts, their waits are in it."""
    head = {key: value for key, value in trace.header.items() if key not in ("MaxProcs", "UnixStartTime")}
    if trace.processors is not None:
        head["MaxProcs"] = str(trace.processors)
    if trace.began is not None:
        head["UnixStartTime"] = f"{trace.began:.0f}"
    lines = [f"; {key}: {value}" for key, value in head.items()]
    for position, job in enumerate(trace.jobs):
        wait = job.wait if starts is None else starts[position] - job.submit
        lines.append(_line(job, -1 if wait is None else wait))
    return "\n".join(lines) + "\n"


def _line(job: TraceJob, wait: float) -> str:
    memory = job.memory // _KIB or -1
    user = job.user if job.user.isdecimal() else "-1"
    program = job.name if job.name.isdecimal() else "-1"
    times = f"{job.submit:.0f} {wait:.0f} {job.run:.0f}"
    sizes = f"{job.processors} -1 -1 {job.processors} {job.requested:.0f} {memory}"
    return f"{job.number} {times} {sizes} 1 {user} -1 {program} -1 -1 -1 -1"
