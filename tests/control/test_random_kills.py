"""A service on a real cluster that is killed again and again, at any moment, while jobs run.

Whatever it was about to do: every job ends as it should, no copy runs twice, nothing is left on the cluster.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.engines.kubernetes.cluster import need_shared_files, on_a_real_cluster

# What was late is tried again; what ran twice is not.
late = pytest.mark.flaky(reruns=1, only_rerun=["did not come in", "Timeout"])
pytestmark = [on_a_real_cluster, pytest.mark.slow, late]

SECONDS = 40
"""How long the service is killed again and again."""


class Work(NamedTuple):
    """A job that writes down each time that a copy of it starts."""

    name: str
    seconds: int
    copies: int = 1
    code: int = 0

    def document(self, ledger: Path) -> str:
        shape = f"type: node, count: {self.copies}" if self.copies > 1 else "type: slot, count: 1"
        script = f"echo $JOBMAN_ATTEMPT.$JOBMAN_RANK >> /ledger/{self.name}; "
        script += f"for i in $(seq {self.seconds}); do echo $i; sleep 1; done; exit {self.code}"
        return f"""
version: 1
name: {self.name}
resources: {{each: {{{shape}, with: [{{type: memory, count: 16Mi}}]}}}}
tasks:
- name: work
  resources: each
  volumes: [{{name: ledger, kind: host, path: {ledger}, to: /ledger}}]
  command: [sh, -c, "{script}"]
"""


WORKS = [
    *(Work(f"short-{number}", seconds=1 + number) for number in range(3)),
    *(Work(f"gang-{number}", seconds=2 + 5 * number, copies=2) for number in range(3)),
    Work("failing", seconds=3, code=3),
    Work("failing-gang", seconds=6, copies=2, code=3),
    Work("long", seconds=25),
    Work("long-gang", seconds=20, copies=2),
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ClusterService]:
    need_shared_files()
    with a_cluster_service(tmp_path) as made:
        yield made


def test_jobs_end_as_they_should_however_often_the_service_is_killed(
    service: ClusterService, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    before = service.objects()
    jobs = {work: service.submit(work.document(ledger), key=work.name) for work in WORKS}
    seed = random.randrange(1_000_000)
    kills = kill_again_and_again(service, random.Random(seed))
    for work, job in jobs.items():
        found = service.wait(job)
        wanted = ("failed", work.code) if work.code else ("succeeded", 0)
        assert (found.state, found.exit_code) == wanted, f"{work.name}, seed {seed}, {kills} kills"
        started = Counter((ledger / work.name).read_text().split())
        assert set(started.values()) == {1}, f"{work.name} ran twice: {started}, seed {seed}, {kills} kills"
        attempts = {each.partition(".")[0] for each in started}
        wanted_copies = {f"{each}.{rank}" for each in attempts for rank in range(work.copies)}
        assert set(started) == wanted_copies, f"{work.name} started by half, seed {seed}, {kills} kills"
        lines = Counter(service.lines(job))
        assert lines == Counter({str(number + 1): work.copies for number in range(work.seconds)})
    until(lambda: service.objects() == before, "that nothing is left")


def kill_again_and_again(service: ClusterService, dice: random.Random) -> int:
    """How often it was killed, whether it had come to answer or not; it is alive at the end."""
    deadline = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < deadline:
        service.kill()
        kills += 1
        killer = threading.Timer(dice.uniform(0.0, 6.0), _end, [service])
        killer.start()
        service.start()
        killer.join()
    # The last of them may be about to die and not dead yet.
    service.kill()
    service.start()
    return kills + 1


def _end(service: ClusterService) -> None:
    """kill -9, and leave it to others to notice."""
    assert service.process is not None
    service.process.kill()
