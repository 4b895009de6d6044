"""A host that plays attempts instead of running them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from jobman.engines import base
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt goes: how long it takes, how it ends, what it writes."""

    seconds: float | None = 0.0
    """None: until it is stopped."""
    exit_code: int = 0
    reason: str | None = None
    """Without it `exit` where the exit code is not 0."""
    output: str = ""
    errors: str = ""
    result: str | None = None
    ready_after: float | None = 0.0
    ports: dict[str, int] = {}


SUCCESS = Play()


class MemoryEngine:
    """Plays every attempt as `script` says; without one, everything succeeds at once."""

    name = "memory"

    def __init__(
        self, script: Callable[[base.Order], Play] | None = None, *, nodes: int = 1, cores: int = 64
    ) -> None:
        self._script = script or (lambda _order: SUCCESS)
        self._nodes = [_node(f"node-{number}", cores) for number in range(nodes)]
        self._folder = TemporaryDirectory(prefix="jobman-memory-")
        self._report: Callable[[base.News], None] = lambda _news: None
        self._playing: dict[base.Address, list[asyncio.TimerHandle]] = {}
        self._outputs: dict[base.Address, tuple[base.OutputFile, ...]] = {}
        self._started: dict[base.Address, float] = {}
        self.launched: list[base.Address] = []
        """Every attempt that was ever started, in order."""
        self.frozen: set[base.Address] = set()
        self.prolonged: list[tuple[base.Address, float]] = []
        self.settled: list[base.Address] = []
        self.finished: list[str] = []
        self.connections: dict[str, tuple[str, ...]] = {}
        self.told: dict[str, bool] = {}
        """Which nodes are to be kept free of others, as it was told last."""
        self.overheads: dict[str, int] = {}
        """What each copy of everything costs beside what it asks for."""

    def nodes(self, virtual: str | None = None) -> Sequence[ClusterNode]:
        if virtual is None:
            return self._nodes
        sizes = virtual.split("x")
        if len(sizes) not in (2, 3) or not all(size.isdigit() and int(size) for size in sizes):
            raise ValueError(f"{virtual} is not NODESxCORES or NODESxCORESxGPUS")
        gpus = int(sizes[2]) if len(sizes) == 3 else 0
        return [_node(f"node-{number}", int(sizes[1]), gpus) for number in range(int(sizes[0]))]

    def refusals(self, plan: Plan, *, no_container: bool = False) -> Sequence[base.Refused]:
        """What can be played can be had."""
        del plan, no_container
        return ()

    def account_of(self, owner: str) -> base.Account | None:
        """Nobody runs anything."""
        del owner
        return None

    def refusals_for(self, plan: Plan, account: base.Account) -> Sequence[base.Refused]:
        del plan, account
        return ()

    def host_of(self, job: str, key: str, copy: int = 0) -> str:
        """Nobody can be reached."""
        del job, key, copy
        return "localhost"

    def overhead(self, plan: Plan, unit: Unit) -> Mapping[str, int]:
        del plan, unit
        return self.overheads

    def nodes_changed(self, *seen: base.NodeSeen) -> None:
        """Play that nodes came, went or changed."""
        known = {node.name: node for node in self._nodes}
        self._nodes = list((known | {each.node.name: each.node for each in seen}).values())
        self._report(base.NodesChanged(seen))

    def sweep(self, used: Collection[str]) -> None:
        """Nothing is kept."""
        del used

    async def start(self, report: Callable[[base.News], None]) -> None:
        self._report = report

    async def launch(self, orders: Sequence[base.Order]) -> None:
        for order in orders:
            if order.address not in self._started:
                self.launched.append(order.address)
                self._play(order)

    async def recover(self, orders: Sequence[base.Order]) -> None:
        await self.launch(orders)

    def _play(self, order: base.Order) -> None:
        play = self._script(order)
        loop = asyncio.get_running_loop()
        address = order.address
        self._started[address] = time.time()
        self._outputs[address] = self._write(order, play)
        self._report(
            base.Running(
                job=order.job,
                key=order.key,
                attempt=order.attempt,
                at=time.time(),
                outputs=self._outputs[address],
                ports=play.ports,
            )
        )
        timers = self._playing[address] = []
        if order.unit.policies.checks is not None and play.ready_after is not None:
            timers.append(loop.call_later(play.ready_after, self._pass_checks, address))
        if play.seconds is not None:
            reason = play.reason or ("exit" if play.exit_code else "")
            ending = (address, reason, play.exit_code, play.result)
            timers.append(loop.call_later(play.seconds, lambda: self._end(*ending)))

    def _pass_checks(self, address: base.Address) -> None:
        for kind in ("started", "ready"):
            self._report(base.CheckPassed(**_named(address), kind=kind))

    def _end(
        self, address: base.Address, reason: str, exit_code: int | None, result: str | None = None
    ) -> None:
        for timer in self._playing.pop(address, ()):
            timer.cancel()
        self._report(
            base.Over(
                **_named(address),
                reason=reason,
                exit_code=exit_code,
                started_at=self._started[address],
                result=result,
                outputs=self._outputs.get(address, ()),
            )
        )

    async def stop(self, address: base.Address, why: str) -> None:
        del why
        if address in self._playing:
            self._end(address, "signal", 143)

    async def freeze(self, address: base.Address) -> None:
        self.frozen.add(address)

    async def thaw(self, address: base.Address) -> None:
        self.frozen.discard(address)

    async def prolong(self, address: base.Address, seconds: float) -> None:
        self.prolonged.append((address, seconds))

    @property
    def drained(self) -> set[str]:
        """The nodes that are to be kept free of others."""
        return {name for name, drained in self.told.items() if drained}

    async def settle(self, address: base.Address) -> None:
        self.settled.append(address)

    async def connect(self, job: str, partners: Sequence[str]) -> None:
        self.connections[job] = tuple(partners)

    async def finish(self, job: str) -> None:
        self.finished.append(job)

    async def drain(self, node: str, *, drained: bool) -> None:
        self.told[node] = drained

    def copies(self, job: str) -> Sequence[base.CopyInfo]:
        """There are no processes to show."""
        del job
        return ()

    async def forget(self, job: str) -> None:
        self._outputs = {address: kept for address, kept in self._outputs.items() if address[0] != job}

    def keep_environment(self, environment: Mapping[str, str]) -> str:
        return hashlib.sha256(msgspec.json.encode(dict(environment), order="deterministic")).hexdigest()

    async def close(self) -> None:
        for timers in self._playing.values():
            for timer in timers:
                timer.cancel()
        self._playing = {}

    def _write(self, order: base.Order, play: Play) -> tuple[base.OutputFile, ...]:
        folder = Path(self._folder.name) / order.job / order.key / str(order.attempt)
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for stream, suffix, text in (("stdout", "out", play.output), ("stderr", "err", play.errors)):
            path = folder / f"0.{suffix}"
            path.write_text(text)
            files.append(base.OutputFile(0, stream, str(path), order.nodes[0] if order.nodes else "node-0"))
        return tuple(files)


def _named(address: base.Address) -> dict[str, Any]:
    job, key, attempt = address
    return {"job": job, "key": key, "attempt": attempt, "at": time.time()}


def _node(name: str, cores: int, gpus: int = 0) -> ClusterNode:
    amounts: dict[str, int | float] = {"core": cores, "memory": cores * 2**32, "storage": 2**40}
    if gpus:
        amounts["gpu"] = gpus
    return ClusterNode(name=name, amounts=amounts)
