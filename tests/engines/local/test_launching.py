"""The service reaches its launcher, starts it where there is none, and does not notice when it dies."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jobman.engines.local.launching import Launcher, LauncherError, Reconnected, Report, Unknown
from jobman.engines.local.orders import Order
from jobman.engines.local.records import Exit, Started, read_exit
from tests.engines.local.workshop import PATH, PATIENCE

UNTIL_GO = "echo run >> runs; touch ready; while [ ! -e go ]; do sleep 0.02; done; exit 6"


class Site:
    """A folder with a launcher, and a service's view of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[Launcher] = []
        self.orders = 0

    async def launcher(self) -> Launcher:
        made = await Launcher.connect_or_start(self.folder / "launcher", self.folder / "log", linger=0.2)
        self.opened.append(made)
        return made

    def order(self, script: str) -> Order:
        self.orders += 1
        return Order(
            id=f"{self.folder.name}-{self.orders}",
            folder=str(self.folder / str(self.orders)),
            argv=("/bin/sh", "-c", script),
            environment={"PATH": PATH},
            cwd=str(self.folder),
        )

    async def close(self) -> None:
        for launcher in self.opened:
            await launcher.close()


def on_site(folder: Path, play: Callable[[Site], Awaitable[None]]) -> None:
    async def whole() -> None:
        site = Site(folder)
        try:
            async with asyncio.timeout(PATIENCE):
                await play(site)
        finally:
            await site.close()

    asyncio.run(whole())


async def hear(launcher: Launcher, kind: type[Report], id_: str | None = None) -> Any:
    async for report in launcher.reports():
        if isinstance(report, kind) and id_ in (None, getattr(report, "id", None)):
            return report
    raise AssertionError


async def exists(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


def test_a_copy_is_run_and_its_news_are_heard(tmp_path):
    async def play(site):
        launcher = await site.launcher()
        order = site.order("exit 3")
        await launcher.launch([order])
        assert (await hear(launcher, Started)).id == order.id
        assert (await hear(launcher, Exit)).exit_code == 3

    on_site(tmp_path, play)


def test_many_services_at_once_have_one_launcher(tmp_path):
    async def play(site):
        launchers = await asyncio.gather(*(site.launcher() for _ in range(5)))
        assert len({(await launcher.status()).pid for launcher in launchers}) == 1

    on_site(tmp_path, play)


def test_a_socket_that_was_left_behind_is_taken_over(tmp_path):
    async def play(site):
        first = await site.launcher()
        pid = (await first.status()).pid
        await first.close()
        os.kill(pid, signal.SIGKILL)
        second = await site.launcher()
        assert (await second.status()).pid != pid

    on_site(tmp_path, play)


def test_the_death_of_the_launcher_is_healed(tmp_path):
    async def play(site):
        launcher = await site.launcher()
        order = site.order(UNTIL_GO)
        await launcher.launch([order])
        await exists(site.folder / "ready")
        os.kill((await launcher.status()).pid, signal.SIGKILL)
        await hear(launcher, Reconnected)
        (site.folder / "go").touch()
        assert (await hear(launcher, Exit)).exit_code == 6
        assert (site.folder / "runs").read_text() == "run\n"

    on_site(tmp_path, play)


def test_what_is_asked_while_the_launcher_is_dead_is_done(tmp_path):
    async def play(site):
        launcher = await site.launcher()
        first, second = site.order(UNTIL_GO), site.order("exit 4")
        await launcher.launch([first])
        await exists(site.folder / "ready")
        os.kill((await launcher.status()).pid, signal.SIGKILL)
        await launcher.stop(first.id, why="enough")
        await launcher.launch([second])
        ends = {end.id: end for end in [await hear(launcher, Exit), await hear(launcher, Exit)]}
        assert (ends[first.id].stopped, ends[first.id].why) == (True, "enough")
        assert ends[second.id].exit_code == 4

    on_site(tmp_path, play)


@pytest.mark.slow
def test_however_often_the_launcher_dies_every_copy_runs_once(tmp_path):
    async def play(site):
        launcher = await site.launcher()
        orders = [site.order(f"echo run >> runs{number}; exit {number}") for number in range(60)]
        ends = {}
        await launcher.launch(orders)
        async for report in launcher.reports():
            if isinstance(report, Exit):
                ends[report.id] = report.exit_code
                if len(ends) in (5, 20, 40):
                    os.kill((await launcher.status()).pid, signal.SIGKILL)
            if len(ends) == len(orders):
                break
        assert [ends[order.id] for order in orders] == list(range(60))
        assert [(site.folder / f"runs{number}").read_text() for number in range(60)] == ["run\n"] * 60

    on_site(tmp_path, play)


def test_freezing_thawing_and_prolonging_reach_the_copy(tmp_path):
    async def play(site):
        launcher = await site.launcher()
        order = site.order("touch ready; sleep 1000")
        await launcher.launch([order])
        await exists(site.folder / "ready")
        await launcher.freeze(order.id)
        await launcher.thaw(order.id)
        await launcher.prolong(order.id, 0.01)
        assert (await hear(launcher, Exit)).reason == "timeout"

    on_site(tmp_path, play)


def test_a_service_that_comes_back_adopts_what_runs(tmp_path):
    async def play(site):
        first = await site.launcher()
        order, never = site.order(UNTIL_GO), site.order("exit 0")
        await first.launch([order])
        await exists(site.folder / "ready")
        await first.close()
        second = await site.launcher()
        await second.adopt([order, never])
        assert (await hear(second, Unknown)).id == never.id
        assert await second.known([order.id, never.id]) == {order.id: "running"}
        (site.folder / "go").touch()
        assert (await hear(second, Exit, order.id)).exit_code == 6
        assert read_exit(never.folder, 0) is None

    on_site(tmp_path, play)


def test_a_launcher_without_copies_can_be_shut(tmp_path):
    async def play(site):
        launcher = await site.launcher()
        await launcher.status()
        assert await launcher.shut()
        while (site.folder / "launcher").exists():
            await asyncio.sleep(0.01)

    on_site(tmp_path, play)


def test_a_launcher_that_cannot_start_says_why(tmp_path):
    async def play(site):
        (site.folder / "launcher.lock").mkdir()
        with pytest.raises(LauncherError, match=r"could not start: .*directory"):
            await site.launcher()

    on_site(tmp_path, play)
