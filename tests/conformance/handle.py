"""A job of a scenario, spoken to through the client that every engine has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from jobman.client import Client, Refused
from jobman.control.answers import FINAL_STATES, Attempt, Blocker, Details, Event, LogLine, Replica, Why
from tests.conformance.outcome import Outcome, have_come

_OVER = (*FINAL_STATES, "skipped")


class JobHandle:
    """A job, and everything its author can do to it."""

    def __init__(self, client: Client, job: str, *, patience: float, pause: float) -> None:
        self._client = client
        self._patience = patience
        self._pause = pause
        self.id = job

    def wait(self, timeout: float | None = None) -> Outcome:
        return self._until("it does not end", lambda: self.is_over, timeout)

    def end(self) -> None:
        """Whatever it waits for, it need not any more."""
        with suppress(Refused):
            self.cancel()
            for gate in self.details().gates:
                self.open_gate(gate)
            self.release()
        self.wait()

    def unfinished(self) -> list[str]:
        """Replicas of a job that is over, and are not."""
        return [
            f"{replica.key} is {replica.state}" for replica in self.replicas() if replica.state not in _OVER
        ]

    def until(self, *moments: str, timeout: float | None = None) -> Outcome:
        return self._until(f"{moments} do not come", lambda: have_come(moments, self.events()), timeout)

    def until_line(self, text: str, timeout: float | None = None) -> Outcome:
        return self._until(
            f"{text!r} is not written", lambda: any(line.text == text for line in self.logs()), timeout
        )

    def until_blocked(self, kind: str) -> Blocker:
        def holds() -> list[Blocker]:
            return [blocker for blocker in self.why().blockers if blocker.kind == kind]

        self._until(f"nothing of the kind {kind} holds it back", lambda: bool(holds()), None)
        (found,) = holds()
        return found

    def _until(self, trouble: str, has_come: Callable[[], bool], timeout: float | None) -> Outcome:
        deadline = time.monotonic() + (self._patience if timeout is None else timeout)
        while True:
            is_last_look = self.is_over or time.monotonic() > deadline
            if has_come():
                return self.look()
            if is_last_look:
                raise AssertionError(f"{trouble}: {self.why()}\n{self.look()}")
            time.sleep(self._pause)

    @property
    def is_over(self) -> bool:
        return self.details().state in FINAL_STATES

    def look(self) -> Outcome:
        return Outcome(
            job=self.details(),
            all_replicas=tuple(self.replicas()),
            all_attempts=tuple(self.attempts()),
            events=tuple(self.events()),
            log=tuple(self.logs()),
        )

    def cancel(self) -> None:
        self._client.cancel(self.id)

    def hold(self) -> None:
        self._client.hold(self.id)

    def release(self) -> None:
        self._client.release(self.id)

    def open_gate(self, gate: str) -> None:
        self._client.open_gate(self.id, gate)

    def extend(self, seconds: float, task: str | None = None) -> None:
        self._client.extend(self.id, seconds, task)

    def why(self) -> Why:
        return self._client.why(self.id)

    def logs(self, **filters: Any) -> Iterator[LogLine]:
        return self._client.logs(self.id, **filters)

    def events(self) -> Iterator[Event]:
        return self._client.events(self.id)

    def replicas(self) -> Iterator[Replica]:
        return self._client.replicas(self.id)

    def attempts(self) -> Iterator[Attempt]:
        return self._client.attempts(self.id)

    def details(self) -> Details:
        return self._client.details(self.id)
