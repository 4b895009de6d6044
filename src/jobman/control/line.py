"""A line of replicas that wait for resources, and the pool they wait for."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

import msgspec

from jobman.sched.allocation import Allocation
from jobman.sched.placement import Pool
from jobman.sched.wishes import Wishes
from jobman.spec.shapes import Alternatives

Rank = tuple[int, int, int]
"""Who comes first: the weight of the priority (turned round), the job's number, the order of asking."""


class Ask(msgspec.Struct, frozen=True, order=True):
    """A replica that waits."""

    rank: Rank
    job: str
    key: str


class Line:
    """Gives resources in the order of ranks.

    A strict line lets nobody pass one that does not fit. Inside a group everybody who fits may go: what the
    first waits for may be held by a service until the very end.
    """

    def __init__(self, pool: Pool, *, strict: bool) -> None:
        self.pool = pool
        self.strict = strict
        self._waiting: list[Ask] = []
        self._asks: dict[tuple[str, str], Ask] = {}
        self._is_settled = True
        self._has_hopeless = False
        """Whether somebody waits for what can never be given."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Ask]:
        return iter(self._waiting)

    def join(self, ask: Ask) -> None:
        insort(self._waiting, ask)
        self._asks[ask.job, ask.key] = ask
        # Behind somebody who does not fit, nothing changes for anybody.
        blocked = self.strict and not self._has_hopeless and self._waiting[0] is not ask
        self._is_settled = self._is_settled and blocked

    def leave(self, job: str, key: str) -> None:
        ask = self._asks.pop((job, key), None)
        if ask is not None:
            self._is_settled = self._is_settled and self._waiting[0] is not ask
            del self._waiting[bisect_left(self._waiting, ask)]

    def give_back(self, allocation: Allocation) -> None:
        self.pool.give_back(allocation)
        self._is_settled = False

    def position(self, job: str, key: str) -> int | None:
        """The place in the line, from 1."""
        ask = self._asks.get((job, key))
        return None if ask is None else bisect_left(self._waiting, ask) + 1

    def serve(self, wanted: Callable[[Ask], tuple[Alternatives, Wishes]]) -> Iterator[tuple[Ask, Allocation]]:
        """Give what can be given now."""
        if self._is_settled:
            return
        self._is_settled = True
        self._has_hopeless = False
        for ask in list(self._waiting):
            if (ask.job, ask.key) not in self._asks:
                continue
            wishes = wanted(ask)
            allocation = self.pool.place(*wishes)
            if allocation is not None:
                self.leave(ask.job, ask.key)
                yield ask, allocation
            elif self.strict and self.pool.could_ever(*wishes):
                return
            else:
                # On a machine that has become smaller; it keeps nobody else waiting.
                self._has_hopeless = self.strict
