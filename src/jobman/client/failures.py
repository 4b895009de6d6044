"""How a request can fail: refused by the service, or there is nobody to ask."""

from __future__ import annotations

from jobman.control.answers import Failure
from jobman.control.embedded import Unreachable

__all__ = ["Refused", "Unreachable"]


class Refused(Exception):
    """The service will not or cannot do it; `failure` says why."""

    def __init__(self, status: int, failure: Failure) -> None:
        super().__init__(failure.message)
        self.status = status
        self.failure = failure

    @property
    def code(self) -> str:
        """What is wrong, in a word that stays the same."""
        return self.failure.code

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        return self.failure.exit
