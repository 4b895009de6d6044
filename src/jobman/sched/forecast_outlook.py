"""The outlook on all that waits: when each starts, and where there is room for one more."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from jobman.sched.forecast_play import Play, Rules, Scene, Waiter
from jobman.sched.forecast_steps import Steps

REACH = 512
"""How many of those who wait are looked at for passing at one time."""
GRAIN = 0.02
"""The part of the time until then by which an expectation of one among very many may be off."""


class Outlook:
    """One play of everything; whoever comes after it is put where there is room among all the others."""

    def __init__(self, ids: Sequence[str], scene: Scene, rules: Rules, *, rough: bool) -> None:
        play = Play(scene, rules, grain=GRAIN, reach=REACH) if rough else Play(scene, rules)
        found = play.run()
        self.starts = dict(zip(ids, found, strict=True))
        self._in_order = rules.depth == 0
        self._last = max((start for start in found if start < inf), default=scene.now)
        self._room: Steps | None = None
        self._scene = scene

    def start_of(self, id: str | None, waiter: Waiter, now: float) -> float:
        """When one starts; one that was not there yet is put in, if it has an id."""
        known = self.starts.get(id) if id is not None else None
        if known is not None:
            return known
        after = max(now, waiter.earliest, self._last if self._in_order else now)
        room = self._steps()
        room.forget(now)
        start = room.earliest(waiter.need, waiter.seconds, after)
        if id is not None and start < inf:
            self.starts[id] = start
            self._last = max(self._last, start)
            room.take(start, start + waiter.seconds, waiter.need)
        return start

    def _steps(self) -> Steps:
        if self._room is None:
            found = [self.starts[id] for id in self.starts]
            self._room = _room(self._scene, found)
        return self._room


def _room(scene: Scene, starts: Sequence[float]) -> Steps:
    """What is free from when on, if all happens as played."""
    moves = [(runner.end, runner.need) for runner in scene.running if runner.end < inf]
    for waiter, start in zip(scene.waiting, starts, strict=True):
        if start < inf:
            moves += ((start, -waiter.need), (start + waiter.seconds, waiter.need))
    moves.sort()
    room = Steps(scene.marks, scene.now, scene.free, *zip(*moves, strict=True)) if moves else None
    room = room or Steps(scene.marks, scene.now, scene.free, (), ())
    for closure in scene.closures:
        room.take(max(closure.start, scene.now), closure.end, closure.need)
    return room
