"""Preparing an attempt on this machine, and clearing away after it: folders, secrets, volumes, ports, images.

What cannot be found out again after a restart is kept in the attempt's folder before its first copy starts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from jobman.engines.base import Address, Order
from jobman.engines.endings import why
from jobman.engines.local import environments, private, secrets
from jobman.engines.local.calls import Images
from jobman.engines.local.compile import host_cwd, is_contained, joined
from jobman.engines.local.containers import client_environment
from jobman.engines.local.environments import Environments
from jobman.engines.local.links import Links
from jobman.engines.local.orders import CannotRun
from jobman.engines.local.ports import Ports, PortsOfCopy
from jobman.engines.local.prepared import Prepared
from jobman.engines.local.private import Owner
from jobman.engines.local.runtimes import Runtime, missing
from jobman.engines.local.secrets import Vault
from jobman.engines.local.volumes import Mount, Rooms, is_of_the_copy, provide
from jobman.spec.access import Security

_KEPT = "attempt.json"
_NO_SECURITY = Security()


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided for an attempt and would come out otherwise the next time."""

    ports: tuple[PortsOfCopy, ...] = ()
    starts: dict[str, int] = {}
    """How long the files of its output were before."""
    mounts: tuple[tuple[Mount, ...], ...] = ()
    runtime: Runtime | None = None


NOTHING_KEPT = Kept()


class Preparer:
    """Knows the places of one service on this machine."""

    def __init__(self, state: Path, vault: Vault, runtime: Callable[[], Runtime | None]) -> None:
        self.environments = Environments(state / "environments")
        self._jobs = state / "jobs"
        self._mark = hashlib.sha256(os.fsencode(state.absolute())).hexdigest()[:8]
        self._vault = vault
        self._runtime = runtime
        self._ports = Ports()
        self._links = Links(state / "links")
        self._images = Images()

    def job_folder(self, job: str) -> Path:
        return self._jobs / job

    def folder(self, address: Address) -> Path:
        """Where the records and the output of an attempt are."""
        job, key, attempt = address
        return self._jobs / f"{job}/{key}/{attempt}"

    def goes_with_its_job(self, room: Path) -> bool:
        """Whether a room is removed with the folder of its job, if not before."""
        return room.is_relative_to(self._jobs)

    def kept(self, order: Order) -> Kept | None:
        """What was kept of an attempt, which holds its ports again; None where nothing was."""
        try:
            kept = msgspec.json.decode((self.folder(order.address) / _KEPT).read_bytes(), type=Kept)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            return None  # cut off in the middle: then no copy was started
        self._ports.hold(kept.ports)
        return kept

    def needs_time(self, order: Order) -> bool:
        """Whether something has to be brought from elsewhere first."""
        return is_contained(order) or any(volume.kind == "git" for volume in order.unit.policies.volumes)

    async def prepare(self, order: Order) -> tuple[Prepared, Kept]:
        """Make everything that the copies of an attempt are to find; raises CannotRun."""
        kept = NOTHING_KEPT
        if not order.allocation.slots:
            raise CannotRun("no slot was given to it")
        try:
            self.folder(order.address).mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = self.kept(order) or self._decide(order)
            prepared = await self._furnish(order, kept)
            kept = msgspec.structs.replace(kept, mounts=prepared.mounts, runtime=prepared.runtime)
            self._keep(order, kept)
            self._link(order, kept)
        except OSError as error:
            self.undo(order, kept)
            raise CannotRun(f"cannot write to {error.filename or self._jobs}: {why(error)}") from None
        except BaseException:
            self.undo(order, kept)
            raise
        return prepared, kept

    def describe(self, order: Order, kept: Kept) -> Prepared:
        """What was prepared for copies that have started, without touching it; what is gone is left out."""
        rooms = self._rooms(order)
        prepared = self._empty(order, kept, rooms)
        try:
            arranged = secrets.arrange(order.unit.policies.secrets, self._vault)
            return self._with_variables(order, prepared, arranged)
        except CannotRun:
            return prepared

    def clear(self, order: Order, kept: Kept) -> list[Path]:
        """Give back ports and links; returns the rooms that are left to be removed."""
        self._ports.give_back(kept.ports)
        if any(kept.mounts):
            self._links.release(str(self.folder(order.address)))
        rooms = self._rooms(order)
        return [room for room in (rooms.disk, rooms.memory) if room.exists()]

    def undo(self, order: Order, kept: Kept) -> None:
        """Take back what was prepared for copies that will not be started."""
        self._links.release(str(self.folder(order.address)))
        for room in self.clear(order, kept):
            private.remove(room)

    def _decide(self, order: Order) -> Kept:
        ports = self._ports.find(order.unit.policies.ports, len(order.allocation.slots))
        cwd = host_cwd(order)
        named = [joined(cwd, path) for path in (order.unit.stdout, order.unit.stderr) if path is not None]
        starts = {path: size for path in named if (size := _size(path))}
        return Kept(ports if any(ports) else (), starts)

    async def _furnish(self, order: Order, kept: Kept) -> Prepared:
        rooms = self._rooms(order)
        prepared = self._empty(order, kept, rooms)
        for path in dict.fromkeys(prepared.scratch.values()):
            private.make_inside(private.make_room(rooms.disk, rooms.owner), Path(path).name, rooms.owner)
        arranged = secrets.arrange(order.unit.policies.secrets, self._vault)
        if arranged.files or arranged.folders:
            secrets.lay_out(arranged, private.make_room(rooms.memory, rooms.owner), rooms.owner)
        prepared = self._with_variables(order, prepared, arranged)
        mounts = await self._mounts(order, rooms, _mounts_of_secrets(arranged, rooms.memory))
        if not is_contained(order):
            return msgspec.structs.replace(prepared, mounts=mounts)
        runtime = await self._runtime_with(order, prepared)
        private.make_room(rooms.memory, rooms.owner)
        return msgspec.structs.replace(prepared, mounts=mounts, runtime=runtime)

    async def _runtime_with(self, order: Order, prepared: Prepared) -> Runtime:
        """The container runtime, once it has the image of the order."""
        runtime = self._runtime()
        if runtime is None:
            raise CannotRun(missing(os.environ))
        client = client_environment(runtime, {}, prepared.submitted, prepared.client)
        await self._images.bring(runtime, order.unit.image or "", client)
        return runtime

    async def _mounts(
        self, order: Order, rooms: Rooms, of_secrets: list[Mount]
    ) -> tuple[tuple[Mount, ...], ...]:
        """What each copy has mounted; outside of containers they all have the same."""
        volumes, count = order.unit.policies.volumes, len(order.allocation.slots)
        if not is_contained(order):
            shared = (*await provide(volumes, rooms, self._vault, None), *of_secrets)
            return (shared,) * count if shared else ()
        common = [volume for volume in volumes if not is_of_the_copy(volume)]
        own = [volume for volume in volumes if is_of_the_copy(volume)]
        shared = (*await provide(common, rooms, self._vault, None), *of_secrets)
        return tuple([(*shared, *await provide(own, rooms, self._vault, copy)) for copy in range(count)])

    def _empty(self, order: Order, kept: Kept, rooms: Rooms) -> Prepared:
        nodes = dict.fromkeys(slot.node for slot in order.allocation.slots)
        return Prepared(
            id=f"{self._mark}:{order.job}/{order.key}/{order.attempt}",
            folder=str(self.folder(order.address)),
            scratch={node: str(rooms.disk / f"scratch-{number}") for number, node in enumerate(nodes)},
            ports=kept.ports,
            mounts=kept.mounts,
            private=str(rooms.memory),
            runtime=kept.runtime,
            client=dict(os.environ) if is_contained(order) else {},
        )

    def _with_variables(self, order: Order, prepared: Prepared, arranged: secrets.Arrangement) -> Prepared:
        folders = {name: f"{prepared.private}/{path}" for name, path in arranged.folders.items()}
        origins = order.unit.policies.env_from
        return msgspec.structs.replace(
            prepared,
            submitted=self._submitted(order),
            elsewhere=secrets.variables_from(origins, self._vault, Path(order.cwd)) if origins else {},
            secrets={**arranged.variables, **folders},
        )

    def _submitted(self, order: Order) -> dict[str, str]:
        if order.environment is None:
            return environments.minimal(order.owner)
        try:
            return self.environments.read(order.environment)
        except LookupError as error:
            raise CannotRun(str(error)) from None

    def _rooms(self, order: Order) -> Rooms:
        security = order.unit.policies.security or _NO_SECURITY
        owner = Owner(security.uid, security.gid, is_contained(order))
        folder = self.folder(order.address)
        return Rooms(private.on_disk(folder, owner), private.in_memory(folder), owner)

    def _keep(self, order: Order, kept: Kept) -> None:
        if kept == NOTHING_KEPT:
            return
        path = self.folder(order.address) / _KEPT
        draft = path.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(kept))
        draft.replace(path)

    def _link(self, order: Order, kept: Kept) -> None:
        if is_contained(order) or not kept.mounts:
            return
        user = str(self.folder(order.address))
        for mount in kept.mounts[0]:
            self._links.make(mount.to, mount.source, user, mount.what)


def _mounts_of_secrets(arranged: secrets.Arrangement, room: Path) -> list[Mount]:
    """Files where the document wants them, and folders where variables say they are."""
    places = [*arranged.places.items(), *((str(room / each), each) for each in arranged.folders.values())]
    return [Mount(to, str(room / below), to, True, noun="secret for") for to, below in places]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a path as text
    except OSError:
        return 0
