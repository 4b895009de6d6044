"""Two brokers and one database: one leads, and the other takes over."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from jobman.control.store.database import open_database
from jobman.tasks.wire import Broken, Connection
from tests.control.conftest import POSTGRES, new_postgres
from tests.tasks.test_serving import Somebody, run

PROGRAM = """
import sys
from jobman.tasks.broker_process import BrokerOptions, run_broker
from jobman.tasks.mapper import TypeLine
from jobman.tasks.settings import SiteSettings

settings = SiteSettings(types=[TypeLine(type="square", image="squares")])
options = BrokerOptions(listen=sys.argv[1], store=sys.argv[2], settings=settings, grace=0.0)
run_broker(options, lambda port: print("leads", flush=True))
"""


class Someone(Somebody):
    """Who asks a broker at a socket."""

    def __init__(self, place: Path) -> None:
        self.connection = Connection(place, headers={"x-jobman-tenant": "a"})


@contextmanager
def a_broker(place: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", PROGRAM, str(place), url]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def leads(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "leads\n"


@pytest.mark.slow
@pytest.mark.parametrize("store", [POSTGRES])
@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_when_the_first_is_gone_the_second_goes_on(store: str, ends: signal.Signals, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"

    async def submitted() -> None:
        assert await Someone(first).submit(b"7", key="one")
        with pytest.raises(Broken):
            await Someone(second).submit(b"7", key="one")

    async def taken_over() -> None:
        client = Someone(second)
        batch = await client.submit(b"7", key="one")
        (work,) = await client.pull("x")
        assert work.batch == batch
        assert await client.execute("x", work) == 1

    async def refused() -> None:
        with pytest.raises((Broken, AssertionError)):
            await Someone(first).submit(b"8", key="two")

    with new_postgres() as url, a_broker(first, url) as leader:
        assert leads(leader)
        with a_broker(second, url) as standby:
            run(submitted)
            leader.send_signal(ends)
            if ends is signal.SIGSTOP:
                # What stands still keeps its connection: the server ends it, as it does for one that is lost.
                end_session(url)
            assert leads(standby)
            run(taken_over)
            if ends is signal.SIGSTOP:
                leader.send_signal(signal.SIGCONT)
                run(refused)


def end_session(url: str) -> None:
    """End the session that holds the lead."""
    database = open_database(url)
    here = "(SELECT oid FROM pg_database WHERE datname = current_database())"
    with database.write() as connection:
        holder = f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND database = {here} AND granted"
        for each in connection.execute(text(holder)).scalars().all():
            connection.execute(text(f"SELECT pg_terminate_backend({each})"))
    database.close()
