"""Lines of output as people read them: where each came from, in colours that tell copies apart."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from jobman.cli.colours import PREFIXES, paint, wanted
from jobman.cli.times import fine_clock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobman.control.answers import Details, LogLine, Task

_WIDEST = 32
BAR = "│"


class Sink(Protocol):
    """Where text goes."""

    def put(self, text: str, *, error: bool) -> None:
        """Write a text to stdout, or to stderr."""


class Streams:
    """The streams of this process."""

    def __init__(self, *, flush: bool = False) -> None:
        self._flush = flush

    def put(self, text: str, *, error: bool) -> None:
        stream = sys.stderr if error else sys.stdout
        stream.write(text)
        if self._flush:
            stream.flush()


class Printer(Protocol):
    """Something that prints lines of output."""

    def write(self, line: LogLine) -> None:
        """Print a line, or the part of one."""

    def finish(self) -> None:
        """Print what is left of lines that never ended."""


class Plain:
    """Output as it was written: stdout to stdout, stderr to stderr, not a byte more."""

    def __init__(self, sink: Sink, *, split: bool = True) -> None:
        self._sink = sink
        self._split = split
        self._ends: dict[tuple[str, int, int, str], int] = {}

    def write(self, line: LogLine) -> None:
        if line.stream == "note":
            _put_note(self._sink, line.text)
            return
        text = line.text if self._lacks_newline(line) else line.text + "\n"
        self._sink.put(text, error=self._split and line.stream == "stderr")

    def _lacks_newline(self, line: LogLine) -> bool:
        """Whether it is part of a line, or the last one of a file: then its bytes are all there is to it."""
        source = (line.replica, line.attempt, line.copy, line.stream)
        size = line.end - self._ends.get(source, 0)
        self._ends[source] = line.end
        return line.partial or (line.end > 0 and size == len(line.text.encode()))

    def finish(self) -> None:
        """Nothing is kept back."""


class Prefixed:
    """Every line behind the name of the copy that wrote it, and the time where that was asked for."""

    def __init__(
        self,
        sink: Sink,
        labels: Labels | None,
        *,
        split: bool = False,
        timestamps: bool = False,
        utc: bool = False,
    ) -> None:
        self._sink = sink
        self._labels = labels
        self._split = split
        self._timestamps = timestamps
        self._utc = utc
        self._parts: dict[tuple[str, int, int, str], list[str]] = {}
        self._colours = {False: wanted(sys.stdout), True: wanted(sys.stderr)}

    def write(self, line: LogLine) -> None:
        source = (line.replica, line.attempt, line.copy, line.stream)
        if line.partial:
            self._parts.setdefault(source, []).append(line.text)
            return
        self._print(line, "".join((*self._parts.pop(source, ()), line.text)))

    def finish(self) -> None:
        from jobman.control.answers import LogLine

        for (replica, attempt, copy, stream), texts in self._parts.items():
            rest = LogLine(
                at=0.0,
                replica=replica,
                attempt=attempt,
                copy=copy,
                stream=stream,  # type: ignore[arg-type]
                text="",
            )
            self._print(rest, "".join(texts))
        self._parts.clear()

    def _print(self, line: LogLine, text: str) -> None:
        if line.stream == "note":
            _put_note(self._sink, text)
            return
        error = self._split and line.stream == "stderr"
        on = self._colours[error]
        head = ""
        if self._timestamps:
            moment = fine_clock(line.at, utc=self._utc) if line.at else ""
            head = paint(f"{moment} ", "dim", on=on)
        if self._labels is not None:
            label, style = self._labels.of(line)
            bar = paint(BAR, "red" if line.stream == "stderr" else "dim", on=on)
            head += f"{paint(label, style, on=on)} {bar} "
        self._sink.put(f"{head}{text}\n", error=error)


class Labels:
    """Names of copies: `task.replica`, with `/copy` where a replica has several; each with its colour."""

    def __init__(self, tasks: Iterable[Task], job: str = "") -> None:
        own = [task for task in tasks if task.kind == "task"]
        self._job = f"{job}:" if job else ""
        self._several = {task.unit for task in own if copies_of(task) > 1}
        widest = max((_width(task) for task in own), default=0) + len(self._job)
        self._width = min(widest, _WIDEST)
        self._styles: dict[str, str] = {}

    def of(self, line: LogLine) -> tuple[str, str]:
        unit = unit_of(line.replica)
        copy = f"/{line.copy}" if line.copy or unit in self._several else ""
        style = self._styles.setdefault(line.replica, PREFIXES[len(self._styles) % len(PREFIXES)])
        return f"{self._job}{line.replica}{copy}".ljust(self._width), style


def has_one_copy(details: Details) -> bool:
    """Whether the whole job is one copy of one task, so that its output needs no names."""
    tasks = [task for task in details.tasks if task.kind == "task"]
    return len(tasks) == 1 and tasks[0].replicas == 1 and copies_of(tasks[0]) == 1


def copies_of(task: Task) -> int:
    """How many copies of its command a replica runs."""
    copies: int = getattr(task, "copies", 1)
    return copies


def unit_of(replica: str) -> str:
    """The unit that a replica is one of: `publish/page` for `publish.0/page.0`."""
    return "/".join(part.rpartition(".")[0] or part for part in replica.split("/"))


def _width(task: Task) -> int:
    """How long its longest label will be; of a group that has not begun, only the unit is known."""
    around = task.scope or "".join(f"{part}.0/" for part in task.unit.split("/")[:-1]).rstrip("/")
    copies = len(f"/{copies_of(task) - 1}") if copies_of(task) > 1 else 0
    return len(f"{around}/" if around else "") + len(f"{task.name}.{task.replicas - 1}") + copies


def _put_note(sink: Sink, text: str) -> None:
    sink.put(paint(f"── {text}", "dim", on=wanted(sys.stderr)) + "\n", error=True)
