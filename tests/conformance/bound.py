"""What every engine has in common that is bound to the folder of a scenario."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from jobman.api import loads
from jobman.plan.model import Plan
from jobman.settings import Settings
from tests.conformance.handle import JobHandle
from tests.conformance.outcome import Outcome


class Bound(ABC):
    """Submits what a scenario writes, and remembers it."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._jobs: list[JobHandle] = []

    @property
    def folder(self) -> Path:
        """That of submission, which commands find, too."""
        return self._folder

    def submit(
        self,
        document: str,
        *,
        parameters: Mapping[str, object] | None = None,
        virtual: str | None = None,
        files: Mapping[str, str] | None = None,
        **options: Any,
    ) -> JobHandle:
        for name, content in (files or {}).items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(content)
        given = {name: str(value) for name, value in (parameters or {}).items()}
        plan = loads(dedent(document), settings=self._settings, parameters=given).plan()
        (handle,) = self._submit(plan, document, parameters=given, virtual=virtual, **options)
        return handle

    def submit_all(self, document: str, **options: Any) -> list[JobHandle]:
        return self._submit(None, document, **options)

    def run(self, document: str, *, timeout: float | None = None, **options: Any) -> Outcome:
        return self.submit(document, **options).wait(timeout)

    @abstractmethod
    def alone(self) -> None:
        """Have a node to oneself."""

    @abstractmethod
    def _submit(
        self, plan: Plan | None, document: str, *, virtual: str | None = None, **options: Any
    ) -> list[JobHandle]:
        """Submit a document; with its plan, where its refusals are promised by the table of features."""


def kept(kind: str, name: str, entries: Mapping[str, str]) -> dict[str, Any]:
    """A Secret or ConfigMap with these entries."""
    field = "stringData" if kind == "Secret" else "data"
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: dict(entries)}


def settled(look: Callable[[], list[str]], *, seconds: float, pause: float) -> list[str]:
    """What is still there after a while."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(pause)
    return found
