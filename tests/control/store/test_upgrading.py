"""A store of an earlier jobman is brought up to date with everything that is in it."""

import json
import zlib

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData

from jobman.control.store import revisions
from jobman.control.store.database import open_database
from jobman.control.store.errors import Fenced
from jobman.control.store.schema import REVISION
from jobman.control.store.store import Store
from tests.control.store.builders import (
    NOON,
    allocation,
    attempt,
    balance,
    changes,
    event,
    job,
    log,
    promise,
    replica,
    revision,
    slice_of,
    submission,
    task,
    token,
    window,
)

OVER = job(1, state="succeeded", ended_at=NOON + 9)
ALIVE = job(2, state="running", labels={"team": "vision"}, account="physics")
ROWS = {
    "jobs": [
        {
            **{
                name: getattr(one, name)
                for name in ("number", "id", "name", "owner", "state", "submitted_at")
            },
            **{name: getattr(one, name) for name in ("account", "ended_at", "priority", "held", "reason")},
            "search": "",
            "counts": "{}",
            "labels": json.dumps(one.labels),
            "digest": "",
            "cwd": "",
            "options": "{}",
            "conductor": "{}",
        }
        for one in (OVER, ALIVE)
    ],
    "documents": [
        {"job": one.number, "document": one.document, "plan": zlib.compress(one.plan)}
        for one in (OVER, ALIVE)
    ],
    "labels": [{"job": 2, "name": "team", "value": "vision"}],
    "tasks": [{"job": 2, "scope": "", "unit": "train", "counts": "{}"}],
    "replicas": [
        {
            "job": 2,
            "unit": "train",
            "index": 0,
            "key": "train.0",
            "state": "running",
            "attempt": 0,
            "since": 0.0,
            "reason": "",
            "life": "{}",
        }
    ],
    "attempts": [
        {
            "job": number,
            "key": "train.0",
            "attempt": 1,
            "granted_at": NOON,
            "ended_at": ended,
            "reason": "",
            "message": "",
            "cpu_seconds": 0.0,
            "max_rss": 0,
            "nodes": "[]",
        }
        for number, ended in ((1, NOON + 9), (2, None))
    ],
    "allocations": [
        {
            "job": number,
            "key": "train.0",
            "attempt": 1,
            "given_at": NOON,
            "returned_at": returned,
            "allocation": "{}",
        }
        for number, returned in ((1, NOON + 9), (2, None))
    ],
    "log_positions": [
        {
            "job": 2,
            "key": "train.0",
            "attempt": 1,
            "copy": 0,
            "stream": "out",
            "node": "",
            "path": "/logs/train.0.out",
            "start": 0,
            "size": 0,
            "ended": False,
        }
    ],
    "events": [
        {"number": n, "job": n, "at": NOON + n, "kind": "started", "message": "", "data": "{}"}
        for n in (1, 2)
    ],
    "submissions": [{"owner": "ada", "key": "k1", "digest": "d1", "jobs": '["0001-job"]', "at": NOON}],
    "tokens": [
        {"name": "laptop", "user": "ada", "role": "user", "hash": "hash of laptop", "created_at": NOON}
    ],
    "meta": [{"name": "epoch", "value": "1"}, {"name": "owner", "value": "an earlier jobman"}],
}
"""Something in every table, as an earlier jobman wrote it."""


def make_first(url):
    """A store of revision 0001."""
    database = open_database(url)
    config = Config()
    config.set_main_option("script_location", str(revisions.MIGRATIONS))
    with database.write() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        tables = MetaData()
        tables.reflect(connection)
        for name, rows in ROWS.items():
            connection.execute(tables.tables[name].insert(), rows)
    database.close()
    return OVER, ALIVE


def test_everything_of_a_first_store_is_still_there(url, opened):
    over, alive = make_first(url)
    store = opened(url)
    with store._database.read() as connection:
        assert revisions.stored_revision(connection) == REVISION
    assert [one.id for one in store.jobs().items] == [alive.id, over.id]
    found = store.unfinished()
    assert (found.jobs, found.tasks, found.replicas) == ([alive], [task(alive)], [replica(alive)])
    assert (found.attempts, found.allocations) == ([attempt(alive)], [allocation(alive)])
    assert store.events() == [event(1, over), event(2, alive)]
    assert store.logs(alive.id).items == [log(alive)]
    assert (store.submission("ada", "k1"), store.tokens()) == (submission(), [token()])
    assert vars_of(store) == (2, 2, "an earlier jobman")


def vars_of(store):
    return store.last_numbers().job, store.last_numbers().event, store.holder().owner


def test_a_first_store_goes_on_with_what_is_new(url, opened):
    over, alive = make_first(url)
    store = opened(url)
    assert store.charged() == {}
    assert store.promises() == store.calendar() == store.balances() == []
    assert [one.seconds for one in store.past_runs()] == [9.0]
    store.claim("this jobman")
    kept = [promise(alive), revision(alive), slice_of(alive), slice_of(over), balance(), window()]
    store.write(changes(*kept))
    assert [*store.promises(), *store.revisions(alive.id), *store.slices(alive.id)] == kept[:3]
    store.write(changes(deleted=[over.id]))
    assert store.slices(over.id) == [slice_of(over)]


def test_a_service_of_the_first_revision_that_is_still_there_is_shut_out(url, opened):
    make_first(url)
    old = Store(open_database(url))
    old.claim("an earlier jobman")
    opened(url).claim("this jobman")
    with pytest.raises(Fenced):
        old.write(changes(job(3)))
    old.close()
