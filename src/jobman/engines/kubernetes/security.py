"""What a container may do. Safe defaults that still let an image run as its own user."""

from __future__ import annotations

from typing import Any

from jobman.engines.kubernetes.resources import merged
from jobman.plan.model import Unit
from jobman.spec.access import Capabilities, Security

_NO_SECURITY = Security()
_NO_CAPABILITIES = Capabilities()
_SECCOMP = {"default": "RuntimeDefault", "unconfined": "Unconfined"}
POWERFUL = ("SYS_ADMIN", "CAP_SYS_ADMIN")
"""With it a container may gain rights, whatever is said."""


def container_security(unit: Unit) -> dict[str, Any]:
    """The security context of a container; windows has none of this."""
    if is_for_windows(unit):
        return {}
    wanted = unit.policies.security or _NO_SECURITY
    capabilities = wanted.capabilities or _NO_CAPABILITIES
    context: dict[str, Any] = {}
    if wanted.uid is not None:
        context["runAsUser"] = wanted.uid
    if wanted.gid is not None:
        context["runAsGroup"] = wanted.gid
    if wanted.privileged:
        context["privileged"] = True
    elif not set(capabilities.add) & set(POWERFUL):
        context["allowPrivilegeEscalation"] = wanted.no_new_privileges is False
    if wanted.read_only_root is not None:
        context["readOnlyRootFilesystem"] = wanted.read_only_root
    if listed := merged({"add": list(capabilities.add), "drop": list(capabilities.drop)}):
        context["capabilities"] = listed
    if profile := _seccomp(wanted):
        context["seccompProfile"] = profile
    return context


def helper_security(unit: Unit) -> dict[str, Any]:
    """Of a container that stands beside that of a task: the same person, without the rights it was given."""
    context = container_security(unit)
    context.pop("privileged", None)
    context["allowPrivilegeEscalation"] = False
    if dropped := context.pop("capabilities", {}).get("drop"):
        context["capabilities"] = {"drop": dropped}
    return context


def pod_security(unit: Unit) -> dict[str, Any]:
    """What concerns all containers of a pod, and what they mount."""
    wanted = unit.policies.security
    if wanted is None or not wanted.groups:
        return {}
    return {"supplementalGroups": list(wanted.groups)}


def is_for_windows(unit: Unit) -> bool:
    return unit.policies.runtime is not None and unit.policies.runtime.os == "windows"


def _seccomp(wanted: Security) -> dict[str, str]:
    if wanted.seccomp is None:
        return {} if wanted.privileged else {"type": "RuntimeDefault"}
    kind = _SECCOMP.get(wanted.seccomp)
    return {"type": kind} if kind else {"type": "Localhost", "localhostProfile": wanted.seccomp}
