"""Tenure: who drives a job. One at a time; a course is written only by whoever holds it.

Nobody's clock is trusted but one's own: somebody who drives is believed to be gone when nothing was heard of
them for the length of a lease, counted from when we first looked. On the same machine the process tells.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from jobman.control.refusals import Refusal
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.course import (
    LEASE_SECONDS,
    MOST_BYTES,
    Course,
    Driver,
    course_data,
    driver_note,
    driver_of,
)
from jobman.engines.kubernetes.errors import Conflict, NotFound
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from jobman.engines.kubernetes.objects import ConfigMap, Written

_LOOK_SECONDS = 0.5


class Tenure:
    """The right to drive one job, as one driver has it or wants it."""

    def __init__(
        self,
        api: Api,
        course: str,
        job: str,
        *,
        lease: float = LEASE_SECONDS,
        waiting: Callable[[str], None] | None = None,
    ) -> None:
        self._api = api
        self._name = course
        self._job = job
        self._lease = lease
        self._waiting = waiting
        self._version = ""
        self._me = myself()
        self._writing = asyncio.Lock()

    async def take(self) -> ConfigMap:
        """Become the driver; raises Refusal where somebody else is. Returns the course as it is kept."""
        heard: Driver | None = None
        since = time.monotonic()
        while True:
            config = await self._read()
            driver = driver_of(config)
            if driver is None or driver.token == self._me.token or is_dead(driver):
                if (taken := await self._claim(config)) is not None:
                    return taken
                continue
            if heard is not None and driver != heard:
                raise _driven(driver, self._job)
            if heard is None and self._waiting is not None:
                self._waiting(driver.who)
            heard = driver
            if time.monotonic() - since >= self._lease:
                if (taken := await self._claim(config)) is not None:
                    return taken
                heard, since = None, time.monotonic()
            await asyncio.sleep(_LOOK_SECONDS)

    async def write(self, course: Course, *, last: bool = False) -> None:
        """Put a course down before anything is done because of it; `last` leaves the job in the same step."""
        data = course_data(course)
        if sum(map(len, data.values())) > MOST_BYTES:
            raise Refusal(
                "too-large",
                f"how far the job {self._job} is does not fit into one object of the cluster any more",
                "run it on a jobman service, or split it",
            )
        await self._change({"data": data}, None if last else self._me)

    async def renew(self) -> None:
        """Say that we still drive."""
        await self._change({}, self._me)

    async def leave(self) -> None:
        """Let somebody else drive, at once."""
        await self._change({}, None)

    async def _claim(self, config: ConfigMap) -> ConfigMap | None:
        self._version = config.metadata.resource_version
        try:
            return await self._patch({}, self._me)
        except Conflict:
            return None

    async def _change(self, more: Written, driver: Driver | None) -> None:
        async with self._writing:
            while not await self._is_changed(more, driver):
                pass

    async def _is_changed(self, more: Written, driver: Driver | None) -> bool:
        try:
            await self._patch(more, driver)
        except Conflict:
            config = await self._read()
            now = driver_of(config)
            if now is None or now.token != self._me.token:
                raise _driven(now, self._job) from None
            # Somebody else has only touched it, or it was we whose answer got lost.
            self._version = config.metadata.resource_version
            return False
        except NotFound:
            raise _gone(self._job) from None
        return True

    async def _patch(self, more: Written, driver: Driver | None) -> ConfigMap:
        if driver is not None:
            driver = msgspec.structs.replace(driver, renewed=time.time())
        notes = {names.DRIVER: driver_note(driver)}
        patch = {"metadata": {"resourceVersion": self._version, "annotations": notes}, **more}
        written = await self._api.merge_patch(CONFIG_MAPS, self._name, patch)
        self._version = written.metadata.resource_version
        return written

    async def _read(self) -> ConfigMap:
        found = await self._api.find(CONFIG_MAPS, self._name)
        if found is None:
            raise _gone(self._job)
        return found


def _gone(job: str) -> Refusal:
    return Refusal("no-such-job", f"the job {job} is gone: somebody deleted it")


def _driven(driver: Driver | None, job: str) -> Refusal:
    who = "somebody else" if driver is None else driver.who
    return Refusal(
        "wrong-state", f"the job {job} is driven by {who}", f"follow it: jobman -e kubernetes logs -f {job}"
    )


def myself() -> Driver:
    """This process, as one driver of all there ever were."""
    host, pid = socket.gethostname(), os.getpid()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Driver(
        who=f"{user} on {host} (process {pid})",
        token=secrets.token_hex(8),
        place=_place(),
        pid=pid,
        began=_began(pid),
    )


def is_dead(driver: Driver) -> bool:
    """Whether a driver was a process of this very machine that is not there any more."""
    return bool(driver.place) and driver.place == _place() and _began(driver.pid) != driver.began


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(pid: int) -> int:
    """When a process began, in the kernel's own count; 0 where there is none."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
