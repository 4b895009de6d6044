"""Tokens of administrators that no administrator made: the first one, and one for whoever has lost theirs."""

from __future__ import annotations

import os
import pwd
from itertools import count
from pathlib import Path

from jobman.control.api.identity import Tokens
from jobman.control.store.records import TokenRecord
from jobman.control.store.store import Store

_NAME = "admin"


def first_token(tokens: Tokens) -> str | None:
    """The token that a new service begins with; None where it has some."""
    return None if tokens.all() else tokens.make(_NAME, own_name(), "admin")[1]


def another_token(database: str | Path) -> tuple[TokenRecord, str]:
    """Make a token in the store of a service, which may be running. Who may open the store may do this."""
    store = Store.join(database)
    try:
        tokens = Tokens(store)
        taken = {record.name for record in tokens.all()}
        names = (_NAME if number == 1 else f"{_NAME}-{number}" for number in count(1))
        return tokens.make(next(name for name in names if name not in taken), own_name(), "admin")
    finally:
        store.close()


def own_name() -> str:
    """Who this process is, by the uid and not by what the environment says of it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
