"""The broker that short tasks go to, as the settings write it."""

from __future__ import annotations

from typing import Annotated

from jobman.spec.kinds import Text
from jobman.spec.records import Element, Key, Of

_ADDRESS = Text("an address", r"\S{1,1000}", "`https://HOST:PORT`, `HOST:PORT` or the path of a socket")
_FILE = Text("a file's path", r"~?/[^\0]{1,4095}", "it starts with `/` or `~/`")


class Tasks(Element, frozen=True, kw_only=True):
    noun = "the `tasks` section"
    habits = {"url": "broker", "server": "broker", "ca": "ca_file", "certificate": "ca_file"}
    broker: Annotated[str | None, Key(_ADDRESS, "where `jobman task` finds it; otherwise your own")] = None
    ca_file: Annotated[str | None, Key(_FILE, "who signed its certificate, in PEM")] = None


TASKS = Of(Tasks)
