"""Workers on a user's own machine: what they have of it, what they may use, and that they leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobman.control.embedded import read_running
from jobman.engines.local.gpus import find_gpus
from jobman.engines.local.hardware import find_cores
from jobman.engines.local.trees import facts
from jobman.tasks import Grid, GridError, TaskFailed
from jobman.tasks.embedded import places_of_tasks, types_of
from jobman.tasks.local_types import LocalType
from tests.tasks.test_embedded import processes, state, wait_until

__all__ = ["state"]
CORES = find_cores().amount
ECHO = (sys.executable, "-m", "jobman.tasks.worker", "tests.tasks.test_pool:same")
SMI = "#!/bin/sh\nprintf '%s\\n' 'GPU-aa, Toy A100, 40960' 'GPU-bb, Toy A100, 40960'\n"
pytestmark = pytest.mark.slow


def same(payload: bytes) -> bytes:
    return payload


def noted(path: str) -> None:
    """Write down when this was executed, and with how many cores."""
    begin = time.monotonic()
    time.sleep(0.01)
    line = f"{os.environ['JOBMAN_CORES']} {begin} {time.monotonic()}\n"
    with Path(path).open("a") as file:
        file.write(line)


def taken(size: int) -> int:
    """Take memory, and stay."""
    content = bytearray(b"x") * size
    time.sleep(600)
    return len(content)


def daemon(path: str) -> None:
    """Leave a process behind that has another parent and another session, and nothing of ours to hold it."""
    subprocess.run(["sh", "-c", f"setsid sleep 1000 >/dev/null 2>&1 & echo $! >{path}"], check=True)


def seen_gpus(names: list[str]) -> tuple[str, str]:
    """Which GPUs a worker sees; it waits for the others, so that each has a worker of its own."""
    own, *others = map(Path, names)
    own.touch()
    while not all(path.exists() for path in others):
        time.sleep(0.01)
    return os.environ["CUDA_VISIBLE_DEVICES"], os.environ["JOBMAN_GPUS"]


def told(grid: Grid, kind: str) -> list[str]:
    return [each["words"] for each in grid.ask("GET", "/v1/tasks/events")["events"] if each["kind"] == kind]


def is_over(path: Path) -> bool:
    return not Path(f"/proc/{path.read_text().strip()}").exists()


# -- room ----------------------------------------------------------------------------------------------------


def at_once(path: Path) -> int:
    """The most cores that tasks had together at any time."""
    rows = [line.split() for line in path.read_text().splitlines()]
    steps = [(float(begin), int(cores)) for cores, begin, _ in rows]
    steps += [(float(end), -int(cores)) for cores, _, end in rows]
    used = most = 0
    for _, step in sorted(steps):
        used += step
        most = max(most, used)
    return most


def test_types_that_need_different_amounts_never_have_more_than_all_cores(
    state: Path, tmp_path: Path
) -> None:
    path = tmp_path / "notes"
    with Grid() as grid:
        large = grid.task(name="large", resources={"cpu": CORES}, estimate=0.01)(noted)
        small = grid.task(name="small", resources={"cpu": 1}, estimate=0.01)(noted)
        waiting = [large.map([str(path)] * 50), small.map([str(path)] * 100)]
        assert [len(list(results)) for results in waiting] == [50, 100]
    assert at_once(path) == CORES


def test_what_can_never_have_room_is_refused(state: Path) -> None:
    with Grid() as grid:
        huge = grid.task(resources={"cpu": CORES + 1})(same)
        with pytest.raises(
            GridError, match=f"needs {CORES + 1} cores, and this machine has {CORES}"
        ) as caught:
            huge.submit(b"")
        assert caught.value.code == "unable"
        wrong = grid.task(resources={"memory": "much"})(same)
        with pytest.raises(GridError, match="`memory=much`"):
            wrong.submit(b"")


def test_tasks_of_a_type_that_has_no_room_any_more_are_given_up(state: Path) -> None:
    # Added on a machine that had more.
    types = types_of(places_of_tasks(state))
    types.add(LocalType(type="huge", command=ECHO, resources={"cpu": str(CORES + 1)}))
    with Grid() as grid, pytest.raises(TaskFailed, match=f"no-room: a worker needs {CORES + 1} cores"):
        grid.submit("huge", b"").result(60)


def test_a_minimum_of_workers_is_there_before_the_work_and_keeps_no_broker(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBMAN_IDLE", "1s")
    types_of(places_of_tasks(state)).add(
        LocalType(type="same", command=ECHO, least=1, folder=str(Path.cwd()))
    )
    with Grid() as grid:
        wait_until(lambda: grid.ask("GET", "/v1/agents"))
        assert grid.submit("same", b"here").result(60) == b"here"
    wait_until(lambda: not processes(state))


def test_a_maximum_of_workers_is_kept(state: Path) -> None:
    types_of(places_of_tasks(state)).add(LocalType(type="same", command=ECHO, most=1, folder=str(Path.cwd())))
    with Grid() as grid:
        assert len(list(grid.map("same", [b""] * 500, estimate=10.0))) == 500
        assert len(told(grid, "agent-came")) == 1


def test_each_worker_has_gpus_of_its_own(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvidia-smi").write_text(SMI)
    (tmp_path / "bin/nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if [gpu.uuid for gpu in find_gpus()] != ["GPU-aa", "GPU-bb"]:
        pytest.skip("this machine has GPUs of its own")
    names = [str(tmp_path / name) for name in ("one", "two")]
    with Grid() as grid:
        draws = grid.task(resources={"cpu": "100m", "gpu": 1}, estimate=10.0)(seen_gpus)
        found = sorted(map(tuple, draws.map([names, names[::-1]])))
        assert found == [("GPU-aa", "1"), ("GPU-bb", "1")]
        # Nothing is seen that was not asked for.
        assert list(grid.submit(seen_gpus, names).result(60)) == ["", "0"]


# -- memory --------------------------------------------------------------------------------------------------


def test_a_worker_that_takes_too_much_memory_is_ended_and_that_is_told(state: Path) -> None:
    with Grid() as grid:
        greedy = grid.task(resources={"memory": "200Mi"})(taken)
        with pytest.raises(TaskFailed, match="worker-died"):
            greedy.submit(500 << 20).result(120)
        wait_until(lambda: any("more than the 200 MiB" in words for words in told(grid, "worker-ended")))
        assert told(grid, "worker-ended")[0].startswith("ended for its memory: used ")


KEEP = """
import asyncio, sys
from jobman.tasks import worker_process

worker_process.enter = lambda name, memory: None

async def main():
    over = asyncio.get_running_loop().create_future()
    ended = lambda words: over.done() or over.set_result(words)
    started = worker_process.Started("nowhere", tuple(sys.argv[1:]), memory=100 << 20)
    worker = worker_process.WorkerProcess(started, ended)
    keeping = asyncio.create_task(worker.keep())
    print(await over)
    await worker.close(grace=0.0)
    keeping.cancel()

asyncio.run(main())
"""


def test_memory_is_kept_where_no_control_group_can_be_made(tmp_path: Path) -> None:
    # All processes count, also one whose parent has ended.
    eat = f"{sys.executable} -S -E -c 'import time; x = bytearray(60 << 20); time.sleep(60)'"
    command = ["sh", "-c", f"({eat} & echo $! >{tmp_path}/one) & {eat} & sleep 60"]
    done = subprocess.run([sys.executable, "-c", KEEP, *command], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("ended for its memory: used 1")
    assert done.stdout.endswith("more than the 100 MiB it was given\n")
    assert is_over(tmp_path / "one")


# -- what is left --------------------------------------------------------------------------------------------


@pytest.fixture
def left(state: Path, tmp_path: Path) -> Iterator[Path]:
    """The file with the number of a process that a worker has left behind."""
    path = tmp_path / "daemon"
    with Grid() as grid:
        grid.submit(daemon, str(path)).result(60)
        assert not is_over(path)
        yield path


def agent(_: Path, left: Path) -> int:
    """Who has become the parent of what is left."""
    known = facts(int(left.read_text()))
    assert known is not None
    return known.parent


def broker(state: Path, _: Path) -> int:
    running = read_running(places_of_tasks(state))
    assert running is not None
    return running.pid


@pytest.mark.parametrize("victim", [broker, agent])
def test_nothing_is_left_of_workers_when_a_process_above_them_is_killed(
    state: Path, left: Path, victim: Callable[[Path, Path], int]
) -> None:
    os.kill(victim(state, left), signal.SIGKILL)
    wait_until(lambda: is_over(left))


def test_nothing_is_left_of_workers_that_nobody_needs(left: Path) -> None:
    wait_until(lambda: is_over(left))
