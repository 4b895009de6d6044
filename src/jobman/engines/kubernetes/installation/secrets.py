"""The Secrets that are a site's own to make: what they are called, where they are, and how they are made."""

from __future__ import annotations

from typing import NamedTuple

from jobman.engines.kubernetes.installation import tasks
from jobman.engines.kubernetes.installation.site import DATABASE_KEY, Site, Tasks


class Wanted(NamedTuple):
    """A Secret, and the command that makes it."""

    name: str
    namespace: str
    advice: str


def secrets(site: Site) -> list[Wanted]:
    """All that the parts of an installation read."""
    database = f"--from-file={DATABASE_KEY}=FILE    # in it postgresql://USER:PASSWORD@HOST/DATABASE"
    found = [_generic(site.database_secret, site.namespace, database)]
    if site.tls_secret is not None:
        host = site.address.partition("://")[2].rpartition(":")[0]
        words = f"kubectl -n {site.namespace} create secret tls {site.tls_secret} --cert=FILE --key=FILE"
        found.append(Wanted(site.tls_secret, site.namespace, f"{words}    # for {host}"))
    if site.tasks is not None:
        found += _of_tasks(site, site.tasks)
    return found


def _of_tasks(site: Site, parts: Tasks) -> list[Wanted]:
    settings = f"--from-file={tasks.SETTINGS_KEY}=FILE --from-file={tasks.TOKEN_KEY}=FILE"
    tls = "--from-file=tls.crt=FILE --from-file=tls.key=FILE --from-file=ca.crt=FILE"
    hosts = " and ".join(f"{name}.{site.namespace}.svc" for name in (tasks.BROKER, tasks.METRICS))
    token = f"--from-file={tasks.TOKEN_KEY}=FILE"
    return [
        _generic(parts.secret, site.namespace, f"{settings}    # the types, and an operator's token"),
        _generic(parts.tls_secret, site.namespace, f"{tls}    # for {hosts}"),
        _generic(parts.agent_secret, parts.namespace, f"{token}    # an operator's, for agents"),
    ]


def _generic(name: str, namespace: str, words: str) -> Wanted:
    return Wanted(name, namespace, f"kubectl -n {namespace} create secret generic {name} {words}")
