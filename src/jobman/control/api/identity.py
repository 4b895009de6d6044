"""Who is asking: the peer of a Unix socket by its uid, anybody else by a bearer token."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jobman.control.answers import Role
from jobman.control.refusals import Refusal
from jobman.control.store.errors import StoreError
from jobman.control.store.records import TokenRecord

if TYPE_CHECKING:
    from jobman.control.store.store import Store

PEER = "jobman.peer"
"""The key of the peer's uid in the scope of a request."""
_PREFIX = "jobman_"
_LOOK_SECONDS = 1.0


class Caller(NamedTuple):
    """A user and what they may do: administrators see and touch everything, users what is their own."""

    user: str
    role: Role

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    def sees(self, owner: str) -> bool:
        """Whether the jobs of this owner are theirs to see and to touch."""
        return self.is_admin or owner == self.user

    @property
    def horizon(self) -> str | None:
        """The only owner whose jobs they see; None for an administrator."""
        return None if self.is_admin else self.user


class Door(Protocol):
    """Lets a request in, as somebody."""

    def identify(self, scope: Mapping[str, Any]) -> Caller:
        """Who sent it; raises a Refusal for strangers."""
        ...

    def is_behind(self) -> bool:
        """Whether a stranger may be somebody it has not heard of yet, so that it should `learn`."""
        ...

    def learn(self) -> None:
        """Find out who else may come in; waits for the store."""
        ...


class SocketDoor:
    """The door of a service on a Unix socket: for its own user, and for root."""

    def __init__(self, user: str, uid: int | None = None) -> None:
        self._caller = Caller(user, "admin")
        self._welcome = (os.geteuid() if uid is None else uid, 0)

    def identify(self, scope: Mapping[str, Any]) -> Caller:
        if scope.get(PEER) not in self._welcome:
            raise Refusal(
                "forbidden",
                f"This service belongs to {self._caller.user}.",
                "Start your own with any jobman command, or ask for an account on a shared service.",
            )
        return self._caller

    def is_behind(self) -> bool:
        return False

    def learn(self) -> None:
        """Nobody else ever may."""


class TokenDoor:
    """The door of a shared service: for whoever has a token."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._looked = -inf

    def identify(self, scope: Mapping[str, Any]) -> Caller:
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        caller = self._tokens.find(token.strip()) if scheme.lower() == b"bearer" else None
        if caller is None:
            raise Refusal(
                "unauthenticated",
                "This token is not known here, or was revoked."
                if given
                else "This service asks for a token.",
                "Put yours into JOBMAN_TOKEN or ~/.jobman/token; an administrator of the service makes them.",
            )
        return caller

    def is_behind(self) -> bool:
        """Tokens can be made beside the service; however many strangers knock, it looks now and then only."""
        now = time.monotonic()
        if now < self._looked + _LOOK_SECONDS:
            return False
        self._looked = now
        return True

    def learn(self) -> None:
        with suppress(StoreError):
            self._tokens.learn()


class Tokens:
    """The tokens of a service, by their hashes. A token is 256 random bits: a plain hash is enough."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changing = threading.Lock()
        self._records: dict[str, TokenRecord] = {}
        self._callers: dict[str, Caller] = {}
        self._load()

    def learn(self) -> None:
        """Take in what others wrote into the store."""
        with self._changing:
            self._load()

    def _load(self) -> None:
        records = self._store.tokens()
        self._callers = {
            record.hash: Caller(record.user, "admin" if record.role == "admin" else "user")
            for record in records
            if record.revoked_at is None
        }
        self._records = {record.name: record for record in records}

    def find(self, token: bytes) -> Caller | None:
        """Whose token it is. Looked up by its hash, so that time says nothing about how near a guess was."""
        return self._callers.get(hashlib.sha256(token).hexdigest())

    def all(self) -> list[TokenRecord]:
        """Every token there ever was, in the order they were made."""
        self.learn()
        return sorted(self._records.values(), key=lambda record: (record.created_at, record.name))

    def make(self, name: str, user: str, role: Role) -> tuple[TokenRecord, str]:
        """Make a token; this is the only time that it is known."""
        token = _PREFIX + secrets.token_urlsafe(32)
        record = TokenRecord(
            name=name,
            user=user,
            role=role,
            hash=hashlib.sha256(token.encode()).hexdigest(),
            created_at=time.time(),
        )
        with self._changing:
            self._load()
            known = self._records.get(name)
            if known is not None and known.revoked_at is None:
                raise Refusal(
                    "wrong-state",
                    f"There is a token named {name} already.",
                    "Revoke it, or choose another name.",
                )
            self._store.add_token(record)
            self._load()
        return record, token

    def revoke(self, name: str) -> TokenRecord:
        """Let nobody in with this token any more, from the next request on."""
        with self._changing:
            self._load()
            record = self._records.get(name)
            if record is None:
                raise Refusal("no-such-token", f"There is no token named {name}.")
            if record.revoked_at is None:
                self._keep_one_administrator(record)
                self._store.revoke_token(name, time.time())
                self._load()
            return self._records[name]

    def _keep_one_administrator(self, leaving: TokenRecord) -> None:
        others = (
            record
            for record in self._records.values()
            if record.name != leaving.name and record.revoked_at is None and record.role == "admin"
        )
        if leaving.role == "admin" and next(others, None) is None:
            raise Refusal(
                "wrong-state",
                f"{leaving.name} is the last token of an administrator.",
                "Make another one first.",
            )
