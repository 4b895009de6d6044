"""Objects of a cluster as they are now, kept up to date by a watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar

from jobman.engines.kubernetes.errors import Expired
from jobman.engines.kubernetes.kinds import Kind
from jobman.engines.kubernetes.objects import Change, Kept

T = TypeVar("T", bound=Kept)
T_co = TypeVar("T_co", bound=Kept, covariant=True)
_BURST_SECONDS = 0.1
"""Changes rarely come alone."""


class Listed(Protocol[T_co]):
    """All objects of a kind, and the version to watch from."""

    @property
    def items(self) -> Sequence[T_co]: ...

    @property
    def resource_version(self) -> str: ...


class WatchedApi(Protocol):
    """The cluster as far as it is listed and watched; `api.Api` is one."""

    async def list(self, kind: Kind[T], namespace: str | None = None, *, labels: str = "") -> Listed[T]: ...

    def watch(
        self, kind: Kind[T], since: str, namespace: str | None = None, *, labels: str = ""
    ) -> AsyncGenerator[Change[T], None]: ...


class Watched(Generic[T]):
    """The objects of one kind."""

    def __init__(self, kind: Kind[T], labels: str = "") -> None:
        self._kind = kind
        self._labels = labels
        self._known: dict[str, T] = {}
        self.is_known = False
        """Whether anybody has looked yet."""

    @property
    def objects(self) -> list[T]:
        return list(self._known.values())

    async def keep(self, api: WatchedApi, changed: asyncio.Event) -> None:
        """Look for ever, and say when something has changed."""
        while True:
            listed = await api.list(self._kind, labels=self._labels)
            self._known = {each.metadata.uid: each for each in listed.items}
            self.is_known = True
            changed.set()
            with contextlib.suppress(Expired):
                changes = api.watch(self._kind, listed.resource_version, labels=self._labels)
                async with aclosing(changes) as open_changes:
                    async for change in open_changes:
                        self._take(change)
                        changed.set()

    def _take(self, change: Change[T]) -> None:
        uid = change.object.metadata.uid
        if change.type == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = change.object


async def moments(
    changed: asyncio.Event, keepers: Sequence[Coroutine[Any, Any, None]]
) -> AsyncGenerator[None, None]:
    """One item for each burst of changes, for ever; raises what a keeper raises."""
    tasks = [asyncio.ensure_future(keeper) for keeper in keepers]
    try:
        while True:
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(_BURST_SECONDS)
            changed.clear()
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
