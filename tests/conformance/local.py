"""The local engine as scenarios speak to it: an embedded service of its own for each process of pytest."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest import mock

from jobman.client import Client
from jobman.control.answers import Submission
from jobman.control.embedded import wait_until_gone
from jobman.control.places import Places
from jobman.engines.local.wire import Request, address, line
from jobman.plan.model import Plan
from tests.conformance.bound import Bound, settled
from tests.conformance.handle import JobHandle
from tests.conformance.promises import keep_promise
from tests.conformance.site import SETTINGS, TEXT

PATIENCE = 30.0
"""Seconds after which what a scenario waits for is not expected to happen any more."""
_PAUSE = 0.02
_AFTER = 10.0
"""Seconds that a process has to be gone."""


@contextmanager
def open_local(folder: Path) -> Iterator[LocalSite]:
    """Start a service; at the end it is stopped, and nothing of it may be left."""
    site = LocalSite(folder)
    site.start()
    try:
        yield site
    finally:
        site.stop()


class LocalSite:
    """One embedded service with a state folder and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.places = Places(folder / "state")
        self.client = Client.embedded(self.places)
        self.mark = secrets.token_hex(8)
        """In the environment of every copy, so that one that outlives the service is found."""

    def start(self) -> None:
        self.home.mkdir()
        # A service reads settings and secrets from the home of the user who started it.
        with mock.patch.dict(os.environ, {"HOME": str(self.home), "JOBMAN_IDLE": "never"}):
            self.client.health()

    def stop(self) -> None:
        self.client.stop(force=True)
        self.client.close()
        assert wait_until_gone(self.places), "the service does not stop"
        _shut_launcher(self.places.state / "launcher.sock")
        left = _left(lambda: [*processes(self.mark), *processes(str(self.places.state))])
        assert not left, f"processes outlive the service: {left}"

    def bind(self, folder: Path) -> Local:
        return Local(self, folder)


class Local(Bound):
    """The local engine in the folder of one scenario."""

    name = "local"
    gpu_variable = "CUDA_VISIBLE_DEVICES"
    os_label = "os.name"
    beat = 0.2

    def __init__(self, site: LocalSite, folder: Path) -> None:
        super().__init__(folder, SETTINGS)
        self._site = site

    def alone(self) -> None:
        """A service of its own has the machine to itself."""

    def _submit(
        self,
        plan: Plan | None,
        document: str,
        *,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> list[JobHandle]:
        submission = Submission(
            document=dedent(document),
            file="scenario.yaml",
            settings=TEXT,
            cwd=str(self.folder),
            environment={**self._environment(), **(environment or {})},
            **options,
        )
        if plan is None:
            submitted = self._site.client.submit(submission)
        else:
            submitted = keep_promise(self.name, plan, lambda: self._site.client.submit(submission))
        handles = [
            JobHandle(self._site.client, job.id, patience=PATIENCE, pause=_PAUSE) for job in submitted.jobs
        ]
        self._jobs += handles
        return handles

    def _environment(self) -> dict[str, str]:
        tools = Path(sys.executable).parent
        return {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(self._site.home),
            "LANG": "C.UTF-8",
            "SCENARIO": self._site.mark,
        }

    def secret(self, name: str, **entries: str) -> None:
        self._keep("secrets", name, entries)

    def config(self, name: str, **entries: str) -> None:
        self._keep("configs", name, entries)

    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        folder = self._site.home / ".jobman" / kind / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._site.home / ".jobman" / kind).chmod(0o700)
        for key, value in entries.items():
            (folder / key).write_text(value)

    def leave(self) -> list[str]:
        for job in self._jobs:
            job.end()
        open_ends = [f"{job.id} is over, but {found}" for job in self._jobs for found in job.unfinished()]
        left = _left(lambda: [found for job in self._jobs for found in processes(job.id)])
        used = {node.name: node.used for node in self._site.client.nodes() if any(node.used.values())}
        found = [f"a job left processes: {left}"] if left else []
        return open_ends + found + ([f"a job holds resources after its end: {used}"] if used else [])


def _shut_launcher(path: Path) -> None:
    """The launcher waits a while for the next service; a scenario's need not."""
    with address(path) as name, socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.connect(name)
        connection.sendall(line(Request(shut=True)))
        connection.recv(4096)


def processes(mark: str) -> list[str]:
    """Processes whose command or environment has this in it."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if mark.encode() in command + (process / "environ").read_bytes():
                    found.append(f"{process.name} {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


def _left(look: Callable[[], list[str]]) -> list[str]:
    return settled(look, seconds=_AFTER, pause=_PAUSE)
