"""Following jobs: their lines and how far they are, from all of them in one stream of news."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Queue
from typing import NamedTuple

from jobman.client import Client
from jobman.control.answers import FINAL_STATES, Details, LogLine

_SETTLE_SECONDS = (0.01, 0.5)
_MOST_WAITING = 10_000
"""News that wait for a slow reader; then the service waits, too."""
_SHARE_OF_LOOKS = 10


class News(NamedTuple):
    """Something new of a job: a line, or a look at it; the last look is `over`.

    `more` says that other news wait already, so that a reader need not show each by itself.
    """

    job: str
    line: LogLine | None = None
    look: Details | None = None
    over: bool = False
    more: bool = False


def follow(
    client: Client, jobs: list[str], *, looks: float | None, also: Sequence[Callable[[], object]] = ()
) -> Iterator[News]:
    """News of jobs until all are over; with `looks`, one at each of them every so many seconds.

    Lines and looks are read by threads of their own, so that Ctrl-C finds this one free. `also` goes on
    beside them: what it raises is raised here.
    """
    news: Queue[News | BaseException] = Queue(_MOST_WAITING)
    done = threading.Event()
    try:
        for work in also:
            _start(work, news)
        for job in jobs:
            _start(_read_lines, news, client, job, news)
            if looks is not None:
                _start(_look, news, client, job, news, looks, done)
        left = len(jobs)
        while left:
            one = news.get()
            if isinstance(one, BaseException):
                raise one
            yield one._replace(more=not news.empty())
            left -= one.over
    finally:
        done.set()


def _start(work: Callable[..., object], news: Queue[News | BaseException], *arguments: object) -> None:
    def run() -> None:
        try:
            work(*arguments)
        except Exception as error:
            news.put(error)

    threading.Thread(target=run, daemon=True).start()


def _read_lines(client: Client, job: str, news: Queue[News]) -> None:
    for line in client.logs(job, follow=True):
        news.put(News(job, line=line))
    news.put(News(job, look=_ended(client, job), over=True))


def _ended(client: Client, job: str) -> Details:
    """A job whose output has ended, when its end is recorded, too."""
    pause, slowest = _SETTLE_SECONDS
    while (details := client.details(job)).state not in FINAL_STATES:
        time.sleep(pause)
        pause = min(2 * pause, slowest)
    return details


def _look(client: Client, job: str, news: Queue[News], seconds: float, done: threading.Event) -> None:
    while not done.is_set():
        begun = time.monotonic()
        details = client.details(job)
        if details.state in FINAL_STATES:
            return
        news.put(News(job, look=details))
        # A look at a very large job takes a while; most of the time is left to the job itself.
        done.wait(max(seconds, _SHARE_OF_LOOKS * (time.monotonic() - begun)))
