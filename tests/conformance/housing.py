"""Pods that find what an ordinary machine has: the folder of submission, and its programs.

Scenarios were written for commands that find both. The nodes of the lab are this machine, so both can be
mounted, as a site would do it.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

_GRACE = 2
"""Seconds for a program that is alone in its container, and so does not hear of a stop."""
_TOOLS = {"/usr": "/usr", "/lib": "/usr/lib", "/lib64": "/usr/lib64"}
_PATH = "/bin:/usr/bin"


def housed_pod(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The spec of a pod that finds the folder of submission and the programs of this machine."""
    mounts = {**_TOOLS, str(folder): str(folder)}
    volumes = [
        {"name": f"house-{number}", "hostPath": {"path": path}} for number, path in enumerate(mounts.values())
    ]
    given = [
        {"name": volume["name"], "mountPath": to, "readOnly": to in _TOOLS}
        for volume, to in zip(volumes, mounts, strict=True)
    ]
    pod = deepcopy(spec)
    pod.setdefault("terminationGracePeriodSeconds", _GRACE)
    pod["volumes"] = [*pod.get("volumes", ()), *volumes]
    for container in [*pod.get("initContainers", ()), *pod["containers"]]:
        container.setdefault("workingDir", str(folder))
        container["env"] = [{"name": "PATH", "value": _PATH}, *container.get("env", ())]
        container["volumeMounts"] = [*given, *container.get("volumeMounts", ())]
    return pod
