"""A mirror of one kind of objects: everything the cluster has of it, kept as it is now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from jobman.engines.kubernetes.api import EVERYWHERE, Api
from jobman.engines.kubernetes.errors import Expired, KubernetesError
from jobman.engines.kubernetes.kinds import Kind
from jobman.engines.kubernetes.objects import Change, Kept

log = logging.getLogger("jobman.kubernetes")
T = TypeVar("T", bound=Kept)
Place = tuple[str, str]
"""Namespace and name."""
_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_PAGE = 2500
"""Objects of a part of a list: each part costs a round, and the whole at once much memory."""


class Mirror(Generic[T]):
    """Lists once, then follows the changes; lists anew where the cluster has forgotten them."""

    def __init__(
        self,
        api: Api,
        kind: Kind[T],
        changed: Callable[[T | None, T | None], None],
        *,
        namespace: str = EVERYWHERE,
        labels: str = "",
    ) -> None:
        """`changed` is told what was there and what is there now."""
        self.items: dict[Place, T] = {}
        self._api = api
        self._kind = kind
        self._changed = changed
        self._namespace = namespace
        self._labels = labels
        self._version = ""

    def get(self, name: str, namespace: str = "") -> T | None:
        return self.items.get((namespace, name))

    async def fill(self) -> None:
        """List what there is, and tell what differs from what was known."""
        found = await self._api.list(self._kind, self._namespace, labels=self._labels, limit=_PAGE)
        fresh = {place_of(item): item for item in found.items}
        for place in [place for place in self.items if place not in fresh]:
            self._changed(self.items.pop(place), None)
        for place, item in fresh.items():
            self._put(place, item)
        self._version = found.resource_version

    async def follow(self) -> None:
        """Follow the changes for ever. Whatever breaks is tried again: a mirror has no other way out."""
        pause = _PAUSE
        while True:
            try:
                if not self._version:
                    await self.fill()
                async for change in self._api.watch(
                    self._kind, self._version, self._namespace, labels=self._labels
                ):
                    self._take(change)
                    pause = _PAUSE
            except Expired:
                self._version = ""
            except KubernetesError as error:
                log.warning("cannot follow %s: %s", self._kind.plural, error)
            except Exception:
                # Something of the cluster is not as anybody thought; what else there is must still be seen.
                log.exception("cannot follow %s", self._kind.plural)
                self._version = ""
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _take(self, change: Change[T]) -> None:
        item = change.object
        place = place_of(item)
        self._version = item.metadata.resource_version or self._version
        if change.type != "DELETED":
            self._put(place, item)
        elif place in self.items:
            self._changed(self.items.pop(place), None)

    def _put(self, place: Place, item: T) -> None:
        known = self.items.get(place)
        if known is None or known.metadata.resource_version != item.metadata.resource_version:
            self.items[place] = item
            self._changed(known, item)


def place_of(item: Kept) -> Place:
    return item.metadata.namespace, item.metadata.name
