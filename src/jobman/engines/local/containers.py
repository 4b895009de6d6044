"""Containers: a copy as podman, docker or apptainer is told to run it. Pure.

A copy in a container sees what its document gives it, and of the environment of submission nothing: paths of
this machine mean nothing there. Values of variables never stand in an argument, where all can read them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from math import ceil

import msgspec

from jobman.engines.local.runtimes import Dialect, Runtime
from jobman.engines.local.volumes import Mount
from jobman.spec.access import Security

HOOKS = ("before", "after")
"""The hooks that run in containers of their own, before and after that of the copy."""
_LONGEST_NAME = 120
# With another value of these the client itself would break, so they go through a file.
_CLIENTS_OWN = re.compile(r"PATH|HOME|USER|TMPDIR|LANG|LC_.*|XDG_.*|LD_.*|CONTAINERS?_.*|DOCKER_.*")
_NEEDED_BY_CLIENTS = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|XDG_RUNTIME_DIR|XDG_(?:CONFIG|DATA)_HOME|DBUS_SESSION_BUS_ADDRESS|CONTAINERS?_.*|"
    r"DOCKER_.*|APPTAINER_.*|REGISTRY_AUTH_FILE|(?i:https?|no|all)_(?i:proxy)|SSL_CERT_(?:FILE|DIR)|STORAGE_.*"
)


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime needs to know of one copy."""

    name: str
    image: str
    argv: tuple[str, ...]
    variables: dict[str, str] = {}
    file: str = ""
    """Where the variables are that the client must not see."""
    workdir: str | None = None
    mounts: tuple[Mount, ...] = ()
    cores: tuple[int, ...] = ()
    memory: int | None = None
    gpus: tuple[str, ...] = ()
    security: Security = Security()


def container_name(*parts: object) -> str:
    """A name that no other copy has, of the characters that names may have."""
    plain = "-".join(map(str, parts))
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", plain)
    if safe == plain and len(safe) <= _LONGEST_NAME:
        return safe
    return f"{safe[:_LONGEST_NAME]}-{hashlib.sha256(plain.encode()).hexdigest()[:10]}"


def run_argv(runtime: Runtime, container: Container) -> tuple[str, ...]:
    """The command that runs a copy in its container, in the foreground."""
    return (runtime.program, *_RUN[runtime.dialect](runtime, container))


def exec_argv(runtime: Runtime, container: Container, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command that runs another program beside a copy; apptainer has to make a container like it."""
    if runtime.dialect == "apptainer":
        return run_argv(runtime, msgspec.structs.replace(container, argv=argv))
    return (runtime.program, "exec", container.name, *argv)


def stop_argv(
    runtime: Runtime, container: Container, on_stop: tuple[str, ...], grace: float, start: str
) -> tuple[str, ...]:
    """The command that asks a container to end, after a hook inside of it; empty where signals do.

    A signal to all processes would also end those between the container and us, and so nobody would know how
    the command ended. So this lasts until the client is gone, whose process the record of its start names.
    """
    if runtime.dialect == "apptainer":
        return exec_argv(runtime, container, on_stop) if on_stop else ()
    seconds = str(ceil(grace))
    return ("/bin/sh", "-c", _STOP, "stop", runtime.program, container.name, seconds, start, *on_stop)


_STOP = """program=$1 name=$2 seconds=$3 client=$(sed -n 's/.*"pid":\\([0-9]*\\).*/\\1/p;q' "$4")
shift 4
[ $# = 0 ] || "$program" exec "$name" "$@"
"$program" stop --time "$seconds" "$name" >/dev/null
while kill -0 "$client" 2>/dev/null; do sleep 0.02; done"""


def remove_argv(runtime: Runtime, name: str) -> tuple[str, ...] | None:
    """The command that removes what is left of a copy and its hooks; None where nothing ever is."""
    if runtime.dialect == "apptainer":
        return None
    flags = ("--ignore", "--time", "0") if runtime.dialect == "podman" else ()
    return (runtime.program, "rm", "--force", *flags, name, *(f"{name}-{hook}" for hook in HOOKS))


def presence_argv(runtime: Runtime, image: str) -> tuple[str, ...] | None:
    """The command that succeeds where an image is there; None where the runtime sees to images as it runs."""
    if runtime.dialect == "apptainer":
        return None
    return (runtime.program, "image", *(("exists",) if runtime.dialect == "podman" else ("inspect",)), image)


def pull_argv(runtime: Runtime, image: str) -> tuple[str, ...]:
    """The command that brings an image."""
    return (runtime.program, "pull", "--quiet", image)


def client_environment(
    runtime: Runtime, variables: Mapping[str, str], submitted: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the runtime's own process: what it needs, and what the copy inherits from it."""
    base = {name: value for name, value in own.items() if _NEEDED_BY_CLIENTS.fullmatch(name)}
    base.update({name: value for name, value in submitted.items() if _NEEDED_BY_CLIENTS.fullmatch(name)})
    if runtime.dialect == "apptainer":
        return {**base, **{f"APPTAINERENV_{name}": value for name, value in variables.items()}}
    return {**base, **{name: value for name, value in variables.items() if not _goes_by_file(name, value)}}


def variables_file(runtime: Runtime, variables: Mapping[str, str]) -> str | None:
    """The content of the file of variables; None where none is needed."""
    if runtime.dialect == "apptainer":
        return None
    lines = [f"{name}={value}\n" for name, value in variables.items() if _goes_by_file(name, value)]
    return "".join(lines) or None


def _goes_by_file(name: str, value: str) -> bool:
    # A file of variables has one line for each, so what has several must be inherited.
    return _CLIENTS_OWN.fullmatch(name) is not None and "\n" not in value and "\r" not in value


def launch_failure(runtime: Runtime, exit_code: int | None, last_line: str) -> str:
    """Why a container was never started, from the end of its client; empty where its command was."""
    pattern = _FAILURES[runtime.dialect].get(exit_code or 0)
    found = pattern.match(last_line) if pattern is not None else None
    return found[1].strip() if found is not None else ""


_STARTING = re.compile(r"Error: (.*(?:OCI runtime|runc|crun|kata|runsc|workdir|container process).*)")
_FAILURES: dict[Dialect, dict[int, re.Pattern[str]]] = {
    "podman": {125: re.compile(r"Error: (.*)"), 126: _STARTING, 127: _STARTING},
    "docker": {code: re.compile(r"docker: (.*)") for code in (125, 126, 127)},
    "apptainer": {255: re.compile(r"FATAL:\s*(.*)")},
}


def _engine_run(runtime: Runtime, container: Container) -> list[str]:
    """For podman and docker, which understand the same words but for a few."""
    words = ["run", "--rm", "--name", container.name, "--network", "host", "--pull", "never"]
    words += ["--log-driver", "none"]
    if runtime.has_init:
        words.append("--init")
    for name, value in container.variables.items():
        if not _goes_by_file(name, value):
            words += ["--env", name]
    if variables_file(runtime, container.variables) is not None:
        words += ["--env-file", container.file]
    if container.workdir is not None:
        words += ["--workdir", container.workdir]
    for mount in container.mounts:
        words += _mount_words(mount)
    words += _limit_words(runtime, container)
    words += _gpu_words(runtime, container.gpus)
    words += _security_words(runtime, container.security)
    # The command is the document's alone, whatever entry point the image has.
    return [*words, "--entrypoint=", container.image, *container.argv]


def _apptainer_run(_runtime: Runtime, container: Container) -> list[str]:
    words = ["exec", "--containall", "--cleanenv", "--no-home"]
    if container.workdir is not None:
        words += ["--pwd", container.workdir]
    for mount in container.mounts:
        words += ["--bind", f"{mount.source}:{mount.to}" + (":ro" if mount.read_only else "")]
    if container.gpus:
        words.append("--nv")
    if not container.security.read_only_root:
        words.append("--writable-tmpfs")
    if container.security.no_new_privileges is not False:
        words.append("--no-privs")
    image = container.image
    return [*words, image if image.endswith(".sif") else f"docker://{image}", *container.argv]


_RUN: dict[Dialect, Callable[[Runtime, Container], list[str]]] = {
    "podman": _engine_run,
    "docker": _engine_run,
    "apptainer": _apptainer_run,
}


def _mount_words(mount: Mount) -> list[str]:
    if mount.in_memory and mount.to == "/dev/shm":
        return ["--shm-size", str(mount.size)]
    if mount.in_memory:
        flags = "ro" if mount.read_only else "rw"
        return ["--tmpfs", f"{mount.to}:{flags},size={mount.size},mode=1777"]
    if ":" in mount.source + mount.to:
        read_only = ",readonly" if mount.read_only else ""
        return ["--mount", f"type=bind,source={mount.source},target={mount.to}{read_only}"]
    return ["--volume", f"{mount.source}:{mount.to}" + (":ro" if mount.read_only else "")]


def _limit_words(runtime: Runtime, container: Container) -> list[str]:
    words = []
    if container.cores and "cpuset" in runtime.limits:
        words += ["--cpuset-cpus", ",".join(map(str, container.cores))]
    if container.memory and "memory" in runtime.limits:
        words += ["--memory", str(container.memory)]
    return words


def _gpu_words(runtime: Runtime, gpus: tuple[str, ...]) -> list[str]:
    if not gpus:
        return []
    if runtime.dialect == "docker":
        return ["--gpus", f'"device={",".join(gpus)}"']
    return [word for gpu in gpus for word in ("--device", f"nvidia.com/gpu={gpu}")]


def _security_words(runtime: Runtime, security: Security) -> list[str]:
    words = []
    if security.uid is not None or security.gid is not None:
        group = "" if security.gid is None else f":{security.gid}"
        words += ["--user", f"{security.uid or 0}{group}"]
    for number in security.groups or ():
        words += ["--group-add", str(number)]
    if security.capabilities is not None:
        words += [word for name in security.capabilities.drop for word in ("--cap-drop", name)]
        words += [word for name in security.capabilities.add for word in ("--cap-add", name)]
    if security.read_only_root:
        words.append("--read-only")
    if security.seccomp not in (None, "default"):
        words += ["--security-opt", f"seccomp={security.seccomp}"]
    if security.umask is not None and runtime.dialect == "podman":
        words += ["--umask", f"{security.umask.lower().replace('o', ''):0>4}"]
    if security.privileged:
        words.append("--privileged")
    elif security.no_new_privileges is not False:
        words += ["--security-opt", "no-new-privileges"]
    if runtime.dialect == "podman":
        # Folders of the user are mounted as they are; relabelling them would change them for everybody else.
        words += ["--security-opt", "label=disable"]
    return words
