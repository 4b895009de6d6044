"""Counts and latencies of requests, kept in plain numbers; only `/metrics` turns them into its own format."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Latencies:
    """How many requests took how long: one number per bucket, the last for all that took longer."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Measures:
    """What is known of the requests since the service started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By method, path as it is declared, and status."""
        self.latencies: dict[tuple[str, str], Latencies] = {}
        self.streams = 0
        """Answers that are being followed at this moment."""
        self.lag = 0.0
        """By how much the event loop was last late, in seconds."""

    def count(self, method: str, route: str, status: int) -> None:
        """Note a request that was answered."""
        self.requests[method, route, status] += 1

    def time(self, method: str, route: str, seconds: float) -> None:
        """Note how long it took."""
        found = self.latencies.get((method, route))
        if found is None:
            found = self.latencies[method, route] = Latencies()
        found.add(seconds)
