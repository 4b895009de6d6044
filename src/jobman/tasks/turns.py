"""Turns on a machine that has not room for a worker of each image: nobody waits for ever.

Time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from math import inf

TURN = 3.0
"""Seconds for which an image has its workers before another one that has none may have their room."""


class Turns:
    """Who is served first: whose turn is not over, then who waits, longest first, then the others."""

    def __init__(self, length: float = TURN) -> None:
        self._length = length
        self._begun: dict[str, float] = {}
        """When the turn of an image began: with its first worker, so not yet where that has to wait."""
        self._waits: dict[str, float] = {}

    def order(self, images: Collection[str], working: Container[str], now: float) -> list[str]:
        """All of them; those without work come last."""
        return sorted(images, key=lambda image: (*self._rank(image, image in working, now), image))

    def _rank(self, image: str, works: bool, now: float) -> tuple[int, float]:
        if not works:
            return 3, 0.0
        begun = self._begun.get(image)
        if begun is None:
            return 1, self._waits.get(image, now)
        return (0, 0.0) if now < begun + self._length else (2, -begun)

    def note(
        self, working: Collection[str], served: Container[str], present: Container[str], now: float
    ) -> None:
        """Who of those with work has room now, and who of these has workers."""
        waits = [image for image in working if image not in served]
        self._waits = {image: self._waits.get(image, now) for image in waits}
        self._begun = {
            image: min(self._begun.get(image, inf), now if image in present else inf)
            for image in working
            if image in served
        }
