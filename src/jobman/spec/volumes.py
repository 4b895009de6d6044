"""Volumes: storage that is there when a copy starts, of kinds that each need keys of their own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from yaml.nodes import Node

from jobman.spec.kinds import Choice, Flag, Items, Names, Size
from jobman.spec.names import ABSOLUTE_PATH, FREE, IMAGE, LABEL_KEY, NAME, OCTAL_MODE, WORD
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record

VolumeKind = Literal[
    "host",
    "scratch",
    "ephemeral",
    "claim",
    "csi",
    "nfs",
    "git",
    "image",
    "secret",
    "config",
    "memory",
]
VOLUME_KINDS: dict[VolumeKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "host": (("path",), ("create",)),
    "scratch": ((), ("size",)),
    "ephemeral": (("size",), ("class_",)),
    "claim": (("claim",), ()),
    "csi": (("driver",), ("attributes", "fs_type")),
    "nfs": (("server", "path"), ()),
    "git": (("repository",), ("revision",)),
    "image": (("image",), ()),
    "secret": (("secret",), ("mode",)),
    "config": (("config",), ("mode",)),
    "memory": (("size",), ()),
}


class Volume(Record, frozen=True, kw_only=True, rename={"class_": "class"}):
    """Storage that is there when the copy starts."""

    noun = "a volume"
    habits = {
        "type": "kind",
        "mount": "to",
        "mount_path": "to",
        "mountpath": "to",
        "target": "to",
        "source": "path",
        "host_path": "path",
        "readonly": "read_only",
        "repo": "repository",
        "url": "repository",
        "ref": "revision",
        "branch": "revision",
        "storage_class": "class",
    }
    name: Annotated[str, Key(NAME, "name of the volume", required=True)]
    kind: Annotated[
        VolumeKind,
        Key(
            Choice(
                VOLUME_KINDS,
                "volume kind",
                {
                    "hostpath": "host",
                    "host_path": "host",
                    "bind": "host",
                    "emptydir": "scratch",
                    "empty_dir": "scratch",
                    "tmp": "scratch",
                    "pvc": "claim",
                    "configmap": "config",
                    "config_map": "config",
                    "tmpfs": "memory",
                    "shm": "memory",
                },
            ),
            "what it is",
            required=True,
        ),
    ]
    to: Annotated[str, Key(ABSOLUTE_PATH, "where the copies find it", required=True)]
    read_only: Annotated[bool, Key(Flag(), "cannot be written to")] = False
    path: Annotated[str | None, Key(ABSOLUTE_PATH, "path on the host or server (host, nfs)")] = None
    create: Annotated[bool, Key(Flag(), "make the folder if it is missing (host)")] = False
    size: Annotated[int | None, Key(Size(), "how much (scratch, ephemeral, memory)")] = None
    class_: Annotated[str | None, Key(NAME, "storage class (ephemeral)", name="class")] = None
    claim: Annotated[str | None, Key(NAME, "name of the claim (claim)")] = None
    driver: Annotated[str | None, Key(LABEL_KEY, "CSI driver (csi)")] = None
    attributes: Annotated[dict[str, str], Key(Names(WORD, FREE), "what the driver is told (csi)")] = {}
    fs_type: Annotated[str | None, Key(WORD, "file system (csi)")] = None
    server: Annotated[str | None, Key(WORD, "host of the server (nfs)")] = None
    repository: Annotated[str | None, Key(WORD, "address of the repository (git)")] = None
    revision: Annotated[str | None, Key(WORD, "branch, tag or commit (git)")] = None
    image: Annotated[str | None, Key(IMAGE, "image whose files are mounted (image)")] = None
    secret: Annotated[str | None, Key(NAME, "name of the secret (secret)")] = None
    config: Annotated[str | None, Key(NAME, "name of the configuration (config)")] = None
    mode: Annotated[str | None, Key(OCTAL_MODE, "mode of the files (secret, config)")] = None


_OF_EVERY_KIND = {"name", "kind", "to", "read_only"}


def _fits_its_kind(volume: Volume, node: Node, reading: Reading) -> Any:
    needed, optional = VOLUME_KINDS[volume.kind]
    given = {key.value: key for key, _ in node.value}
    names = {"class_": "class"}
    for field in needed:
        if names.get(field, field) not in given:
            reading.report("JS705", node, kind=volume.kind, key=names.get(field, field))
            return BAD
    allowed = _OF_EVERY_KIND | {names.get(field, field) for field in needed + optional}
    for key, key_node in given.items():
        if key not in allowed:
            reading.report("JS706", key_node, kind=volume.kind, key=key, known=", ".join(sorted(allowed)))
    return volume


VOLUMES = Items(Of(Volume, _fits_its_kind), "a list of volumes")
