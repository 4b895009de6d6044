"""The outlook on all that waits: when each starts, and where there is room for one more."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from jobman.sched.forecast_play import Play, Rules, Scene, Waiter
from jobman.sched.forecast_steps import Bounds, Steps

REACH = 128
"""How many of those who wait are looked at for passing at one time."""
GRAIN = 0.01
"""The part of an average run that is taken for one moment, where there are very many."""
MOST = 2048
"""How many of those who wait are played, or as many as run; the others follow at the pace of these."""


class Outlook:
    """One play of everything; whoever comes after it is put where there is room among all the others."""

    def __init__(self, ids: Sequence[str], scene: Scene, rules: Rules, *, rough: bool) -> None:
        most = max(MOST, len(scene.running))
        self._scene = scene._replace(waiting=scene.waiting[:most])
        self._grain = _grain(self._scene) if rough else 0.0
        self._played = Play(self._scene, rules, grain=self._grain, reach=REACH if rough else None).run()
        self._in_order = rules.depth == 0
        self._last = max((start for start in self._played if start < inf), default=scene.now)
        self._room: Steps | None = None
        self._front, self._pace = _pace(self._played, scene.now)
        self.starts = dict(zip(ids, self._played, strict=False))
        self._is_crowded = len(ids) > most
        for id in ids[most:]:
            self.starts[id] = self._front = self._front + self._pace

    def start_of(self, id: str | None, waiter: Waiter, now: float) -> float:
        """When one starts; one that was not there yet is put in, if it has an id."""
        known = self.starts.get(id) if id is not None else None
        if known is not None:
            return known
        after = max(now, waiter.earliest)
        start = max(after, self._front + self._pace) if self._is_crowded else self._fitted(waiter, after, now)
        if id is not None:
            self._put_in(id, waiter, start)
        return start

    def _fitted(self, waiter: Waiter, after: float, now: float) -> float:
        """Where there is room for one more."""
        if self._room is None:
            self._room = _room(self._scene, self._played, self._grain)
        self._room.forget(now)
        return self._room.earliest(
            waiter.need, waiter.seconds, max(after, self._last) if self._in_order else after
        )

    def _put_in(self, id: str, waiter: Waiter, start: float) -> None:
        self.starts[id] = start
        if self._is_crowded:
            self._front += self._pace
        elif self._room is not None and start < inf:
            self._last = max(self._last, start)
            self._room.take(start, start + waiter.seconds, waiter.need)


def _grain(scene: Scene) -> float:
    """Seconds that are taken for one moment."""
    return max(1.0, GRAIN * sum(waiter.seconds for waiter in scene.waiting) / max(1, len(scene.waiting)))


def _pace(starts: Sequence[float], now: float) -> tuple[float, float]:
    """When those have started who are played, and the seconds from one to the next.

    By the first nine in ten: the last of them are those that others passed.
    """
    served = sorted(start for start in starts if start < inf)
    if not served:
        return now, 0.0
    most = len(served) * 9 // 10
    pace = (served[most] - now) / (most + 1)
    return served[most] + pace * (len(served) - most - 1), pace


def _room(scene: Scene, starts: Sequence[float], grain: float) -> Steps:
    """What is free from when on, if all happens as played."""
    moves = [(runner.end, runner.need) for runner in scene.running]
    for waiter, start in zip(scene.waiting, starts, strict=True):
        moves += ((start, -waiter.need), (start + waiter.seconds, waiter.need))
    back = Bounds((move for move in moves if move[0] < inf), grain)
    room = Steps(scene.marks, scene.now, scene.free, back.times, back.needs)
    for closure in scene.closures:
        room.take(max(closure.start, scene.now), closure.end, closure.need)
    return room
