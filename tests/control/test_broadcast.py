"""Fan-out of events."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from jobman.control.broadcast import Behind, Broadcast
from jobman.control.store.records import EventRecord


def events(*numbers: int) -> list[EventRecord]:
    return [EventRecord(number=number, job="a", at=0.0, kind="noise") for number in numbers]


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    return run


@in_a_loop
async def test_every_subscriber_hears_everything_in_order() -> None:
    broadcast = Broadcast()
    with broadcast.subscribe() as first, broadcast.subscribe() as second:
        broadcast.publish(events(1, 2))
        broadcast.publish(events(3))
        assert [(await anext(first)).number for _ in range(3)] == [1, 2, 3]
        assert [event.number for event in await second.batch()] == [1, 2, 3]


@in_a_loop
async def test_a_subscriber_that_waits_is_woken() -> None:
    broadcast = Broadcast()
    with broadcast.subscribe() as subscription:
        waiting = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)
        broadcast.publish(events(7))
        assert (await waiting).number == 7


@in_a_loop
async def test_a_slow_subscriber_is_told_once_how_far_it_had_come_and_then_hears_on() -> None:
    broadcast = Broadcast(limit=3)
    with broadcast.subscribe() as slow:
        broadcast.publish(events(1, 2, 3))
        broadcast.publish(events(4))
        broadcast.publish(events(5))
        assert [(await anext(slow)).number for _ in range(3)] == [1, 2, 3]
        with pytest.raises(Behind) as raised:
            await anext(slow)
        assert raised.value.number == 3
        broadcast.publish(events(6))
        assert (await anext(slow)).number == 6


@in_a_loop
async def test_who_has_left_is_forgotten() -> None:
    broadcast = Broadcast()
    with broadcast.subscribe():
        assert len(broadcast) == 1
    assert len(broadcast) == 0
    broadcast.publish(events(1))
