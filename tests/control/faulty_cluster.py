"""A cluster of real nodes whose API server tests may kill, and what they see of it meanwhile."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import yaml

from jobman.engines.kubernetes.kubeconfig import load
from lab.components import FOLDER
from tests.engines.kubernetes.cluster import Relay, kubeconfig

SETTINGS = "kubernetes: {tolerates: [jobman.io/sized]}\n"
_PATIENCE = 30.0


class FaultyCluster:
    """The third cluster of the lab, which is there for this alone."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.kubeconfig = Path(settings["JOBMAN_LAB_KUBECONFIG"])
        self.etcd = settings["JOBMAN_LAB_ETCD"]
        self.nodes = settings["JOBMAN_LAB_SIZED_NODES"].partition(":")[2].split(",")

    def stop(self) -> None:
        """kill -9 of its API server."""
        on_the_lab("api", "stop")

    def start(self) -> None:
        on_the_lab("api", "start")

    def forget(self) -> None:
        """Nobody may watch from a moment before this one: neither etcd nor the API server remembers it."""
        on_the_lab("compact")
        self.stop()
        self.start()


@contextmanager
def a_faulty_cluster() -> Iterator[FaultyCluster]:
    """A new one; whoever wants one as well waits."""
    with no_faulty_cluster():
        try:
            settings = dict(line.split("=", 1) for line in on_the_lab("up").splitlines())
            yield FaultyCluster(settings)
        finally:
            on_the_lab("down")


@contextmanager
def no_faulty_cluster() -> Iterator[None]:
    """Nothing is left of the last one, and nobody has another meanwhile."""
    with (kubeconfig().parents[1] / "faults.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        on_the_lab("down")
        yield


def on_the_lab(*words: str) -> str:
    environment = {**os.environ, "JOBMAN_LAB_CLUSTER": "faults", "JOBMAN_LAB_PYTHON": sys.executable}
    command = [str(FOLDER / "kubernetes"), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


class History:
    """Which pods of a namespace were made and removed, as etcd tells it, whatever becomes of API servers."""

    def __init__(self, etcd: str, namespace: str) -> None:
        self.made: Counter[str] = Counter()
        self.removed: Counter[str] = Counter()
        self._prefix = f"/registry/pods/{namespace}/"
        self._client = httpx.Client(base_url=etcd, timeout=httpx.Timeout(10.0, read=None), trust_env=False)
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        assert self._begun.wait(_PATIENCE), "etcd does not tell what happens"

    def of(self, job: str) -> list[str]:
        """The pods that were ever made for a job."""
        return sorted(name for name in self.made if f"-{job}-" in name)

    def _follow(self) -> None:
        wanted = {"key": _encoded(self._prefix), "range_end": _encoded(f"{self._prefix[:-1]}0")}
        given = {"create_request": wanted}
        # Its last word, and its silence, is that it ends itself.
        with suppress(httpx.HTTPError), self._client.stream("POST", "/v3/watch", json=given) as answer:
            for line in answer.iter_lines():
                self._begun.set()
                for event in json.loads(line).get("result", {}).get("events", ()):
                    self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        entry = event["kv"]
        name = base64.b64decode(entry["key"]).decode().removeprefix(self._prefix)
        if event.get("type") == "DELETE":
            self.removed[name] += 1
        elif entry["version"] == "1":
            self.made[name] += 1


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


class Way:
    """The way of a service to its cluster, which can be closed while the cluster goes on."""

    def __init__(self, access: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._relay = Relay(load(access))
        self._wait(self._relay.listen())
        config = yaml.safe_load(access.read_text())
        config["clusters"][0]["cluster"]["server"] = self._relay.access.server
        self.access = access.with_name("through-the-relay")
        self.access.write_text(yaml.safe_dump(config))

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Meanwhile the service hears nothing, and cannot say anything."""
        self._wait(self._relay.close())
        try:
            yield
        finally:
            self._wait(self._relay.listen())

    def end(self) -> None:
        self._wait(self._relay.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)


@contextmanager
def a_way(access: Path) -> Iterator[Way]:
    made = Way(access)
    try:
        yield made
    finally:
        made.end()
