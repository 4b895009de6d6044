"""Taking part in the election of a leader: the Lease is read and written in a thread of its own.

So nothing that the service does, however long it takes, costs it the Lease; and when the Lease is lost, that
is known even while the service is busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    KubernetesError,
    NotFound,
    Unauthorized,
)
from jobman.engines.kubernetes.kinds import Kind
from jobman.engines.kubernetes.managed.lease import Candidate, Record, Terms
from jobman.engines.kubernetes.names import PREFIX
from jobman.engines.kubernetes.objects import Kept, Object, Written

log = logging.getLogger("jobman.lease")
EPOCH = PREFIX + "epoch"
"""Under which number the holder writes to the database."""
_HOPELESS = (Forbidden, Unauthorized, NotFound)
"""Refusals that waiting does not mend; NotFound is the namespace."""
_RELEASE_SECONDS = 3.0


class NotLeading(Exception):
    """Another server may lead by now: this one must not act any more."""

    message = "This server no longer leads."
    advice = "Another one goes on; this one ends."

    def __init__(self) -> None:
        super().__init__(self.message)


class LeaseSpec(Object, kw_only=True):
    """Who holds a Lease, and since when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(Kept, kw_only=True):
    """A Lease of a cluster."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


LEASES = Kind("coordination.k8s.io/v1", "Lease", "leases", Lease)


def boot_clock() -> float:
    """Seconds that went by, also while the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def identity_of_process() -> str:
    """A name that no other process ever had; it begins with that of the pod or machine."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


class Leadership:
    """This server's part in the election."""

    def __init__(
        self,
        access: Access,
        name: str,
        *,
        namespace: str | None = None,
        identity: str | None = None,
        terms: Terms | None = None,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self.name = name
        self.namespace = namespace or access.namespace
        self.terms = terms or Terms()
        self.trouble = ""
        """In words, why the Lease cannot be read or written just now."""
        self.failure: Exception | None = None
        """Why it can never lead, where that is certain."""
        self.epoch: int | None = None
        """Written into the Lease with the next renewal."""
        self.on_change: Callable[[], None] = lambda: None
        """Called in the thread of the Lease when it is won, lost or hopeless."""
        self._access = access
        self._clock = clock
        self._candidate = Candidate(identity or identity_of_process(), self.terms)
        self._has_met = False
        self._has_won = False
        self._leaving = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="jobman-lease", daemon=True)

    @property
    def identity(self) -> str:
        return self._candidate.name

    @property
    def leader(self) -> str:
        """Who leads, as far as known; empty where nobody does."""
        return self._candidate.holder

    @property
    def leads(self) -> bool:
        return self._candidate.leads(self._clock())

    @property
    def has_won(self) -> bool:
        return self._has_won

    @property
    def is_lost(self) -> bool:
        """Whether it led once, and does not any more."""
        return self._has_won and not self.leads and not self._leaving.is_set()

    @property
    def time_left(self) -> float:
        """After the end of the own lead: seconds until another may begin, at the very earliest."""
        until = self._candidate.last_until
        return 0.0 if until is None else max(0.0, until + self.terms.margin - self._clock())

    def check(self) -> None:
        """Raises NotLeading where it does not lead; cheap, and to be asked right before every act."""
        if not self.leads:
            raise NotLeading

    def start(self) -> None:
        """Begin to wait for the Lease."""
        self._thread.start()

    def leave(self) -> None:
        """Give the Lease back, if it is ours, and end; waits for that for some seconds."""
        self._leaving.set()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread.is_alive():
            self._thread.join(_RELEASE_SECONDS * 2)

    # -- in the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._take_part())
        except Exception as error:
            # Nobody renews it any more: better it is lost now than in some seconds.
            log.exception("the lease is given up")
            self._candidate.is_over = True
            self.failure = self.failure or error
        finally:
            self.on_change()

    async def _take_part(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with Api(self._access, patience=0.0) as self._api:
            self._task = asyncio.ensure_future(self._elect())
            if self._leaving.is_set():
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            if self._leaving.is_set():
                await self._release()

    async def _elect(self) -> None:
        """Look, take and renew until it is lost or given back."""
        while not self._candidate.is_over:
            await self._turn()
            if self.failure is not None:
                return
            self._tell_won()
            await asyncio.sleep(self._pause())
            self._candidate.look_at_clock(self._clock())
        log.critical("lease %s/%s is lost; leader=%s", self.namespace, self.name, self.leader or "nobody")

    def _tell_won(self) -> None:
        if self.leads and not self._has_won:
            self._has_won = True
            log.info("lease %s/%s is ours; identity=%s", self.namespace, self.name, self.identity)
            self.on_change()

    def _pause(self) -> float:
        """Candidates that were started together do not stay in step; who leads is never late."""
        wait = self._candidate.wait(self._clock())
        return wait if self._candidate.until is not None else wait * random.uniform(1.0, 1.2)

    async def _turn(self) -> None:
        """Once: look if it must, and write if it may. What does not answer in time is given up."""
        until = self._candidate.until
        limit = self.terms.renew / 2
        if until is not None:
            limit = max(0.0, min(limit, until - self._clock()))
        try:
            async with asyncio.timeout(limit):
                await self._look_and_write()
        except _HOPELESS as error:
            if not self._has_met:
                self.failure = error
            self._note(error.message)
        except KubernetesError as error:
            self._note(error.message)
        except TimeoutError:
            self._note("the cluster does not answer in time")
        else:
            self._has_met = True
            self._note("")

    async def _look_and_write(self) -> None:
        candidate = self._candidate
        if candidate.must_look or candidate.until is None:
            found = await self._api.find(LEASES, self.name, self.namespace)
            candidate.see(None if found is None else _record(found), self._clock())
        if not candidate.may_write(self._clock()):
            return
        began = self._clock()
        try:
            written = await self._write(candidate.draft(_stamp()))
        except (Conflict, AlreadyExists):
            candidate.failed()  # Somebody was faster; who it was is seen in the next turn.
        except NotFound:
            candidate.failed()
            if not self._has_met:
                raise
        except BaseException:
            candidate.failed()
            raise
        else:
            candidate.wrote(written, began, self._clock())

    async def _write(self, draft: Record) -> Record:
        """Write it in the place of the version that was seen, or anew; raises where somebody was faster."""
        written = _written(draft, self.name, self.namespace, self.epoch)
        if draft.version:
            changed = await self._api.merge_patch(LEASES, self.name, written, self.namespace)
            return _record(changed)
        made = await self._api.create(written, self.namespace)
        return msgspec.structs.replace(draft, version=made.metadata.resource_version)

    async def _release(self) -> None:
        """Let the next one begin at once."""
        candidate = self._candidate
        if candidate.holder != self.identity:
            return
        patch: Written = {
            "metadata": {"resourceVersion": candidate.version},
            "spec": {"holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": _stamp()},
        }
        candidate.is_over = True
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._api.merge_patch(LEASES, self.name, patch, self.namespace)
            log.info("lease %s/%s is given back", self.namespace, self.name)
        except (KubernetesError, TimeoutError) as error:
            log.warning("the lease is not given back, and will expire: %s", error)

    def _note(self, words: str) -> None:
        if words != self.trouble and words:
            log.warning("lease %s/%s: %s", self.namespace, self.name, words)
        self.trouble = words


def _record(lease: Lease) -> Record:
    spec = lease.spec
    return Record(
        holder=spec.holder_identity,
        duration=spec.lease_duration_seconds,
        acquired=spec.acquire_time,
        renewed=spec.renew_time,
        transitions=spec.lease_transitions,
        version=lease.metadata.resource_version,
    )


def _written(draft: Record, name: str, namespace: str, epoch: int | None) -> Written:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/name": "jobman", "app.kubernetes.io/managed-by": "jobman"},
    }
    if draft.version:
        metadata["resourceVersion"] = draft.version
    if epoch is not None:
        metadata["annotations"] = {EPOCH: str(epoch)}
    return {
        "apiVersion": LEASES.api,
        "kind": LEASES.kind,
        "metadata": metadata,
        "spec": {
            "holderIdentity": draft.holder,
            "leaseDurationSeconds": draft.duration,
            "acquireTime": draft.acquired,
            "renewTime": draft.renewed,
            "leaseTransitions": draft.transitions,
        },
    }


def _stamp() -> str:
    """The time of day, to the microsecond, as a Lease has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
