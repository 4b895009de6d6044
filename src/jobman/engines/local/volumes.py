"""Volumes: for each a folder of this machine, made or found, and where the copies see it.

In a container it is mounted. Outside of one it is a link, which the copies of an attempt share, and
`read_only` cannot be enforced. A size is no wall: what outgrows it is found by looking, and then the attempt
is stopped.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from jobman.engines.endings import why
from jobman.engines.local import private
from jobman.engines.local.checkouts import check_out
from jobman.engines.local.orders import CannotRun
from jobman.engines.local.private import Owner
from jobman.engines.local.secrets import Kind, Vault
from jobman.spec.quantities import format_size
from jobman.spec.volumes import Volume, VolumeKind

_FILE_MODE = 0o400


class Mount(msgspec.Struct, frozen=True, omit_defaults=True):
    """A folder or file of this machine, and where the copies find it."""

    name: str
    source: str
    to: str
    read_only: bool = False
    size: int | None = None
    in_memory: bool = False
    noun: str = "volume"

    @property
    def is_full(self) -> str:
        """What is said where it holds more than it may."""
        return f"{self.what} holds more than its {format_size(self.size or 0)}"

    @property
    def what(self) -> str:
        return f"the {self.noun} `{self.name}`"


class Rooms(msgspec.Struct, frozen=True):
    """Where an attempt keeps files: on disk, and in memory for what should not reach one."""

    disk: Path
    memory: Path
    owner: Owner = Owner()


async def provide(volumes: Sequence[Volume], rooms: Rooms, vault: Vault, copy: int | None) -> list[Mount]:
    """Make or find what the volumes of an attempt stand for; those of a single copy where one is given.

    Raises CannotRun. What is there already is used again.
    """
    return [await _PROVIDERS.get(volume.kind, _refuse)(volume, rooms, vault, copy) for volume in volumes]


def is_of_the_copy(volume: Volume) -> bool:
    """Whether every copy has its own, where a container makes that possible."""
    return volume.kind in ("scratch", "ephemeral", "memory")


def outgrown(mounts: Iterable[Mount]) -> Mount | None:
    """The first that holds more than its size."""
    return next(
        (mount for mount in mounts if mount.size is not None and _used(mount.source) > mount.size), None
    )


async def _provide_host(volume: Volume, _rooms: Rooms, _vault: Vault, _copy: int | None) -> Mount:
    path = Path(volume.path or "/")
    if volume.create:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(f"the volume `{volume.name}`: {path} cannot be made: {why(error)}") from None
    elif not path.exists():
        raise CannotRun(
            f"the volume `{volume.name}`: {path} does not exist on this machine; `create: true` would make it"
        )
    return _mount(volume, path)


async def _provide_scratch(volume: Volume, rooms: Rooms, _vault: Vault, copy: int | None) -> Mount:
    return _mount(volume, _folder(rooms.disk, volume, rooms.owner, copy), size=volume.size)


async def _provide_memory(volume: Volume, rooms: Rooms, _vault: Vault, copy: int | None) -> Mount:
    if copy is None and Path(volume.to) == private.SHARED_MEMORY and private.SHARED_MEMORY.is_dir():
        return _mount(volume, private.SHARED_MEMORY)
    folder = _folder(rooms.memory, volume, rooms.owner, copy)
    return _mount(volume, folder, size=volume.size, in_memory=True)


async def _provide_secret(volume: Volume, rooms: Rooms, vault: Vault, _copy: int | None) -> Mount:
    return _entries(volume, "secret", volume.secret or "", rooms, vault)


async def _provide_config(volume: Volume, rooms: Rooms, vault: Vault, _copy: int | None) -> Mount:
    return _entries(volume, "config", volume.config or "", rooms, vault)


async def _provide_git(volume: Volume, rooms: Rooms, _vault: Vault, _copy: int | None) -> Mount:
    folder = _folder(rooms.disk, volume, rooms.owner, None)
    checkout = folder / "checkout"
    if not checkout.exists():
        draft = folder / "draft"
        private.remove(draft)
        try:
            await check_out(volume.repository or "", volume.revision, draft)
        except CannotRun as refused:
            raise CannotRun(f"the volume `{volume.name}`: {refused.message}") from None
        _give_all(draft, rooms.owner)
        draft.rename(checkout)
    return _mount(volume, checkout)


async def _refuse(volume: Volume, _rooms: Rooms, _vault: Vault, _copy: int | None) -> Mount:
    raise CannotRun(f"the volume `{volume.name}` is of kind {volume.kind}, which this machine does not offer")


def _mount(volume: Volume, source: Path, *, size: int | None = None, in_memory: bool = False) -> Mount:
    return Mount(volume.name, str(source), volume.to, volume.read_only, size, in_memory)


def _folder(room: Path, volume: Volume, owner: Owner, copy: int | None) -> Path:
    name = volume.name if copy is None else f"{volume.name}.{copy}"
    return private.make_inside(private.make_room(room, owner), f"volumes/{name}", owner)


def _entries(volume: Volume, kind: Kind, name: str, rooms: Rooms, vault: Vault) -> Mount:
    entries = vault.entries(kind, name)
    folder = _folder(rooms.memory, volume, rooms.owner, None)
    mode = int(volume.mode.lower().replace("o", ""), 8) if volume.mode else _FILE_MODE
    for key, content in entries.items():
        private.write(folder / key, content, rooms.owner, mode)
    return _mount(volume, folder)


def _give_all(folder: Path, owner: Owner) -> None:
    if owner.is_other:
        for place, folders, files in os.walk(folder):
            for name in (".", *folders, *files):
                os.chown(
                    Path(place) / name,
                    owner.uid or 0,
                    -1 if owner.gid is None else owner.gid,
                    follow_symlinks=False,
                )


def _used(folder: str) -> int:
    """Bytes that a folder takes up; what vanishes while we look counts nothing."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(place) / name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


_PROVIDERS: dict[VolumeKind, Callable[[Volume, Rooms, Vault, int | None], Awaitable[Mount]]] = {
    "host": _provide_host,
    "scratch": _provide_scratch,
    "ephemeral": _provide_scratch,
    "memory": _provide_memory,
    "secret": _provide_secret,
    "config": _provide_config,
    "git": _provide_git,
}
