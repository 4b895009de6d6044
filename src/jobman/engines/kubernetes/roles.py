"""Rights in a cluster: what a refusal says is missing, and the Role that would grant it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
import yaml

_CANNOT = re.compile(
    r'User "(?P<user>(?:[^"\\]|\\.)*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)"'
    r' in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)'
)
_CANNOT_PATH = re.compile(r'User "(?P<user>(?:[^"\\]|\\.)*)" cannot (?P<verb>\S+) path "(?P<path>[^"]+)"')
_ACCOUNT = "system:serviceaccount:"
_RBAC = "rbac.authorization.k8s.io"
ANONYMOUS = "system:anonymous"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9.-]+")


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """One right: to do something with a kind of object, in a namespace or everywhere."""

    verb: str
    resource: str = ""
    """Plural and in small letters, perhaps with its part: `pods/log`."""
    group: str = ""
    namespace: str = ""
    """Empty for the whole cluster."""
    path: str = ""
    """Instead of a resource."""
    user: str = ""

    @property
    def who(self) -> str:
        return f"User {self.user}" if self.user else "You"

    @property
    def what(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"

    @property
    def where(self) -> str:
        return f"in the namespace {self.namespace}" if self.namespace else "in the cluster as a whole"


_WRITTEN = ("get", "list", "watch", "create", "patch", "delete")
_READ = ("get", "list", "watch")
_DIRECT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("batch", "jobs", _WRITTEN),
    ("jobset.x-k8s.io", "jobsets", _WRITTEN),
    ("", "services", _WRITTEN),
    ("", "configmaps", _WRITTEN),
    ("", "secrets", _WRITTEN),
    ("", "pods", (*_READ, "patch", "delete")),
    ("", "pods/log", ("get",)),
    ("", "pods/exec", ("get", "create")),
    ("", "pods/portforward", ("get", "create")),
    ("", "events", _READ),
    ("", "resourcequotas", _READ),
    ("", "persistentvolumeclaims", _READ),
    ("networking.k8s.io", "networkpolicies", _WRITTEN),
    ("resource.k8s.io", "resourceclaims", _WRITTEN),
    ("resource.k8s.io", "resourceclaimtemplates", _WRITTEN),
)


def direct_needs(namespace: str, user: str = "") -> list[Need]:
    """All that somebody needs in a namespace who runs jobs there with nothing but a kubeconfig."""
    return [
        Need(verb=verb, resource=resource, group=group, namespace=namespace, user=user)
        for group, resource, verbs in _DIRECT
        for verb in verbs
    ]


def needed(message: str) -> Need | None:
    """What the words of a refusal say is missing; None where they speak of something else, as of a quota."""
    if match := _CANNOT.search(message):
        given = {name: value or "" for name, value in match.groupdict().items()}
        return Need(**given)
    if match := _CANNOT_PATH.search(message):
        return Need(**match.groupdict())
    return None


def role_yaml(needs: Iterable[Need]) -> str:
    """Roles that grant these rights, and the bindings to who lacks them."""
    places: dict[tuple[str, str], list[Need]] = {}
    for need in needs:
        places.setdefault((need.namespace, need.user), []).append(need)
    objects = [part for (namespace, user), group in places.items() for part in _grant(namespace, user, group)]
    return yaml.safe_dump_all(objects, sort_keys=False, default_flow_style=None, width=110)


def _grant(namespace: str, user: str, needs: list[Need]) -> list[dict[str, Any]]:
    kind = "Role" if namespace else "ClusterRole"
    name = _name(needs)
    role = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": _metadata(name, namespace),
        "rules": _rules(needs),
    }
    if not user:
        return [role]
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(f"{name}-{_NOT_IN_NAMES.sub('-', user).strip('-')}", namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [_subject(user)],
    }
    return [role, binding]


def _name(needs: list[Need]) -> str:
    """One that says what it grants: who applies the next Role must not take back this one."""
    if len(needs) > 1:
        return "jobman"
    (need,) = needs
    return f"jobman-{need.verb}-{_NOT_IN_NAMES.sub('-', need.resource or need.path).strip('-')}"


def _metadata(name: str, namespace: str) -> dict[str, str]:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _rules(needs: list[Need]) -> list[dict[str, Any]]:
    """One rule for each resource, with all verbs that are needed on it."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for need in needs:
        found = verbs.setdefault((need.group, need.resource, need.path), [])
        if need.verb not in found:
            found.append(need.verb)
    return [
        {"nonResourceURLs": [path], "verbs": does}
        if path
        else {"apiGroups": [group], "resources": [resource], "verbs": does}
        for (group, resource, path), does in verbs.items()
    ]


def _subject(user: str) -> dict[str, str]:
    if user.startswith(_ACCOUNT) and user.count(":") == 3:
        namespace, name = user.removeprefix(_ACCOUNT).split(":")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"apiGroup": _RBAC, "kind": "User", "name": user}
