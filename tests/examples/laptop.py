"""A laptop: a home, a state folder, and the service that the first command starts there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from jobman.control.embedded import wait_until_gone
from jobman.control.places import Places
from jobman.engines.local.wire import Request, address, line

_PATIENCE = 120
_NOT_OURS = ("JOBMAN_", "XDG_", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "PY_COLORS", "TTY_")


class Answer(NamedTuple):
    """What a user sees of one command."""

    code: int
    out: str
    err: str


class Laptop:
    """Runs commands as a user would, without GPUs and without containers."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.places = Places(folder / "state")
        self.home.mkdir()

    def variables(self) -> dict[str, str]:
        """The environment of its shell."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        return kept | {
            "HOME": str(self.home),
            "JOBMAN_STATE": str(self.places.state),
            "JOBMAN_IDLE": "never",
            "JOBMAN_CONTAINER_RUNTIME": "no-runtime",
            "CUDA_VISIBLE_DEVICES": "",
        }

    def jobman(self, *arguments: str, cwd: Path, both: bool = False) -> Answer:
        """Run a command and wait for its end; `both` has stderr come with stdout, as on a terminal."""
        done = subprocess.run(
            [sys.executable, "-m", "jobman.cli.main", *arguments],
            cwd=cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else subprocess.PIPE,
            text=True,
            timeout=_PATIENCE,
        )
        return Answer(done.returncode, done.stdout, done.stderr or "")

    def keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        """Keep a secret or a configuration as its user would."""
        folder = self.home / ".jobman" / kind / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for key, value in entries.items():
            (folder / key).write_text(value)

    def close(self) -> None:
        """Stop the service, and the launcher that would wait a while for the next one."""
        self.jobman("service", "stop", "--force", cwd=self.home)
        assert wait_until_gone(self.places), "the service does not stop"
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            with address(self.places.state / "launcher.sock") as place:
                connection.connect(place)
            connection.sendall(line(Request(shut=True)))
            connection.recv(4096)


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """One service for a whole session of tests."""
    laptop = Laptop(tmp_path_factory.mktemp("laptop"))
    try:
        yield laptop
    finally:
        laptop.close()
