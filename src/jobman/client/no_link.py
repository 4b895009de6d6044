"""Where a client would ask a service: everything that comes here cannot be done without one."""

from __future__ import annotations

from typing import Any, NoReturn

from jobman.client.failures import Refused
from jobman.client.link import Link
from jobman.control.answers import Failure

_THINGS = {
    "extend": "More time for what runs",
    "queues": "Queues",
    "nodes": "Draining nodes",
    "calendar": "Maintenance and reservations",
    "usage": "Accounting",
    "tokens": "Tokens",
    "sessions": "Going inside a copy",
}
_ADVICE = "That needs a service of jobman; JOBMAN_SERVER names one."


class NoLink(Link):
    """Refuses, in the words of the place that has no service."""

    def __init__(self, place: str) -> None:
        self._place = place

    def ask(self, method: str, target: str, **_: Any) -> bytes:
        del method
        not_here(target, self._place)

    def stream(self, target: str, *_: Any, **__: Any) -> NoReturn:
        not_here(target, self._place)


def not_here(target: str, place: str) -> NoReturn:
    """Refuse what only a service can do; `target` is where it would be asked for."""
    words = target.partition("?")[0].split("/")
    what = next((_THINGS[word] for word in reversed(words) if word in _THINGS), "This")
    message = f"{what}: not on {place}." if what != "This" else f"There is no service on {place}."
    raise Refused(501, Failure(code="not-here", message=message, advice=_ADVICE, exit=4))
