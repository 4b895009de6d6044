"""The script of PostgreSQL on a server of the test's own, which may be mistreated."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from lab.components import FOLDER, MISSING

pytestmark = [pytest.mark.slow, pytest.mark.component("postgres")]


class Server:
    """`lab/postgres` with a cache of its own."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def __call__(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "JOBMAN_LAB_CACHE": str(self.cache)}
        return subprocess.run(
            [FOLDER / "postgres", command], env=environment, capture_output=True, text=True, timeout=60
        )

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        url = self("status").stdout.strip().partition("=")[2].replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def pid(self) -> int:
        [[pid]] = self.execute("SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int")
        assert isinstance(pid, int)
        return pid


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    here = Server(tmp_path / "a folder")
    assert here("up").returncode == 0
    yield here
    assert here("down").returncode == 0


def test_up_leaves_a_running_server_alone(server):
    before = server("status").stdout, server.pid()
    assert server("up").stdout == before[0]
    assert server.pid() == before[1]


def test_down_stops_it_and_up_brings_its_data_back(server):
    server.execute("CREATE TABLE kept AS SELECT 42")
    assert (server("down").returncode, server("down").returncode) == (0, 0)
    absent = server("status")
    assert (absent.returncode, absent.stdout) == (MISSING, "PostgreSQL is not running (lab/up starts it)\n")
    assert server("up").returncode == 0
    assert server.execute("TABLE kept") == [(42,)]


def test_a_killed_server_comes_up_again_beside_its_orphans(server):
    server.execute("CREATE TABLE kept AS SELECT 42")
    url = server("status").stdout.strip().partition("=")[2].replace("+psycopg", "")
    with psycopg.connect(url) as connection:
        pid = server.pid()
        connection.execute("SELECT 1")
        os.kill(pid, signal.SIGKILL)
        assert server("up").returncode == 0
        assert server.execute("TABLE kept") == [(42,)]
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
