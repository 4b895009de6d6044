"""Who asks a registry: by the settings, or as docker or podman logged in, or nobody."""

from __future__ import annotations

import base64
import binascii
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobman.client.images.errors import WrongSettings
from jobman.settings.registries import Registry

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HELPER_SECONDS = 30
_TOKEN_USER = "<token>"
"""What a helper gives as the name of somebody who has a token instead of a password."""


class Login:
    """A name with a password, or a token that others are had for. Its secrets are shown nowhere."""

    def __init__(self, username: str = "", password: str = "", token: str = "", source: str = "") -> None:
        self.username = username
        self.password = password
        self.token = token
        self.source = source
        """Where it came from, in words; of nobody, why there is no login."""

    def __bool__(self) -> bool:
        return bool(self.username or self.token)

    def __repr__(self) -> str:
        return f"Login({self.username or 'nobody'}, {self.source})"

    @property
    def basic(self) -> str:
        """The header of a plain login."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def login_for(registry: Registry, environment: Mapping[str, str]) -> Login:
    """The login for a registry: what the settings name, else what docker or podman keep for its host."""
    if registry.username is not None and registry.password_file is not None:
        secret = _password(registry, environment)
        return Login(registry.username, secret, source=f"the password in {registry.password_file}")
    unhelped = Login()
    for file in auth_files(environment):
        found = _from_file(file, registry.host, environment)
        if found:
            return found
        unhelped = unhelped if unhelped.source else found
    return unhelped


def auth_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where podman and docker keep logins, in the order in which podman looks."""
    home = Path(environment.get("HOME") or Path.home())
    if named := environment.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
        return
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers" / "auth.json"
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "containers" / "auth.json"
    yield Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"


def located(path: str, environment: Mapping[str, str]) -> Path:
    """A path of the settings, with `~` for the home folder."""
    home = environment.get("HOME") or str(Path.home())
    return Path(home) / path[2:] if path.startswith("~/") else Path(path)


def _password(registry: Registry, environment: Mapping[str, str]) -> str:
    path = registry.password_file or ""
    try:
        text = located(path, environment).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is no text"
        raise WrongSettings(
            f"the password of the registry {registry.name} cannot be read from {path}: {reason}",
            "`password_file` of the registry in the settings names a file with the password and nothing else",
        ) from None
    secret = text.rstrip("\r\n")
    if not secret or "\n" in secret:
        raise WrongSettings(
            f"{path} does not hold the password of the registry {registry.name}: "
            + ("it has several lines" if secret else "it is empty"),
            "write the password into it, and nothing else",
        )
    return secret


# -- docker's and podman's files ----------------------------------------------------------------------------


def _from_file(file: Path, host: str, environment: Mapping[str, str]) -> Login:
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return Login()
    if not isinstance(data, dict):
        return Login()
    if helper := _helper_of(data, host):
        return _from_helper(helper, host, environment)
    for key, entry in _mapping(data, "auths").items():
        if host_of(key) == host and isinstance(entry, dict):
            return _from_entry(entry, f"the login in {file}")
    return Login()


def host_of(key: str) -> str:
    """The host that an entry of `auths` is for: `https://host/v1/` and `host` are the same."""
    rest = key.partition("://")[2] if "://" in key else key
    host, _, path = rest.partition("/")
    return host.lower() if path.strip("/") in ("", "v1", "v2") else ""


def _helper_of(data: dict[str, Any], host: str) -> str:
    named = _mapping(data, "credHelpers").get(host)
    store = data.get("credsStore")
    if isinstance(named, str):
        return named
    # Only hosts that somebody logged in to have an entry; a helper may ask people questions.
    known = any(host_of(key) == host for key in _mapping(data, "auths"))
    return store if isinstance(store, str) and known else ""


def _from_entry(entry: dict[str, Any], source: str) -> Login:
    token = entry.get("identitytoken")
    if isinstance(token, str) and token:
        return Login(token=token, source=source)
    try:
        pair = base64.b64decode(str(entry.get("auth", "")), validate=True).decode()
    except (binascii.Error, ValueError):
        return Login()
    username, colon, password = pair.partition(":")
    return Login(username, password.rstrip("\0"), source=source) if username and colon else Login()


def _from_helper(name: str, host: str, environment: Mapping[str, str]) -> Login:
    program = f"docker-credential-{name}"
    if _HELPER.fullmatch(name) is None:
        return Login(source=f"the credential helper {name[:60]!r} has no proper name")
    try:
        answer = subprocess.run(
            [program, "get"],
            input=host,
            capture_output=True,
            text=True,
            timeout=_HELPER_SECONDS,
            env=dict(environment),
        )
        given = json.loads(answer.stdout) if answer.returncode == 0 else None
    except FileNotFoundError:
        return Login(source=f"the credential helper {program} is not installed")
    except subprocess.TimeoutExpired:
        return Login(source=f"the credential helper {program} gave no answer in {_HELPER_SECONDS} s")
    except (OSError, ValueError):
        return Login(source=f"the credential helper {program} does not work")
    if not isinstance(given, dict):
        return Login(source=f"the credential helper {program} knows no login for {host}")
    username, secret = str(given.get("Username", "")), str(given.get("Secret", ""))
    source = f"the login of the credential helper {program}"
    if username == _TOKEN_USER:
        return Login(token=secret, source=source)
    return Login(username, secret, source=source)


def _mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}
