"""Which proxy leads to a server, by the variables of the environment, with the rules that kubectl has."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, environment: Mapping[str, str]) -> str | None:
    """The URL of the proxy; None to go there directly."""
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    proxy = _either(environment, f"{parts.scheme}_proxy")
    if not proxy or _is_near(host) or _is_exempt(host, port, _either(environment, "no_proxy")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_exempt(host: str, port: int, exempt: str) -> bool:
    return any(_covers(entry.strip().lower(), host.lower(), port) for entry in exempt.split(","))


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether one entry means this host: all, a network, an address, or a name and what is below it."""
    if not entry:
        return False
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        pass
    name, asked = _split(entry)
    if asked is not None and asked != port:
        return False
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _split(entry: str) -> tuple[str, int | None]:
    """A name and its port; an address of six parts stands in brackets where it has one."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, int(rest[1:]) if rest[1:].isdigit() else None
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and ":" not in name:
        return name, int(port)
    return entry, None
