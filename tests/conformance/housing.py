"""Pods that find what an ordinary machine has: the folder of submission, and its programs.

Scenarios were written for commands that find both. The nodes of the lab are this machine, so both can be
mounted, as a site would do it. On other nodes a pod has a folder of its own in that place, and the programs
of its image; scenarios that need more are not run there.
"""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.engines.kubernetes.cluster import need_shared_files, shares_files

_GRACE = 2
"""Seconds for a program that is alone in its container, and so does not hear of a stop."""
_TOOLS = {"/usr": "/usr", "/lib": "/usr/lib", "/lib64": "/usr/lib64"}
_PATH = [{"name": "PATH", "value": "/bin:/usr/bin"}]
_OF_THIS_MACHINE = re.compile(
    r"until (test|\[) |mkdir \w+ 2>|depends_on: .*command: \[(cat|sort|test), |\bpython3\b"
)
"""Copies that meet in the folder of submission or read what others wrote there; no small image has Python."""


def need_what_is_used(document: str) -> None:
    """Skip a scenario whose commands count on this machine, where the nodes have nothing of it."""
    if _OF_THIS_MACHINE.search(document):
        need_shared_files()


def housed_pod(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The spec of a pod that finds the folder of submission and the programs of this machine."""
    if not shares_files():
        return _housed(spec, folder, {str(folder): {"emptyDir": {}}}, [])
    places = {**_TOOLS, str(folder): str(folder)}
    return _housed(spec, folder, {to: {"hostPath": {"path": path}} for to, path in places.items()}, _PATH)


def _housed(
    spec: dict[str, Any], folder: Path, sources: dict[str, dict[str, Any]], variables: list[dict[str, str]]
) -> dict[str, Any]:
    volumes = [{"name": f"house-{number}", **source} for number, source in enumerate(sources.values())]
    given = [
        {"name": volume["name"], "mountPath": to, "readOnly": to in _TOOLS}
        for volume, to in zip(volumes, sources, strict=True)
    ]
    pod = deepcopy(spec)
    pod.setdefault("terminationGracePeriodSeconds", _GRACE)
    pod["volumes"] = [*pod.get("volumes", ()), *volumes]
    for container in [*pod.get("initContainers", ()), *pod["containers"]]:
        container.setdefault("workingDir", str(folder))
        container["env"] = [*variables, *container.get("env", ())]
        container["volumeMounts"] = [*given, *container.get("volumeMounts", ())]
    return pod
