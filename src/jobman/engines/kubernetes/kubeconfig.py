"""The way to a cluster, from the kubeconfig files as kubectl reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from jobman.engines.kubernetes.access import Access, Login, Material, Plugin
from jobman.engines.kubernetes.config_files import Cluster, Context, Merged, Provider, User, merge
from jobman.engines.kubernetes.errors import ConfigError
from jobman.engines.kubernetes.in_cluster import in_cluster

_PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"
_INTERACTIVE = ("", "Never", "IfAvailable", "Always")
_PLUGIN_APIS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_IN_HEADER_NAMES = "!#$&'*+-.^_`|~"
_PROXIES = ("http", "https", "socks5")


def load(
    path: str | Path | None = None,
    context: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Access:
    """The way to the cluster of a context, by default the current one.

    Without a path: the files in KUBECONFIG, else ~/.kube/config, else the cluster that this process runs in.
    Raises ConfigError.
    """
    environment = os.environ if environment is None else environment
    files = config_files(path, environment)
    merged = merge(files, must_exist=path is not None)
    if not merged.sources and context is None and (inside := in_cluster(environment)) is not None:
        return inside
    if not merged.sources:
        raise ConfigError(
            f"There is no kubeconfig: {_and([str(file) for file in files])} does not exist.",
            "Set KUBECONFIG to the file that whoever runs the cluster gave you.",
        )
    return _access(merged, context)


def contexts(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[str, list[str]]:
    """The current context and all there are; empty where no file is found."""
    environment = os.environ if environment is None else environment
    merged = merge(config_files(path, environment), must_exist=path is not None)
    return merged.current_context, sorted(merged.contexts)


def config_files(path: str | Path | None, environment: Mapping[str, str]) -> list[Path]:
    """The files that are looked for, in the order of their weight."""
    if path is not None:
        return [Path(path).expanduser()]
    if named := environment.get("KUBECONFIG"):
        return list(dict.fromkeys(Path(part) for part in named.split(os.pathsep) if part))
    home = environment.get("HOME")
    return [(Path(home) if home else Path.home()) / ".kube" / "config"]


# -- choosing ------------------------------------------------------------------------------------------------


def _access(merged: Merged, wanted: str | None) -> Access:
    source = _and(merged.sources)
    name = wanted or merged.current_context
    if not name:
        raise ConfigError(f"{source} names no current context.", _choices(merged.contexts))
    if name not in merged.contexts:
        raise ConfigError(f"{source} has no context {name}.", _choices(merged.contexts))
    context = merged.contexts[name]
    cluster = merged.clusters.get(context.cluster)
    if cluster is None or not cluster.server:
        raise ConfigError(
            f"The context {name} of {source} names the cluster {context.cluster!r}, which has no server."
        )
    if context.user and context.user not in merged.users:
        raise ConfigError(
            f"The context {name} of {source} names the user {context.user!r}, who is not there."
        )
    user = merged.users.get(context.user, User())
    _check_cluster(context.cluster, cluster)
    _check_user(context.user, user)
    return Access(
        server=_server(cluster, user),
        namespace=context.namespace or "default",
        namespaces=_namespaces(merged.contexts, context.cluster),
        context=name,
        source=source,
        authority=Material(cluster.certificate_authority_data, cluster.certificate_authority),
        insecure=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
        compression=not cluster.disable_compression,
        login=_login(context.user, user),
        plugin_config=_plugin_config(cluster),
    )


def _namespaces(contexts: Mapping[str, Context], cluster: str) -> tuple[str, ...]:
    named = {each.namespace for each in contexts.values() if each.cluster == cluster}
    return tuple(sorted(named - {""}))


def _check_cluster(name: str, cluster: Cluster) -> None:
    if cluster.certificate_authority and cluster.certificate_authority_data:
        raise ConfigError(
            f"The cluster {name} has both certificate-authority and certificate-authority-data."
        )
    authority = cluster.certificate_authority or cluster.certificate_authority_data
    if cluster.insecure_skip_tls_verify and authority:
        raise ConfigError(
            f"The cluster {name} has an authority, and insecure-skip-tls-verify as well.",
            "Remove insecure-skip-tls-verify: with the authority the server can be verified.",
        )
    if cluster.proxy_url and urlsplit(cluster.proxy_url).scheme not in _PROXIES:
        raise ConfigError(
            f"The proxy-url {cluster.proxy_url} of the cluster {name} is none of http, https and socks5."
        )


def _check_user(name: str, user: User) -> None:
    for what, file, data in (
        ("client-certificate", user.client_certificate, user.client_certificate_data),
        ("client-key", user.client_key, user.client_key_data),
    ):
        if file and data:
            raise ConfigError(f"The user {name} has both {what} and {what}-data.")
    certificate = user.client_certificate or user.client_certificate_data
    key = user.client_key or user.client_key_data
    if bool(certificate) != bool(key):
        missing, there = ("client-key", "certificate") if certificate else ("client-certificate", "key")
        raise ConfigError(f"The user {name} has a {there} but no {missing}.")
    if (user.token or user.token_file) and (user.username or user.password):
        raise ConfigError(f"The user {name} has a token and a password; only one of them can be meant.")
    if (user.as_uid or user.as_groups or user.as_user_extra) and not user.as_:
        raise ConfigError(f"The user {name} acts with groups of somebody who is not named: `as` is missing.")
    if user.exec is not None:
        _check_plugin(name, user.exec, user.auth_provider)


def _check_plugin(name: str, plugin: Plugin, provider: Provider | None) -> None:
    if provider is not None:
        raise ConfigError(f"The user {name} has both exec and auth-provider.")
    if not plugin.command:
        raise ConfigError(f"The plugin of the user {name} has no command.")
    if plugin.api_version not in _PLUGIN_APIS:
        raise ConfigError(
            f"The plugin of the user {name} speaks {plugin.api_version or 'no version'};"
            f" known are {_and(list(_PLUGIN_APIS))}.",
            "Update the program, and the kubeconfig with it.",
        )
    if plugin.interactive_mode not in _INTERACTIVE:
        raise ConfigError(f"The plugin of the user {name} has the unknown mode {plugin.interactive_mode}.")
    if not plugin.interactive_mode and plugin.api_version == _PLUGIN_APIS[0]:
        raise ConfigError(
            f"The plugin of the user {name} does not say its interactiveMode.",
            "Write Never, IfAvailable or Always.",
        )


def _server(cluster: Cluster, user: User) -> str:
    server = cluster.server
    if "://" not in server:
        tls = (
            cluster.certificate_authority
            or cluster.certificate_authority_data
            or cluster.insecure_skip_tls_verify
            or user.client_certificate
            or user.client_certificate_data
        )
        server = f"{'https' if tls else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{cluster.server} is not the address of a server.", "Write https://HOST:PORT.")
    return server.rstrip("/")


def _login(name: str, user: User) -> Login:
    return Login(
        certificate=Material(user.client_certificate_data, user.client_certificate),
        key=Material(user.client_key_data, user.client_key),
        token=user.token or _provided_token(name, user),
        token_file=user.token_file,
        username=user.username,
        password=user.password,
        plugin=user.exec,
        headers=tuple(_acting_as(user)),
    )


def _provided_token(name: str, user: User) -> str:
    """The token of the one provider that is still built into kubectl."""
    provider = user.auth_provider
    if provider is None:
        return ""
    token = (provider.config or {}).get("id-token", "")
    if provider.name != "oidc" or not token:
        raise ConfigError(
            f"The user {name} logs in through the auth-provider {provider.name}, which is not built in.",
            "Use an exec plugin: `kubectl oidc-login`, or the one of your provider.",
        )
    return token


def _acting_as(user: User) -> list[tuple[str, str]]:
    if not user.as_:
        return []
    headers = [("Impersonate-User", user.as_)]
    headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    headers += [("Impersonate-Group", group) for group in user.as_groups or ()]
    headers += [
        (f"Impersonate-Extra-{quote(key, safe=_IN_HEADER_NAMES)}", value)
        for key, values in (user.as_user_extra or {}).items()
        for value in values
    ]
    return headers


def _plugin_config(cluster: Cluster) -> Any:
    for extension in cluster.extensions or ():
        if extension.name == _PLUGIN_EXTENSION:
            return extension.extension
    return None


def _choices(contexts: Mapping[str, Context]) -> str:
    return f"There are {_and(sorted(contexts))}." if contexts else "It has no contexts at all."


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""
