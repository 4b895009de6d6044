"""Numbers of the service in the format of Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from jobman.control.answers import JobState
from jobman.control.api.call import Desk
from jobman.control.api.endpoint import Reply
from jobman.control.api.measures import BUCKETS

_STATES: tuple[JobState, ...] = ("waiting", "running", "succeeded", "failed", "cancelled")
_LAG_SECONDS = 1.0
_MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Numbers(Collector):
    """Reads the measures of a service whenever it is asked."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def collect(self) -> Iterator[Metric]:
        yield from (self._jobs(), self._requests(), self._latencies())
        measures = self._desk.measures
        for name, words, value in (
            ("jobman_streams", "Answers that are being followed.", measures.streams),
            ("jobman_event_loop_lag_seconds", "By how much the event loop was last late.", measures.lag),
            ("jobman_healthy", "1 unless the service is in trouble.", not self._desk.director.trouble),
        ):
            yield GaugeMetricFamily(name, words, value=float(value))

    def _jobs(self) -> Metric:
        family = GaugeMetricFamily("jobman_jobs", "Jobs by state.", labels=["state"])
        counts = self._desk.store.counts()
        for state in _STATES:
            family.add_metric([state], counts.get(state, 0))
        return family

    def _requests(self) -> Metric:
        words = "Requests by method, path and status."
        family = CounterMetricFamily("jobman_requests", words, labels=["method", "path", "status"])
        for (method, path, status), count in list(self._desk.measures.requests.items()):
            family.add_metric([method, path, str(status)], count)
        return family

    def _latencies(self) -> Metric:
        words = "How long requests took."
        family = HistogramMetricFamily("jobman_request_seconds", words, labels=["method", "path"])
        bounds = [*map(str, BUCKETS), "+Inf"]
        for (method, path), found in list(self._desk.measures.latencies.items()):
            counts = accumulate(found.buckets)
            family.add_metric([method, path], list(zip(bounds, counts, strict=True)), sum_value=found.total)
        return family


def exposition(desk: Desk) -> Reply:
    """All numbers, as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Numbers(desk))
    return Reply(generate_latest(registry), media=_MEDIA)


def watch_lag(desk: Desk) -> None:
    """Measure the lag of the event loop from the first time somebody asks for it."""
    if desk.lag_watch is None:
        desk.lag_watch = asyncio.ensure_future(_watch_lag(desk))


async def _watch_lag(desk: Desk) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_SECONDS
        await asyncio.sleep(_LAG_SECONDS)
        desk.measures.lag = max(0.0, loop.time() - due)
