"""A store belongs to the service that claimed it last; no other can write to it."""

import pytest
from sqlalchemy import insert

from jobman.control.store.errors import Fenced, StoreError
from jobman.control.store.schema import events
from tests.control.store.builders import changes, event, job, token


def test_each_claim_has_a_higher_epoch(url, opened):
    first, second = opened(url), opened(url)
    assert first.holder().epoch == 0
    assert [first.claim("a"), second.claim("b"), first.claim("a again")] == [1, 2, 3]
    assert (second.holder().epoch, second.holder().owner) == (3, "a again")


def test_a_service_that_lost_the_store_cannot_write_any_more(url, opened):
    old, new = opened(url), opened(url)
    old.claim("old")
    old.write(changes(job(1)))
    new.claim("new on host-7")
    with pytest.raises(Fenced, match="new on host-7"):
        old.write(changes(job(2)))
    with pytest.raises(Fenced):
        old.add_token(token())
    with pytest.raises(Fenced):
        old.delete_before(1e12)
    new.write(changes(job(2), event(1, job(2))))
    assert [one.number for one in old.jobs().items] == [2, 1]
    assert old.tokens() == []


def test_a_store_nobody_claimed_takes_tokens_but_no_jobs(url, opened):
    store = opened(url)
    with pytest.raises(Fenced, match="not claimed"):
        store.write(changes(job()))
    store.add_token(token())
    assert store.tokens() == [token()]


def make_impatient(store):
    """Let a store give up at once where it would have to wait for another."""
    setting = "PRAGMA busy_timeout = 1" if store._database.is_sqlite else "SET lock_timeout = '1ms'"
    with store._database._writer.connect() as connection:
        cursor = connection.connection.driver_connection.cursor()
        cursor.execute(setting)
        connection.connection.driver_connection.commit()


def test_a_store_cannot_be_taken_over_in_the_middle_of_a_transaction(url, opened):
    old, new = opened(url), opened(url)
    old.claim("old")
    make_impatient(new)
    with old._writing() as connection:
        with pytest.raises(StoreError, match="locked"):
            new.claim("new")
        connection.execute(insert(events).values(number=1, at=0.0, kind="old", message="", data={}))
    assert new.claim("new") == 2
    assert [one.kind for one in new.events()] == ["old"]
    with pytest.raises(Fenced):
        old.write(changes(event(2)))
