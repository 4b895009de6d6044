"""Tokens of administrators: the first, and one for whoever has lost theirs."""

import hashlib
from pathlib import Path

import pytest

from jobman.control.administrators import another_token, first_token
from jobman.control.api.identity import Tokens
from jobman.control.store.errors import StoreError
from jobman.control.store.store import Store


def roles(tokens, *given):
    """As what the bearers of tokens are let in."""
    return [tokens.find(token.encode()).role for token in given]


def test_only_a_new_service_begins_with_a_token(url, opened):
    tokens = Tokens(opened(url))
    token = first_token(tokens)
    assert roles(tokens, token) == ["admin"]
    assert first_token(tokens) is None


def test_whoever_has_the_database_gets_another_token_while_the_service_runs(url, opened):
    store = opened(url)
    store.claim("the service")
    tokens = Tokens(store)
    first = first_token(tokens)
    made = [another_token(url) for _ in range(2)]
    assert [record.name for record, _ in made] == ["admin-2", "admin-3"]
    tokens.learn()
    assert roles(tokens, first, *(token for _, token in made)) == ["admin"] * 3
    kept = {record.name: record.hash for record in store.tokens()}
    assert kept["admin-2"] == hashlib.sha256(made[0][1].encode()).hexdigest(), "recorded as others are"
    assert tokens.revoke("admin").revoked_at is not None, "the lost one can be taken away"
    assert store.epoch == 1
    tokens.make("laptop", "ada", "user")


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    path = tmp_path / "state" / "jobman.db"
    with pytest.raises(StoreError, match="There is no store"):
        another_token(path)
    assert not path.parent.exists()


def test_a_database_that_no_service_has_used_is_left_as_it_is(url):
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        path.parent.mkdir()
        path.touch()
    for _ in range(2):
        with pytest.raises(StoreError, match="No service of this version has used the store"):
            Store.join(url)
