"""How many tasks of some batches have ended, and how; each counts once however often it is told."""

from __future__ import annotations

from collections import Counter

from jobman.tasks.batches import Status

_OPEN = 0
_NUMBERS = {status.name.lower(): status.value + 1 for status in Status}
COMPLETED = "completed"


class Tally:
    """What became of tasks so far."""

    def __init__(self) -> None:
        self._batches: dict[int, bytearray] = {}
        self._counts: Counter[int] = Counter()
        self.size = 0

    def add(self, batch: int, size: int) -> None:
        """These are waited for."""
        if batch not in self._batches:
            self._batches[batch] = bytearray(size)
            self.size += size

    def end(self, batch: int, index: int, status: str) -> bool:
        """One has ended; false where nobody waits for it. Of two ends the last counts."""
        seen = self._batches.get(batch)
        if seen is None:
            return False
        if before := seen[index]:
            self._counts[before] -= 1
        seen[index] = _NUMBERS[status]
        self._counts[seen[index]] += 1
        return True

    @property
    def ended(self) -> int:
        return self._counts.total()

    @property
    def left(self) -> int:
        return self.size - self.ended

    @property
    def failed(self) -> int:
        """Those that did not complete, whatever the reason."""
        return self.ended - self._counts[_NUMBERS[COMPLETED]]

    @property
    def counts(self) -> dict[str, int]:
        """By status, those that are not none."""
        return {name: self._counts[number] for name, number in _NUMBERS.items() if self._counts[number]}

    @property
    def batches(self) -> list[int]:
        return list(self._batches)
