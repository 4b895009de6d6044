"""Many jobs through one service: thousands in the line at once, and a hundred thousand behind it."""

import getpass
import os
import threading
from pathlib import Path

import pytest

from bench.local import fill
from jobman.client import Client
from jobman.control.answers import Submission
from jobman.control.places import Places

pytestmark = pytest.mark.slow
QUEUED = 5_000
FINISHED = 100_000
TINY = "flavors:\n- {name: tiny, resources: {requests: {cpu: 20m}}}\n"
LONG = """\
version: 1
name: long
tasks:
- {command: [sleep, "600"], resources: {type: slot, count: 1, with: [{type: core, count: CORES}]}}
"""
SHORT = 'version: 1\nname: short\ntasks:\n- {command: ["true"], resources: tiny}\n'


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "state")


@pytest.fixture
def client(places):
    client = Client.embedded(places)
    yield client
    client.stop(force=True)


def submit_many(client, number, threads=4):
    submission = Submission(document=SHORT, settings=TINY, cwd="/", environment={"PATH": os.environ["PATH"]})
    ids: list[list[str]] = [[] for _ in range(threads)]

    def work(found):
        for _ in range(number // threads):
            found.append(client.submit(submission).jobs[0].id)

    workers = [threading.Thread(target=work, args=(found,)) for found in ids]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [job for found in ids for job in found]


def megabytes(client):
    lines = Path(f"/proc/{client.status().pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def test_thousands_of_jobs_wait_in_one_line_and_all_of_them_run(client):
    cores = str(len(os.sched_getaffinity(0)))
    blocker = client.submit(Submission(document=LONG.replace("CORES", cores), cwd="/")).jobs[0].id
    ids = submit_many(client, QUEUED)
    assert len(set(ids)) == QUEUED
    assert client.status().jobs["waiting"] == QUEUED
    positions = {client.why(job).position for job in (ids[0], ids[-1], ids[QUEUED // 2])}
    assert len(positions) == 3
    assert max(positions) <= QUEUED
    row = next(row for row in client.queue() if row.flavor == "tiny")
    assert (row.waiting, row.yours_waiting) == (QUEUED, QUEUED)
    assert megabytes(client) < 400
    client.cancel(blocker)
    for job in ids:
        assert client.wait(job, 600).state == "succeeded"
    assert client.status().jobs == {"cancelled": 1, "succeeded": QUEUED}
    assert all(amount == 0 for amount in client.nodes()[0].used.values())


def test_a_hundred_thousand_finished_jobs_are_no_burden(places):
    fill(places, FINISHED)
    client = Client.embedded(places)
    try:
        newest = client.jobs_page(limit=50)
        assert [job.id for job in newest.items] == [f"{FINISHED - n:012x}" for n in range(50)]
        middle = f"{FINISHED // 2:012x}"
        assert client.details(middle).state == "succeeded"
        assert list(client.logs(middle)) == []
        assert next(event.kind for event in client.events(middle)) == "submitted"
        assert client.jobs_page(name=f"job-{FINISHED % 1000}", limit=5).items[0].owner == getpass.getuser()
        assert megabytes(client) < 200
    finally:
        client.stop(force=True)
