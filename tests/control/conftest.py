"""A store of its own for every test, on SQLite and on PostgreSQL."""

import os
import uuid
from contextlib import contextmanager

import pytest

from jobman.control.store.store import Store

POSTGRES = pytest.param("postgres", marks=pytest.mark.component("postgres"))


@contextmanager
def new_postgres():
    """The URL of a database that is there until the block ends."""
    psycopg = pytest.importorskip("psycopg")
    url = os.environ["JOBMAN_LAB_POSTGRES"]
    name = f"jobman_{uuid.uuid4().hex}"
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path}/state/store.db"


@pytest.fixture
def postgres_url():
    with new_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", POSTGRES])
def url(request):
    """An empty database of each kind."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def opened():
    """Opens stores, and closes them after the test."""
    stores = []

    def open_store(url):
        stores.append(Store.open(url))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(url, opened):
    """A store that this test has claimed."""
    store = opened(url)
    store.claim("this test")
    return store
