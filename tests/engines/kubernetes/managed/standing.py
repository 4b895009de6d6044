"""Pods of orders on a real cluster without an engine: no gate, nothing to settle, only what was compiled."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

import msgspec

from jobman.engines.base import Order
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.compile import (
    ManagedTarget,
    compile_order,
    namespace_objects,
    shared_objects,
)
from jobman.sched.allocation import Allocation, Slot
from tests.engines.kubernetes.cluster import image, kubectl, kubectl_json, two_nodes
from tests.engines.kubernetes.managed.orders_of import order
from tests.engines.kubernetes.objects_of import plan_of

PATIENCE = 60


class Standing:
    """A namespace with the walls of a service, and the pods that were put into it."""

    def __init__(self, namespace: str, **given: Any) -> None:
        self.target = ManagedTarget(namespace=namespace, service="test", default_image=image(), **given)
        self.namespace = namespace
        self.nodes = two_nodes()
        self._create(namespace_objects(self.target))

    def start(self, document: str, *, job: str | None = None, alone: bool = False, **more: Any) -> Order:
        """Start the only task of a document; where it may be `alone`, with no more than it needs then."""
        plan = plan_of(document)
        made = order(plan, job=job or new_id(), **more)
        made = msgspec.structs.replace(made, allocation=self._here(made.allocation))
        release = compile_order(made, self.target)
        connected = bool(made.connected) or not alone
        self._create(shared_objects(plan, made.job, self.target, connected=connected))
        self._create([_bare(each) for each in (*release.support, *release.pods)])
        return made

    def running(self, document: str, **more: Any) -> Order:
        """The same, and wait until all of its pods run."""
        made = self.start(document, **more)
        until(lambda: set(self.phases(made)) == {"Running"})
        return made

    def _here(self, allocation: Allocation) -> Allocation:
        """The same on the nodes that there are."""
        known = dict.fromkeys(slot.node for slot in allocation.slots)
        here = {name: self.nodes[number % len(self.nodes)] for number, name in enumerate(known)}
        slots = tuple(Slot(here[each.node], amounts=each.amounts) for each in allocation.slots)
        return msgspec.structs.replace(allocation, slots=slots)

    def _create(self, objects: list[dict[str, Any]]) -> None:
        if objects:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
            kubectl("apply", "-f", "-", stdin=text)

    # -- looking ---------------------------------------------------------------------------------------------

    def pods(self, made: Order) -> list[dict[str, Any]]:
        selector = f"jobman.io/job={made.job}"
        found: list[dict[str, Any]] = kubectl_json("get", "pods", "-n", self.namespace, "-l", selector)[
            "items"
        ]
        return found

    def phases(self, made: Order) -> list[str]:
        return [each["status"].get("phase", "") for each in self.pods(made)]

    def output(self, made: Order, copy: int = 0) -> str:
        """What a copy said, once it is over."""
        until(lambda: all(each in ("Succeeded", "Failed") for each in self.phases(made)))
        return kubectl("logs", "-n", self.namespace, names.pod_name(names.attempt_name(made), copy))

    def says(self, made: Order, *words: str, copy: int = 0) -> bool:
        """Whether a command in a copy succeeds."""
        name = names.pod_name(names.attempt_name(made), copy)
        try:
            kubectl("exec", "-n", self.namespace, name, "--", *words)
        except AssertionError:
            return False
        return True

    def reaches(self, one: Order, other: Order, port: int = 80, *, copy: int = 0) -> bool:
        """Whether a copy gets an answer from another, which it knows by name."""
        host = names.host_name(other.job, other.key, copy)
        return self.says(one, *asking(host, port))

    def connect(self, made: Order, *partners: str) -> None:
        """What the engine does to the pods of a job when its partners change."""
        for pod in self.pods(made):
            changes = names.relabelled(pod["metadata"]["labels"], partners)
            patch = json.dumps({"metadata": {"labels": changes}})
            kubectl(
                "patch", "pod", "-n", self.namespace, pod["metadata"]["name"], "--type=merge", "-p", patch
            )


def asking(host: str, port: int) -> tuple[str, ...]:
    """The command that succeeds where somebody listens and lets one in; it gives up soon."""
    return "sh", "-c", f"nc -w 2 {host} {port} </dev/null"


def new_id() -> str:
    return secrets.token_hex(6)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def _bare(written: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in written["metadata"].items() if key != "finalizers"}
    found = {**written, "metadata": metadata}
    if written["kind"] == "Pod":
        spec = {key: value for key, value in written["spec"].items() if key != "schedulingGates"}
        found["spec"] = {**spec, "terminationGracePeriodSeconds": 0}
    return found
