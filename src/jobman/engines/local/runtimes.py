"""Container runtimes: which of them this machine has, and what it can do for us."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

Dialect = Literal["podman", "docker", "apptainer"]
DIALECTS: tuple[Dialect, ...] = ("podman", "docker", "apptainer")
CHOICE = "JOBMAN_CONTAINER_RUNTIME"
_INITS = ("/usr/libexec/podman/catatonit", "/usr/bin/catatonit")


class Runtime(msgspec.Struct, frozen=True):
    """A program that runs containers, and what it can do on this machine."""

    dialect: Dialect
    program: str
    has_init: bool = False
    limits: frozenset[str] = frozenset()
    """Which of `cpuset` and `memory` it can limit."""


def find_runtime(environment: Mapping[str, str]) -> Runtime | None:
    """The runtime of this machine: the one named by a variable, else the first that is there."""
    chosen = environment.get(CHOICE)
    for name in (chosen,) if chosen else DIALECTS:
        program = shutil.which(name, path=environment.get("PATH"))
        if program is not None:
            return _describe(program)
    return None


def missing(environment: Mapping[str, str]) -> str:
    """Why there is no runtime, and what to do about it."""
    chosen = environment.get(CHOICE)
    found = f"{CHOICE} names {chosen}, which was not found" if chosen else "no container runtime was found"
    return f"{found}: install podman, docker or apptainer, or leave the image out with --no-container"


def _describe(program: str) -> Runtime:
    dialect = next((each for each in DIALECTS if each in Path(program).name), DIALECTS[1])
    has_init = dialect == "docker" or (dialect == "podman" and any(map(os.path.exists, _INITS)))
    return Runtime(dialect, program, has_init, _limits(dialect))


def _limits(dialect: Dialect) -> frozenset[str]:
    """Root and daemons may limit; an ordinary user what was delegated to them."""
    both = frozenset(("cpuset", "memory"))
    if dialect == "docker" or os.geteuid() == 0:
        return both
    user = os.getuid()
    delegated = Path(f"/sys/fs/cgroup/user.slice/user-{user}.slice/user@{user}.service/cgroup.controllers")
    try:
        return both & frozenset(delegated.read_text(encoding="ascii").split())
    except OSError:
        return frozenset()
