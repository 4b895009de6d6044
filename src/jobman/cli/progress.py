"""The live view of `jobman run`: on a terminal a bar per task below the lines, elsewhere plain lines."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

from jobman.cli.colours import STATES, clean
from jobman.cli.details import title_of
from jobman.cli.lines import Streams, has_one_copy
from jobman.cli.state import say
from jobman.cli.times import length

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult
    from rich.text import Text

    from jobman.control.answers import Details, Task

_BAR_WIDTH = 30
_LEFT_FOR_LINES = 6
_MOST_WAITING = 1000
_OVER = ("succeeded", "failed", "cancelled", "skipped")
_BUSY = ("running", "starting", "stopping", "frozen")


class View(Protocol):
    """What shows a run to a person, and where its output goes."""

    def __enter__(self) -> View: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, job: Details) -> None:
        """Take a new look at a job into the view."""

    def put(self, text: str, *, error: bool) -> None:
        """Write output of a job to stdout, or to stderr."""

    def flush(self) -> None:
        """Let everything that was written be seen."""


class Quiet(Streams):
    """Nothing but the output."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, job: Details) -> None:
        """Say nothing."""

    def flush(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()


class Steps(Quiet):
    """A line on stderr when a task has ended, and when a job waits for long."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[tuple[str, ...]] = set()
        self._since = time.monotonic()

    def show(self, job: Details) -> None:
        if job.state == "waiting" and job.reason and time.monotonic() - self._since > 1.0:
            self._tell(job.id, job.reason, words=f"{job.name} waits: {clean(job.reason)}")
        if len(job.tasks) > 1:
            for task in job.tasks:
                if task.outcome is not None:
                    self._tell(job.id, task.scope, task.unit, words=f"{title_of(task)} {outcome_of(task)}")

    def _tell(self, *key: str, words: str) -> None:
        if key not in self._told:
            self._told.add(key)
            say(words)


class Bars:
    """A bar per task below the lines. Lines that go to the terminal are written above them."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._jobs: dict[str, Details] = {}
        self._started = time.time()
        self._console = Console(stderr=True, highlight=False, emoji=False)
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._streams = Streams()
        self._waiting: list[str] = []
        self._halves: dict[bool, str] = {}

    def __enter__(self) -> Bars:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        self._live.stop()
        for error, rest in self._halves.items():
            self._streams.put(f"{rest}\n", error=error)

    def show(self, job: Details) -> None:
        self._jobs[job.id] = job

    def put(self, text: str, *, error: bool) -> None:
        """Write above the bars; where a stream is no terminal, they are not in its way."""
        stream = sys.stderr if error else sys.stdout
        if not stream.isatty():
            self._streams.put(text, error=error)
            return
        whole, newline, rest = (self._halves.pop(error, "") + text).rpartition("\n")
        if rest:
            self._halves[error] = rest  # The bars begin at the start of a line, so half a line has to wait.
        self._waiting.append(whole + newline)
        if len(self._waiting) > _MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Show what was written, all at once: drawing the bars anew takes longer than a line."""
        if text := "".join(self._waiting):
            self._waiting = []
            self._console.print(_Raw(text), end="", soft_wrap=True)
        sys.stdout.flush()

    def _render(self) -> Group:
        from rich.console import Group
        from rich.table import Table

        parts: list[Any] = []
        room = max(3, self._console.height - _LEFT_FOR_LINES)
        for job in self._jobs.values():
            shown = most_telling(job.tasks, room - 1)
            grid = Table.grid(padding=(0, 1))
            for task in shown:
                grid.add_row(*_bar(task))
            parts.append(grid)
            if len(shown) < len(job.tasks):
                parts.append(_text(f"… and {len(job.tasks) - len(shown):,} more tasks", "dim"))
            parts.append(_text(self._foot(job), "dim"))
        return Group(*parts)

    def _foot(self, job: Details) -> str:
        passed = length(time.time() - (job.started_at or self._started))
        why = f": {clean(job.reason)}" if job.state == "waiting" and job.reason else ""
        return f"{job.name}  {job.state}{why}  {passed}  (Ctrl-C detaches)"


def view_for(jobs: list[Details], *, quiet: bool) -> View:
    """Bars where a terminal shows them and there is something to tell apart, lines elsewhere."""
    if quiet:
        return Quiet()
    is_one = len(jobs) == 1 and has_one_copy(jobs[0])
    if is_one or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return Steps()
    return Bars()


class _Raw:
    """A text that the console passes on as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        yield Segment(self._text)


def _text(words: str, style: str) -> Text:
    from rich.text import Text

    return Text(words, style=style, no_wrap=True, overflow="ellipsis")


def _bar(task: Task) -> tuple[Any, ...]:
    from rich.progress_bar import ProgressBar

    failed = task.counts.get("failed", 0)
    style = "red" if failed else "green"
    bar = ProgressBar(
        total=max(task.replicas, 1),
        completed=_over(task),
        width=_BAR_WIDTH,
        complete_style=style,
        finished_style=style,
    )
    colour = STATES.get(task.outcome or "", "red" if failed else "")
    return _text(title_of(task), "bold" if task.outcome is None else ""), bar, _text(outcome_of(task), colour)


def outcome_of(task: Task) -> str:
    """How far a task is: `succeeded`, `3/8, 2 running, 1 failed`, or what it waits for."""
    busy = sum(task.counts.get(state, 0) for state in _BUSY)
    retried, failed = task.counts.get("retried", 0), task.counts.get("failed", 0)
    said = []
    if task.outcome is not None:
        said.append(task.outcome)
    elif busy or _over(task):
        said += [f"{_over(task):,}/{task.replicas:,}"] + ([f"{busy:,} running"] if busy else [])
    else:
        said.append(f"waits for {', '.join(task.depends_on)}" if task.depends_on else "waits")
    if failed and (failed < task.replicas or task.outcome is None):
        said.append(f"{failed:,} failed")
    if retried:
        said.append(f"{retried:,} retried")
    return ", ".join(said)


def _over(task: Task) -> int:
    return sum(task.counts.get(state, 0) for state in _OVER)


def most_telling(tasks: list[Task], room: int) -> list[Task]:
    """As many tasks as there is room for: what runs before what waits, and that before what is over."""
    if len(tasks) <= room:
        return tasks

    def rank(task: Task) -> int:
        if task.outcome is not None:
            return 2 if task.outcome != "failed" else 0
        return 0 if any(task.counts.get(state, 0) for state in _BUSY) else 1

    kept = sorted(range(len(tasks)), key=lambda n: (rank(tasks[n]), n))[: max(room - 1, 1)]
    return [tasks[n] for n in sorted(kept)]
