"""Agents that wait for work: it comes in the very moment in which they give up, and is not lost."""

from __future__ import annotations

import asyncio
import time

import pytest

from jobman.tasks.broker import Broker
from jobman.tasks.model import Pull, Submission
from jobman.tasks.pulls import Answered, Pulls
from tests.tasks.test_recording import until
from tests.tasks.test_serving import TABLE, run


class Waiting:
    """A broker with one agent whose pull is open."""

    def __init__(self) -> None:
        self.broker = Broker(TABLE)
        self.pulls = Pulls(self.broker)

    async def open(self, wait: float) -> asyncio.Task[Answered]:
        asked = Pull(image="squares", seconds=1.0, wait=wait, have={})
        pulling = asyncio.create_task(self.pulls.answer("x", asked, 60.0))
        await until(lambda: self.pulls.count)
        return pulling

    def submit(self) -> int:
        now = asyncio.get_running_loop().time()
        asked = Submission(type="square", payloads=[b"3"])
        return self.broker.submit("a", asked, now, now).id


def test_who_is_cancelled_when_work_comes_is_cancelled_and_the_work_waits_for_another() -> None:
    async def scenario() -> None:
        there = Waiting()
        pulling = await there.open(60.0)
        batch = there.submit()
        there.pulls.feed("squares")
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
        assert there.broker.has_work("squares")
        again = await there.pulls.answer("y", Pull(image="squares", seconds=1.0, have={}), 60.0)
        assert [given.batch for given in again[0]] == [batch]

    run(scenario)


@pytest.mark.parametrize("is_given_first", [True, False])
def test_work_that_comes_when_the_time_is_over_is_given_all_the_same(is_given_first: bool) -> None:
    async def scenario() -> None:
        there = Waiting()
        pulling = await there.open(0.5)
        batch = there.submit()
        if is_given_first:
            there.pulls.feed("squares")
        # Meanwhile the loop stands still, and then all of it is due at once.
        time.sleep(0.6)
        there.pulls.feed("squares")
        given, _ = await pulling
        assert [each.batch for each in given] == [batch]

    run(scenario)
