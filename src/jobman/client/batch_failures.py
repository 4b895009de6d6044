"""What goes wrong between jobman and a manager of batch jobs, as a service would tell it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from jobman.client.batch_submission import refusal_of
from jobman.client.failures import Refused, Unreachable
from jobman.control.refusals import Refusal
from jobman.engines.scripts.commands import Failed, NotThere

_AWAY = 600.0
"""Seconds after which a manager that does not answer is no longer waited for."""
Answer = TypeVar("Answer")


def patient(ask: Callable[[], Answer]) -> Answer:
    """The answer of a manager that may be away for a while, as when it is restarted."""
    deadline = time.monotonic() + _AWAY
    while True:
        try:
            with as_failures():
                return ask()
        except Unreachable:
            if time.monotonic() > deadline:
                raise


@contextmanager
def as_failures() -> Iterator[None]:
    """What goes wrong, as a service would tell it."""
    try:
        yield
    except Refusal as error:
        raise Refused(error.status, error.failure()) from error
    except NotThere as error:
        raise Unreachable(f"{error}.", error.advice) from error
    except Failed as error:
        refusal = refusal_of(error)
        raise Refused(refusal.status, refusal.failure()) from error
