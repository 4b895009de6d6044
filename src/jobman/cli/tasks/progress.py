"""How far tasks are, on stderr: a bar where a terminal shows it, and elsewhere one line at the end."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from jobman.cli.state import say
from jobman.cli.times import length

if TYPE_CHECKING:
    from rich.progress import Progress

_LATELY = 10.0
"""Seconds over which a rate is told."""


class Rate:
    """Of something that is counted: how many a second, lately."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._marks: list[tuple[float, int]] = [(self._start, 0)]

    def seen(self, count: int) -> None:
        """So many by now."""
        now = time.monotonic()
        if now - self._marks[-1][0] >= 0.25:
            self._marks.append((now, count))
            while len(self._marks) > 2 and now - self._marks[1][0] > _LATELY:
                self._marks.pop(0)

    @property
    def lately(self) -> float:
        (start, before), (end, now) = self._marks[0], self._marks[-1]
        return (now - before) / (end - start) if end > start else 0.0

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._start

    def overall(self, count: int) -> float:
        """A second, from the beginning to now."""
        return count / max(self.seconds, 1e-6)


class Steps:
    """No bar."""

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to take away."""

    def show(self, done: int, words: str = "") -> None:
        """So many are done."""

    def notice(self, words: str) -> None:
        """Say why nothing happens."""
        say(words)


class Bar(Steps):
    """A bar that moves, with a rate and what is left of the time."""

    def __init__(self, what: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._total = total
        self._rate = Rate()
        self._progress: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(30, complete_style="green", finished_style="green"),
            TextColumn("{task.fields[told]}", style="dim", markup=False),
            console=Console(stderr=True, highlight=False, emoji=False),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(what, total=total, told="")

    def __enter__(self) -> Bar:
        self._progress.start()
        self.show(0)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, done: int, words: str = "") -> None:
        self._rate.seen(done)
        self._progress.update(self._task, completed=done, told=self._told(done, words))

    def notice(self, words: str) -> None:
        self._progress.console.print(f"jobman: {words}", markup=False, soft_wrap=True)

    def _told(self, done: int, words: str) -> str:
        whole = f"{done:,}" if self._total is None else f"{done:,}/{self._total:,}"
        rate = self._rate.lately
        said = [whole, words, f"{rate_of(rate)}" if rate else ""]
        if rate and self._total and done < self._total:
            said.append(f"{length((self._total - done) / rate)} left")
        return ", ".join(filter(None, said))


def steps_for(what: str, total: int | None, *, quiet: bool = False) -> Steps:
    """A bar where somebody sees it."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return Steps()
    return Bar(what, total)


def rate_of(rate: float) -> str:
    """`12,300/s`, `3.4/s`, `2/min`; nothing for nothing."""
    if rate >= 10:
        return f"{rate:,.0f}/s"
    if rate >= 1:
        return f"{rate:.1f}/s"
    return f"{rate * 60:.2g}/min" if rate * 60 >= 0.1 else ""


def off_by(error: float) -> str:
    """How far estimates are off: `12%`, `16 ×`; nothing for nothing."""
    if error >= 2:
        return f"{error:,.0f} ×"
    return f"{error:.0%}" if error >= 0.005 else ""


def count_of(number: int, noun: str) -> str:
    """`1 task`, `12,000 tasks`, `2 batches`."""
    more = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else more}"
