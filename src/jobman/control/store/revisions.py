"""The revision of the schema: brought up to date when a store is opened, at no cost when it is."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select, text

from jobman.control.store.database import Database
from jobman.control.store.errors import StoreError
from jobman.control.store.schema import REVISION, metadata

MIGRATIONS = Path(__file__).parent / "migrations"

# The table that alembic keeps, read here without alembic: its import takes longer than all the rest.
_version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
_version.primary_key.name = "alembic_version_pkc"

_MIGRATING = 7_562_626
"""The number of the lock under which PostgreSQL lets one service at a time migrate."""


def bring_up_to_date(database: Database) -> None:
    """Create the tables, or migrate them; refuse a store of a newer jobman."""
    with database.read() as connection:
        if _is_current(connection, database):
            return
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
        if not _is_current(connection, database):
            (create if stored_revision(connection) is None else migrate)(connection)


def check_current(database: Database) -> None:
    """Refuse a store that no service of this version has opened."""
    with database.read() as connection:
        if not _is_current(connection, database):
            raise StoreError(
                f"No service of this version has used the store {database.place}.", "Start one first."
            )


def stored_revision(connection: Connection) -> str | None:
    """The revision of the tables that are there, if they are."""
    if not inspect(connection).has_table(_version.name):
        return None
    return connection.execute(select(_version.c.version_num)).scalar()


def create(connection: Connection) -> None:
    """Make the tables where there are none: what all migrations together would have made."""
    metadata.create_all(connection, checkfirst=False)
    _version.create(connection)
    connection.execute(insert(_version).values(version_num=REVISION))


def migrate(connection: Connection) -> None:
    """Run the migrations that are missing."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _is_current(connection: Connection, database: Database) -> bool:
    stored = stored_revision(connection)
    if stored is not None and not re.fullmatch(r"\d{4}", stored):
        raise StoreError(f"The database {database.place} belongs to another program.", "Give jobman its own.")
    if stored is not None and stored > REVISION:
        raise StoreError(
            f"The store {database.place} was written by a newer jobman "
            f"(revision {stored}; this one knows {REVISION}).",
            "Upgrade jobman.",
        )
    return stored == REVISION
