"""kubeconfig files: what they may say, and how several are read as one, as kubectl does it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from jobman.engines.kubernetes.access import Plugin
from jobman.engines.kubernetes.errors import ConfigError

T = TypeVar("T")


class _Part(msgspec.Struct, frozen=True, rename="kebab"):
    """Keys are written with hyphens; those that nobody knows are passed over, as kubectl does."""


class _Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class Cluster(_Part, frozen=True, kw_only=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[_Extension] | None = None


class Provider(msgspec.Struct, frozen=True):
    name: str = ""
    config: dict[str, str] | None = None


class User(_Part, frozen=True, kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str = ""
    password: str = ""
    auth_provider: Provider | None = None
    exec: Plugin | None = None


class Context(_Part, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context | None = None


class _File(_Part, frozen=True, kw_only=True):
    kind: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


class Merged(msgspec.Struct, kw_only=True):
    """What all files say together: the first that names something is right."""

    sources: list[str] = []
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current_context: str = ""


class _Loader(yaml.CSafeLoader):
    """Plain YAML, where a date is a text: a token may look like one."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for letter, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def merge(files: Sequence[Path], *, must_exist: bool) -> Merged:
    merged = Merged()
    for file in files:
        found = _read(file, must_exist=must_exist)
        if found is None:
            continue
        merged.sources.append(str(file))
        folder = Path(os.path.abspath(file)).parent  # noqa: PTH100 — as kubectl: links are not followed
        for name, cluster in _named(file, "cluster", found.clusters, Cluster()).items():
            merged.clusters.setdefault(name, _settled_cluster(cluster, folder))
        for name, user in _named(file, "user", found.users, User()).items():
            merged.users.setdefault(name, _settled_user(user, folder))
        for name, context in _named(file, "context", found.contexts, Context()).items():
            merged.contexts.setdefault(name, context)
        merged.current_context = merged.current_context or found.current_context
    return merged


def _read(file: Path, *, must_exist: bool) -> _File | None:
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        if not must_exist:
            return None
        raise ConfigError(f"The kubeconfig {file} does not exist.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"The kubeconfig {file} cannot be read: {reason}.") from None
    try:
        content = yaml.load(text, Loader=_Loader) or {}
        found = msgspec.convert(content, _File)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark else ""
        raise ConfigError(f"The kubeconfig {file} is not YAML{place}.") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"The kubeconfig {file} is wrong: {error}.", _typing_advice(str(error))) from None
    if found.kind not in ("", "Config"):
        raise ConfigError(f"{file} is not a kubeconfig: its kind is {found.kind}.")
    return found


def _typing_advice(problem: str) -> str:
    return "Put the value into quotes." if problem.startswith("Expected `str`") else ""


def _named(file: Path, what: str, entries: Sequence[Any] | None, nothing: T) -> dict[str, T]:
    found: dict[str, T] = {}
    for entry in entries or ():
        if entry.name in found:
            raise ConfigError(f"The kubeconfig {file} has the {what} {entry.name} twice.")
        found[entry.name] = getattr(entry, what) or nothing
    return found


def _settled_cluster(cluster: Cluster, folder: Path) -> Cluster:
    return msgspec.structs.replace(
        cluster, certificate_authority=_beside(folder, cluster.certificate_authority)
    )


def _settled_user(user: User, folder: Path) -> User:
    plugin = user.exec
    if plugin is not None and os.sep in plugin.command:
        plugin = msgspec.structs.replace(plugin, command=_beside(folder, plugin.command))
    return msgspec.structs.replace(
        user,
        client_certificate=_beside(folder, user.client_certificate),
        client_key=_beside(folder, user.client_key),
        token_file=_beside(folder, user.token_file),
        exec=plugin,
    )


def _beside(folder: Path, name: str) -> str:
    """A relative name is meant from the folder of the file that says it."""
    return os.path.normpath(folder / name) if name else ""
