"""Why a server cannot be reached, in plain words, and what to look at."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.errors import Unreachable
from jobman.lean_httpx import httpx

# What OpenSSL says of certificates.
UNTRUSTED = (18, 19, 20, 21)
NOT_YET, EXPIRED = 9, 10
WRONG_NAME = (62, 64)


def unreachable(
    error: Exception, access: Access, *, proxy: str | None = None, maybe_done: bool = False
) -> Unreachable:
    """The exception for a connection that could not be made, or broke."""
    reason, advice = _explain(error, access)
    if proxy is not None:
        advice += " Are proxy-url, HTTPS_PROXY and NO_PROXY right?"
    if maybe_done:
        advice = f"It may have been done: look before you repeat it. {advice}"
    return Unreachable(
        f"The cluster at {_where(access, proxy)} cannot be reached: {reason}.", advice, maybe_done=maybe_done
    )


def is_distrust(error: Exception) -> bool:
    """Whether one of the two does not trust the other, which no second trial will change."""
    passing = ssl.SSLWantReadError | ssl.SSLWantWriteError | ssl.SSLEOFError | ssl.SSLZeroReturnError
    return any(isinstance(cause, ssl.SSLError) and not isinstance(cause, passing) for cause in causes(error))


def without_password(url: str) -> str:
    """A URL that can be shown."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _where(access: Access, proxy: str | None) -> str:
    of = f"context {access.context} of {access.source}" if access.context else access.source
    through = f"through the proxy {without_password(proxy)}" if proxy is not None else ""
    details = ", ".join(filter(None, [of, through]))
    return f"{access.server} ({details})" if details else access.server


def _explain(error: Exception, access: Access) -> tuple[str, str]:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return "it does not answer in time", "Is a VPN, a firewall or a proxy in between?"
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause, access)
        if isinstance(cause, ssl.SSLError):
            return _handshake(cause, access)
        if isinstance(cause, socket.gaierror):
            return "nobody knows its host name", "Is the address right, and the network (a VPN?) there?"
        if isinstance(cause, ConnectionRefusedError):
            return "nobody listens there", _running(access)
        if isinstance(cause, httpx.ProxyError):
            return f"the proxy refused ({cause})", _running(access)
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower(), _running(access)
    return str(error) or "the connection broke", _running(access)


def causes(error: BaseException) -> Iterator[BaseException]:
    """From the root of the matter outwards."""
    chain: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        found = waiting.pop(0)
        if found in chain:
            continue
        chain.append(found)
        if isinstance(found, BaseExceptionGroup):
            waiting.extend(found.exceptions)
        waiting += [cause for cause in (found.__cause__, found.__context__) if cause is not None]
    return reversed(chain)


def _certificate(error: ssl.SSLCertVerificationError, access: Access) -> tuple[str, str]:
    code = getattr(error, "verify_code", 0)  # one that was not made by OpenSSL has none
    if code in UNTRUSTED:
        if access.authority:
            held = access.authority.file or "the one in the kubeconfig"
            advice = f"Was the cluster made anew? Then get its new kubeconfig; trusted is only {held}."
        else:
            advice = "Name the authority that signed it as certificate-authority in the kubeconfig."
        return "its certificate is not signed by an authority that is trusted", advice
    if code in WRONG_NAME:
        return (
            f"its certificate is for another name ({error.verify_message.rstrip('.')})",
            "Use the address that the certificate names, or set tls-server-name in the kubeconfig.",
        )
    if code in (NOT_YET, EXPIRED):
        word = "has expired" if code == EXPIRED else "is not valid yet"
        return f"its certificate {word}", "Check the clock; else whoever runs the cluster has to renew it."
    words = getattr(error, "verify_message", error)
    return f"its certificate is refused: {words}", "Tell whoever runs the cluster."


def _handshake(error: ssl.SSLError, access: Access) -> tuple[str, str]:
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "wrong version number" in reason or "http request" in reason:
        return "it does not speak TLS", "Is it the right port, and https right?"
    if "alert" in reason and "certificate" in reason:
        return f"it refuses our certificate ({reason})", "Log in to the cluster anew."
    return f"TLS failed ({reason})", _running(access)


def _running(access: Access) -> str:
    return "Is the cluster running, and the address right?" + (
        " Another context is chosen with `kubectl config use-context`." if access.context else ""
    )
