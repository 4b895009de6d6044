"""Questions to one registry, logged in as it asks for, and what is told where it refuses."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import urlencode

import msgspec

from jobman.client.images.challenges import Challenge, challenges
from jobman.client.images.credentials import Login, login_for
from jobman.client.images.errors import Denied, RegistryError, Unreachable
from jobman.client.images.wire import ELSEWHERE, PATIENCE, Answer, Wire, parsed
from jobman.settings.registries import Registry, is_near

_TOKEN_SECONDS = 60.0
"""How long a token lasts that does not say it."""

T = TypeVar("T")


class _Token(NamedTuple):
    text: str
    until: float


class Link:
    """A registry, and who asks it. Belongs to one event loop."""

    def __init__(
        self,
        registry: Registry,
        *,
        configured: bool = True,
        environment: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.registry = registry
        self.configured = configured
        """Whether the registry stands in the settings."""
        environment = os.environ if environment is None else environment
        self._wire = Wire(registry, configured, environment, patience)
        self.login = login_for(registry, environment)
        if self.login and not registry.is_safe:
            self.login = Login(source=f"a login is not sent to {registry.url} unencrypted")
        self._tokens: dict[str, _Token] = {}
        self._basic = False

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wire.close()

    # -- asking ----------------------------------------------------------------------------------------------

    async def get(
        self, path: str, *, accept: Sequence[str] = ("application/json",), scope: str = ""
    ) -> Answer:
        """The answer to a question, whatever it is, logged in as the registry wants it.

        `scope` is the right to ask for where tokens are used and the registry does not name it.
        """
        shown = self._authorization(scope)
        answer = await self._wire.send(path, accept, shown)
        if answer.status != 401:
            return answer
        for challenge in challenges(answer.headers.get_list("www-authenticate")):
            if challenge.scheme == "bearer":
                token = await self._token(challenge, scope)
                return await self._wire.send(path, accept, f"Bearer {token}")
            if challenge.scheme == "basic" and self.login.username and shown != self.login.basic:
                self._basic = True
                return await self._wire.send(path, accept, self.login.basic)
        return answer

    async def get_openly(self, path: str, accept: Sequence[str]) -> Answer:
        """The answer to a question that anybody may ask."""
        return await self._wire.send(path, accept, "")

    async def get_basic(self, path: str) -> Answer:
        """The answer to a question of one who logs in with every request, if there is a login at all."""
        return await self._wire.send(
            path, ("application/json",), self.login.basic if self.login.username else ""
        )

    def decode(self, answer: Answer, kind: type[T]) -> T:
        """The body of a good answer; raises where it is not what a registry says."""
        try:
            return msgspec.json.decode(answer.body, type=kind, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.strange(answer)

    def strange(self, answer: Answer) -> NoReturn:
        """End because the other side is no registry, or not the one that the settings say."""
        form = answer.headers.get("content-type", "").partition(";")[0] or "nothing that is known"
        raise Unreachable(
            f"{self.registry.url} does not answer as a registry does (HTTP {answer.status}, {form})",
            "is the address right, and the `kind` of the registry in the settings?",
        )

    def refuse(self, answer: Answer, what: str) -> NoReturn:
        """End because of an answer that is none; `what` says what was asked for."""
        if answer.status in (401, 403):
            raise self.denied(answer, what)
        said = words_of(answer.body)
        if answer.status >= 500 or answer.status == 429:
            busy = "asks for a longer pause" if answer.status == 429 else "is out of order"
            message = f"the registry at {self.registry.url} {busy} (HTTP {answer.status}{said})"
            raise Unreachable(message, "try again later")
        if answer.status in ELSEWHERE or not said:
            self.strange(answer)
        raise RegistryError(f"the registry at {self.registry.url} does not answer {what}{said}")

    def denied(self, answer: Answer | None, what: str, reason: str = "") -> Denied:
        """Who asks may not, or is not known: what to set."""
        name = self.registry.name
        said = reason or (words_of(answer.body) if answer is not None else "")
        message = f"the registry at {self.registry.url} does not let you see {what}{said}"
        if self.login:
            who = self.login.username or "the token"
            known = answer is not None and answer.status == 403
            doubt = f"has {who} the right to list and pull there?" if known else f"is it right for {who}?"
            return Denied(message, f"you asked with {self.login.source}; {doubt}")
        where = f"of the registry {name} in the settings" if self.configured else "under `registries`"
        lacking = f"{self.login.source}; " if self.login.source else "you asked without a login; "
        ways = (
            f"set `username` and `password_file` {where}, or log in with `docker login {self.registry.host}`"
        )
        return Denied(message, lacking + ways)

    # -- logging in ------------------------------------------------------------------------------------------

    def _authorization(self, scope: str) -> str:
        if self._basic:
            return self.login.basic
        token = self._tokens.get(scope)
        return f"Bearer {token.text}" if token is not None and token.until > time.monotonic() else ""

    async def _token(self, challenge: Challenge, scope: str) -> str:
        """A token of the service that the registry names."""
        realm = challenge.parameters.get("realm", "")
        parts = parsed(realm)
        if parts is None:
            raise Unreachable(
                f"{self.registry.url} wants a token and does not say from where", "tell whoever runs it"
            )
        safe = parts.scheme == "https" or is_near(f"[{parts.hostname}]")
        if self.login and not safe:
            raise self.denied(None, "its images", f": tokens are to be had unencrypted only, from {realm}")
        wanted = challenge.parameters.get("scope") or scope
        answer = await self._ask_for_token(realm, challenge.parameters.get("service", ""), wanted)
        if answer.status in (400, 401, 403):
            raise self.denied(answer, "its images", f": no token from {realm}{words_of(answer.body)}")
        if not answer.is_good:
            self.refuse(answer, f"with a token from {realm}")
        given = self.decode(answer, dict[str, Any])
        text = given.get("token") or given.get("access_token")
        if not isinstance(text, str) or not (text.isascii() and text.isprintable()):
            self.strange(answer)
        seconds = given.get("expires_in")
        lasting = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else _TOKEN_SECONDS
        # Renewed a little before its end, since it has to live until the answer.
        self._tokens[scope] = _Token(text, time.monotonic() + lasting * 0.8)
        return text

    async def _ask_for_token(self, realm: str, service: str, scope: str) -> Answer:
        if self.login.token:
            form = {"grant_type": "refresh_token", "refresh_token": self.login.token, "client_id": "jobman"}
            form |= {"service": service, "scope": scope}
            return await self._wire.send(realm, ("application/json",), "", form=form)
        pairs = [("service", service)] if service else []
        pairs += [("scope", each) for each in scope.split()]
        if self.login.username:
            pairs.append(("account", self.login.username))
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(pairs)}"
        return await self._wire.send(url, ("application/json",), self.login.basic if self.login else "")


def words_of(body: bytes) -> str:
    """What a registry says of its refusal, for the end of a sentence; all of them say it alike."""
    try:
        errors = msgspec.json.decode(body)["errors"]
        words = [str(error.get("message") or error.get("code") or "") for error in errors]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError, AttributeError):
        return ""
    said = "; ".join(" ".join(word.split()) for word in words if word)
    return f": {said[:300]}" if said else ""
