"""A local engine in a thread of its own, orders for it, and ways to wait for its reports."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jobman.engines import base
from jobman.engines.local.engine import LocalEngine
from jobman.engines.local.private import in_memory, remove
from jobman.engines.local.records import read_copy
from jobman.engines.local.trees import kill_all, marked, send
from jobman.plan.model import Unit
from jobman.sched.allocation import Allocation, Slot
from jobman.spec.policies import Policies
from tests.engines.local.workshop import PATIENCE, eventually

NODE = "node-0"
Report = TypeVar("Report", bound=base.Report)
_UNIT_FIELDS = frozenset(Unit.__struct_fields__)
_POLICY_FIELDS = frozenset(Policies.__struct_fields__)


def make_order(*command: str, cwd: Path, slots: int | tuple[Slot, ...] = 1, **given: Any) -> base.Order:
    """An order; keys of the unit, of its policies and of the order itself may be given alike."""
    unit = {key: given.pop(key) for key in list(given) if key in _UNIT_FIELDS - {"cwd", "coordinator"}}
    policies = {key: given.pop(key) for key in list(given) if key in _POLICY_FIELDS}
    places = tuple(Slot(NODE) for _ in range(slots)) if isinstance(slots, int) else slots
    if "unit_cwd" in given:
        unit["cwd"] = given.pop("unit_cwd")
    settings: dict[str, Any] = {
        "job": "job-1",
        "job_name": "example",
        "owner": "ada",
        "key": "task.0",
        "attempt": 1,
        "index": 0,
        "unit": Unit(
            **{"id": "task", "name": "task", "command": command, "policies": Policies(**policies), **unit}
        ),
        "allocation": Allocation(0, slots=places),
        "nodes": tuple(dict.fromkeys(slot.node for slot in places)),
        "cwd": str(cwd),
    }
    return base.Order(**{**settings, **given})


class House:
    """An engine that is alive, what it reported, and everything it may have left behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        self.reports: list[base.News] = []
        self.orders: list[base.Order] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.engine = self.open()

    # -- the engine --------------------------------------------------------------------------------

    def open(self) -> LocalEngine:
        self.engine = LocalEngine(self.state, self.home, linger=0.5, look_every=0.05)
        self.reports = []
        self.wait(self.engine.start(self.reports.append))
        return self.engine

    def reopen(self) -> LocalEngine:
        """As after the death of the service: another engine over the same folder."""
        self.wait(self.engine.close())
        return self.open()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    # -- orders ------------------------------------------------------------------------------------

    def order(self, *command: str, **given: Any) -> base.Order:
        given.setdefault("key", f"task.{len(self.orders)}")
        order = make_order(*command, cwd=given.pop("cwd", self.work), **given)
        self.orders.append(order)
        return order

    def shell(self, script: str, **given: Any) -> base.Order:
        return self.order("/bin/sh", "-c", script, **given)

    def launch(self, *orders: base.Order) -> None:
        self.wait(self.engine.launch(orders))

    def recover(self, *orders: base.Order) -> None:
        self.wait(self.engine.recover(orders))

    def stop(self, order: base.Order, why: str = "") -> None:
        self.wait(self.engine.stop(order.address, why))

    def run(self, order: base.Order) -> base.Over:
        self.launch(order)
        return self.over(order)

    # -- what comes of them ------------------------------------------------------------------------

    def heard(self, order: base.Order, kind: type[Report]) -> list[Report]:
        return [each for each in self.reports if isinstance(each, kind) and each.address == order.address]

    def first(self, order: base.Order, kind: type[Report]) -> Report:
        return eventually(lambda: self.heard(order, kind), f"a report {kind.__name__} of {order.key}")[0]

    def running(self, order: base.Order) -> base.Running:
        return self.first(order, base.Running)

    def over(self, order: base.Order) -> base.Over:
        return self.first(order, base.Over)

    def attempt_folder(self, order: base.Order) -> Path:
        return self.state / "jobs" / order.job / order.key / str(order.attempt)

    def out(self, order: base.Order, copy: int = 0) -> str:
        return _text(self.attempt_folder(order) / f"{copy}.out")

    def err(self, order: base.Order, copy: int = 0) -> str:
        return _text(self.attempt_folder(order) / f"{copy}.err")

    def launcher_pid(self) -> int:
        launcher = self.engine._launcher
        assert launcher is not None
        status = self.wait(launcher.status())
        return int(status.pid)

    def kill_launcher(self) -> None:
        os.kill(self.launcher_pid(), signal.SIGKILL)

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill whatever still runs: the launcher then ends by itself."""
        try:
            self.wait(self.engine.close())
        finally:
            for order in self.orders:
                self.kill_everything(order)
                remove(in_memory(self.attempt_folder(order)))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()

    def kill_everything(self, order: base.Order) -> None:
        """All processes of the copies of an order."""
        for copy in range(len(order.allocation.slots)):
            with suppress(OSError, msgspec.MsgspecError):
                started = read_copy(str(self.attempt_folder(order)), copy).started
                if started is not None and started.id:
                    # On its way to its command a process has no marker yet.
                    send(started.process, signal.SIGKILL)
                    kill_all(partial(marked, started.id))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
