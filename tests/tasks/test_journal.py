"""What was acknowledged is in the journal, in order and once, and only the last broker writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event

import pytest

from jobman.control.store.database import open_database
from jobman.tasks.entries import Entry, StoredBatch
from jobman.tasks.journal import Journal, Replaced

PROGRAM = """
import sys, threading
from jobman.control.store.database import open_database
from jobman.tasks.entries import Entry, StoredBatch
from jobman.tasks.journal import Journal

at_once = threading.Semaphore(50)

def told(number):
    print(number, flush=True)
    at_once.release()

journal = Journal(open_database(sys.argv[1]))
for number in range(journal.first + 1, journal.first + 100_000):
    batch = StoredBatch(
        id=number, tenant="a", key=str(number), size=2, volume=1, at=0.0, head=b"h", payloads=b"p"
    )
    entries = [Entry(2 * number + n, number, 1, b"r") for n in (0, 1)]
    at_once.acquire()
    journal.write(lambda error, number=number: told(number), batches=[batch], entries=entries)
"""


def batch(number: int, key: str = "") -> StoredBatch:
    return StoredBatch(
        id=number,
        tenant="a",
        key=key or str(number),
        size=1,
        volume=8,
        at=0.0,
        head=b"head",
        payloads=b"payloads",
    )


def written(journal: Journal, **what: object) -> Exception | None:
    """What came of writing something."""
    told: list[Exception | None] = []
    ended = Event()

    def done(error: Exception | None) -> None:
        told.append(error)
        ended.set()

    journal.write(done, **what)  # type: ignore[arg-type]
    assert ended.wait(30)
    return told[0]


def test_what_was_written_is_read_in_order(url: str) -> None:
    journal = Journal(open_database(url))
    entries = [Entry(journal.first + n, 1 + n % 2, n, bytes([n])) for n in range(1, 6)]
    assert written(journal, batches=[batch(1), batch(2)], entries=entries) is None
    assert [(each.id, each.head, each.payloads) for each in journal.batches()] == [
        (1, b"head", b""),
        (2, b"head", b""),
    ]
    assert journal.payloads(2) == b"payloads"
    assert list(journal.entries()) == entries
    assert list(journal.entries(after=entries[1].seq, most=2)) == entries[2:4]
    journal.close()


def test_who_is_in_no_hurry_is_written_and_told_with_the_next_who_is(url: str) -> None:
    journal = Journal(open_database(url))
    times: list[int] = []
    told: list[int] = []
    ended = Event()

    def call(back: Callable[[], None]) -> None:
        back()
        times.append(len(told))
        ended.set()

    journal.call = call

    def write(id_: int, *, is_urgent: bool) -> None:
        journal.write(lambda _: told.append(id_), batches=[batch(id_)], is_urgent=is_urgent)

    journal.hurry()
    # One that is written while others come does not hurry them either.
    for first in (1, 4):
        write(first, is_urgent=False)
        write(first + 1, is_urgent=False)
        assert not ended.wait(0.1)
        if first == 1:
            write(3, is_urgent=True)
        else:
            journal.hurry()
        assert ended.wait(30)
        ended.clear()
    journal.close()
    assert (times, told) == ([3, 5], [1, 2, 3, 4, 5])


def test_a_batch_is_forgotten_with_all_that_became_of_it(url: str) -> None:
    journal = Journal(open_database(url))
    written(journal, batches=[batch(1), batch(2)], entries=[Entry(1, 1, 0, b""), Entry(2, 2, 0, b"")])
    assert written(journal, forgotten=[1]) is None
    assert [each.id for each in journal.batches()] == [2]
    assert [each.batch for each in journal.entries()] == [2]
    journal.close()


def test_a_key_is_there_once_and_nothing_of_a_transaction_that_failed(url: str) -> None:
    journal = Journal(open_database(url))
    assert written(journal, batches=[batch(1, "same")]) is None
    assert written(journal, batches=[batch(2, "same")], entries=[Entry(1, 2, 0, b"")]) is not None
    assert [each.id for each in journal.batches()] == [1]
    assert list(journal.entries()) == []
    assert written(journal, batches=[batch(3)]) is None
    journal.close()


def test_who_was_replaced_writes_nothing_and_numbers_only_grow(url: str) -> None:
    first = Journal(open_database(url))
    second = Journal(open_database(url))
    assert second.first > first.first
    assert isinstance(written(first, batches=[batch(1)]), Replaced)
    assert written(second, batches=[batch(2)]) is None
    assert [each.id for each in second.batches()] == [2]
    first.close()
    second.close()


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_survives_a_kill(url: str, seed: int) -> None:
    after = Random(seed).randint(1, 2000)
    command = [sys.executable, "-c", PROGRAM, url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(int(line))
        if len(told) == after:
            process.kill()
    assert process.wait() == -signal.SIGKILL
    journal = Journal(open_database(url))
    there = [each.id for each in journal.batches()]
    assert there[: len(told)] == told
    assert [each.seq for each in journal.entries()] == [2 * number + n for number in there for n in (0, 1)]
    journal.close()
