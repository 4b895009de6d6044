"""The broker of a user with its workers: started when needed, ended with all of them, whatever kills it."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jobman.control.embedded import is_alive, read_running
from jobman.tasks import Grid, TaskFailed
from jobman.tasks.embedded import places_of_tasks, types_of
from jobman.tasks.local_types import LocalType

KILLING = 60 * float(os.environ.get("JOBMAN_TEST_MINUTES", "0.1"))
"""Seconds."""
PROGRAM = """
from jobman.tasks import Grid

grid = Grid()
offset = 100

@grid.task(estimate=0.001)
def shifted(number):
    return number + offset

if __name__ == "__main__":
    with grid:
        print(sum(shifted.map(range(100))))
        with grid.executor() as executor:
            print(sorted(executor.map(lambda word: word.upper(), ["a", "b"])))
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of state, whose broker ends with the test."""
    folder = tmp_path / "state"
    monkeypatch.setenv("JOBMAN_STATE", str(folder))
    yield folder
    places = places_of_tasks(folder)
    if (running := read_running(places)) is not None and is_alive(places):
        os.kill(running.pid, signal.SIGTERM)
        wait_until(lambda: not is_alive(places))


def processes(folder: Path) -> list[int]:
    """Those that were started with this folder of state."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "environ").read_bytes()
                is_over = (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                continue
            if (
                f"JOBMAN_STATE={folder}\0".encode() in words
                and not is_over
                and int(entry.name) != os.getpid()
            ):
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], Any]) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not happen")


def running(grid: Grid) -> int:
    """Tasks that are with workers; those that are still on their way to the broker are not there at all."""
    return sum(image["running"] for image in grid.ask("GET", "/v1/tasks/stats")["images"])


def slow_square(number: int) -> int:
    import time

    time.sleep(0.002)
    return number**2


def where(_: object) -> int:
    return os.getpid()


def wait_for_file(path: str) -> str:
    import time

    while not Path(path).exists():
        time.sleep(0.01)
    return "seen"


def dies(_: object) -> None:
    os._exit(3)


@pytest.mark.slow
def test_a_program_has_its_functions_done_by_workers(state: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("14950\n['A', 'B']\n", "")


@pytest.mark.slow
def test_a_broker_that_is_killed_takes_its_workers_along_and_the_next_goes_on(state: Path) -> None:
    with Grid() as grid:
        found = grid.map(slow_square, range(3000), estimate=0.002)
        first = list(itertools.islice(found, 50))
        before = set(processes(state))
        running = read_running(places_of_tasks(state))
        assert running is not None
        assert len(before) >= 3  # broker, keeper, worker
        os.kill(running.pid, signal.SIGKILL)
        wait_until(lambda: not before & set(processes(state)))
        assert first + list(found) == [number**2 for number in range(3000)]


@pytest.mark.slow
def test_a_keeper_that_is_killed_takes_its_worker_along_and_loses_nothing(state: Path) -> None:
    with Grid() as grid:
        pid = grid.submit(where, 0).result(60)
        keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: pid not in processes(state))
        assert grid.submit(where, 0).result(60) != pid


def killed_at_random(state: Path, seed: int) -> None:
    """Brokers, now and then while they come up, keepers and workers."""
    dice = random.Random(seed)
    until = time.monotonic() + KILLING
    while time.monotonic() < until:
        time.sleep(dice.uniform(0.1, 1.0))
        found = processes(state)
        if len(found) > 1 or (found and dice.random() < 0.2):
            with suppress(ProcessLookupError):
                os.kill(dice.choice(sorted(found)), signal.SIGKILL)


@pytest.mark.slow
def test_whoever_is_killed_at_whatever_moment_nothing_is_lost(state: Path) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    with Grid() as grid:
        assert grid.submit(slow_square, 7).result(60) == 49
        killing = threading.Thread(target=killed_at_random, args=(state, seed))
        killing.start()
        is_last = False
        while not is_last:
            is_last = not killing.is_alive()
            assert list(grid.map(slow_square, range(200))) == [number**2 for number in range(200)]
        killing.join()


@pytest.mark.slow
def test_a_task_that_is_cancelled_while_it_runs_lets_its_worker_go(state: Path, tmp_path: Path) -> None:
    with Grid() as grid:
        handle = grid.submit(wait_for_file, str(tmp_path / "never"))
        wait_until(lambda: running(grid))
        assert handle.cancel()
        assert grid.submit(where, 0).result(60) > 0


@pytest.mark.slow
def test_single_tasks_are_cancelled_and_the_others_of_their_batch_go_on(state: Path, tmp_path: Path) -> None:
    go_on, all_there = str(tmp_path / "go-on"), threading.Event()

    def hold_up() -> None:
        """So that all of them go together."""
        all_there.wait(60)

    with Grid() as grid:
        grid._courier(None)[0].soon(hold_up)
        handles = [grid.submit(wait_for_file, go_on) for _ in range(20)]
        all_there.set()
        wait_until(lambda: running(grid))

        def statuses() -> list[str]:
            return [grid.ask("GET", f"/v1/tasks/{handle.id}")["status"] for handle in handles]

        is_running = statuses().index("running")
        unwanted = {is_running, 19}
        assert all(handles[index].cancel() for index in unwanted)
        wait_until(lambda: {index for index, each in enumerate(statuses()) if each == "killed"} == unwanted)
        Path(go_on).touch()
        others = [handle for index, handle in enumerate(handles) if index not in unwanted]
        assert {handle.result(60) for handle in others} == {"seen"}
        assert all(handles[index].cancelled() for index in unwanted)


@pytest.mark.slow
def test_a_task_that_kills_workers_is_given_up(state: Path) -> None:
    with Grid() as grid:
        with pytest.raises(TaskFailed, match="worker-died"):
            grid.submit(dies, 0).result(60)

        def told() -> set[str]:
            return {line["kind"] for line in grid.ask("GET", "/v1/tasks/events")["events"]}

        wait_until(lambda: {"agent-came", "worker-ended", "worker-died", "dead-letter"} <= told())


@pytest.mark.slow
def test_a_deadline_ends_what_runs(state: Path, tmp_path: Path) -> None:
    with Grid() as grid:
        with pytest.raises(TaskFailed) as caught:
            grid.submit(wait_for_file, str(tmp_path / "never"), deadline=3.0).result(60)
        assert caught.value.status in ("killed", "expired")


@pytest.mark.slow
def test_a_broker_that_nobody_needs_ends(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBMAN_IDLE", "0.2s")
    with Grid() as grid:
        grid.ask("GET", "/healthz")
    wait_until(lambda: not processes(state))


@pytest.mark.slow
def test_workers_that_nobody_needs_end(state: Path) -> None:
    with Grid() as grid:
        pid = grid.submit(where, 0).result(60)
        wait_until(lambda: len(processes(state)) == 1)
        assert pid not in processes(state)


@pytest.mark.slow
def test_a_worker_that_cannot_be_started_is_told(state: Path) -> None:
    types = types_of(places_of_tasks(state))
    types.add(LocalType(type="broken", command=(sys.executable, "-c", "raise SystemExit('no licence')")))
    with Grid() as grid, pytest.raises(TaskFailed, match="worker-cannot-start: no licence"):
        grid.submit("broken", b"").result(60)


@pytest.mark.slow
def test_an_executor_calls_any_function(state: Path) -> None:
    offset = 5
    with Grid() as grid, grid.executor() as executor:
        futures = [executor.submit(lambda number: number + offset, number) for number in range(20)]
        assert sorted(future.result() for future in as_completed(futures, 60)) == list(range(5, 25))
        assert list(executor.map(pow, [2, 3], [3, 2])) == [8, 9]
        wrong = executor.submit(int, "many")
        with pytest.raises(ValueError, match="invalid literal"):
            wrong.result(60)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 2, 3)


@pytest.mark.slow
def test_an_executor_that_is_shut_down_ends_what_waits(state: Path, tmp_path: Path) -> None:
    with Grid() as grid:
        executor = grid.executor()
        futures = [executor.submit(wait_for_file, str(tmp_path / "never")) for _ in range(5)]
        executor.shutdown(cancel_futures=True)
        assert all(future.cancelled() for future in futures)
        wait_until(lambda: grid.ask("GET", "/healthz")["open"] == 0)
