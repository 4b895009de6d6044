"""Accounts as the settings write them: a tree of those who pay, with shares, users and limits."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import MappingNode, Node

from jobman.settings.queues import LIMITS, MOST, Limits
from jobman.spec.kinds import Flag, Forms, Items, Names, Number, Text
from jobman.spec.names import FREE, NAME
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Element, Key, Of

USER = Text("a user's name", r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,99}", "letters, digits, `-`, `_`, `.` and `@`")


class Shares(Number):
    """A number of shares, more than none."""

    def __init__(self) -> None:
        super().__init__(0, MOST, "a number of shares")

    def read(self, node: Node, reading: Reading) -> Any:
        shares = super().read(node, reading)
        if shares is not BAD and not shares:
            what = "this account" if reading.key == "shares" else "this user"
            reading.report("JS909", node, what=what)
            return BAD
        return shares


class _Users(Forms):
    """Users as a list, each with one share, or with the shares of each; the value is a mapping."""

    def __init__(self) -> None:
        super().__init__(
            "users, as a list or each with shares",
            scalar=Items(USER, unique=True, single=True),
            items=Items(USER, "a list of users", unique=True),
            mapping=Names(USER, Shares(), "a mapping of users and shares"),
        )

    def read(self, node: Node, reading: Reading) -> Any:
        found = super().read(node, reading)
        if found is BAD or isinstance(node, MappingNode):
            return found
        return dict.fromkeys(found, 1.0)


class Account(Element, frozen=True, kw_only=True):
    noun = "an account"
    habits = {"members": "users", "share": "shares", "enabled": "active", "above": "parent"}
    name: Annotated[str, Key(NAME, "its name", required=True)]
    description: Annotated[str | None, Key(FREE, "what it is for")] = None
    parent: Annotated[str | None, Key(NAME, "the account above it; none at the top")] = None
    shares: Annotated[float | None, Key(Shares(), "against those below the same parent")] = None
    users: Annotated[dict[str, float], Key(_Users(), "who may charge it, each with shares")] = {}
    active: Annotated[bool | None, Key(Flag(), "whether it may be charged")] = None
    limits: Annotated[Limits | None, Key(LIMITS, "of it and all below it")] = None
    each_user: Annotated[Limits | None, Key(LIMITS, "of each user in it and below it")] = None


ACCOUNTS = Items(Of(Account), "a list of accounts")
