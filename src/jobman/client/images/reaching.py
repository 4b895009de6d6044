"""Why a registry cannot be reached, in plain words, and which setting would help."""

from __future__ import annotations

import socket
import ssl

from jobman.client.images.errors import Unreachable
from jobman.engines.kubernetes.reaching import (
    EXPIRED,
    NOT_YET,
    UNTRUSTED,
    WRONG_NAME,
    causes,
    without_password,
)
from jobman.lean_httpx import httpx
from jobman.settings.registries import Registry

_RUNNING = "is it running, and its address right?"


def unreachable(
    error: BaseException, registry: Registry, url: str, *, configured: bool, proxy: str | None = None
) -> Unreachable:
    """The exception for a connection that could not be made, or broke."""
    reason, advice = _explain(error, registry, configured)
    where = without_password(url)
    who = f"the registry at {where}" if where == registry.url else f"{where}, where {registry.url} points to,"
    through = f" through the proxy {without_password(proxy)}" if proxy is not None else ""
    if proxy is not None:
        advice += "; are HTTPS_PROXY and NO_PROXY right?"
    return Unreachable(f"{who} cannot be reached{through}: {reason}", advice)


def _explain(error: BaseException, registry: Registry, configured: bool) -> tuple[str, str]:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return "it does not answer in time", "is a VPN, a firewall or a proxy in between?"
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause, registry, configured)
        if isinstance(cause, ssl.SSLError):
            return _handshake(cause, registry)
        if isinstance(cause, socket.gaierror):
            return "nobody knows its host name", "is the address right, and the network (a VPN?) there?"
        if isinstance(cause, ConnectionRefusedError):
            return "nobody listens there", _RUNNING
        if isinstance(cause, httpx.ProxyError):
            return f"the proxy refused ({cause})", _RUNNING
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower(), _RUNNING
    return str(error) or "the connection broke", _RUNNING


def _certificate(
    error: ssl.SSLCertVerificationError, registry: Registry, configured: bool
) -> tuple[str, str]:
    code = getattr(error, "verify_code", 0)
    if code in UNTRUSTED:
        return "its certificate is not signed by an authority that is trusted", _authority(
            registry, configured
        )
    if code in WRONG_NAME:
        words = error.verify_message.rstrip(".")
        return f"its certificate is for another name ({words})", "use the address that the certificate names"
    if code in (NOT_YET, EXPIRED):
        word = "has expired" if code == EXPIRED else "is not valid yet"
        return f"its certificate {word}", "check the clock; else whoever runs the registry has to renew it"
    words = getattr(error, "verify_message", "") or str(error)
    return f"its certificate is refused: {words}", "tell whoever runs the registry"


def _authority(registry: Registry, configured: bool) -> str:
    if registry.ca is not None:
        return (
            f"{registry.ca}, which `ca` of the registry {registry.name} names, does not hold that authority"
        )
    if configured:
        return f"set `ca` of the registry {registry.name} in the settings to a file with that authority (PEM)"
    return (
        "add it to the settings with a file that holds that authority (PEM): "
        f"`registries: [{{name: lab, url: '{registry.url}', ca: /path/ca.pem}}]`"
    )


def _handshake(error: ssl.SSLError, registry: Registry) -> tuple[str, str]:
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "wrong version number" in reason or "http request" in reason:
        plain = f"http://{registry.host}"
        return "it does not speak TLS", f"is it the right port? If so, name it `url: {plain}` in the settings"
    return f"TLS failed ({reason})", _RUNNING
