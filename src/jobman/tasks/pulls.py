"""Agents that wait for work or orders, each with one pull that is open."""

from __future__ import annotations

import asyncio

import msgspec

from jobman.tasks.broker import Broker, Given
from jobman.tasks.model import Pull
from jobman.tasks.submissions import Refusal

Answered = tuple[list[Given], list[tuple[int, int]]]
"""Work, and what is to be ended."""


class _Open:
    """A pull that waits."""

    def __init__(self, agent: str, asked: Pull) -> None:
        self.agent = agent
        # What it has was taken up when it came.
        self.asked = msgspec.structs.replace(asked, have=None)
        self.future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()


class Pulls:
    """The pulls that are open, in the order in which they came."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._open: dict[str, _Open] = {}
        self._images: dict[str, dict[str, _Open]] = {}

    async def answer(self, agent: str, asked: Pull, longest: float) -> Answered:
        """Work or orders, as soon as there are some; nothing after its time."""
        self._end_namesake(agent, asked)
        given, cancel = self._broker.pull(agent, asked, self._now()), self._broker.orders(agent)
        if given or cancel or asked.wait <= 0:
            return given, cancel
        mine = self._open[agent] = _Open(agent, asked)
        self._images.setdefault(asked.image, {})[agent] = mine
        try:
            # Not `wait_for`, which forgets that it was cancelled where work comes at the same moment.
            async with asyncio.timeout(min(longest, asked.wait)):
                return await mine.future
        except TimeoutError:
            is_given = mine.future.done() and not mine.future.cancelled()
            return mine.future.result() if is_given else ([], [])
        except asyncio.CancelledError:
            # Its connection is gone, and so is whoever waited on it, unless it came again meanwhile.
            if self._open.get(agent, mine) is mine:
                self._broker.lost(agent)
                self._close(mine)
                self.feed_all()
            raise
        finally:
            self._close(mine)

    def _end_namesake(self, agent: str, asked: Pull) -> None:
        """An agent has one pull open: where another comes it is somebody else's, or its own after a break.

        Who hears of it has a namesake, and ends; who has come says what it has, as it cannot be told apart
        from what the other had.
        """
        before = self._open.get(agent)
        if before is None:
            return
        self._close(before)
        if not before.future.done():
            before.future.set_exception(
                Refusal("replaced", f"another agent came as {agent}", "give each agent a name of its own")
            )
            if asked.have is None:
                self._broker.lost(agent)
                self.feed_all()

    def _settle(self, pull: _Open, answered: Answered) -> None:
        self._close(pull)
        if not pull.future.done():
            pull.future.set_result(answered)

    def _close(self, pull: _Open) -> None:
        if self._open.get(pull.agent) is pull:
            del self._open[pull.agent]
            self._images[pull.asked.image].pop(pull.agent, None)

    def leave(self, agent: str) -> None:
        """An agent wants no more."""
        if (pull := self._open.get(agent)) is not None:
            self._settle(pull, ([], []))

    def credit(self, agent: str, seconds: float) -> None:
        """An agent that waits has room for so many seconds of work by now."""
        if (pull := self._open.get(agent)) is not None:
            pull.asked = msgspec.structs.replace(pull.asked, seconds=seconds)

    def feed_all(self) -> None:
        """Work for all who wait."""
        for image in list(self._images):
            self.feed(image)

    def feed(self, image: str) -> None:
        """Work for those who wait for tasks of an image, in the order in which they came."""
        for pull in list(self._images.get(image, {}).values()):
            if not self._broker.has_work(image):
                return
            if pull.asked.seconds > 0 and not pull.future.done():
                given = self._broker.pull(pull.agent, pull.asked, self._now())
                if given:
                    self._settle(pull, (given, self._broker.orders(pull.agent)))

    def order(self) -> None:
        """Tell those who wait what they are to end."""
        for pull in list(self._open.values()):
            if not pull.future.done() and (cancel := self._broker.orders(pull.agent)):
                self._settle(pull, ([], cancel))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    @property
    def count(self) -> int:
        return len(self._open)
