"""A service whose jobs run on the real cluster: a `jobman server` in a process that tests may kill."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from jobman.client import Client, Refused, Unreachable
from jobman.control.answers import FINAL_STATES, Details, Submission
from jobman.engines.failpoints import VARIABLE
from tests.engines.kubernetes import looking
from tests.engines.kubernetes.cluster import a_namespace, image, kubeconfig, kubectl

PATIENCE = 120.0
KINDS = "pods,jobs.batch,services,configmaps,networkpolicies,secrets,endpoints,persistentvolumeclaims"
T = TypeVar("T")


class ClusterService:
    """A service, its namespace, and a client that finds it again after a restart."""

    def __init__(
        self,
        folder: Path,
        namespace: str,
        *,
        settings: str = "",
        program: Sequence[str] = ("-m", "jobman"),
        access: Path | None = None,
    ) -> None:
        """`access` is a kubeconfig of its own; without it the service is an administrator."""
        self.folder = folder
        self._program = program
        self._access = access
        self.namespace = namespace
        self.process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()
        self._log = folder / "server.log"
        self._client: Client | None = None
        home = folder / "home" / ".jobman"
        home.mkdir(parents=True)
        (home / "settings.json").write_text(f"default_image: {image()}\n{settings}")

    # -- life ------------------------------------------------------------------------------------------

    def start(self, failpoints: str = "") -> None:
        """Start the service; it answers, or a failpoint has ended it."""
        command = [sys.executable, *self._program, "server", "--listen", f"localhost:{self._port}"]
        command += ["--state", str(self.folder / "state"), "--engine", "kubernetes"]
        command += ["--namespace", self.namespace, "--kubeconfig", str(self._access or kubeconfig())]
        environment = {**os.environ, "HOME": str(self.folder / "home"), VARIABLE: failpoints}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until(lambda: self.is_dead or self._answers(), "an answer of the service")

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    @property
    def is_dead(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def wait_for_death(self) -> None:
        """Until a failpoint has ended it."""
        until(lambda: self.is_dead, "the end of the service")

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def url(self) -> str:
        return f"http://localhost:{self._port}"

    @property
    def client(self) -> Client:
        if self._client is None:
            (token,) = re.findall(r"jobman_[\w-]+", self.said)
            self._client = Client.connect(self.url, token)
        return self._client

    def _answers(self) -> bool:
        try:
            return bool(re.findall(r"jobman_[\w-]+", self.said)) and bool(self.client.health())
        except (Unreachable, Refused):
            return False

    # -- jobs ------------------------------------------------------------------------------------------

    def submit(self, document: str, *, key: str = "", **options: Any) -> str:
        """Submit a job; returns its id. Under the same key it is the same job."""
        submission = Submission(document=document, cwd="/", **options)
        return self.client.submit(submission, key=key or os.urandom(8).hex()).jobs[0].id

    def wait(self, job: str) -> Details:
        """A job when it is over."""

        def over() -> Details | None:
            found = self.client.details(job)
            return found if found.state in FINAL_STATES else None

        return until(over, f"the end of {job}")

    def until_running(self, job: str) -> None:
        until(lambda: any(each.state == "running" for each in self.client.replicas(job)), f"that {job} runs")

    def lines(self, job: str, **filters: Any) -> list[str]:
        return [line.text for line in self.client.logs(job, **filters)]

    # -- the cluster -----------------------------------------------------------------------------------

    def objects(self) -> set[str]:
        """Everything in the namespace, whosever it is."""
        return set(looking.names(KINDS, self.namespace))

    def everything(self) -> set[str]:
        """Of every kind that a namespace can hold, but for events: those the cluster forgets by itself."""
        words = ("api-resources", "--namespaced", "--verbs=list,create", "--output=name")
        kinds = [kind for kind in kubectl(*words).split() if kind.partition(".")[0] != "events"]
        return set(kubectl("get", ",".join(kinds), "-n", self.namespace, "-o", "name").split())

    def objects_of(self, job: str) -> list[str]:
        """What is there of a job."""
        return looking.names(KINDS, self.namespace, f"jobman.io/job={job}")

    def kubectl(self, *words: str, **given: Any) -> str:
        return kubectl(*words, "-n", self.namespace, **given)


@contextmanager
def a_cluster_service(folder: Path, **given: Any) -> Iterator[ClusterService]:
    """A service that runs, in a namespace of its own; nothing of its jobs may be left at its end."""
    with a_namespace() as namespace, running(ClusterService(folder, namespace, **given)) as made:
        yield made


@contextmanager
def running(service: ClusterService) -> Iterator[ClusterService]:
    """While it runs; nothing of its jobs may be left at its end."""
    service.start()
    try:
        yield service
    finally:
        if service.is_dead:
            service.start()
        for job in list(service.client.jobs()):
            if job.state not in FINAL_STATES:
                service.client.cancel(job.id)
        until(lambda: not _of_jobs(service), "that nothing of jobs is left")
        service.stop()


def _of_jobs(service: ClusterService) -> list[str]:
    return looking.names(KINDS, service.namespace, "jobman.io/job")


def until(look: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """What a look finds, as soon as it does."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what} did not come in {seconds:.0f} s"
        time.sleep(0.1)
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
