"""The embedded engine beside a real Slurm on the same machine: rates, latency, and very many jobs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench import Row, _slurm
from jobman.client import Client
from jobman.control.answers import Submission
from jobman.control.places import Places
from jobman.control.store.records import AttemptRecord, Changes, EventRecord, JobRecord, ReplicaRecord
from jobman.control.store.store import Store

JOBS = 400
THREADS = 8
ROUNDS = 15
FEW, MANY = 100, 100_000
SLOTS = 64
"""As many as the eight nodes of eight processors that the lab's Slurm emulates."""
_MAIN = "import sys; from jobman.cli.main import main; sys.exit(main())"
_TRUE = 'version: 1\nname: "true"\ntasks:\n- {command: ["true"], resources: tiny}\n'


def main() -> list[Row]:
    """Ours first, then Slurm, in one run; without Slurm ours stand alone."""
    with _service() as (client, _):
        ours = [_submit_rate(client), _end_rate(client), _start_seconds(client)]
    theirs = [
        _slurm.submit_rate(JOBS, THREADS),
        _slurm.finish_rate(JOBS, THREADS),
        _slurm.start_seconds(ROUNDS),
    ]
    peer = "Slurm 22.05" if theirs[0] is not None else ""
    why = _slurm.reason()
    through = f"{THREADS} threads; ours through the client, theirs an sbatch each"
    rows = [
        Row("submit `true` jobs", ours[0], "jobs/s", peer, theirs[0], why or through),
        Row("`true` jobs, end to end", ours[1], "jobs/s", peer, theirs[1], why or "target: ≥ 3"),
        Row("submit to start, idle", ours[2] * 1000, "ms", peer, _in_ms(theirs[2]), why or "target: ≤ 0.2"),
    ]
    return rows + _with_many_jobs()


@contextmanager
def _service(prepare: Callable[[Places], None] = lambda _places: None) -> Iterator[tuple[Client, Places]]:
    """A service of its own, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        places = Places(Path(folder))
        prepare(places)
        os.environ["JOBMAN_STATE"] = folder
        client = Client.embedded(places)
        try:
            client.status()
            yield client, places
        finally:
            client.stop(force=True)


# -- rates ---------------------------------------------------------------------------------------------


def _tiny() -> str:
    """Settings with a flavor of which so many fit on this machine."""
    share = 1000 * len(os.sched_getaffinity(0)) // SLOTS
    return f"flavors:\n- {{name: tiny, resources: {{requests: {{cpu: {share}m}}}}}}\n"


def _submit_many(client: Client, jobs: int) -> None:
    submission = Submission(
        document=_TRUE, settings=_tiny(), cwd="/", environment={"PATH": os.environ["PATH"]}
    )

    def work() -> None:
        for _ in range(jobs // THREADS):
            client.submit(submission)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _submit_rate(client: Client) -> float:
    began = time.perf_counter()
    _submit_many(client, JOBS)
    rate = JOBS / (time.perf_counter() - began)
    _until_empty(client)
    return rate


def _end_rate(client: Client) -> float:
    began = time.perf_counter()
    _submit_many(client, JOBS)
    _until_empty(client)
    return JOBS / (time.perf_counter() - began)


def _until_empty(client: Client) -> None:
    while (found := client.status().jobs).get("waiting") or found.get("running"):
        time.sleep(0.02)


# -- latency -------------------------------------------------------------------------------------------


def _start_seconds(client: Client) -> float:
    """From just before the command `jobman submit` to the first thing its job does."""
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        stamp = Path(folder) / "stamp"
        body = f'echo "$EPOCHREALTIME" >{stamp}.new && mv {stamp}.new {stamp}'
        command = [sys.executable, "-c", _MAIN, "submit", "--", "bash", "-c", body]
        found = []
        for _ in range(ROUNDS + 1):
            began = time.time()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not stamp.exists():
                time.sleep(0.001)
            found.append(float(stamp.read_text()) - began)
            stamp.unlink()
            _until_empty(client)
        return median(found[1:])


def _in_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


# -- many finished jobs --------------------------------------------------------------------------------


def _with_many_jobs() -> list[Row]:
    """What a user waits for with a store of many finished jobs, beside one of few."""
    few, _ = _ask_around(FEW)
    many, memory = _ask_around(MANY)
    rows = [
        Row(f"jobman {what}, {MANY:,} finished jobs", many[what], "ms", f"with {FEW}", few[what])
        for what in many
    ]
    note = "target: < 200 MB"
    return [*rows, Row(f"memory of the service, {MANY:,} jobs", memory, "MB", note=note)]


def _ask_around(jobs: int) -> tuple[dict[str, float], float]:
    with _service(lambda places: fill(places, jobs)) as (client, _):
        middle = f"{jobs // 2:012x}"
        commands = {"list": ["list"], "details": ["details", middle], "logs": ["logs", middle]}
        found = {what: _milliseconds(arguments) for what, arguments in commands.items()}
        return found, _resident(client.status().pid)


def _milliseconds(arguments: list[str]) -> float:
    command = [sys.executable, "-c", _MAIN, *arguments]
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return 1000 * median(times[1:])


def _resident(pid: int) -> float:
    """Megabytes of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


def fill(places: Places, jobs: int) -> None:
    """A store with so many finished jobs of one task."""
    places.make()
    store = Store.open(f"sqlite:///{places.database}")
    store.claim("bench")
    event = 0
    for first in range(0, jobs, 1000):
        changes = Changes()
        for number in range(first + 1, min(jobs, first + 1000) + 1):
            event = _add(changes, number, event)
        store.write(changes)
    store.close()


def _add(changes: Changes, number: int, event: int) -> int:
    id_ = f"{number:012x}"
    at = 1.7e9 + number
    changes.jobs[id_] = JobRecord(
        id=id_,
        number=number,
        name=f"job-{number % 1000}",
        owner=_user(),
        submitted_at=at,
        document=_TRUE,
        plan=b'{"version": 1, "units": []}',
        state="succeeded",
        exit_code=0,
        started_at=at,
        ended_at=at + 1,
        counts={"succeeded": 1},
    )
    changes.new_jobs.add(id_)
    changes.replicas[id_, "task.0"] = ReplicaRecord(
        job=id_, key="task.0", unit="task", index=0, state="succeeded", attempt=1
    )
    changes.attempts[id_, "task.0", 1] = AttemptRecord(
        job=id_, key="task.0", attempt=1, granted_at=at, started_at=at, ended_at=at + 1, exit_code=0
    )
    for kind in ("submitted", "started", "succeeded", "job-succeeded"):
        event += 1
        changes.events.append(EventRecord(number=event, job=id_, at=at, kind=kind))
    return event


def _user() -> str:
    import getpass

    return getpass.getuser()
