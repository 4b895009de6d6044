"""Tokens, deletion, backup and room."""

import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest

from jobman.control.store.errors import StoreError
from jobman.control.store.store import Store
from tests.control.store.builders import (
    NOON,
    allocation,
    attempt,
    changes,
    event,
    job,
    log,
    replica,
    submission,
    task,
    token,
)

TABLES = ("documents", "labels", "tasks", "replicas", "attempts", "allocations", "log_positions", "events")


def left(store):
    """How many rows there are in each table of what belongs to jobs."""
    with store._database.read() as connection:
        return {name: connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar() for name in TABLES}


def whole(number, **values):
    """A job with something of every kind."""
    a = job(number, labels={"team": "x"}, **values)
    return [a, task(a), replica(a), attempt(a), allocation(a), log(a), event(number, a)]


def test_a_deleted_job_leaves_nothing_behind(store):
    store.write(changes(*whole(1), *whole(2)))
    store.write(changes(deleted=[job(1).id, "never there"]))
    assert left(store) == dict.fromkeys(TABLES, 1)
    assert [one.id for one in store.jobs().items] == [job(2).id]


def test_old_jobs_are_forgotten_the_oldest_first(store):
    for number in (1, 2, 3):
        store.write(changes(*whole(number, state="succeeded", ended_at=NOON + number)))
    store.write(changes(*whole(4, state="failed", ended_at=NOON + 100), *whole(5, state="running")))
    store.write(changes(submission(), submission(key="k2", at=NOON + 200)))
    assert store.delete_before(NOON + 50, limit=2) == [job(1).id, job(2).id]
    assert store.delete_before(NOON + 50, limit=2) == [job(3).id]
    assert store.delete_before(NOON + 50) == []
    assert [one.number for one in store.jobs().items] == [5, 4]
    assert store.submission("ada", "k1") is None
    assert store.submission("ada", "k2") is not None


def test_old_jobs_of_one_owner_are_forgotten(store):
    over = {"state": "succeeded", "ended_at": NOON}
    store.write(changes(job(1, **over), job(2, owner="bob", **over), submission()))
    assert store.delete_before(NOON + 1, owner="bob") == [job(2).id]
    assert [one.owner for one in store.jobs().items] == ["ada"]
    assert store.submission("ada", "k1") is not None


def test_a_token_is_known_by_its_hash_until_and_after_it_is_revoked(store):
    store.add_token(token("laptop"))
    store.add_token(token("ci", role="admin"))
    assert store.token("hash of laptop") == token("laptop")
    assert store.revoke_token("laptop", 5.0)
    assert not store.revoke_token("laptop", 6.0)
    assert not store.revoke_token("nothing", 6.0)
    assert store.tokens() == [token("ci", role="admin"), token("laptop", revoked_at=5.0)]


def test_the_name_of_a_token_is_free_again_once_it_is_revoked(store):
    store.add_token(token())
    with pytest.raises(StoreError, match="a token named laptop already"):
        store.add_token(token(hash="other"))
    store.revoke_token("laptop", 5.0)
    store.add_token(token(hash="other"))
    assert store.tokens() == [token(hash="other")]


def test_a_backup_is_a_store_of_its_own(sqlite_url, opened, tmp_path):
    store = opened(sqlite_url)
    store.claim("me")
    store.write(changes(*whole(1)))
    copy = tmp_path / "backup.db"
    store.backup(copy)
    store.write(changes(job(2)))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [one.number for one in opened(copy).jobs().items] == [1]
    store.backup(copy)
    assert [one.number for one in opened(copy).jobs().items] == [2, 1]
    assert not list(tmp_path.glob(".backup*"))


def test_a_backup_that_cannot_be_written_is_explained(sqlite_url, opened, tmp_path):
    with pytest.raises(StoreError, match=r"nowhere/backup\.db"):
        opened(sqlite_url).backup(tmp_path / "nowhere" / "backup.db")


@pytest.mark.component("postgres")
def test_postgresql_is_backed_up_by_its_own_program(postgres_url, opened, tmp_path):
    with pytest.raises(StoreError) as caught:
        opened(postgres_url).backup(tmp_path / "backup")
    assert caught.value.advice.startswith("pg_dump postgresql://jobman@")


def test_the_room_of_what_was_deleted_is_given_back(sqlite_url, opened):
    store = opened(sqlite_url)
    store.claim("me")
    store.write(changes(*(job(n, document="x" * 10_000) for n in range(1, 101))))
    full = store.size()
    store.write(changes(deleted=[job(n).id for n in range(1, 101)]))
    store.vacuum()
    assert store.size() < full / 2
    store.write(changes(job(101)))


def test_a_store_has_a_size_and_may_be_tidied(store):
    store.vacuum()
    assert store.size() > 0


def test_a_full_disk_is_explained_and_work_goes_on_when_there_is_room(sqlite_url, opened):
    store = opened(sqlite_url)
    store.claim("me")
    limit_pages(store, 1)  # SQLite makes it as many as it has
    with pytest.raises(StoreError, match="full") as caught:
        store.write(changes(*(job(n, document="x" * 1000) for n in range(1, 1001))))
    assert caught.value.passing
    assert store.jobs().items == []
    limit_pages(store, 2**30)
    store.write(changes(job(1)))
    assert store.counts() == {"waiting": 1}


def limit_pages(store, pages):
    with store._database.write() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def write_without_end(store, acknowledged):
    for number in range(1, 5_000):
        store.write(changes(job(number, document="x" * 1000)))
        acknowledged.append(number)


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_is_really_full_is_explained_and_loses_nothing(small_disk, opened):
    store = opened(small_disk / "store.db")
    store.claim("me")
    acknowledged: list[int] = []
    with pytest.raises(StoreError, match="full"):
        write_without_end(store, acknowledged)
    written = len(acknowledged)
    assert store.last_numbers().job == written > 10
    store.close()
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    again = opened(small_disk / "store.db")
    again.claim("me again")
    again.write(changes(job(written + 1)))
    assert again.counts() == {"waiting": written + 1}
    again.close()


def test_a_disk_that_became_read_only_is_explained(small_disk):
    store = Store.open(small_disk / "store.db")
    store.claim("me")
    store.write(changes(job(1)))
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(StoreError, match="cannot be written"):
        Store.open(small_disk / "store.db")


def test_a_damaged_store_is_explained(sqlite_url, opened):
    store = opened(sqlite_url)
    store.claim("me")
    store.write(changes(*(job(n, document="x" * 5000) for n in range(1, 101))))
    store.close()
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 200_000)
    with pytest.raises(StoreError, match="damaged"):
        opened(sqlite_url).unfinished()
