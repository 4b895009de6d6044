"""Servers that take turns, each a `jobman server` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.control.api.world import until
from tests.engines.kubernetes.cluster import kubectl_json

SECONDS = 9
"""Long enough for a machine that is busy with other tests."""
PATIENCE = 120


HERE = """
import os, sys
from pathlib import Path
from jobman.control.leading import LeaseOptions
from jobman.control.places import Places
from jobman.control.serving import ServeOptions, serve
state, namespace, seconds = sys.argv[1:]
lease = LeaseOptions("jobman", namespace, int(seconds))
database = os.environ["JOBMAN_DATABASE"].strip()
sys.exit(serve(ServeOptions(Places(Path(state)), listen="127.0.0.1:0", database=database, lease=lease)))
"""
"""A server whose jobs run on this machine. The command refuses it: only on this very machine, as here, could
another one look after them."""


class Server:
    """A server that waits for a Lease."""

    def __init__(self, output: Path, words: Sequence[str], **environment: str) -> None:
        self.output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def url(self) -> str:
        return str(until(lambda: self._found(r"standing by at=(\S+)"), PATIENCE))

    @property
    def identity(self) -> str:
        return str(until(lambda: self._found(r"standing by .* identity=(\S+)"), PATIENCE))

    @property
    def token(self) -> str:
        return str(until(lambda: self._found(r"(jobman_[\w-]+)"), PATIENCE))

    def ask(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=30)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.said
        return self.ask("/readyz").status_code == 200

    def _found(self, pattern: str) -> str:
        found = re.findall(pattern, self.said)
        return found[0] if found else ""


class Turns:
    """Servers that share a database, a folder and a Lease; with `words`, as the command starts them."""

    def __init__(self, folder: Path, database: str, namespace: str, config: Path, *words: str) -> None:
        self._folder, self._words = folder, words
        self._environment = {"JOBMAN_DATABASE": f"{database}\n", "POD_IP": "10.1.2.3"}
        self._config = config
        self.namespace = namespace
        self.servers: list[Server] = []

    def start(self, config: Path | None = None) -> Server:
        output = self._folder / f"{len(self.servers)}.out"
        state = str(self._folder / "state")
        words = ["-c", HERE, state, self.namespace, str(SECONDS)]
        if self._words:
            words = ["-m", "jobman", "server", "--listen", "127.0.0.1:0", "--state", state, *self._words]
            words += ["--lease", f"{self.namespace}/jobman", "--lease-seconds", str(SECONDS)]
        environment = {**self._environment, "KUBECONFIG": str(config or self._config)}
        self.servers.append(Server(output, words, **environment))
        return self.servers[-1]

    def both(self) -> tuple[Server, Server]:
        """The one that leads, and the other."""
        first = self.start()
        until(first.is_ready, PATIENCE)
        second = self.start()
        assert not second.is_ready()
        return first, second

    @property
    def lease(self) -> dict[str, Any]:
        found: dict[str, Any] = kubectl_json("get", "lease", "jobman", "-n", self.namespace)
        return found

    def end(self) -> None:
        for server in self.servers:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
                server.process.kill()
            server.process.wait()
