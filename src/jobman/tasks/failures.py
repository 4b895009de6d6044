"""What a program that uses a grid has to reckon with."""

from __future__ import annotations


class GridError(Exception):
    """Something that a grid does not do; it has a code, words and an advice."""

    def __init__(self, code: str, message: str, advice: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{message}: {advice}" if advice else message)
        self.code = code
        self.message = message
        self.advice = advice
        self.retry_after = retry_after
        """Seconds after which it may be tried again, where that helps."""


class BrokerAway(GridError):
    """No broker answers."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__("broker-away", message, advice)


class TaskFailed(Exception):
    """A task that did not come to a result."""

    code = "task-failed"

    def __init__(self, id_: str, status: str, reason: str, attempts: int = 1) -> None:
        super().__init__(id_, status, reason, attempts)
        self.id = id_
        self.status = status
        """`failed`, `killed` or `expired`."""
        self.reason = reason
        self.attempts = attempts

    def __str__(self) -> str:
        tries = "" if self.attempts == 1 else f" after {self.attempts} attempts"
        return f"task {self.id} {self.status}{tries}" + (f": {self.reason}" if self.reason else "")
