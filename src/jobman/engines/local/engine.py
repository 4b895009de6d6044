"""The engine of this machine: prepares attempts, has their copies launched, follows them, and clears away.

The files of the copies are the truth (see `records`). What is held here is rebuilt from them by `recover`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobman.engines import base
from jobman.engines.local import accounts, features, private
from jobman.engines.local.attempts import Attempt, given_up, named, never_began
from jobman.engines.local.calls import remove_container
from jobman.engines.local.compile import compile_order, is_contained, output_paths
from jobman.engines.local.containers import variables_file
from jobman.engines.local.launching import Launcher, Reconnected, Report, Trouble, Unknown, Void
from jobman.engines.local.nodes import LocalNode, this_machine, virtual_nodes
from jobman.engines.local.orders import CannotRun
from jobman.engines.local.orders import Order as CopyOrder
from jobman.engines.local.outcome import Verdict, seen_through
from jobman.engines.local.prepared import Copy
from jobman.engines.local.preparing import NOTHING_KEPT, Preparer
from jobman.engines.local.private import Owner
from jobman.engines.local.probes import Probes
from jobman.engines.local.records import Exit, Started, read_copy, read_wanted, void
from jobman.engines.local.runtimes import find_runtime, missing
from jobman.engines.local.secrets import Vault
from jobman.engines.local.volumes import outgrown
from jobman.engines.local.wire import LINGER
from jobman.plan.features import users
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.spec.checks import Checks

log = logging.getLogger(__name__)
_ASKED_TO_STOP = (143, 15)
_TAIL = 4096


class LocalEngine:
    """Runs copies as processes of this machine, or in containers on it."""

    name = "local"

    def __init__(
        self,
        state: Path,
        home: Path | None = None,
        *,
        facts: Mapping[str, str] | None = None,
        linger: float = LINGER,
        look_every: float = 5.0,
    ) -> None:
        """`state` is the service's own folder, `home` that of the user's secrets and configurations.

        `linger` is how long the launcher stays with nothing to do, `look_every` the seconds between two looks
        at how full volumes are.
        """
        self._state = state.absolute()
        self._facts = dict(facts or {})
        self._linger = linger
        self._look_every = look_every
        vault = Vault(home or Path.home() / ".jobman")
        self._preparer = Preparer(self._state, vault, lambda: find_runtime(os.environ))
        self._nodes: dict[str | None, dict[str, LocalNode]] = {}
        self._report: Callable[[base.News], None] = lambda _news: None
        self._launcher: Launcher | None = None
        self._attempts: dict[base.Address, Attempt] = {}
        self._copies: dict[str, tuple[Attempt, Copy]] = {}
        self._preparing: dict[base.Address, asyncio.Task[list[CopyOrder]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._broom = ThreadPoolExecutor(1, "jobman-broom")

    # -- what it offers ----------------------------------------------------------------------------

    def nodes(self, virtual: str | None = None) -> Sequence[ClusterNode]:
        return [node.node for node in self._local_nodes(virtual).values()]

    def refusals(self, plan: Plan, *, no_container: bool = False) -> Sequence[base.Refused]:
        found = list(features.refusals(plan, no_container=no_container))
        if "image" in plan.features and not no_container and find_runtime(os.environ) is None:
            units = tuple(unit.id for unit in users(plan, "image") if unit.kind == "task" and not unit.local)
            found += [base.Refused("image", units, missing(os.environ))] if units else []
        return found

    def account_of(self, owner: str) -> base.Account | None:
        return accounts.account_of(owner)

    def refusals_for(self, plan: Plan, account: base.Account) -> Sequence[base.Refused]:
        return list(accounts.refusals_for(plan, account))

    def host_of(self, job: str, key: str, copy: int = 0) -> str:
        """All copies are on this machine."""
        del job, key, copy
        return "localhost"

    def overhead(self, plan: Plan, unit: Unit) -> Mapping[str, int]:
        del plan, unit
        return {}

    def sweep(self, used: Collection[str]) -> None:
        self._preparer.environments.sweep(used)

    def keep_environment(self, environment: Mapping[str, str]) -> str:
        return self._preparer.environments.keep(environment)

    def copies(self, job: str) -> Sequence[base.CopyInfo]:
        return [
            info for address, each in self._attempts.items() if address[0] == job for info in each.infos()
        ]

    def _local_nodes(self, virtual: str | None) -> dict[str, LocalNode]:
        if virtual not in self._nodes:
            if virtual is None:
                found = this_machine(self._facts, scratch=self._state)
            else:
                (machine,) = self._local_nodes(None).values()
                found = virtual_nodes(virtual, machine)
            self._nodes[virtual] = {node.name: node for node in found}
        return self._nodes[virtual]

    # -- life --------------------------------------------------------------------------------------

    async def start(self, report: Callable[[base.News], None]) -> None:
        """Reach the launcher, or start it. Raises LauncherError where that cannot be."""
        self._report = report
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._launcher = await Launcher.connect_or_start(
            self._state / "launcher.sock", self._state / "launcher.log", linger=self._linger
        )
        self._spawn(self._listen(self._launcher))

    async def close(self) -> None:
        self._report = lambda _news: None
        work: list[asyncio.Task[Any]] = [*self._tasks, *self._preparing.values()]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        for attempt in self._attempts.values():
            if attempt.probes is not None:
                attempt.probes.end()
        if self._launcher is not None:
            await self._launcher.close()
        self._broom.shutdown(wait=False, cancel_futures=True)

    async def settle(self, address: base.Address) -> None:
        """What an attempt leaves is its output, which stays."""

    async def connect(self, job: str, partners: Sequence[str]) -> None:
        """All jobs share the network of this machine."""

    async def finish(self, job: str) -> None:
        """Attempts have nothing in common here."""

    async def drain(self, node: str, *, drained: bool) -> None:
        """Nobody else is to be kept away."""

    async def forget(self, job: str) -> None:
        await asyncio.to_thread(private.remove, self._preparer.job_folder(job))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("something went wrong in the local engine", exc_info=error)

    # -- beginning ---------------------------------------------------------------------------------

    async def launch(self, orders: Sequence[base.Order]) -> None:
        ready: list[CopyOrder] = []
        for written in orders:
            if written.address in self._attempts or written.address in self._preparing:
                continue
            try:
                order = accounts.as_identity(written)
            except CannotRun as error:
                verdict = Verdict(error.reason, error.exit_code, None, error.message)
                self._report(never_began(written, verdict))
                continue
            if order.allocation.slots and not self._unstarted(order):
                ready += self._follow_again(order)
            elif self._preparer.needs_time(order):
                self._prepare_apart(order)
            else:
                ready += await self._prepare(order)
        await self._hand_over(ready)

    async def recover(self, orders: Sequence[base.Order]) -> None:
        await self.launch(orders)

    def _prepare_apart(self, order: base.Order) -> None:
        """Prepare what takes its time, and launch it then, unless it was stopped before."""

        def done(task: asyncio.Task[list[CopyOrder]]) -> None:
            del self._preparing[order.address]
            if task.cancelled():
                verdict = Verdict("signal", *_ASKED_TO_STOP, "stopped before it started")
                self._report(never_began(order, verdict))
            else:
                self._spawn(self._hand_over(task.result()))

        task = asyncio.create_task(self._prepare(order))
        self._preparing[order.address] = task
        task.add_done_callback(done)

    async def _prepare(self, order: base.Order) -> list[CopyOrder]:
        """Prepare an attempt and follow it; where that fails, it is over."""
        try:
            prepared, kept = await self._preparer.prepare(order)
            try:
                copies = compile_order(order, prepared, self._local_nodes(order.virtual))
                _write_variables(copies)
            except Exception:
                self._preparer.undo(order, kept)
                raise
        except CannotRun as error:
            if len(self._unstarted(order)) < len(order.allocation.slots):
                return self._give_up_the_rest(order)
            self._report(never_began(order, Verdict(error.reason, error.exit_code, None, error.message)))
            return []
        except Exception as error:
            log.exception("attempt %s could not be prepared", order.address)
            self._report(
                never_began(order, Verdict("launch-failed", message=f"a fault of jobman: {error!r}"))
            )
            return []
        return self._follow(Attempt(order, copies, kept))

    def _unstarted(self, order: base.Order) -> list[int]:
        """The copies of an attempt that were never started."""
        folder = str(self._preparer.folder(order.address))
        copies = list(range(len(order.allocation.slots)))
        if not Path(folder).exists():
            return copies
        return [copy for copy in copies if read_copy(folder, copy).state == "unknown"]

    def _give_up_the_rest(self, order: base.Order) -> list[CopyOrder]:
        """End what was half launched and cannot be launched as a whole, as if a copy had failed."""
        folder = str(self._preparer.folder(order.address))
        for copy in self._unstarted(order):
            void(folder, copy)
        return self._follow_again(order)

    def _follow_again(self, order: base.Order) -> list[CopyOrder]:
        """An attempt of an earlier engine: nothing is made for it again."""
        kept = self._preparer.kept(order) or NOTHING_KEPT
        prepared = self._preparer.describe(order, kept)
        copies = compile_order(order, prepared, self._local_nodes(order.virtual))
        return self._follow(Attempt(order, copies, kept))

    def _follow(self, attempt: Attempt) -> list[CopyOrder]:
        self._attempts[attempt.address] = attempt
        self._copies.update({copy.order.id: (attempt, copy) for copy in attempt.copies})
        return [copy.order for copy in attempt.copies]

    async def _hand_over(self, ready: list[CopyOrder]) -> None:
        """The launcher starts what never was, and says what is known of the rest."""
        if ready and self._launcher is not None:
            await self._launcher.launch(ready)

    # -- asking ------------------------------------------------------------------------------------

    async def stop(self, address: base.Address, why: str) -> None:
        if address in self._preparing:
            self._preparing[address].cancel()
        elif address in self._attempts:
            await self._stop_copies(self._attempts[address], why)

    async def freeze(self, address: base.Address) -> None:
        attempt = self._attempts.get(address)
        if attempt is not None and self._launcher is not None:
            if attempt.probes is not None:
                attempt.probes.pause()
            for copy in attempt.unfinished():
                await self._launcher.freeze(copy.order.id)

    async def thaw(self, address: base.Address) -> None:
        attempt = self._attempts.get(address)
        if attempt is not None and self._launcher is not None:
            for copy in attempt.unfinished():
                await self._launcher.thaw(copy.order.id)
            if attempt.probes is not None:
                attempt.probes.resume()

    async def prolong(self, address: base.Address, seconds: float) -> None:
        attempt = self._attempts.get(address)
        if attempt is not None and self._launcher is not None:
            for id_, duration in attempt.prolong(seconds):
                await self._launcher.prolong(id_, duration)

    async def _stop_copies(self, attempt: Attempt, why: str) -> None:
        assert self._launcher is not None
        attempt.why_stopped = why or "asked to"
        for copy in attempt.unfinished():
            await self._launcher.stop(copy.order.id, why=why)

    # -- hearing -----------------------------------------------------------------------------------

    async def _listen(self, launcher: Launcher) -> None:
        async for news in launcher.reports():
            try:
                self._hear(news)
            except Exception:
                log.exception("news of the launcher could not be taken in")

    def _hear(self, news: Report) -> None:
        match news:
            case Trouble(message=message):
                log.warning("launcher: %s", message)
            case Reconnected():
                log.warning("the launcher had died; there is a new one")
            case _ if news.id not in self._copies:
                pass
            case Started():
                self._started(*self._copies[news.id], news)
            case Exit():
                self._ended(*self._copies[news.id], news)
            case Void():
                attempt, copy = self._copies[news.id]
                self._ended(attempt, copy, given_up(copy))
            case Unknown():
                self._spawn(self._say_again(*self._copies[news.id]))

    def _started(self, attempt: Attempt, copy: Copy, started: Started) -> None:
        attempt.started[copy.order.copy] = started
        if attempt.begins_to_run():
            self._tell_when_it_runs(attempt, 0.001)

    def _tell_when_it_runs(self, attempt: Attempt, pause: float) -> None:
        """Say that an attempt runs once its copies are past their steps and hooks, if they get there."""
        if attempt.address not in self._attempts or attempt.is_over:
            return
        waiting = [
            copy for copy in attempt.unfinished() if not has_become(attempt.started[copy.order.copy].pid)
        ]
        if waiting:
            again = min(pause * 2, 0.1)
            asyncio.get_running_loop().call_later(pause, self._tell_when_it_runs, attempt, again)
            return
        self._tell_start(attempt)
        self._begin_to_look(attempt)

    def _tell_start(self, attempt: Attempt) -> None:
        attempt.is_told = True
        self._report(attempt.running())

    def _ended(self, attempt: Attempt, copy: Copy, end: Exit) -> None:
        if copy.container is not None and end.reason == "exit":
            end = seen_through(end, copy, _last_line(output_paths(copy.order)["stderr"]))
        attempt.ended[copy.order.copy] = end
        del self._copies[copy.order.id]
        if attempt.is_over:
            self._conclude(attempt)
        elif end.reason != "success" and not attempt.is_ending:
            # Copies are one program: without one of them the others have nothing to do.
            self._spawn(self._stop_copies(attempt, f"copy {end.copy} failed"))

    async def _say_again(self, attempt: Attempt, copy: Copy) -> None:
        """The launcher does not know a copy: it was on its way out, or lost what it was told."""
        await asyncio.sleep(0.2)
        if copy.order.id in self._copies:
            await self._hand_over([copy.order])
            if attempt.why_stopped:
                await self._stop_copies(attempt, attempt.why_stopped)

    # -- looking after -----------------------------------------------------------------------------

    def _begin_to_look(self, attempt: Attempt) -> None:
        checks = attempt.order.unit.policies.checks
        if checks is not None:
            attempt.probes = self._probes(checks, attempt)
            attempt.probes.start(min(started.at for started in attempt.started.values()))
            if any(read_wanted(c.order.folder, c.order.copy).frozen_since for c in attempt.copies):
                attempt.probes.pause()
        if attempt.has_sizes:
            self._spawn(self._watch_sizes(attempt))

    def _probes(self, checks: Checks, attempt: Attempt) -> Probes:
        address = attempt.address
        return Probes(
            checks,
            attempt.copies,
            passed=lambda kind, good: self._report(
                base.CheckPassed(**named(address), kind=kind, passed=good)
            ),
            unhealthy=lambda message: self._report(base.Unhealthy(**named(address), message=message)),
        )

    async def _watch_sizes(self, attempt: Attempt) -> None:
        """Stop an attempt whose volumes hold more than they may."""
        mounts = {mount for each in attempt.kept.mounts for mount in each if mount.size is not None}
        while attempt.address in self._attempts:
            await asyncio.sleep(self._look_every)
            full = await asyncio.to_thread(outgrown, mounts)
            if full is not None and not attempt.is_over:
                reason = "out-of-memory" if full.in_memory else "signal"
                attempt.verdict = Verdict(reason, *_ASKED_TO_STOP, full.is_full)
                await self._stop_copies(attempt, full.is_full)
                return

    # -- clearing away -----------------------------------------------------------------------------

    def _conclude(self, attempt: Attempt) -> None:
        if attempt.probes is not None:
            attempt.probes.end()
        try:
            rooms = self._preparer.clear(attempt.order, attempt.kept)
        except OSError as error:
            log.warning("attempt %s: what it left could not be cleared away: %s", attempt.address, error)
            rooms = []
        urgent = [room for room in rooms if not self._preparer.goes_with_its_job(room)]
        if urgent or is_contained(attempt.order):
            self._spawn(self._clear_away(attempt, rooms))
        else:
            self._tell_end(attempt)
            for room in rooms:
                self._broom.submit(private.remove, room)

    async def _clear_away(self, attempt: Attempt, rooms: list[Path]) -> None:
        """Remove what nobody would find after the end was told: containers, and rooms in other places."""
        try:
            for copy in attempt.copies:
                if copy.container is not None and copy.runtime is not None:
                    with suppress(CannotRun):
                        await remove_container(copy.runtime, copy.container.name, copy.order.environment)
            for room in rooms:
                await asyncio.to_thread(private.remove, room)
        finally:
            self._tell_end(attempt)

    def _tell_end(self, attempt: Attempt) -> None:
        del self._attempts[attempt.address]
        over = attempt.over()
        if attempt.is_running and not attempt.is_told and over.reason not in _NEVER_RAN:
            self._tell_start(attempt)
        self._report(over)


_NEVER_RAN = ("launch-failed", "stage-failed")
_LAUNCHER = b"jobman.engines.local.launcher"


def has_become(pid: int) -> bool:
    """Whether a copy is its command by now, and no longer a fork of the launcher.

    Of one that has ended nobody can tell; its end will.
    """
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return bool(said) and _LAUNCHER not in said


def _write_variables(copies: Sequence[Copy]) -> None:
    """The variables of containers that go by a file; nobody else can read it."""
    for copy in copies:
        if copy.container is not None and copy.runtime is not None:
            content = variables_file(copy.runtime, copy.container.variables)
            if content is not None:
                private.write(Path(copy.container.file), content.encode(), Owner())


def _last_line(path: str) -> str:
    """The last line of a file."""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
