"""Programs that log in: run as the kubeconfig says, and asked again when what they gave has expired."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from jobman.engines.kubernetes.access import Access, Plugin
from jobman.engines.kubernetes.errors import LoginError

_PATIENCE = 120.0
"""Seconds for one that cannot ask a person; one that can is waited for."""


class Issued(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a plugin gives: a token, a certificate with its key, or both."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    def __repr__(self) -> str:
        return f"Issued(expires={self.expiration_timestamp})"

    def is_over(self, now: datetime) -> bool:
        return self.expiration_timestamp is not None and now >= _aware(self.expiration_timestamp)

    @property
    def certificate(self) -> tuple[bytes, bytes] | None:
        if not self.client_certificate_data:
            return None
        return self.client_certificate_data.encode(), self.client_key_data.encode()


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: Issued | None = None


async def run_plugin(plugin: Plugin, access: Access) -> Issued:
    """Run it once. Raises LoginError."""
    interactive = _is_interactive(plugin)
    environment = {**os.environ, **{each.name: each.value for each in plugin.env or ()}}
    environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(request(plugin, access, interactive)).decode()
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *(plugin.args or ()),
            env=environment,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # A person has to see what it asks for; else its last words explain a failure.
            stderr=None if interactive else asyncio.subprocess.PIPE,
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        advice = plugin.install_hint or "Install it, or log in to the cluster in another way."
        raise LoginError(f"The plugin {plugin.command} cannot be run: {reason}.", advice) from None
    output, words = await _finish(plugin, process, None if interactive else _PATIENCE)
    if process.returncode != 0:
        raise LoginError(
            f"The plugin {plugin.command} failed with exit code {process.returncode}{_last_words(words)}.",
            "Run it by hand to see why, or log in to the cluster anew.",
        )
    return read_answer(plugin, output)


def request(plugin: Plugin, access: Access, interactive: bool) -> dict[str, Any]:
    """What a plugin is told in KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster(access)
    return {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}


def read_answer(plugin: Plugin, output: bytes) -> Issued:
    """What it printed. Raises LoginError."""
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise LoginError(f"The plugin {plugin.command} did not print an ExecCredential.") from None
    if answer.api_version != plugin.api_version:
        raise LoginError(
            f"The plugin {plugin.command} answered as {answer.api_version or 'no version'};"
            f" the kubeconfig says {plugin.api_version}.",
            "Update the program or the kubeconfig, so that they agree.",
        )
    issued = answer.status
    if issued is None or not (issued.token or issued.client_certificate_data or issued.client_key_data):
        raise LoginError(f"The plugin {plugin.command} gave neither a token nor a certificate.")
    if bool(issued.client_certificate_data) != bool(issued.client_key_data):
        raise LoginError(f"The plugin {plugin.command} gave a certificate without its key, or the reverse.")
    return issued


def _is_interactive(plugin: Plugin) -> bool:
    if plugin.interactive_mode == "Never":
        return False
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise LoginError(
            f"The plugin {plugin.command} wants to ask a person, and there is no terminal.",
            "Log in to the cluster by hand first, or use a token.",
        )
    return terminal


async def _finish(
    plugin: Plugin, process: asyncio.subprocess.Process, patience: float | None
) -> tuple[bytes, bytes]:
    try:
        output, words = await asyncio.wait_for(process.communicate(), patience)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise LoginError(f"The plugin {plugin.command} did not answer within {patience:.0f} s.") from None
        raise
    return output or b"", words or b""


def _cluster(access: Access) -> dict[str, Any]:
    told: dict[str, Any] = {"server": access.server}
    if access.tls_server_name:
        told["tls-server-name"] = access.tls_server_name
    if access.insecure:
        told["insecure-skip-tls-verify"] = True
    if access.authority:
        pem = access.authority.read("certificate authority")
        told["certificate-authority-data"] = base64.b64encode(pem).decode()
    if access.proxy:
        told["proxy-url"] = access.proxy
    if not access.compression:
        told["disable-compression"] = True
    if access.plugin_config is not None:
        told["config"] = access.plugin_config
    return told


def _last_words(words: bytes) -> str:
    lines = words.decode(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()[:300].rstrip('.')}" if lines else ""


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
