"""Refusals: why the service does not do what it was asked, with a stable code and an advice."""

from __future__ import annotations

from typing import Any

from jobman.control.answers import Failure

# code: (HTTP status, exit code of the command line)
CODES: dict[str, tuple[int, int]] = {
    "bad-request": (400, 2),
    "bad-document": (422, 3),
    "bad-settings": (422, 3),
    "cannot": (422, 4),
    "does-not-fit": (422, 4),
    "no-such-path": (404, 2),
    "no-such-method": (405, 2),
    "no-such-job": (404, 1),
    "no-such-gate": (404, 1),
    "no-such-task": (404, 1),
    "no-such-token": (404, 1),
    "no-such-entry": (404, 1),
    "no-such-queue": (404, 1),
    "no-such-node": (404, 1),
    "no-such-copy": (404, 1),
    "no-such-session": (404, 1),
    "ambiguous": (409, 2),
    "wrong-state": (409, 1),
    "key-reused": (409, 2),
    "output-removed": (410, 1),
    "too-slow": (408, 5),
    "too-large": (413, 2),
    "not-json": (415, 2),
    "unauthenticated": (401, 6),
    "forbidden": (403, 6),
    "quota": (403, 6),
    "would-delay": (409, 6),
    "store": (503, 5),
    "stopping": (503, 5),
    "standby": (503, 5),
    "engine": (502, 5),
    "internal": (500, 5),
}


class Refusal(Exception):
    """Something the service will not or cannot do."""

    def __init__(
        self,
        code: str,
        message: str,
        advice: str = "",
        problems: list[dict[str, Any]] | None = None,
        largest: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.advice = advice
        self.problems = problems or []
        self.largest = largest
        """Where too much was asked for: the most that would be given."""

    def failure(self, request: str = "") -> Failure:
        """As it is told."""
        return Failure(
            code=self.code,
            message=self.message,
            advice=self.advice,
            exit=self.exit_code,
            problems=self.problems,
            largest=self.largest,
            request=request,
        )

    @property
    def status(self) -> int:
        """The HTTP status."""
        return CODES[self.code][0]

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        return CODES[self.code][1]
