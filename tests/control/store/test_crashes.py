"""kill -9 in the middle of writing: what was acknowledged is there, and nothing is half there."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobman.control.store.store import Store

PROGRAM = """
import asyncio, sys
from jobman.control.store.store import Store
from jobman.control.store.writer import Writer
from tests.control.store.builders import attempt, changes, event, job, replica

async def submit(writer, number):
    one = job(number)
    events = [event(4 * number + n, one) for n in range(4)]
    await writer.write(changes(one, replica(one), attempt(one), *events))
    print(number, flush=True)

async def main():
    store = Store.open(sys.argv[1])
    store.claim("a service that will be killed")
    writer = Writer(store)
    first = store.last_numbers().job + 1
    at_once = int(sys.argv[2])
    for start in range(first, first + 100_000, at_once):
        await asyncio.gather(*(submit(writer, number) for number in range(start, start + at_once)))

asyncio.run(main())
"""


def start(url, at_once, failpoints=""):
    environment = {**os.environ, "JOBMAN_FAILPOINTS": failpoints, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", PROGRAM, url, str(at_once)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def acknowledged(process, kill_after=None):
    """The jobs that a service said it had written before it was killed."""
    numbers = []
    for line in process.stdout:
        numbers.append(int(line))
        if len(numbers) == kill_after:
            process.kill()
    assert process.wait() == -signal.SIGKILL
    return numbers


def check(url, numbers):
    """That all of them are there, and that whatever is there is there as a whole."""
    store = Store.open(url)
    there = {job.number: job.id for job in store.jobs(limit=100_000).items}
    assert set(numbers) <= set(there)
    for number, id in there.items():
        assert [event.number for event in store.events(id)] == [4 * number + n for n in range(4)]
        assert len(store.replicas(id).items) == len(store.attempts(id).items) == 1
        assert store.document(id) is not None
    store.close()
    return there


@pytest.mark.slow
@pytest.mark.parametrize("point", ["store.before-commit", "store.after-commit"])
def test_a_service_killed_beside_a_commit_loses_nothing_it_acknowledged(url, point):
    Store.open(url).close()
    numbers = acknowledged(start(url, 1, f"{point}=kill@6"))
    there = check(url, numbers)
    # What was committed and not acknowledged is there behind the one point and not before the other.
    assert (len(there) > len(numbers)) == (point == "store.after-commit")


@pytest.mark.slow
def test_a_service_killed_again_and_again_loses_nothing_it_acknowledged(url):
    numbers = []
    for _ in range(3):
        numbers += acknowledged(start(url, 8), kill_after=random.randint(20, 120))
        check(url, numbers)
    assert len(numbers) == len(set(numbers))
