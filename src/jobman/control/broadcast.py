"""Fan-out of events: whoever subscribes hears every event after it was committed, in order.

A subscriber that is too slow is not waited for and costs no memory without end: it is told how far it had
come, and reads on from the store.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.control.store.records import EventRecord

LIMIT = 1_000
"""Events that wait for one subscriber."""


class Behind(Exception):
    """Events were left out for a subscriber: those after `number` are to be read from the store."""

    def __init__(self, number: int) -> None:
        super().__init__(f"events after {number} were left out")
        self.number = number


class Broadcast:
    """Hands events to all subscribers. Belongs to one event loop: call it only from there."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._subscriptions: set[Subscription] = set()

    def publish(self, events: Iterable[EventRecord]) -> None:
        """Tell every subscriber of events that are committed."""
        if self._subscriptions:
            events = list(events)
            for subscription in self._subscriptions:
                subscription.put(events)

    def subscribe(self) -> Subscription:
        """Hear everything from now on, until the subscription is closed."""
        subscription = Subscription(self, self._limit)
        self._subscriptions.add(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        self._subscriptions.discard(subscription)

    def __len__(self) -> int:
        return len(self._subscriptions)


class Subscription:
    """The events that one subscriber has not read yet: `async for event in subscription`.

    Raises Behind once where events had to be left out; after that it goes on with new ones.
    """

    def __init__(self, broadcast: Broadcast, limit: int) -> None:
        self._broadcast = broadcast
        self._limit = limit
        self._waiting: deque[EventRecord] = deque()
        self._news = asyncio.Event()
        self._behind = False
        self._number = 0

    def put(self, events: list[EventRecord]) -> None:
        """Take events from the broadcast."""
        if self._behind:
            return
        if len(self._waiting) + len(events) > self._limit:
            self._behind = True
        else:
            self._waiting.extend(events)
        self._news.set()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> EventRecord:
        await self._something()
        event = self._waiting.popleft()
        self._number = event.number
        return event

    async def batch(self) -> list[EventRecord]:
        """All events that wait, at least one."""
        await self._something()
        events = list(self._waiting)
        self._waiting.clear()
        self._number = events[-1].number
        return events

    async def _something(self) -> None:
        while not self._waiting:
            if self._behind:
                self._behind = False
                raise Behind(self._number)
            self._news.clear()
            await self._news.wait()

    def close(self) -> None:
        """Hear nothing any more."""
        self._broadcast.leave(self)
        self._waiting.clear()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
