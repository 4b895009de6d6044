"""Looks at a service: what waits, what runs and the nodes, read whenever something has happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from jobman.client import Refused, Unreachable

if TYPE_CHECKING:
    from jobman.client import Client
    from jobman.control.answers import Job, Node

MOST = 1000
"""Jobs of each kind that are read, of those who wait the first of each queue; the service counts all."""
_PAUSE = 1.0
_LEAST_PAUSE = 0.2
_AFTER_TROUBLE = 2.0


class Look(NamedTuple):
    """What was seen of a service at one moment."""

    at: float
    waiting: list[Job] = []
    running: list[Job] = []
    nodes: list[Node] = []
    counts: dict[str, int] = {}
    """Jobs by state, also those that were not read."""
    trouble: str = ""


def read(client: Client) -> Look:
    """A look; those who wait in the order in which they start, as far as that is known."""
    waiting = client.jobs_page(state="waiting", order="queue", limit=MOST).items
    running = client.jobs_page(state="running", limit=MOST).items
    status = client.status()
    return Look(
        at=time.time(),
        waiting=sorted(waiting, key=_turn),
        running=sorted(running, key=lambda job: -(job.started_at or 0.0)),
        nodes=client.nodes(),
        counts=status.jobs,
        trouble=status.trouble,
    )


def _turn(job: Job) -> tuple[bool, str, int, float]:
    """By the place in its queue; what does not wait for nodes comes last."""
    estimate = job.estimate
    if estimate is None or not estimate.position:
        return True, "", 0, job.submitted_at
    return False, estimate.queue, estimate.position, job.submitted_at


class Watch:
    """Looks again and again, in threads of its own: after each event, and every second."""

    def __init__(self, client: Client, show: Callable[[Look], object]) -> None:
        self._client = client
        self._show = show
        self._last = Look(at=0.0)
        self._wanted = threading.Event()
        self._over = threading.Event()
        # Daemons: one that waits for a service must not keep a person who wants to go.
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._look_on, self._listen)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        self._wanted.set()

    def look_now(self) -> None:
        """Somebody has done something: do not wait."""
        self._wanted.set()

    def _look_on(self) -> None:
        while not self._over.is_set():
            self._wanted.clear()
            self._last = self._look()
            if self._over.is_set():
                return
            self._show(self._last)
            self._over.wait(_LEAST_PAUSE)
            self._wanted.wait(_AFTER_TROUBLE if self._last.trouble else _PAUSE)

    def _look(self) -> Look:
        try:
            return read(self._client)
        except (Unreachable, Refused) as error:
            return self._last._replace(at=time.time(), trouble=words_of(error))

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                for _ in self._client.events(follow=True):
                    if self._over.is_set():
                        return
                    self._wanted.set()
            except (Unreachable, Refused):
                pass  # The next look says what is wrong.
            self._over.wait(_AFTER_TROUBLE)


def words_of(error: Unreachable | Refused) -> str:
    """What a person is told of a call that did not succeed."""
    failure = error.failure if isinstance(error, Refused) else error
    return f"{failure.message} {failure.advice}".strip()
