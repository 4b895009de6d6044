"""How a server is verified and how we show a certificate, as kubectl does it."""

from __future__ import annotations

import ssl
import tempfile

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.errors import ConfigError


def tls_context(access: Access, certificate: tuple[bytes, bytes] | None) -> ssl.SSLContext:
    """For connections to this server, showing this certificate with its key."""
    context = _Named(access.tls_server_name) if access.tls_server_name else _plain()
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whoever is named is trusted, not only a root
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # many clusters sign their own, and not by every rule
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.authority:
        _trust(context, access)
    else:
        context.load_default_certs()
    if certificate is not None:
        _show(context, *certificate)
    return context


def _plain() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class _Named(ssl.SSLContext):
    """Expects the server to have another name than the one in its address, also behind a proxy."""

    def __new__(cls, name: str) -> _Named:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._name = name
        return made

    _name: str

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,  # noqa: ARG002 — the one of the address
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, self._name, session)


def _trust(context: ssl.SSLContext, access: Access) -> None:
    pem = access.authority.read("certificate authority")
    try:
        context.load_verify_locations(cadata=pem.decode("ascii", errors="replace"))
    except (ssl.SSLError, ValueError):
        where = access.authority.file or f"the kubeconfig ({access.source})"
        raise ConfigError(f"The certificate authority in {where} is not a certificate in PEM form.") from None


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # OpenSSL reads a certificate from a file only; nobody else can open this one, and it is gone at once.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate + b"\n" + key + b"\n")
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"The client certificate cannot be used: {error}.",
                "It must be PEM, belong to its key, and the key may not have a password.",
            ) from None


def _no_password() -> bytes:
    raise ValueError("its key has a password")
