"""The Slurm engine beside bare sbatch on the same cluster: an array, many single tasks, and a long list.

Before that the script of an element of an array by itself: that needs no Slurm, and others disturb it little.

What runs is /bin/true, so that the numbers are the cost of running something.
JOBMAN_BENCH_SCALE=0.1 makes everything a tenth as large.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

import msgspec

from bench import Row, _slurm
from jobman.api import loads
from jobman.client.batch import BatchClient
from jobman.control.answers import Job, Submission
from jobman.engines.scripts.commands import Commands, Said
from jobman.engines.scripts.delegate import texts_of
from jobman.engines.scripts.folder import FOLDERS
from jobman.engines.scripts.registry import Entry, Registry
from jobman.engines.scripts.site import Job as JobOfScripts
from jobman.engines.slurm.compile import compile_plan
from jobman.engines.slurm.engine import Slurm, user
from jobman.settings.slurm import SlurmSite
from lab.components import discover, state

SCALE = float(os.environ.get("JOBMAN_BENCH_SCALE", "1"))
TASKS, KNOWN, OPEN = (max(10, round(SCALE * size)) for size in (1_000, 10_000, 1_000))
THREADS = 8
ROUNDS = 3
_TASK = "{{name: {name}, command: [/bin/true], resources: {{type: core, count: 1}}, replicas: {replicas}}}"
_TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """What something took."""

    submitted: float
    """Seconds until the last submission was answered."""
    ended: float
    """Seconds until the last end."""
    processor: float
    """Seconds of processor time of the whole machine meanwhile."""


def main() -> list[Row]:
    """Ours and theirs take turns; nothing is measured before the cluster is empty."""
    alone = list(_script_rows())
    here = state(discover()["slurm"])
    if not here.ready:
        return [*alone, Row("an array", 0.0, "s", note=here.reason)]
    conf = Path(here.environment["JOBMAN_LAB_SLURM_CONF"])
    arrays = [_turn(conf, [_bare_array, _our_array]) for _ in range(ROUNDS)]
    singles = [_turn(conf, [_bare_singles, _our_singles]) for _ in range(ROUNDS)]
    return [*alone, *_array_rows(arrays), *_single_rows(singles), *_list_rows(conf)]


def _array_rows(found: list[list[Taken]]) -> Iterator[Row]:
    theirs, ours = (_medians(each) for each in zip(*found, strict=True))
    what = f"array of {TASKS:,}, submit to last end"
    yield Row(what, ours.ended, "s", "one sbatch --array", theirs.ended, "target: ≤ 1.1")
    yield Row("processor time of all for a task", *_each(ours, theirs), "the whole machine")


def _single_rows(found: list[list[Taken]]) -> Iterator[Row]:
    theirs, ours = (_medians(each) for each in zip(*found, strict=True))
    peer = f"sbatch by {THREADS} threads"
    yield Row(f"{TASKS:,} single tasks, submitted", ours.submitted, "s", peer, theirs.submitted, "ours held")
    yield Row("the same, to the last end", ours.ended, "s", peer, theirs.ended)
    yield Row("processor time of all for a task", *_each(ours, theirs), "the whole machine")


def _each(ours: Taken, theirs: Taken) -> tuple[float, str, str, float]:
    return 1000 * ours.processor / TASKS, "ms", "bare", 1000 * theirs.processor / TASKS


def _medians(found: tuple[Taken, ...]) -> Taken:
    return Taken(*(median(values) for values in zip(*found, strict=True)))


# -- a script by itself --------------------------------------------------------------------------------------


def _script_rows() -> Iterator[Row]:
    """Both take turns, as elements of one array would begin."""
    with TemporaryDirectory(prefix="jobman-bench-") as place:
        folder, bare = Path(place) / "job", Path(place) / "bare.sh"
        bare.write_text("#!/bin/bash\n/bin/true\n")
        ours = _script(folder)
        found = [[_cost(script, folder, number) for script in (ours, bare)] for number in range(TASKS)]
    own, theirs = (1000 * sum(each) / TASKS for each in zip(*found, strict=True))
    yield Row("processor time of the script of an element", own, "ms", "one of a line", theirs, "no Slurm")


def _script(folder: Path) -> Path:
    """The folder of a job that was submitted, with the script of its only task."""
    document = f"version: 1\ntasks:\n- {_TASK.format(name='work', replicas=TASKS)}\n"
    job = JobOfScripts(id="0123456789ab", name="job", folder=str(folder))
    (script,) = compile_plan(loads(document, name="bench.yaml").plan(), job, SlurmSite())
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
    for name, text in texts_of([script]).items():
        (folder / "scripts" / f"{name}.sh").write_text(text)
    return folder / "scripts" / "work.sh"


def _cost(script: Path, folder: Path, number: int) -> float:
    """Seconds of processor time of a script and all that it starts, as an element of this number."""
    told = {
        "PATH": os.environ["PATH"],
        "SLURM_JOB_ID": "1",
        "SLURM_ARRAY_JOB_ID": "1",
        "SLURM_ARRAY_TASK_ID": str(number),
        "SLURM_JOB_NODELIST": "here",
        "SLURM_JOB_NUM_NODES": "1",
        "TMPDIR": str(folder.parent),
    }
    output = os.O_WRONLY | os.O_CREAT
    opened = [(os.POSIX_SPAWN_OPEN, 1, str(folder.parent / f"{number}.out"), output, 0o600)]
    _, status, used = os.wait4(
        os.posix_spawn("/bin/bash", ["bash", str(script)], told, file_actions=opened), 0
    )
    assert status == 0
    return used.ru_utime + used.ru_stime


# -- tasks ---------------------------------------------------------------------------------------------------

Load = Callable[[Path, Path, str], object]
"""Submits under a name, in a folder."""


def _turn(conf: Path, loads: list[Load]) -> list[Taken]:
    return [_taken(conf, load) for load in loads]


def _taken(conf: Path, load: Load) -> Taken:
    with TemporaryDirectory(prefix="jobman-bench-") as folder:
        ended = _slurm.Jobs(conf, Path(folder), "")
        ended.await_empty_cluster()
        name = f"bench-{uuid4().hex}"
        processor, start = _busy(), time.perf_counter()
        load(conf, Path(folder), name)
        submitted = time.perf_counter() - start
        ended.await_ends(name, TASKS)
        return Taken(submitted, time.perf_counter() - start, _busy() - processor)


def _busy() -> float:
    """Processor time of all that ran on this machine so far."""
    user_time, nice, system = (int(word) for word in Path("/proc/stat").read_text().split()[1:4])
    return (user_time + nice + system) / _TICKS


def _bare_array(conf: Path, folder: Path, name: str) -> None:
    script = folder / "array.sh"
    options = f"#SBATCH --array=0-{TASKS - 1}\n#SBATCH --output={folder}/%a.out"
    script.write_text(f"#!/bin/bash\n{options}\n/bin/true\n")
    _sbatch(conf, name, script)


def _bare_singles(conf: Path, folder: Path, name: str) -> None:
    script = folder / "single.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH --output={folder}/%j.out\n/bin/true\n")
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: _sbatch(conf, name, script), range(TASKS)))


def _sbatch(conf: Path, name: str, script: Path) -> None:
    command = ["sbatch", "--parsable", f"--job-name={name}", str(script)]
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def _our_array(conf: Path, folder: Path, name: str) -> None:
    _submit(_client(conf, folder), conf, name, [_TASK.format(name="work", replicas=TASKS)])


def _our_singles(conf: Path, folder: Path, name: str) -> None:
    tasks = [_TASK.format(name=f"t{number}", replicas=1) for number in range(TASKS)]
    _submit(_client(conf, folder), conf, name, tasks)


def _client(conf: Path, folder: Path) -> BatchClient:
    manager = Slurm({**os.environ, "SLURM_CONF": str(conf)})
    return BatchClient(manager, root=folder / "jobs", database=folder / "batch.sqlite", owner=user())


def _submit(client: BatchClient, conf: Path, name: str, tasks: list[str], *, hold: bool = False) -> Job:
    document = "version: 1\ntasks:\n" + "".join(f"- {task}\n" for task in tasks)
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    submission = Submission(
        document=document, file="bench.yaml", name=name, cwd="/tmp", environment=environment, hold=hold
    )
    return client.submit(submission).jobs[0]


# -- a long list ---------------------------------------------------------------------------------------------


def _list_rows(conf: Path) -> Iterator[Row]:
    """Most of the jobs are over, as is usual; the others are in the queue."""
    with TemporaryDirectory(prefix="jobman-bench-") as folder, _many(conf, Path(folder)) as client:
        theirs = _best(lambda: subprocess.run(_squeue(), env=_at(conf), check=True, capture_output=True))
        with _counted() as calls:
            start = time.perf_counter()
            assert len(list(client.jobs())) == KNOWN
            first = time.perf_counter() - start
        what = f"list of {KNOWN:,} jobs, {OPEN:,} of them in the queue"
        yield Row(what, first, "s", "squeue of those", theirs, f"{len(calls)} commands of Slurm")


def _squeue() -> list[str]:
    return ["squeue", "--noheader", "--states=all"]


def _at(conf: Path) -> dict[str, str]:
    return {**os.environ, "SLURM_CONF": str(conf)}


def _best(work: Callable[[], object]) -> float:
    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return min(once() for _ in range(ROUNDS))


@contextmanager
def _many(conf: Path, folder: Path) -> Iterator[BatchClient]:
    client = _client(conf, folder)
    task = [_TASK.format(name="work", replicas=1)]
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = list(pool.map(lambda _: _submit(client, conf, "open", task, hold=True), range(OPEN)))
    registry = Registry(folder / "batch.sqlite", "slurm", folder / "jobs")
    over = msgspec.structs.replace(jobs[0], state="succeeded", ended_at=jobs[0].submitted_at, exit_code=0)
    for number in range(KNOWN - OPEN):
        registry.add(Entry(id=f"{number:012x}", engine="slurm", name="over", folder="-", submitted_at=0.0))
    registry.close(
        (id_, msgspec.json.encode(msgspec.structs.replace(over, id=id_)).decode())
        for id_ in (f"{number:012x}" for number in range(KNOWN - OPEN))
    )
    try:
        yield client
    finally:
        subprocess.run(["scancel", f"--user={user()}", "--name=open/work"], env=_at(conf), check=True)


@contextmanager
def _counted() -> Iterator[list[str]]:
    """The commands of Slurm that are run meanwhile."""
    calls: list[str] = []
    once = Commands.once

    def counting(self: Commands, *words: str, **more: object) -> Said:
        calls.append(words[0])
        return once(self, *words, **more)  # type: ignore[arg-type]

    Commands.once = counting  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Commands.once = once  # type: ignore[method-assign]
