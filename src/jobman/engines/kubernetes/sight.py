"""What we may list of a cluster: everything at once, or what one namespace after the other lets us see."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from jobman.engines.kubernetes.api import EVERYWHERE, Api
from jobman.engines.kubernetes.errors import Forbidden
from jobman.engines.kubernetes.kinds import NAMESPACES, Kind
from jobman.engines.kubernetes.objects import Kept

T = TypeVar("T", bound=Kept)
_AT_ONCE = 8
"""Namespaces that are asked at a time."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces that could be seen, where those are not all."""

    namespaces: tuple[str, ...]
    of: int | None = None
    """How many there are; None where we may not know."""


class Seen(msgspec.Struct, Generic[T], frozen=True):
    """Objects of one kind, and how far we saw; a sight of None is everything."""

    items: Sequence[T]
    sight: Sight | None = None


class _Places(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    there: int | None = None
    """How many there are; None where we may not know."""


class View:
    """The view of one moment: the namespaces are asked for once, whatever is looked for in them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._few = asyncio.Semaphore(_AT_ONCE)
        self._asking = asyncio.Lock()
        self._places: _Places | None = None

    async def of(self, kind: Kind[T]) -> Seen[T]:
        """Those of all namespaces where we may list them; raises Forbidden where there is none."""
        try:
            return Seen((await self._api.list(kind, EVERYWHERE)).items)
        except Forbidden:
            return await self._one_by_one(kind)

    async def _one_by_one(self, kind: Kind[T]) -> Seen[T]:
        places = await self._known_places()
        answers = await asyncio.gather(*(self._listed(kind, name) for name in places.names))
        found = dict(zip(places.names, answers, strict=True))
        lists = {name: items for name, items in found.items() if not isinstance(items, Forbidden)}
        if not lists and isinstance(refusal := found[self._api.namespace], Forbidden):
            raise refusal
        items = [item for each in lists.values() for item in each]
        if len(lists) == places.there:
            return Seen(items)
        return Seen(items, Sight(namespaces=tuple(sorted(lists)), of=places.there))

    async def _listed(self, kind: Kind[T], namespace: str) -> Sequence[T] | Forbidden:
        async with self._few:
            try:
                return (await self._api.list(kind, namespace)).items
            except Forbidden as refusal:
                return refusal

    async def _known_places(self) -> _Places:
        """The namespaces there are; where we may not know, our own and those our kubeconfig names."""
        async with self._asking:
            if self._places is None:
                own = (self._api.namespace, *self._api.access.namespaces)
                try:
                    listed = (await self._api.list(NAMESPACES)).items
                except Forbidden:
                    self._places = _Places(tuple(dict.fromkeys(own)))
                else:
                    # Our own may not be there yet; it is the one whose refusal helps.
                    names = (self._api.namespace, *(each.metadata.name for each in listed))
                    self._places = _Places(tuple(dict.fromkeys(names)), len(listed))
            return self._places
