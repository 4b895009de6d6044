"""Merged output of all pods and containers of a job, to the end or as it comes.

What was written before is merged by time. What comes is passed on as it comes, from pods that appear later
too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from jobman.engines.kubernetes.errors import Expired
from jobman.engines.kubernetes.indexes import is_over
from jobman.engines.kubernetes.kinds import JOBS, PODS, Kind
from jobman.engines.kubernetes.objects import Change, Job, Pod
from jobman.engines.kubernetes.outputs import Line, Output, copy_of, outputs_of
from jobman.engines.kubernetes.reading import LogsApi, Reading

_LAST_WORDS = 30.0
"""Seconds that outputs may still take to end when the job is over."""
FOLLOWED = 500
"""Outputs that are followed side by side; further ones have to wait until one of them ends."""
_WAITING_LINES = 1000

Wanted = Callable[[Output], bool]


class PodList(Protocol):
    """All pods, and the version to watch from."""

    @property
    def items(self) -> Sequence[Pod]: ...

    @property
    def resource_version(self) -> str: ...


class JobList(Protocol):
    """All Jobs, and the version to watch from."""

    @property
    def items(self) -> Sequence[Job]: ...

    @property
    def resource_version(self) -> str: ...


class PodsApi(LogsApi, Protocol):
    """The cluster as far as it is asked for pods and their output; `api.Api` is one."""

    async def list(self, kind: Kind[Pod], namespace: str | None = None, *, labels: str = "") -> PodList: ...

    def watch(
        self, kind: Kind[Pod], since: str, namespace: str | None = None, *, labels: str = ""
    ) -> AsyncGenerator[Change[Pod], None]: ...


class JobsApi(Protocol):
    """The cluster as far as it is asked for Jobs; `api.Api` is one."""

    async def list(self, kind: Kind[Job], namespace: str | None = None, *, labels: str = "") -> JobList: ...

    def watch(
        self, kind: Kind[Job], since: str, namespace: str | None = None, *, labels: str = ""
    ) -> AsyncGenerator[Change[Job], None]: ...


def everything(_: Output) -> bool:
    """Want all outputs."""
    return True


async def merged(
    api: LogsApi,
    pods: Sequence[Pod],
    *,
    tail: int | None = None,
    since: float | None = None,
    wanted: Wanted = everything,
) -> AsyncGenerator[Line, None]:
    """What these pods wrote up to now, in order of time; with `tail` only the last lines of all."""
    reading = Reading(api)
    outputs = [output for output in outputs_of(pods) if wanted(output)]
    async with aclosing(reading.merged(outputs, tail=tail, since=since)) as lines:
        async for line in lines:
            yield line


async def following(
    api: PodsApi,
    labels: str,
    namespace: str | None = None,
    *,
    until: Coroutine[Any, Any, None],
    tail: int | None = None,
    since: float | None = None,
    wanted: Wanted = everything,
) -> AsyncGenerator[Line, None]:
    """What was written, and then what is, until `until` is done and all that was said then is told."""
    follower = Follower(api, labels, namespace, wanted)
    async with aclosing(follower.lines(until, tail=tail, since=since)) as lines:
        async for line in lines:
            yield line


async def until_over(
    api: JobsApi, labels: str, namespace: str | None = None, *, is_done: Callable[[Job], bool] = is_over
) -> None:
    """Wait until all Jobs with these labels are done, or gone."""
    while True:
        listed = await api.list(JOBS, namespace, labels=labels)
        left = {job.metadata.name for job in listed.items if not is_done(job)}
        if not left:
            return
        try:
            changes = api.watch(JOBS, listed.resource_version, namespace, labels=labels)
            async with aclosing(changes) as open_changes:
                async for change in open_changes:
                    name = change.object.metadata.name
                    is_gone = change.type == "DELETED" or is_done(change.object)
                    left.discard(name) if is_gone else left.add(name)
                    if not left:
                        return
        except Expired:
            continue


class Follower:
    """All outputs of a job as they come: a task watches for pods, and one reads each output."""

    def __init__(self, api: PodsApi, labels: str, namespace: str | None, wanted: Wanted) -> None:
        self._api = api
        self._labels = labels
        self._namespace = namespace
        self._wanted = wanted
        self._reading = Reading(api)
        self._copies: defaultdict[tuple[str, int], dict[str, Pod]] = defaultdict(dict)
        self._running: dict[tuple[str, str], int] = {}
        """Containers that run, and how often each had been started before."""
        self._begun: set[tuple[str, str, int]] = set()
        self._readers: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(FOLLOWED)
        self._queue: asyncio.Queue[Line | BaseException | None] = asyncio.Queue(_WAITING_LINES)
        self._passed = 0
        self._since: float | None = None

    async def lines(
        self, until: Coroutine[Any, Any, None], *, tail: int | None, since: float | None
    ) -> AsyncGenerator[Line, None]:
        """First what was written, in order, then what comes. `tail` and `since` are about the former."""
        self._since = since
        conductor = asyncio.ensure_future(until)
        watcher: asyncio.Task[None] | None = None
        try:
            version, copies = await self._list()
            history = self._outputs(copies)
            ended = {output.key for output in history if not self._goes_on(output)}
            async with aclosing(self._reading.merged(history, tail=tail, since=since)) as past:
                async for line in past:
                    yield line
            self._begun |= ended
            for output in history:
                self._begin(output, tail)
            watcher = asyncio.create_task(self._watch(version, conductor))
            while (item := await self._queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            await _stopped([conductor, *([watcher] if watcher else []), *self._readers])

    async def _watch(self, version: str, over: asyncio.Future[None]) -> None:
        """Look at pods until the job is over, then let the outputs that are left end."""
        changes = asyncio.create_task(self._changes(version))
        try:
            await asyncio.wait([changes, over], return_when=asyncio.FIRST_COMPLETED)
            if changes.done():
                await changes
            await over
            _, copies = await self._list()
            self._look(copies)
            await self._last_words()
            await self._queue.put(None)
        except Exception as error:
            await self._queue.put(error)
        finally:
            await _stopped([changes])

    async def _last_words(self) -> None:
        """Wait for the readers that are left, as long as anything comes or nobody takes what came."""
        while self._readers:
            passed = self._passed
            done, _ = await asyncio.wait(self._readers, timeout=_LAST_WORDS)
            if not done and passed == self._passed and not self._queue.full():
                return

    async def _changes(self, version: str) -> None:
        while True:
            try:
                changes = self._api.watch(PODS, version, self._namespace, labels=self._labels)
                async with aclosing(changes) as open_changes:
                    async for change in open_changes:
                        self._look(self._note(change.object, gone=change.type == "DELETED"))
            except Expired:
                version, copies = await self._list()
                self._look(copies)

    async def _list(self) -> tuple[str, set[tuple[str, int]]]:
        listed = await self._api.list(PODS, self._namespace, labels=self._labels)
        copies = {copy for pod in listed.items for copy in self._note(pod)}
        return listed.resource_version, copies

    def _note(self, pod: Pod, *, gone: bool = False) -> set[tuple[str, int]]:
        """Remember what is known of a pod; returns the copy it is of."""
        self._copies[copy_of(pod)][pod.metadata.uid] = pod
        for status in [*pod.status.init_container_statuses, *pod.status.container_statuses]:
            self._running.pop((pod.metadata.uid, status.name), None)
            if status.state.running and not gone:
                self._running[pod.metadata.uid, status.name] = status.restart_count
        return {copy_of(pod)}

    def _outputs(self, copies: Iterable[tuple[str, int]]) -> list[Output]:
        found = outputs_of(pod for copy in copies for pod in self._copies[copy].values())
        return [output for output in found if self._wanted(output)]

    def _look(self, copies: Iterable[tuple[str, int]]) -> None:
        """Begin to read what nobody reads yet."""
        for output in self._outputs(copies):
            self._begin(output)

    def _begin(self, output: Output, tail: int | None = None) -> None:
        if output.key not in self._begun:
            self._begun.add(output.key)
            reader = asyncio.create_task(self._read(output, tail))
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)

    async def _read(self, output: Output, tail: int | None) -> None:
        lines = self._reading.follow(output, self._goes_on, tail=tail, since=self._since)
        try:
            async with self._places, aclosing(lines) as open_lines:
                async for line in open_lines:
                    await self._queue.put(line)
                    self._passed += 1
        except Exception as error:
            await self._queue.put(error)

    def _goes_on(self, output: Output) -> bool:
        """Whether an output that broke off is still being written, as far as we know."""
        return self._running.get((output.uid, output.container)) == output.restart


async def _stopped(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
