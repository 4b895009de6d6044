"""A service that gives tokens to those who log in, signed so that a real registry believes them."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from tests.client.webserver import Reply, Request, as_json, refusal

SERVICE = "the registry of the tests"
ISSUER = "the tests"


class Tokens:
    """Called with a request it answers; `grants` say who may do what."""

    def __init__(self, folder: Path) -> None:
        self._key, self.certificate = folder / "tokens.key", folder / "tokens.crt"
        made = (
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=tokens",
            "-days",
            "2",
        )
        files = ("-keyout", str(self._key), "-out", str(self.certificate))
        subprocess.run([*made, *files], check=True, capture_output=True)
        self.passwords: dict[str, str] = {}
        self.refresh: dict[str, str] = {}
        self.grants: dict[str, list[str]] = {"": []}
        """Beginnings of scopes, by name; those of nobody under an empty name."""

    def __call__(self, request: Request) -> Reply:
        who = self._who(request)
        if who is None:
            return refusal(401, "UNAUTHORIZED", "incorrect username or password")
        given = dict(pair.split("=", 1) for pair in request.body.decode().split("&")) if request.body else {}
        scopes = request.query.get("scope", [])
        if given:
            scopes = unquote_plus(given.get("scope", "")).split()
        allowed = [scope for scope in scopes if any(scope.startswith(each) for each in self.grants[who])]
        word = "access_token" if given else "token"
        return as_json({word: self.token(*allowed, who=who), "expires_in": 300})

    def _who(self, request: Request) -> str | None:
        for token, name in self.refresh.items():
            if request.method == "POST" and f"refresh_token={token}" in request.body.decode():
                return name
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return "" if request.method == "GET" else None
        name, _, password = base64.b64decode(encoded).decode().partition(":")
        return name if self.passwords.get(name) == password else None

    def token(self, *scopes: str, who: str = "") -> str:
        """A token for these scopes."""
        lines = self.certificate.read_text().splitlines()
        chain = "".join(line for line in lines if "-----" not in line)
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": who,
            "aud": SERVICE,
            "iat": now - 10,
            "nbf": now - 10,
            "exp": now + 300,
            "jti": str(now),
            "access": [_access(scope) for scope in scopes],
        }
        signed = f"{_part({'typ': 'JWT', 'alg': 'RS256', 'x5c': [chain]})}.{_part(claims)}"
        command = ["openssl", "dgst", "-sha256", "-sign", str(self._key), "-binary"]
        signature = subprocess.run(command, input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{_encoded(signature)}"


def _access(scope: str) -> dict[str, Any]:
    kind, _, rest = scope.partition(":")
    name, _, actions = rest.rpartition(":")
    return {"type": kind, "name": name, "actions": actions.split(",")}


def _part(data: dict[str, Any]) -> str:
    return _encoded(json.dumps(data).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
