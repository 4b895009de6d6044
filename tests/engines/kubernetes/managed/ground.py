"""A managed engine over a real cluster in a thread of its own, orders for it, and ways to hear of them."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jobman.api import loads
from jobman.engines import base
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.engine import ManagedEngine
from jobman.engines.kubernetes.managed.nodes import Pool
from jobman.engines.kubernetes.managed.runner import Limits
from jobman.engines.kubernetes.managed.survey import Survey
from jobman.engines.kubernetes.managed.target import ManagedTarget
from jobman.plan.replicas import for_replica
from jobman.sched.allocation import Allocation, Slot
from tests.engines.kubernetes import looking
from tests.engines.kubernetes.cluster import (
    Relay,
    a_namespace,
    image,
    kubeconfig,
    kubectl,
    two_nodes,
)

PATIENCE = 60.0
KINDS = "pods,jobs.batch,services,configmaps,networkpolicies,secrets,persistentvolumeclaims"
Report = TypeVar("Report", bound=base.Report)
Found = TypeVar("Found")


class Ground:
    """An engine that is alive, and what it reported."""

    def __init__(
        self,
        folder: Path,
        namespace: str,
        *,
        lost_after: float = 300.0,
        pool: Pool | None = None,
        **limits: float,
    ) -> None:
        self.folder = folder
        self.namespace = namespace
        self.nodes = two_nodes()
        self.pool = pool or Pool()
        self.limits = limits
        self.lost_after = lost_after
        self.target = ManagedTarget(
            namespace=namespace,
            service=f"test-{namespace}",
            default_image=image(),
            tolerations=self.pool.tolerations,
        )
        self.reports: list[base.News] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.relay = Relay(load(kubeconfig()))
        """The way of the engine to the cluster, which a test may close."""
        self.wait(self.relay.listen())
        self.engine = self.open()

    # -- the engine ------------------------------------------------------------------------------------

    def open(self, *orders: base.Order) -> ManagedEngine:
        """A new engine, as after the start of a service with these attempts under way."""
        self.reports = []
        self.engine = self.wait(self._open(orders))
        return self.engine

    async def _open(self, orders: tuple[base.Order, ...]) -> ManagedEngine:
        api = Api(msgspec.structs.replace(self.relay.access, namespace=self.namespace))
        survey = Survey(api, self.pool, lost_after=self.lost_after)
        engine = await ManagedEngine.open(api, self.target, self.folder, survey, Limits(**self.limits))
        await engine.start(self.reports.append)
        await engine.recover(orders)
        return engine

    def reopen(self, *orders: base.Order) -> ManagedEngine:
        """As after the death of the service: another engine over the same cluster."""
        self.wait(self.engine.close())
        return self.open(*orders)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def close(self) -> None:
        """Take everything away: what holds our finalizer would hold the namespace."""
        self.wait(self.engine.close())
        self.open()
        eventually(lambda: not self.objects(), "an empty namespace")
        self.wait(self.engine.close())
        self.wait(self.relay.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    # -- orders ----------------------------------------------------------------------------------------

    def order(
        self, document: str, task: str = "", *, nodes: tuple[str, ...] = (), **given: Any
    ) -> base.Order:
        """An order for the first replica of the first task of a document, with a copy on each of `nodes`."""
        plan = loads(document).plan()
        unit = next(each for each in plan.units if each.kind == "task" and task in ("", each.id))
        index = given.pop("index", 0)
        nodes = nodes or self.nodes[:1]
        settings: dict[str, Any] = {
            "job": secrets.token_hex(6),
            "job_name": "example",
            "owner": "ada",
            "key": f"{unit.id}.{index}",
            "attempt": 1,
            "index": index,
            "unit": for_replica(unit, index),
            "allocation": Allocation(0, slots=tuple(Slot(node) for node in nodes)),
            "nodes": nodes,
            "cwd": "/",
            "plan": plan,
        }
        return base.Order(**{**settings, **given})

    def shell(self, script: str, *, copies: int = 1, keys: str = "", **given: Any) -> base.Order:
        """An order that runs a script in one copy or several, on both nodes in turn."""
        document = f"version: 1\nresources: {{each: {_shape(copies)}}}\n"
        document += f"tasks:\n- name: work\n  resources: each\n  command: [sh, -c, {_quoted(script)}]\n"
        document += "".join(f"  {line}\n" for line in keys.splitlines())
        nodes = tuple(self.nodes[copy % 2] for copy in range(copies))
        return self.order(document, nodes=given.pop("nodes", nodes), **given)

    def launch(self, *orders: base.Order) -> None:
        self.wait(self.engine.launch(orders))

    def stop(self, order: base.Order, why: str = "") -> None:
        self.wait(self.engine.stop(order.address, why))

    def settle(self, order: base.Order) -> None:
        self.wait(self.engine.settle(order.address))

    def finish(self, order: base.Order) -> None:
        self.wait(self.engine.finish(order.job))

    def run(self, order: base.Order) -> base.Over:
        self.launch(order)
        return self.over(order)

    # -- what comes of them ----------------------------------------------------------------------------

    def heard(self, order: base.Order, kind: type[Report]) -> list[Report]:
        return [each for each in self.reports if isinstance(each, kind) and each.address == order.address]

    def first(self, order: base.Order, kind: type[Report]) -> Report:
        found = eventually(lambda: self.heard(order, kind), f"{kind.__name__} of {order.key}")
        return found[0]

    def running(self, order: base.Order) -> base.Running:
        return self.first(order, base.Running)

    def over(self, order: base.Order) -> base.Over:
        return self.first(order, base.Over)

    def out(self, order: base.Order, copy: int = 0) -> str:
        job, key, attempt = order.address
        path = self.folder / "jobs" / job / key / str(attempt) / f"{copy}.out"
        return path.read_text() if path.exists() else ""

    # -- the cluster -----------------------------------------------------------------------------------

    def pod_names(self, order: base.Order) -> list[str]:
        name = names.attempt_name(order)
        return [names.pod_name(name, copy) for copy in range(len(order.allocation.slots))]

    def pods(self, order: base.Order) -> list[Mapping[str, Any]]:
        selector = f"jobman.io/job={order.job}"
        return list(looking.listed("pods", self.namespace, selector))

    def objects(self) -> list[str]:
        """Everything of ours in the namespace, but for the walls of the whole service."""
        selector = f"jobman.io/service={self.target.service},jobman.io/job"
        return looking.names(KINDS, self.namespace, selector)

    def kubectl(self, *words: str) -> str:
        return kubectl(*words, "-n", self.namespace)


def eventually(look: Callable[[], Found | None], what: str) -> Found:
    """What a look finds, as soon as it does."""
    until = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < until, f"{what} did not come in {PATIENCE:.0f} s"
        time.sleep(0.1)
    return found


def _shape(copies: int) -> str:
    memory = "{type: memory, count: 16Mi}"
    kind = f"type: node, count: {copies}" if copies > 1 else "type: slot, count: 1"
    return f"{{{kind}, with: [{memory}]}}"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


@contextmanager
def a_ground(folder: Path, **given: Any) -> Iterator[Ground]:
    with a_namespace() as namespace:
        made = Ground(folder, namespace, **given)
        try:
            yield made
        finally:
            made.close()
