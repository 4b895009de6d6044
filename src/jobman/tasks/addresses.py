"""Where a broker or a worker is: a path of a Unix socket, HOST:PORT, or a URL."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from jobman.tasks.wire import Connection

Place = Path | tuple[str, int]
_PORTS = {"http": 80, "https": 443}
_FORMS = (
    "write https://HOST:PORT, HOST:PORT, or the path of a socket such as ./broker.sock; several with commas"
)


class WrongAddress(ValueError):
    """A text that says nothing of where somebody is."""

    code = "wrong-address"

    def __init__(self, text: str) -> None:
        super().__init__(f"`{text}` is no address")
        self.advice = _FORMS


class Address(msgspec.Struct, frozen=True):
    """Where somebody is, and whether the way there is encrypted."""

    place: Place
    is_secure: bool = False
    others: tuple[Place, ...] = ()
    """Where to ask when nobody is there: of several brokers one leads."""

    def connection(self, headers: Mapping[str, str] | None = None, ca_file: str | None = None) -> Connection:
        """A connection to it, made when it is needed."""
        tls = ssl.create_default_context(cafile=ca_file) if self.is_secure else None
        return Connection(self.place, *self.others, headers=headers, tls=tls)

    def __str__(self) -> str:
        if isinstance(self.place, Path):
            return str(self.place)
        return f"http{'s' if self.is_secure else ''}://{self.place[0]}:{self.place[1]}"


def parse(text: str) -> Address:
    """Read an address, or several with commas; what has a slash and no scheme is a path."""
    first, *more = map(_one, text.split(","))
    if any(each.is_secure != first.is_secure for each in more):
        raise WrongAddress(text)
    return Address(first.place, first.is_secure, tuple(each.place for each in more))


def _one(text: str) -> Address:
    text = text.strip()
    if "://" not in text and "/" in text:
        return Address(Path(text).expanduser().absolute())
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise WrongAddress(text) from None
    if parts.scheme not in _PORTS or not parts.hostname or ("://" not in text and port is None):
        raise WrongAddress(text)
    where = (parts.hostname, _PORTS[parts.scheme] if port is None else port)
    return Address(where, parts.scheme == "https")
