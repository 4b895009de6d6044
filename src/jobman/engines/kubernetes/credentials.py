"""Who we are, at this moment: tokens that change, and what a plugin issued."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.errors import LoginError
from jobman.engines.kubernetes.exec_plugin import Issued, run_plugin


class Credentials:
    """What is shown to the server with every request."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._login = access.login
        self._issued: Issued | None = None
        self._lock = asyncio.Lock()
        self.edition = 0
        """Grows whenever something was renewed."""

    async def headers(self) -> list[tuple[str, str]]:
        """The headers of a request. Raises LoginError."""
        if self._asks_plugin:
            await self._issue()
        headers = list(self._login.headers)
        if token := self._token():
            headers.append(("Authorization", f"Bearer {token}"))
        elif self._login.username:
            pair = f"{self._login.username}:{self._login.password}".encode()
            headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        return [(name, _fit(name, value)) for name, value in headers]

    def certificate(self) -> tuple[bytes, bytes] | None:
        """The certificate of now, with its key, as PEM; after `headers`."""
        if self._issued is not None and self._issued.certificate is not None:
            return self._issued.certificate
        if not self._login.certificate:
            return None
        return self._login.certificate.read("client certificate"), self._login.key.read("client key")

    async def renew(self, edition: int) -> bool:
        """After the server did not know us: whether it is worth to try once more with something new."""
        if self._asks_plugin:
            if self.edition == edition:
                await self._issue(instead_of=self._issued)
            return True
        if self.edition == edition:
            self.edition += 1  # files of certificates are read anew
        return bool(self._login.token_file or self._login.certificate.file)

    def _token(self) -> str:
        own = self._login.current_token()
        return own or (self._issued.token.strip() if self._issued is not None else "")

    @property
    def _asks_plugin(self) -> bool:
        # A token of one's own is preferred, as kubectl does.
        login = self._login
        return login.plugin is not None and not (login.token or login.token_file or login.username)

    async def _issue(self, instead_of: Issued | None = None) -> None:
        """Ask the plugin where nothing was issued, or it is over; many may want it, one runs it."""
        plugin = self._login.plugin
        assert plugin is not None
        async with self._lock:
            have = self._issued
            if have is not None and have is not instead_of and not have.is_over(datetime.now(UTC)):
                return
            self._issued = await run_plugin(plugin, self._access)
            self.edition += 1


def _fit(name: str, value: str) -> str:
    """What cannot stand in a header is refused here, where it is not repeated in a message."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise LoginError(
            f"What is to be sent as {name} has line breaks or other control characters in it.",
            "Look at the token, or at `as`, in the kubeconfig.",
        )
    return value
