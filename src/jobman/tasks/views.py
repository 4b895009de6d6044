"""What a broker tells of itself: to tenants what is theirs, to operators what concerns all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from jobman.tasks.batches import ENDED, Status
from jobman.tasks.broker import Broker
from jobman.tasks.charging import Used
from jobman.tasks.entries import ENDS, Entry
from jobman.tasks.happenings import Happening
from jobman.tasks.model import Ends, HPCTask, HPCTaskRunnable, Told
from jobman.tasks.payloads import Payloads
from jobman.tasks.recording import Recorder
from jobman.tasks.scaling import Scales
from jobman.tasks.stats import (
    AgentStats,
    BatchStats,
    DeadLetter,
    Outstanding,
    Stats,
    TypeStats,
    agents_of,
    batch_stats,
    outstanding,
    shown,
    stats_of,
    types_of,
)
from jobman.tasks.tenants import Tenants
from jobman.tasks.wire import Request, wants_json

_MOST_ENTRIES = 1000
_MOST_ROWS = 1000
LONGEST_WAIT = 60.0
_LOOK = 0.25


class Views:
    """Answers to questions; nothing is changed here."""

    def __init__(
        self, broker: Broker, recorder: Recorder, payloads: Payloads, tenants: Tenants, scales: Scales
    ) -> None:
        self._broker = broker
        self._recorder = recorder
        self._payloads = payloads
        self._tenants = tenants
        self._scales = scales

    async def answer(self, what: str, request: Request) -> Any:
        """One of those in `WHAT`."""
        return await self._all[what](self, request, dict(parse_qsl(request.query)))

    # -- what became of tasks ----------------------------------------------------------------------

    async def _results(self, request: Request, query: Mapping[str, str]) -> Any:
        tenant = self._tenants.of(request)
        only = int(query["batch"]) if "batch" in query else None

        def wanted(entry: Entry) -> bool:
            batch = self._broker.batches.get(entry.batch)
            is_mine = batch is not None and batch.tenant == tenant
            return entry.kind == ENDS and is_mine and only in (None, entry.batch)

        wait = min(LONGEST_WAIT, float(query.get("wait", 0)))
        results = self._recorder.results
        found, place = await results.after(int(query.get("after", 0)), _MOST_ENTRIES, wait, wanted)
        if wants_json(request):
            ends = [(each.batch, msgspec.msgpack.decode(each.body, type=Ends)) for each in found]
            return Told(place=place, ends=ends)
        # As it is in the journal, it goes out.
        return {"place": place, "ends": [(each.batch, msgspec.Raw(each.body)) for each in found]}

    async def _events(self, request: Request, query: Mapping[str, str]) -> dict[str, Any]:
        tenant, sees_all = self._tenants.of(request), self._tenants.sees_all(request)
        after, most = int(query.get("after", 0)), _most(query)
        until = time.monotonic() + min(LONGEST_WAIT, float(query.get("wait", 0)))
        diary = self._broker.diary

        def wanted(line: Happening) -> bool:
            return sees_all or line.tenant == tenant

        while not (found := diary.after(after, wanted, most)) and time.monotonic() < until:
            await asyncio.sleep(_LOOK)
        return {"place": found[-1].seq if found else max(after, diary.place), "events": found}

    async def _dead(self, request: Request, query: Mapping[str, str]) -> list[DeadLetter]:
        dead = (
            (batch.id, index)
            for batch, indexes in self._broker.dead(self._tenants.of(request))
            for index in indexes
        )
        some: dict[int, list[int]] = {}
        for id_, index in islice(dead, _most(query)):
            some.setdefault(id_, []).append(index)
        return [letter for id_, indexes in some.items() for letter in await self._letters(id_, indexes)]

    async def _letters(self, batch: int, indexes: list[int]) -> list[DeadLetter]:
        head, payloads = self._broker.heads[batch], await self._payloads.of(batch)
        ends: dict[int, Ends] = {}
        journal = self._recorder.journal
        for entry in await asyncio.to_thread(lambda: list(journal.entries_of(batch, ENDS))):
            each = msgspec.msgpack.decode(entry.body, type=Ends)
            ends |= dict.fromkeys(each.indexes, each)
        return [
            DeadLetter(
                batch=batch,
                index=index,
                type=head.type,
                version=head.version,
                attempts=ends[index].attempts.get(index, 1),
                deaths=ends[index].deaths,
                reason=ends[index].reasons.get(index, ends[index].reason),
                payload=shown(payloads[index]),
            )
            for index in indexes
            if index in ends
        ]

    # -- what there is -----------------------------------------------------------------------------

    async def _stats(self, request: Request, _: Mapping[str, str]) -> Stats:
        return stats_of(self._broker, self._tenants.of(request), _now())

    async def _types(self, request: Request, _: Mapping[str, str]) -> list[TypeStats]:
        self._tenants.of(request)
        return types_of(self._broker)

    async def _batches(self, request: Request, query: Mapping[str, str]) -> list[BatchStats]:
        tenant = self._tenants.of(request)
        own = [batch for batch in reversed(self._broker.batches.values()) if batch.tenant == tenant]
        return [batch_stats(self._broker, batch, _now(), time.time()) for batch in own[: _most(query)]]

    async def task(self, tenant: str, batch_id: int, index: int) -> HPCTaskRunnable:
        """A single one."""
        batch = self._broker.own(tenant, batch_id, index)
        head = self._broker.heads[batch_id]
        status = Status(batch.states[index])
        agents = self._broker.leases.agents.values()
        payload = (await self._payloads.of(batch_id))[index]
        return HPCTaskRunnable(
            task=HPCTask(
                id=f"{batch_id}/{index}",
                name=head.name,
                type=head.type,
                version=head.version,
                parameters=head.parameters,
                payload=payload,
                mapper=head.mapper,
            ),
            image=head.image,
            estimate=batch.estimate(index),
            status="running" if status == Status.GIVEN else status.name.lower(),
            attempt=batch.attempt(index),
            agent=""
            if status >= ENDED
            else next((agent.id for agent in agents if index in agent.held.get(batch, ())), ""),
        )

    async def _usage(self, request: Request, query: Mapping[str, str]) -> list[Used]:
        tenant = (
            None if query.get("all") and self._tenants.is_operator(request) else self._tenants.of(request)
        )
        since, until = float(query.get("since", 0)), float(query.get("until", "inf"))
        return await asyncio.to_thread(self._recorder.journal.used, tenant, since, until)

    # -- for operators -----------------------------------------------------------------------------

    async def _outstanding(self, request: Request, _: Mapping[str, str]) -> dict[str, Outstanding]:
        self._tenants.check_operator(request)
        return self.outstanding()

    def outstanding(self) -> dict[str, Outstanding]:
        """The work of each image, and the workers that it wants now."""
        images = {line.image for lines in self._broker.table.types.values() for line in lines}
        return {
            image: outstanding(self._broker, image, self._scales.of(image), _now())
            for image in sorted(images.union(self._broker.queues))
        }

    def agents(self, request: Request) -> dict[str, AgentStats]:
        """Who is there, and what each has."""
        self._tenants.check_operator(request)
        return agents_of(self._broker, _now())

    _all: Mapping[str, Callable[[Views, Request, Mapping[str, str]], Awaitable[Any]]] = {
        "results": _results,
        "events": _events,
        "dead": _dead,
        "stats": _stats,
        "types": _types,
        "batches": _batches,
        "usage": _usage,
        "outstanding": _outstanding,
    }
    WHAT = frozenset(_all)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _most(query: Mapping[str, str]) -> int:
    return max(0, min(_MOST_ROWS, int(query.get("most", _MOST_ROWS))))
