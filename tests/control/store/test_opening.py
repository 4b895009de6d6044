"""Opening a store: what is made, what is refused, and in which words."""

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jobman.control.store import database, revisions
from jobman.control.store.database import open_database
from jobman.control.store.errors import StoreError
from jobman.control.store.schema import REVISION, metadata
from jobman.control.store.store import Store
from tests.control.store.builders import changes, job

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do that")


def refusal(url):
    """What a person reads who opens this store."""
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert caught.value.message.endswith(".")
    return f"{caught.value.message} {caught.value.advice}"


def test_a_file_of_sqlite_is_made_for_its_owner_alone(tmp_path, opened):
    path = tmp_path / "new" / "folder" / "store.db"
    store = opened(f"sqlite:///{path}")
    store.claim("me")
    store.write(changes(job()))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


def test_a_path_may_hold_what_a_url_could_not(tmp_path, opened):
    path = tmp_path / "50% of #1?" / "store.db"
    opened(path)
    assert path.exists()


def test_what_was_written_is_there_after_opening_again(url, opened):
    store = opened(url)
    store.claim("me")
    store.write(changes(job()))
    store.close()
    assert [one.id for one in opened(url).jobs().items] == [job().id]


def test_sqlite_keeps_what_it_has_acknowledged(sqlite_url, opened):
    store = opened(sqlite_url)
    with store._database.write() as connection:
        pragmas = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}
    assert pragmas == PRAGMAS


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}


def test_a_kind_of_database_that_is_not_known_is_refused():
    assert "sqlite:///PATH or postgresql://" in refusal("mysql://ada:geheim@db/jobs")
    assert "geheim" not in refusal("mysql://ada:geheim@db/jobs")
    assert "cannot be read" in refusal("this is no URL")
    assert "cannot be read" in refusal("postgresql://ada:geheim@db:port/jobs")
    assert "would not outlive" in refusal("sqlite://")


def test_a_missing_driver_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(database, "find_spec", lambda name: None)
    assert "jobman[postgres]" in refusal("postgresql://ada@db/jobs")


def test_a_file_in_the_place_of_the_folder_is_explained(tmp_path):
    (tmp_path / "state").write_text("")
    assert "not a folder" in refusal(f"sqlite:///{tmp_path}/state/store.db")
    assert "not a folder" in refusal(f"sqlite:///{tmp_path}/state/deeper/store.db")


def test_a_folder_in_the_place_of_the_file_is_explained(tmp_path):
    assert str(tmp_path) in refusal(f"sqlite:///{tmp_path}")


def test_another_kind_of_file_is_no_store(tmp_path):
    path = tmp_path / "store.db"
    path.write_text("tasks:\n- command: [echo, hello]\n" * 100)
    assert "is not a store of jobman" in refusal(f"sqlite:///{path}")


@as_root
@pytest.mark.skipif(shutil.which("chattr") is None, reason="needs chattr")
def test_a_folder_that_cannot_be_written_is_explained(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    if subprocess.run(["chattr", "+i", folder], capture_output=True).returncode:
        pytest.skip("this file system has no immutable folders")
    try:
        assert "cannot be written" in refusal(f"sqlite:///{folder}/store.db")
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_explained(tmp_path):
    tmp_path.chmod(0o500)
    assert "cannot be written" in refusal(f"sqlite:///{tmp_path}/store.db")


def test_a_server_that_is_not_there_is_explained_without_the_password():
    words = refusal("postgresql://ada:geheim@127.0.0.1:1/jobs")
    assert "postgresql://ada@127.0.0.1:1/jobs cannot be reached" in words
    assert "geheim" not in words


def test_a_password_in_the_query_is_not_shown_either():
    words = refusal("postgresql://ada@127.0.0.1:1/jobs?password=geheim&sslmode=geheim")
    assert "geheim" not in words


@pytest.mark.component("postgres")
def test_a_wrong_password_is_explained_without_showing_it(postgres_url):
    right = urlsplit(postgres_url).password
    words = refusal(postgres_url.replace(f":{right}@", ":geheim@"))
    assert "does not accept the user or the password" in words
    assert "geheim" not in words


@pytest.mark.component("postgres")
def test_a_database_that_is_not_there_is_explained(postgres_url):
    assert "There is no database" in refusal(f"{postgres_url}_not")


@pytest.mark.component("postgres")
@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_has_many_names(postgres_url, opened, scheme):
    assert opened(scheme + postgres_url[postgres_url.index(":") :]).counts() == {}


def test_a_store_of_a_newer_jobman_is_refused(url):
    store = Store.open(url)
    store.close()
    stamp(url, "0999")
    assert "written by a newer jobman" in refusal(url)
    assert "Upgrade jobman" in refusal(url)


def test_a_database_of_another_program_is_refused(url):
    Store.open(url).close()
    stamp(url, "ae1027a6acf5")
    assert "belongs to another program" in refusal(url)


def stamp(url, revision):
    opened = open_database(url)
    with opened.write() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    opened.close()


def described(connection):
    """All tables and indexes, in the words of the database."""
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").scalars()
        return sorted(" ".join(row.split()) for row in rows)
    queries = (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace",
        "SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, collation_name,"
        " is_nullable) FROM information_schema.columns WHERE table_schema = 'public'",
    )
    return sorted(row for query in queries for row in connection.exec_driver_sql(query).scalars())


def test_migrations_lead_to_the_same_tables_as_making_them_at_once(url):
    opened = open_database(url)
    tables = {}
    for make in (revisions.create, revisions.migrate):
        with opened.write() as connection:
            make(connection)
            tables[make] = described(connection)
            metadata.drop_all(connection)
            connection.exec_driver_sql("DROP TABLE alembic_version")
    opened.close()
    assert tables[revisions.migrate] == tables[revisions.create]
    assert len(tables[revisions.create]) > 20


def test_migrations_lead_to_the_tables_that_are_declared(url):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    opened = open_database(url)
    with opened.write() as connection:
        revisions.migrate(connection)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert revisions.stored_revision(connection) == REVISION
    opened.close()


def test_a_migrated_store_works(url, opened):
    database = open_database(url)
    with database.write() as connection:
        revisions.migrate(connection)
    database.close()
    store = opened(url)
    store.claim("me")
    store.write(changes(job()))
    assert store.counts() == {"waiting": 1}


def test_the_revision_named_in_the_schema_is_the_newest():
    versions = sorted((revisions.MIGRATIONS / "versions").glob("[0-9]*.py"))
    assert all(re.fullmatch(r"\d{4}_\w+\.py", path.name) for path in versions)
    assert versions[-1].name[:4] == REVISION
    assert f'revision = "{REVISION}"' in versions[-1].read_text()


def test_a_store_that_is_up_to_date_is_opened_without_alembic(sqlite_url):
    Store.open(sqlite_url).close()
    program = (
        "import sys; from jobman.control.store.store import Store; Store.open(sys.argv[1]).close();"
        "print('alembic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sqlite_url], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_services_that_open_a_new_store_at_once_make_it_once(url):
    program = "import sys; from jobman.control.store.store import Store; Store.open(sys.argv[1]).close()"
    command = [sys.executable, "-c", program, url]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(each.communicate()[1], each.returncode) for each in started] == [("", 0)] * 3


def test_a_store_that_another_program_holds_is_explained(sqlite_url, opened, monkeypatch):
    store = opened(sqlite_url)
    store.claim("me")
    with store._database._writer.connect() as connection:
        connection.connection.driver_connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(Path(sqlite_url.removeprefix("sqlite:///")))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked by another program") as caught:
        store.write(changes(job()))
    assert caught.value.passing
    other.rollback()
    store.write(changes(job()))
    other.close()


def disconnect_all(url):
    """What a restart of the server does to its clients."""
    psycopg = pytest.importorskip("psycopg")
    name = url.rpartition("/")[2]
    with psycopg.connect(
        os.environ["JOBMAN_LAB_POSTGRES"].replace("+psycopg", ""), autocommit=True
    ) as server:
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


@pytest.mark.component("postgres")
def test_a_store_outlives_a_restart_of_its_server(postgres_url, opened):
    store = opened(postgres_url)
    store.claim("me")
    store.write(changes(job(1)))
    disconnect_all(postgres_url)
    assert store.counts() == {"waiting": 1}
    store.write(changes(job(2)))
    assert store.counts() == {"waiting": 2}


def write_half(store, url):
    with store._writing() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('half', 'done')")
        disconnect_all(url)
        connection.exec_driver_sql("SELECT 1")


@pytest.mark.component("postgres")
def test_a_connection_lost_in_a_transaction_is_told_and_leaves_nothing(postgres_url, opened):
    store = opened(postgres_url)
    store.claim("me")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        write_half(store, postgres_url)
    assert caught.value.passing
    store.write(changes(job(1)))
    with store._database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM meta WHERE name = 'half'").scalar() == 0
