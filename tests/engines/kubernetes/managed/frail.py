"""The node of the lab that tests may break: one test at a time, and as it was when they are done with it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from jobman.engines import base
from jobman.engines.kubernetes.managed.nodes import Pool
from tests.engines.kubernetes.cluster import kubectl, kubectl_json
from tests.engines.kubernetes.managed.ground import Ground, a_ground, eventually

POOL = Pool(
    labels={"jobman.io/lab": "faults"},
    tolerations=({"key": "jobman.io/lab", "value": "faults", "operator": "Equal"},),
)
DEVICE = "example.org/fpga"
_SCRIPT = Path(__file__).parents[4] / "lab" / "kubernetes"


class Frail:
    """The node, and an engine that has no other."""

    def __init__(self, ground: Ground, name: str, folder: Path) -> None:
        self.ground = ground
        self.name = name
        self._folder = folder
        self._token = secrets.token_hex(8)

    # -- what becomes of it ----------------------------------------------------------------------------

    def stop(self) -> None:
        """Its kubelet dies, its containers run on."""
        stop_node()

    def start(self) -> None:
        _lab("start")

    def reboot(self) -> None:
        """Everything on it dies, and it begins another life."""
        _lab("reboot")

    def devices(self, number: int) -> None:
        """It says that it has so many of a device."""
        set_devices(self.name, DEVICE, number)

    # -- orders ----------------------------------------------------------------------------------------

    def order(self, script: str, *, beside: tuple[str, ...] = ()) -> base.Order:
        """An order for the node and those `beside` it; each copy writes down that it ran."""
        volume = f"volumes: [{{name: ledger, kind: host, path: {self._folder}, to: /ledger}}]"
        script = f": {self._token}; echo ran >> /ledger/ran; {script}"
        nodes = (*beside, self.name)
        return self.ground.shell(script, keys=f"{volume}\ngrace: 1s", copies=len(nodes), nodes=nodes)

    def running(self, script: str, **given: Any) -> base.Order:
        order = self.order(script, **given)
        self.ground.launch(order)
        self.ground.running(order)
        return order

    def tell(self, word: str) -> None:
        """Leave a file where orders can see it."""
        (self._folder / word).touch()

    @property
    def ran(self) -> list[str]:
        """Who wrote down that it ran."""
        return (self._folder / "ran").read_text().split()

    @property
    def runs(self) -> bool:
        """Whether anything of an order runs on this machine, whoever knows of it."""
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                command = process.read_bytes()
                if command.startswith(b"sh\0") and self._token.encode() in command:
                    return True
        return False

    # -- what is said of it ----------------------------------------------------------------------------

    @property
    def seen(self) -> list[base.NodeSeen]:
        changes = [each for each in self.ground.reports if isinstance(each, base.NodesChanged)]
        return [each for change in changes for each in change.nodes if each.node.name == self.name]

    @property
    def states(self) -> list[str]:
        """Its states, one after the other."""
        found = [each.state for each in self.seen]
        return [state for number, state in enumerate(found) if number == 0 or state != found[number - 1]]

    def until_it_is(self, state: str) -> base.NodeSeen:
        return eventually(
            lambda: self.seen[-1] if self.seen[-1].state == state else None, f"that it is {state}"
        )


@contextmanager
def a_frail_node(folder: Path, **given: Any) -> Iterator[Frail]:
    """The node, as if nothing had ever been, and an engine over it."""
    ledger = folder / "ledger"
    ledger.mkdir()
    with the_frail_node() as name, a_ground(folder, **{"pool": POOL, **given}) as ground:
        try:
            yield Frail(ground, name, ledger)
        finally:
            _mend(name)  # Its pods end only where it answers.


@contextmanager
def the_frail_node() -> Iterator[str]:
    """The name of the node, which nobody else uses meanwhile."""
    name = os.environ.get("JOBMAN_LAB_FRAIL_NODE", "")
    if not name:
        pytest.skip("this cluster has no node that tests may break")
    with (Path(gettempdir()) / "jobman-lab-frail.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _mend(name)
        try:
            yield name
        finally:
            _mend(name)


def stop_node() -> None:
    """Its kubelet dies, its containers run on."""
    _lab("stop")


def set_devices(node: str, device: str, number: int) -> None:
    """Have a node say that it has so many of a device."""
    path = f"/status/capacity/{device.replace('/', '~1')}"
    steps = json.dumps([{"op": "add", "path": path, "value": str(number)}])
    kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", steps)


def _mend(name: str) -> None:
    _lab("start")
    if not _is_ready(name):
        # Who was deleted comes back when it is started.
        eventually(lambda: _is_there(name) or _restarted(), f"the node {name}")
        eventually(lambda: _is_ready(name), f"that {name} is ready")
    kubectl("uncordon", name)


def _restarted() -> bool:
    _lab("stop")
    _lab("start")
    return True


def _is_there(name: str) -> bool:
    return name in kubectl("get", "nodes", "-o", "name")


def _is_ready(name: str) -> bool:
    if not _is_there(name):
        return False
    conditions = kubectl_json("get", "node", name)["status"]["conditions"]
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def _lab(word: str) -> None:
    subprocess.run([_SCRIPT, "frail", word], check=True, capture_output=True)
