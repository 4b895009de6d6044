"""The way to a cluster: its address, whom to trust, and as whom to come."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

import msgspec

from jobman.engines.kubernetes.errors import ConfigError, LoginError


class Material(msgspec.Struct, frozen=True):
    """A certificate or key: written into the kubeconfig in base64, or a file."""

    data: str = ""
    file: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.file)

    def __repr__(self) -> str:
        return f"Material(file={self.file!r})" if not self.data else "Material(data=…)"

    def read(self, what: str) -> bytes:
        """What it is, as PEM."""
        if self.data:
            try:
                return base64.b64decode("".join(self.data.split()), validate=True)
            except (binascii.Error, ValueError):
                raise ConfigError(f"The {what} in the kubeconfig is not base64.") from None
        try:
            return Path(self.file).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"The {what} {self.file} cannot be read: {(error.strerror or str(error)).lower()}.",
                "Check its path; a relative one is meant from the folder of the kubeconfig.",
            ) from None


class Variable(msgspec.Struct, frozen=True):
    """One variable of a plugin's environment."""

    name: str
    value: str


class Plugin(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A program that logs in, as the kubeconfig names it."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:
        return f"Plugin(command={self.command!r})"  # its arguments and variables may be secret


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """As whom to come; every way but the certificate excludes the others."""

    certificate: Material = Material()
    key: Material = Material()
    token: str = ""
    token_file: str = ""
    """Read anew for every request: what is in it changes."""
    username: str = ""
    password: str = ""
    plugin: Plugin | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """As whom to act instead."""

    def __repr__(self) -> str:
        ways = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"Login({', '.join(ways)})"

    def current_token(self) -> str:
        """The token of now; empty where there is none."""
        if not self.token_file:
            return self.token.strip()
        try:
            return Path(self.token_file).read_text(encoding="utf-8").strip() or self.token
        except OSError as error:
            if self.token:
                return self.token
            reason = (error.strerror or str(error)).lower()
            raise LoginError(
                f"The token file {self.token_file} cannot be read: {reason}.", "Log in to the cluster anew."
            ) from None


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to talk to one cluster."""

    server: str
    """Its URL, without a slash at the end."""
    namespace: str = "default"
    namespaces: tuple[str, ...] = ()
    """All that the contexts of this cluster name."""
    context: str = ""
    source: str = ""
    """Where this is from, in words for a person."""
    authority: Material = Material()
    insecure: bool = False
    tls_server_name: str = ""
    proxy: str = ""
    """Of the kubeconfig; empty: as the environment says."""
    compression: bool = True
    login: Login = Login()
    plugin_config: Any = None
    """What the kubeconfig tells a plugin about the cluster."""

    def __repr__(self) -> str:
        return f"Access(server={self.server!r}, context={self.context!r}, login={self.login!r})"
