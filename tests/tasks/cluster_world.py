"""Short tasks on a real cluster: a broker on this machine, workers in pods, and whoever keeps them."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kubeconfig import load
from jobman.tasks.batches import Status
from jobman.tasks.cluster import Plan
from jobman.tasks.cluster_process import API_SERVICE, Keeper, Metrics, Options
from jobman.tasks.departures import Busy
from jobman.tasks.front_proxy import Certificate
from jobman.tasks.mapper import Executor
from jobman.tasks.model import Submission, Told
from jobman.tasks.pods import SELECTOR, Place
from jobman.tasks.quotas import Quota
from jobman.tasks.scaling import Limits
from jobman.tasks.wire import Broken, Connection
from tests.engines.kubernetes import looking
from tests.engines.kubernetes.cluster import kubeconfig, kubectl, kubectl_json

PATIENCE = 180.0
METRICS = "jobman-test-metrics"
RESOURCES = {"cpu": "10m", "memory": "32Mi"}
T = TypeVar("T")


@cache
def lab(what: str, *nodes: str) -> str:
    """The name of an image of the lab, which these nodes have, too: of this checkout, or of a worker."""
    given = {**os.environ, "JOBMAN_LAB_PYTHON": sys.executable}
    command = [os.environ["JOBMAN_LAB_SERVICES"], what, *nodes]
    return subprocess.run(command, env=given, check=True, capture_output=True, text=True).stdout.strip()


def address() -> str:
    """Of this machine, as pods see it."""
    return str(urlsplit(os.environ["JOBMAN_LAB_POSTGRES_INSIDE"]).hostname)


def free_port() -> int:
    with socket.create_server((address(), 0)) as found:
        port: int = found.getsockname()[1]
        return port


async def until(condition: Callable[[], Awaitable[T]]) -> T:
    """Wait for something to become true."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not (found := await condition()):
        assert asyncio.get_running_loop().time() < deadline, "it did not happen"
        await asyncio.sleep(0.2)
    return found


class Broker:
    """A broker as a process of this machine, which can be killed and started anew."""

    def __init__(self, folder: Path, url: str, settings: dict[str, Any]) -> None:
        self._settings = folder / "settings.yaml"
        self._settings.write_text(json.dumps(settings))
        self._store = f"sqlite:///{folder}/tasks.sqlite"
        self._place = url.partition("://")[2]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        words = ("task", "broker", "--listen", self._place, "--database", self._store)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jobman.cli.main", *words, "--settings", str(self._settings))
        )
        await until(self._answers)

    async def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, "the broker has ended"
        host, _, port = self._place.rpartition(":")
        connection = Connection((host, int(port)))
        try:
            return (await connection.ask("GET", "/healthz")).status == 200
        except Broken:
            return False
        finally:
            connection.close()

    async def kill(self) -> None:
        """As where its machine dies."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Site:
    """A namespace with workers, the broker they work for, and somebody who submits tasks."""

    def __init__(
        self,
        namespace: str,
        folder: Path,
        limits: Limits,
        quotas: Mapping[str, Quota] | None = None,
        nodes: Sequence[str] = (),
        **place: Any,
    ) -> None:
        self.namespace = namespace
        self.image = lab("worker", *nodes)
        self.port = free_port()
        self._folder = folder
        self._limits = limits
        self._quotas = quotas or {}
        given: dict[str, Any] = {"grace": 60, **place}
        broker = f"http://{address()}:{self.port}"
        self._place = Place(namespace=namespace, broker=broker, agent_image=lab("image", *nodes), **given)

    # -- the broker --------------------------------------------------------------------------------

    @asynccontextmanager
    async def broker(self) -> AsyncIterator[Broker]:
        settings = {
            "types": [{"type": "sleep", "image": self.image}],
            "scaling": {"*": msgspec.to_builtins(self._limits)},
            "quotas": {name: {"workers": quota.workers} for name, quota in self._quotas.items()},
        }
        broker = Broker(self._folder, self._place.broker, settings)
        try:
            await broker.start()
            yield broker
        finally:
            await broker.kill()

    async def submit(self, *seconds: float, estimate: float | None = None, tenant: str = "desk") -> int:
        payloads = [f"{each:g}".encode() for each in seconds]
        asked = Submission(type="sleep", payloads=payloads, estimates=estimate or list(seconds))
        return (await self._ask("POST", "/v1/tasks", asked, dict[str, int], tenant))["batch"]

    async def results(
        self, batch: int, size: int, tenant: str = "desk"
    ) -> dict[int, tuple[Status, bytes, int]]:
        """Of all tasks of a batch: status, result and attempt; fails where one is told twice."""
        found: dict[int, tuple[Status, bytes, int]] = {}
        place = 0
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while len(found) < size:
            assert asyncio.get_running_loop().time() < deadline, f"only {len(found)} of {size} tasks ended"
            path = f"/v1/tasks/results?after={place}&wait=1&batch={batch}"
            told = await self._ask("GET", path, None, Told, tenant)
            place = told.place
            for _, ends in told.ends:
                for row, index in enumerate(ends.indexes):
                    assert index not in found, f"task {index} was told twice"
                    result = ends.results[row] if ends.results else b""
                    found[index] = Status(ends.status), result, ends.attempts.get(index, 1)
        return found

    async def busy(self) -> dict[str, int]:
        """The pods whose agents have tasks, and how many."""
        found = await self._ask("GET", "/v1/agents", None, dict[str, Busy])
        return {agent.rsplit("-", 2)[0]: each.held for agent, each in found.items() if each.held}

    async def _ask(self, method: str, path: str, body: object, kind: type[T], tenant: str = "desk") -> T:
        connection = Connection((address(), self.port), headers={"x-jobman-tenant": tenant})
        try:
            answer = await connection.ask(method, path, msgspec.msgpack.encode(body))
        finally:
            connection.close()
        assert answer.status == 200, answer.body
        return msgspec.msgpack.decode(answer.body, type=kind)

    # -- the cluster -------------------------------------------------------------------------------

    @asynccontextmanager
    async def keeper(
        self, metrics: Metrics | None = None, *, forget: float = 3600.0, prometheus: str = ""
    ) -> AsyncIterator[Keeper]:
        """Who keeps workers, by the best way that there is."""
        plan = Plan(
            place=self._place,
            executors={self.image: Executor(image=self.image, resources=RESOURCES)},
            limits={"*": self._limits},
            forget=forget,
            prometheus=prometheus,
        )
        options = Options(plan=plan, broker=self._place.broker, metrics=metrics, period=0.5)
        async with Api(load(kubeconfig())) as api:
            keeper = Keeper(api, options)
            running = asyncio.create_task(keeper.run())
            try:
                yield keeper
            finally:
                keeper.stop()
                await running

    async def deployments(self) -> list[dict[str, Any]]:
        return await self._list("deployments")

    async def replicas(self) -> int | None:
        found = await self.deployments()
        return int(found[0]["spec"]["replicas"]) if found else None

    async def pods(self) -> list[dict[str, Any]]:
        return await self._list("pods")

    async def ready(self) -> list[str]:
        """The pods that work."""
        return [each["metadata"]["name"] for each in await self.pods() if is_ready(each)]

    async def sizes_by_hpa(self) -> list[int]:
        """The numbers of pods that an HPA has set, one after the other."""
        words = ("get", "events", "-n", self.namespace, "--field-selector", "reason=SuccessfulRescale")
        found = (await asyncio.to_thread(kubectl_json, *words))["items"]
        found.sort(key=lambda each: each["firstTimestamp"])
        return [int(each["message"].split(";")[0].rpartition(" ")[2]) for each in found]

    async def _list(self, kind: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(looking.listed, kind, self.namespace, SELECTOR)

    async def destroy(self, name: str) -> None:
        """Kill a pod without a moment to give anything back, as where a machine dies."""
        await self.strike(name)
        words = ("delete", "pod", name, "-n", self.namespace, "--grace-period=0", "--force")
        await asyncio.to_thread(kubectl, *words)

    async def strike(self, name: str) -> None:
        """Kill all processes of a pod; nobody is told."""
        (uid,) = [pod["metadata"]["uid"] for pod in await self.pods() if pod["metadata"]["name"] == name]
        killed = [process for process in Path("/proc").glob("[0-9]*") if _is_of(process, uid)]
        assert killed
        for process in killed:
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


def _is_of(process: Path, pod: str) -> bool:
    """Whether a process is of that pod, and not what holds its network."""
    with suppress(OSError):
        is_pause = b"pause" in (process / "cmdline").read_bytes()
        return f"pod{pod}/" in (process / "cgroup").read_text() and not is_pause
    return False


# -- the metrics API -----------------------------------------------------------------------------------------


@contextmanager
def registered(namespace: str, folder: Path) -> Iterator[Metrics]:
    """The API of metrics, for as long as it lasts led to this machine."""
    port = free_port()
    metrics = Metrics(
        listen=(address(), port),
        certificate=_certificate(folder, f"{METRICS}.{namespace}.svc"),
        service=(METRICS, namespace),
    )
    with the_metrics_api():
        for written in (*_way_to(namespace, port), _api_service(namespace)):
            kubectl("apply", "-f", "-", stdin=json.dumps(written))
        yield metrics


@contextmanager
def the_metrics_api() -> Iterator[None]:
    """A cluster has one, and so one test at a time; left without any behind us."""
    with (Path(gettempdir()) / "jobman-metrics-api.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            kubectl("delete", "apiservice", API_SERVICE, "--ignore-not-found")


def _certificate(folder: Path, host: str) -> Certificate:
    files = folder / "tls.crt", folder / "tls.key"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    names = ("-addext", f"subjectAltName=DNS:{host}", "-out", str(files[0]), "-keyout", str(files[1]))
    subprocess.run(["openssl", *words.split(), *names], check=True, capture_output=True)
    return Certificate(*files)


def _way_to(namespace: str, port: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Service that selects nobody, and this machine as its only end."""
    metadata = {"name": METRICS, "namespace": namespace}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
    }
    ends = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": METRICS}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address()], "conditions": {"ready": True}}],
    }
    return service, ends


def _api_service(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"name": METRICS, "namespace": namespace, "port": 443},
        },
    }
