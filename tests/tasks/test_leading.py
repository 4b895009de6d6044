"""Brokers that stand by."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from jobman.control.store.database import Database, open_database
from jobman.tasks.leading import Lead
from tests.control.conftest import POSTGRES, new_postgres

_PATIENCE = 60.0


@pytest.fixture(params=[POSTGRES])
def databases() -> Iterator[tuple[Database, Database]]:
    """The same one, for two brokers."""
    with new_postgres() as url:
        pair = open_database(url), open_database(url)
        yield pair
        for each in pair:
            each.close()


def soon(awaitable):
    return asyncio.wait_for(awaitable, _PATIENCE)


def test_a_second_waits_until_the_first_lets_go(databases):
    async def scenario() -> None:
        first, second = (Lead(each, look=0.05) for each in databases)
        await soon(first.take())
        waiting = asyncio.create_task(second.take())
        # As soon as it has asked once, it knows.
        done, _ = await asyncio.wait([waiting], timeout=0.5)
        assert not done
        assert (first.is_taken, second.is_taken) == (True, False)
        first.release()
        await soon(waiting)
        assert (first.is_taken, second.is_taken) == (False, True)
        second.release()

    asyncio.run(scenario())


def test_who_loses_its_connection_has_lost_the_lead(databases):
    async def scenario() -> None:
        first, second = (Lead(each, look=0.05) for each in databases)
        await soon(first.take())
        losing = asyncio.create_task(first.lost())
        with databases[1].write() as connection:
            # What the server does where a machine is gone.
            here = "(SELECT oid FROM pg_database WHERE datname = current_database())"
            held = f"FROM pg_locks WHERE locktype = 'advisory' AND database = {here}"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) {held}"))
        await soon(losing)
        await soon(second.take())
        first.release()
        assert second.is_taken
        second.release()

    asyncio.run(scenario())


def test_a_file_is_for_one_broker_anyway(tmp_path):
    database = open_database(f"sqlite:///{tmp_path}/tasks.sqlite")
    lead = Lead(database)
    asyncio.run(soon_taken(lead))
    assert lead.is_taken
    database.close()


async def soon_taken(lead: Lead) -> None:
    await soon(lead.take())
