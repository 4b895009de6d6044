"""Registries of images as the settings write them: where they are, who asks, and whom to trust."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from yaml.nodes import Node, ScalarNode

from jobman.spec.kinds import Choice, Items, Kind, Schema, Text
from jobman.spec.names import NAME, WORD
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of, has_key
from jobman.spec.yaml import is_null, place_of

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?"
_ADDRESS = re.compile(rf"(?:(https?)://)?({_HOST})/*")
_WITH_PASSWORD = re.compile(r"(?:[A-Za-z]+://)?[^/\s]*:[^/\s]*@")

IMAGE_PREFIX = Text(
    "the start of an image's name",
    r"(?:[a-zA-Z0-9][a-zA-Z0-9._-]*(?::[0-9]+)?)(?:/[a-zA-Z0-9._-]+)*/",
    "`host[:port]/` or `host[:port]/path/`, with a `/` at its end",
)
_FILE = Text("a file's path", r"~?/[^\0]{1,4095}", "it starts with `/` or `~/`")
_PROJECT = Text(
    "a project's name", r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*", "small letters, digits, `.`, `_` and `-`"
)


class Address(Kind):
    """A registry's address: `https://host[:port]`; a host alone means https."""

    noun = "the address of a registry"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node).strip()
        match = _ADDRESS.fullmatch(text)
        if match is not None and is_host(match[2]):
            return f"{match[1] or 'https'}://{match[2].lower()}"
        if _WITH_PASSWORD.match(text):
            _report_secret(node, "an address", reading)
        else:
            reading.report("JS821", node, text=text[:60])
        return BAD

    def hint(self, _node: Node) -> str:
        return "write it as `https://host` or `https://host:port`"

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{_ADDRESS.pattern}$"}


class Secret(Kind):
    """What does not belong into settings: they are printed, and travel with jobs."""

    noun = "the name of a file"

    def read(self, node: Node, reading: Reading) -> Any:
        _report_secret(node, "`password`", reading)
        return BAD

    def schema(self) -> Schema:
        return {"not": {}}


def _report_secret(node: Node, where: str, reading: Reading) -> None:
    # The line itself is not shown: it may be read by others, in logs for instance.
    reading.problems.add("JS822", place_of(node, reading.source), where=where)


class Registry(Element, frozen=True, kw_only=True):
    """A registry that `jobman images` asks."""

    noun = "a registry"
    habits = {
        "address": "url",
        "host": "url",
        "server": "url",
        "type": "kind",
        "project": "projects",
        "user": "username",
        "robot": "username",
        "secret": "password_file",
        "ca_file": "ca",
        "cacert": "ca",
        "certificate_authority": "ca",
    }
    name: Annotated[str, Key(NAME, "its name", required=True)]
    url: Annotated[str, Key(Address(), "where it is", required=True)]
    kind: Annotated[
        Literal["harbor", "oci"] | None,
        Key(
            Choice(("harbor", "oci"), "kind of registry", {"docker": "oci", "registry": "oci"}), "what it is"
        ),
    ] = None
    projects: Annotated[
        tuple[str, ...],
        Key(Items(_PROJECT, "a list of projects", unique=True, single=True), "of Harbor, those to show"),
    ] = ()
    username: Annotated[str | None, Key(WORD, "who asks; a robot account has a `$` in it")] = None
    password: Annotated[None, Key(Secret(), "not here: see `password_file`")] = None
    password_file: Annotated[str | None, Key(_FILE, "a file with the password and nothing else")] = None
    ca: Annotated[str | None, Key(_FILE, "certificates (PEM) to trust besides those of the system")] = None

    @property
    def host(self) -> str:
        """As images name it: `host[:port]`."""
        return self.url.partition("://")[2]

    @property
    def is_safe(self) -> bool:
        """Whether a password may be sent there: encrypted, or to this very machine."""
        return self.url.startswith("https:") or is_near(self.host)


def is_host(text: str) -> bool:
    """Whether a text is a `host[:port]` that can be asked."""
    if re.fullmatch(_HOST, text) is None:
        return False
    try:
        parts = urlsplit(f"https://{text}")
        if text.startswith("["):
            ip_address(parts.hostname or "")
        return parts.port != 0
    except ValueError:
        return False


def is_near(host: str) -> bool:
    """Whether a `host[:port]` is this machine."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _checked(registry: Registry, node: Node, reading: Reading) -> Any:
    if has_key(node, "password"):
        return BAD
    if (registry.username is None) is not (registry.password_file is None):
        given, missing = ("username", "password_file")[:: 1 if registry.username else -1]
        reading.report("JS824", child(node, given), given=given, missing=missing)
        return BAD
    if registry.username is not None and not registry.is_safe:
        reading.report("JS823", child(node, "url"), url=registry.url, host=registry.host)
        return BAD
    if registry.projects and registry.kind == "oci":
        reading.report("JS825", child(node, "projects"))
        return BAD
    return registry


REGISTRIES = Items(Of(Registry, _checked), "a list of registries")
