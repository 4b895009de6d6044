"""Storage of a pod: volumes of every kind, the files of steps, secrets as files, and a place to work."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.kept_logs import LOGS, VOLUME
from jobman.engines.kubernetes.target import StagedFile, Target
from jobman.plan.model import Unit
from jobman.spec.access import Secret
from jobman.spec.quantities import format_size
from jobman.spec.steps import Stage
from jobman.spec.volumes import Volume

SCRATCH = "/jobman/scratch"
WORK = "/jobman/work"
SECRETS = "/jobman/secrets"
MOST_BYTES = 900_000
"""What fits into a ConfigMap, whose limit is a mebibyte with everything around it."""
_CLONE = 'git clone --quiet -- "$1" "$2" && { [ -z "$3" ] || git -C "$2" checkout --quiet "$3"; }'


class Storage(msgspec.Struct):
    """What a pod mounts, and what prepares it."""

    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    clones: list[dict[str, Any]] = []
    """Init containers that fill a volume, without what all containers of the pod share."""

    def add(self, name: str, source: dict[str, Any], to: str, **mount: Any) -> str:
        """A volume and its mount; returns what the volume is called."""
        called = self._free(names.dns_label(name))
        self.volumes.append({"name": called, **source})
        self.mount(called, to, **mount)
        return called

    def mount(self, volume: str, to: str, **more: Any) -> None:
        self.mounts.append({"name": volume, "mountPath": to, **more})

    def _free(self, name: str) -> str:
        """Two volumes may differ only in letters that a cluster does not tell apart."""
        taken = {volume["name"] for volume in self.volumes}
        number = 2
        free = name
        while free in taken:
            free = f"{name[:58]}-{number}"
            number += 1
        return free


class File(msgspec.Struct, frozen=True):
    """A file that is there when the copy starts."""

    to: str
    content: bytes
    mode: int


def storage(unit: Unit, files: str | None, target: Target) -> Storage:
    """Everything a pod of a task mounts; `files` is the ConfigMap with those of its steps."""
    found = Storage()
    found.add("jobman-scratch", {"emptyDir": {}}, SCRATCH)
    if workdir(unit) == WORK:
        found.add("jobman-work", {"emptyDir": {}}, WORK)
    for volume in unit.policies.volumes:
        _add_volume(found, volume)
    for secret in unit.policies.secrets:
        _add_secret(found, secret)
    if files is not None:
        _add_files(found, files, files_of(unit, target))
    if (kept := target.keep_logs) is not None:
        found.add(VOLUME, kept.volume, LOGS, **kept.mount)
    return found


# -- the folder to run in, and files -------------------------------------------------------------------------


def workdir(unit: Unit) -> str | None:
    """Where a copy runs: as its document says, else with its files, else as the image says."""
    if unit.cwd is not None:
        return unit.cwd
    targets = [step.to or step.path if isinstance(step, Stage) else step.path for step in unit.steps]
    relative = [path for path in (*targets, unit.policies.result_file) if path and not path.startswith("/")]
    return WORK if relative else None


def inside(unit: Unit, path: str) -> str:
    """A path in the container."""
    return posixpath.normpath(posixpath.join(workdir(unit) or "/", path))


def files_of(unit: Unit, target: Target) -> list[File]:
    """The files that the steps of a task bring and write; the last to one place is the one that stays."""
    found: dict[str, File] = {}
    for step in unit.steps:
        if isinstance(step, Stage):
            brought = target.files.get(step.path, ())
            placed = [_placed(unit, step.to or step.path, file) for file in brought]
        else:
            placed = [File(inside(unit, step.path), step.content.encode(), int(step.mode, 8))]
        found.update({file.to: file for file in placed})
    return list(found.values())


def files_data(files: list[File]) -> dict[str, Any]:
    """The entries of a ConfigMap that holds files: texts as they are, anything else encoded."""
    data: dict[str, str] = {}
    binary: dict[str, bytes] = {}
    for number, file in enumerate(files):
        try:
            data[_key(number)] = file.content.decode()
        except UnicodeDecodeError:
            binary[_key(number)] = file.content
    encoded = msgspec.json.decode(msgspec.json.encode(binary))
    return {key: value for key, value in (("data", data), ("binaryData", encoded)) if value}


def _placed(unit: Unit, to: str, file: StagedFile) -> File:
    place = inside(unit, to)
    return File(posixpath.join(place, file.path) if file.path else place, file.content, file.mode)


def _add_files(found: Storage, config: str, files: list[File]) -> None:
    items = [
        {"key": _key(number), "path": _key(number), "mode": file.mode} for number, file in enumerate(files)
    ]
    first, *rest = files
    source = {"configMap": {"name": config, "items": items}}
    volume = found.add("jobman-files", source, first.to, subPath=_key(0), readOnly=True)
    for number, file in enumerate(rest, 1):
        found.mount(volume, file.to, subPath=_key(number), readOnly=True)


def _key(number: int) -> str:
    return f"file-{number}"


# -- secrets -------------------------------------------------------------------------------------------------


def secret_folder(secret: Secret) -> str:
    """Where the entries of a secret are that says nothing of where it wants to be."""
    return f"{SECRETS}/{secret.name}"


def _add_secret(found: Storage, secret: Secret) -> None:
    if secret.path is not None:
        source = {"secretName": secret.name, "items": [{"key": secret.key, "path": "entry"}]}
        found.add(f"secret-{secret.name}", {"secret": source}, secret.path, subPath="entry", readOnly=True)
    elif secret.variable is None:
        source = {"secretName": secret.name}
        if secret.key is not None:
            source["items"] = [{"key": secret.key, "path": secret.key}]
        found.add(f"secret-{secret.name}", {"secret": source}, secret_folder(secret), readOnly=True)


# -- volumes -------------------------------------------------------------------------------------------------


def _add_volume(found: Storage, volume: Volume) -> None:
    more = {"readOnly": True} if volume.read_only else {}
    called = found.add(volume.name, _SOURCES[volume.kind](volume), volume.to, **more)
    if volume.kind == "git":
        found.clones.append(
            {
                "name": names.dns_label(f"clone-{called}"),
                "command": ["sh", "-c", _CLONE, "sh", volume.repository, volume.to, volume.revision or ""],
                "volumeMounts": [{"name": called, "mountPath": volume.to}],
            }
        )


def _kept(**fields: Any) -> dict[str, Any]:
    """Fields that were given."""
    return {name: value for name, value in fields.items() if value not in (None, {}, False)}


def _host(volume: Volume) -> dict[str, Any]:
    kind = "DirectoryOrCreate" if volume.create else "Directory"
    return {"hostPath": {"path": volume.path, "type": kind}}


def _scratch(volume: Volume) -> dict[str, Any]:
    return {"emptyDir": _kept(sizeLimit=_size(volume))}


def _memory(volume: Volume) -> dict[str, Any]:
    return {"emptyDir": {"medium": "Memory", **_kept(sizeLimit=_size(volume))}}


def _ephemeral(volume: Volume) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": _size(volume)}},
        **_kept(storageClassName=volume.class_),
    }
    return {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def _claim(volume: Volume) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": volume.claim, **_kept(readOnly=volume.read_only)}}


def _csi(volume: Volume) -> dict[str, Any]:
    more = _kept(volumeAttributes=volume.attributes, fsType=volume.fs_type, readOnly=volume.read_only)
    return {"csi": {"driver": volume.driver, **more}}


def _nfs(volume: Volume) -> dict[str, Any]:
    return {"nfs": {"server": volume.server, "path": volume.path, **_kept(readOnly=volume.read_only)}}


def _git(_volume: Volume) -> dict[str, Any]:
    return {"emptyDir": {}}


def _image(volume: Volume) -> dict[str, Any]:
    return {"image": {"reference": volume.image}}


def _secret(volume: Volume) -> dict[str, Any]:
    return {"secret": {"secretName": volume.secret, **_kept(defaultMode=_mode(volume))}}


def _config(volume: Volume) -> dict[str, Any]:
    return {"configMap": {"name": volume.config, **_kept(defaultMode=_mode(volume))}}


def _size(volume: Volume) -> str | None:
    return None if volume.size is None else format_size(volume.size)


def _mode(volume: Volume) -> int | None:
    return None if volume.mode is None else int(volume.mode.lower().replace("o", ""), 8)


_SOURCES: dict[str, Callable[[Volume], dict[str, Any]]] = {
    "host": _host,
    "scratch": _scratch,
    "ephemeral": _ephemeral,
    "claim": _claim,
    "csi": _csi,
    "nfs": _nfs,
    "git": _git,
    "image": _image,
    "secret": _secret,
    "config": _config,
    "memory": _memory,
}


def staged_paths(unit: Unit) -> Iterator[str]:
    """What a task needs from the submitter's side."""
    yield from (step.path for step in unit.steps if isinstance(step, Stage))
    yield from (origin.file for origin in unit.policies.env_from if origin.file is not None)
