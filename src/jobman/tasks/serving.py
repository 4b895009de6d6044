"""The broker behind HTTP: requests become decisions, decisions are written, and then answered.

| request | does |
| --- | --- |
| `POST /v1/tasks`, `?ends=1` | submits a batch; the answer tells the end of a single task that took no time |
| `GET /v1/tasks/results?after=PLACE&wait=SECONDS&batch=BATCH` | tells what became of tasks |
| `GET /v1/tasks/events?after=PLACE&wait=SECONDS` | tells what happened |
| `GET /v1/tasks/batches`, `GET /v1/tasks/BATCH/INDEX` | tells of batches, and of a single task |
| `POST /v1/tasks/BATCH/fetched` | says that nobody will ask for its results again |
| `POST /v1/tasks?fetched=BATCH,…`, `GET …/results?fetched=BATCH,…` | the same of many, with what comes next |
| `POST /v1/tasks/BATCH/cancel` | ends what waits and runs of a batch: all, or these indexes; tells how many |
| `GET /v1/tasks/stats`, `/types`, `/usage?since=TIME` | what there is, how long it takes, what it cost |
| `POST /v1/tasks/types`, `/types/remove` | says who executes a type; for operators |
| `GET /v1/tasks/dead`, `POST /v1/tasks/dead/retry`, `/drop` | dead letters: these, or all |
| `GET /v1/tasks/outstanding`, `GET /v1/agents` | work of each image, and who does it; for operators |
| `POST /v1/agents/ID/pull`, `/report`, `/crashed`, `/returned`, `/notes`, `/leave` | for agents |
| `GET /metrics`, `GET /healthz` | numbers for Prometheus; whether it is there |

Bodies are MessagePack, or JSON for those who say so by `content-type` and `accept`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from jobman.control.store.database import Database
from jobman.tasks.batches import Batch
from jobman.tasks.broker import Broker, Given
from jobman.tasks.happenings import Note
from jobman.tasks.journal import Journal
from jobman.tasks.mapper import Executor, Table, TypeLine, Unmappable
from jobman.tasks.mappers import Mappers, Question
from jobman.tasks.metrics import metrics_of
from jobman.tasks.model import Acceptance, Orders, Problem, Pull, Report, Submission, Work
from jobman.tasks.payloads import Payloads
from jobman.tasks.pulls import Pulls
from jobman.tasks.quotas import Quota
from jobman.tasks.recording import Recorder, Unwritten
from jobman.tasks.scaling import Limits, Scales
from jobman.tasks.stock import EXPIRY
from jobman.tasks.submissions import Refusal
from jobman.tasks.tenants import OPERATOR, Tenants
from jobman.tasks.versions import Range
from jobman.tasks.views import LONGEST_WAIT, Views
from jobman.tasks.wire import JSON, TEXT, Answer, Request, wants_json

_STATUSES = {
    "unmappable": 422,
    "mapper": 503,
    "empty": 400,
    "wrong": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "unknown": 404,
    "stranger": 409,
    "replaced": 409,
    "too-large": 413,
    "quota": 429,
}
_TICK = 0.25
_TOGETHER = 0.003
"""Seconds for which the acceptance of a single task waits for its end."""
_PAGE = "see the page on short tasks"
_encode = msgspec.msgpack.encode


class Removal(msgspec.Struct, frozen=True):
    """A type that nobody executes any more, or one line of it."""

    type: str
    versions: str | None = None


class Service:
    """A broker with its journal, for one event loop."""

    def __init__(
        self,
        database: Database,
        table: Table,
        *,
        tokens: Mapping[str, str] | None = None,
        operators: Collection[str] = (OPERATOR,),
        quotas: Mapping[str, Quota] | None = None,
        limits: Mapping[str, Limits] | None = None,
        mappers: Mappers | None = None,
        price: float = 1.0,
        lease: float = 10.0,
        expiry: float = EXPIRY,
        grace: float = 0.0,
    ) -> None:
        self._journal = Journal(database)
        self.broker = Broker(
            table, first=self._journal.first, quotas=quotas, lease=lease, expiry=expiry, grace=grace
        )
        self._mappers = mappers or Mappers()
        self._payloads = Payloads(self._journal.payloads)
        self._pulls = Pulls(self.broker)
        self._recorder = Recorder(self._journal, self.broker, price=price, refused=self._refused)
        self._tenants = Tenants(tokens, operators)
        self.views = Views(self.broker, self._recorder, self._payloads, self._tenants, Scales(limits))
        self._ticking: asyncio.Task[None] | None = None

    @property
    def replaced(self) -> asyncio.Event:
        """Set when another broker has taken over: nothing can be written here any more."""
        return self._recorder.replaced

    async def start(self) -> None:
        """Take up what was written before."""
        self._journal.call = asyncio.get_running_loop().call_soon_threadsafe
        await asyncio.to_thread(self._recorder.restore, self._now())
        self.broker.table.learn(await asyncio.to_thread(self._journal.types))
        self.broker.diary.add("broker-started", words=f"epoch {self._journal.epoch}")
        await self._recorder.clean()
        self._ticking = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """Write what waits, and end."""
        if self._ticking is not None:
            self._ticking.cancel()
        if not self.replaced.is_set():
            self._recorder.begin([], [])
            self._recorder.slice(self._now())
        await asyncio.to_thread(self._journal.close)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            # A disk that is full holds up what is written, and not the time.
            self._recorder.begin([], self.broker.tick(self._now()))
            self._forget()
            self._pulls.order()
            self._pulls.feed_all()

    # -- requests ----------------------------------------------------------------------------------

    async def handle(self, request: Request) -> Answer:
        """Answer a request."""
        try:
            found = await self._route(request)
        except Refusal as error:
            headers = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:.0f}"}
            return _problem(request, error.code, str(error), error.advice, headers)
        except (msgspec.DecodeError, ValueError) as error:
            return _problem(request, "wrong", str(error), _PAGE)
        except Unwritten as error:
            return _problem(request, "not-written", str(error), "nothing was accepted; try again later")
        return found if isinstance(found, Answer) else _answer(request, 200, found)

    async def _route(self, request: Request) -> Any:
        words = tuple(request.path.strip("/").split("/"))
        match (request.method, *words):
            case ("POST", "v1", "agents", agent, act) if act in self._acts:
                self._tenants.check_operator(request)
                return await self._acts[act](self, agent, request)
            case ("POST", "v1", "tasks"):
                self._fetched_before(request)
                return await self._submit(request)
            case ("GET", "v1", "tasks", what) if what in Views.WHAT:
                if what == "results":
                    self._fetched_before(request)
                return await self.views.answer(what, request)
            case ("GET", "v1", "tasks", batch, index) if batch.isdecimal() and index.isdecimal():
                return await self.views.task(self._tenants.of(request), int(batch), int(index))
            case ("GET", "v1", "agents"):
                return self.views.agents(request)
            case ("POST", "v1", "tasks", "dead", act) if act in ("retry", "drop"):
                return await self._decide_dead(request, act)
            case ("POST", "v1", "tasks", "types"):
                return await self._add_type(request)
            case ("POST", "v1", "tasks", "types", "remove"):
                return await self._remove_type(request)
            case ("POST", "v1", "tasks", batch, "cancel") if batch.isdecimal():
                return await self._cancel(request, int(batch))
            case ("POST", "v1", "tasks", batch, "fetched") if batch.isdecimal():
                return self._fetched(self._tenants.of(request), int(batch))
            case ("GET", "healthz"):
                place = self._recorder.results.place
                return {"epoch": self._journal.epoch, "open": self.broker.open, "place": place}
            case ("GET", "metrics"):
                # It tells of all tenants.
                self._tenants.check_operator(request)
                return Answer(200, self._metrics().encode(), TEXT)
        raise Refusal("unknown", f"there is no {request.method} {request.path}", _PAGE)

    def _metrics(self) -> str:
        work = self.views.outstanding()
        return metrics_of(self.broker, self._now(), self._journal, self._pulls.count, work)

    # -- tenants -----------------------------------------------------------------------------------

    async def _submit(self, request: Request) -> Acceptance:
        asked = _decode(request, Submission)
        tenant = self._tenants.of(request)
        executor = await self._mapped(asked) if asked.mapper else None
        accepted = self.broker.submit(tenant, asked, self._now(), time.time(), executor)
        if accepted.stored is None:
            await self._recorder.written(accepted.id)
            return Acceptance(batch=accepted.id, size=len(self.broker.own(tenant, accepted.id)))
        payloads = [each.encode() for each in asked.references] or asked.payloads
        self._payloads.put(accepted.id, payloads, accepted.stored.volume)
        # It may be given out before it is written: nobody was told yet that it is accepted.
        batch = self.broker.batches[accepted.id]
        self._pulls.feed(batch.image)
        patience = self._patience(batch)
        if not patience or "ends=" not in request.query:
            await self._recorder.write(batches=[accepted.stored], patience=patience)
            return Acceptance(batch=accepted.id, size=asked.size)
        results = self._recorder.results
        with results.answered(batch.id) as ended:
            await self._recorder.write(batches=[accepted.stored], patience=patience)
            ends = [msgspec.Raw(entry.body) for entry in ended()]
        return Acceptance(batch=accepted.id, size=asked.size, ends=ends, place=results.place)

    def _patience(self, batch: Batch) -> float:
        """A short task that somebody has in hand already is written with its end: one commit for both."""
        is_short = len(batch) == 1 and batch.estimate(0) <= _TOGETHER
        return _TOGETHER if is_short and not self.broker.has_work(batch.image) else 0.0

    async def _mapped(self, asked: Submission) -> Executor:
        question = Question(type=asked.type, version=asked.version, parameters=asked.parameters)
        try:
            return await self._mappers.map(asked.mapper, question)
        except Unmappable as error:
            raise Refusal("unmappable", str(error), error.advice) from None

    def _refused(self, batch: int) -> None:
        """The disk did not take it."""
        self.broker.drop(batch)
        self._payloads.drop(batch)
        self._pulls.order()

    def _fetched(self, tenant: str, batch: int) -> None:
        """Written with what comes next: where that comes to nothing, its results expire, and that is all."""
        self._recorder.later(self.broker.fetched(tenant, batch))
        self._forget()

    def _fetched_before(self, request: Request) -> None:
        """Batches of which somebody says so with its next question; of some this may be said twice."""
        if "fetched=" not in request.query:
            return
        tenant = self._tenants.of(request)
        for batch in dict(parse_qsl(request.query)).get("fetched", "").split(","):
            with suppress(Refusal):
                self._fetched(tenant, int(batch))

    def _forget(self) -> None:
        """What is over."""
        now = self._now()
        gone = self.broker.over(now)
        for id_ in gone:
            self._payloads.drop(id_)
        self._recorder.forget(gone, now)

    def give_up(self, image: str, reason: str) -> None:
        """Nobody can execute tasks of an image."""
        self._recorder.begin([], self.broker.give_up(image, reason))

    async def _cancel(self, request: Request, id_: int) -> dict[str, int]:
        some = _decode(request, list[int] | None) if request.body else None
        batch = self.broker.own(self._tenants.of(request), id_)
        before = batch.left
        entries = self.broker.cancel(batch.tenant, id_, some)
        ended = before - batch.left
        self._pulls.order()
        await self._recorder.write(entries=entries)
        return {"cancelled": ended}

    async def _decide_dead(self, request: Request, act: str) -> int:
        asked = _decode(request, list[tuple[int, int]] | None) if request.body else None
        tasks: dict[int, list[int]] | None = None if asked is None else {}
        for batch, index in asked or ():
            assert tasks is not None
            tasks.setdefault(batch, []).append(index)
        tenant = self._tenants.of(request)
        if act == "retry":
            count, entries = self.broker.revive(tenant, tasks, self._now())
        else:
            count, entries = self.broker.drop_dead(tenant, tasks)
        await self._recorder.write(entries=entries)
        self._pulls.feed_all()
        return count

    # -- types -------------------------------------------------------------------------------------

    async def _add_type(self, request: Request) -> None:
        self._tenants.check_operator(request)
        line = _decode(request, TypeLine)
        Range(line.versions)
        self._check_own_types()
        await asyncio.to_thread(self._journal.add_type, line, time.time())
        await self._learn_types()

    async def _remove_type(self, request: Request) -> None:
        self._tenants.check_operator(request)
        asked = _decode(request, Removal)
        self._check_own_types()
        known = await asyncio.to_thread(self._journal.types)
        if not any(line.type == asked.type and asked.versions in (None, line.versions) for line in known):
            advice = "what the settings say is changed there; `jobman task types` shows all"
            raise Refusal("unknown", f"no operator has said who executes `{asked.type}`", advice)
        await asyncio.to_thread(self._journal.remove_type, asked.type, asked.versions)
        await self._learn_types()

    def _check_own_types(self) -> None:
        if not self.broker.table.learns:
            advice = "use `jobman task types add TYPE -- COMMAND` there"
            raise Refusal("wrong", "the types of this broker are commands of its machine", advice)

    async def _learn_types(self) -> None:
        self.broker.table.learn(await asyncio.to_thread(self._journal.types))

    # -- agents ------------------------------------------------------------------------------------

    async def _pull(self, agent: str, request: Request) -> Orders:
        # An agent is heard of several times before its lease ends, whatever it asks for.
        longest = min(LONGEST_WAIT, self.broker.leases.seconds / 3)
        given, cancel = await self._pulls.answer(agent, _decode(request, Pull), longest)
        try:
            return Orders(work=[await self._work(each) for each in given], cancel=cancel)
        except BaseException:
            self.broker.lost(agent)
            raise

    async def _work(self, given: Given) -> Work:
        payloads = await self._payloads.of(given.batch)
        return Work(
            epoch=self._journal.epoch,
            batch=given.batch,
            low=given.low,
            payloads=payloads[given.low : given.high],
            attempts=given.attempts,
            deadline=given.deadline,
            seconds=given.seconds,
            by_reference=self.broker.heads[given.batch].by_reference,
        )

    async def _report(self, agent: str, request: Request) -> dict[str, int]:
        entries = self.broker.report(agent, _decode(request, list[Report]), self._now())
        if request.query:
            self._pulls.credit(agent, float(dict(parse_qsl(request.query)).get("credit", 0)))
        self._pulls.feed_all()
        await self._recorder.write(entries=entries)
        return {"written": len(entries)}

    async def _crashed(self, agent: str, request: Request) -> None:
        entries = self.broker.crashed(agent, _decode(request, dict[int, list[int]]), self._now())
        self._pulls.feed_all()
        await self._recorder.write(entries=entries)

    async def _returned(self, agent: str, request: Request) -> None:
        self.broker.returned(agent, _decode(request, dict[int, list[int]]), self._now())
        self._pulls.feed_all()

    async def _notes(self, agent: str, request: Request) -> None:
        known = self.broker.leases.agents.get(agent)
        for note in _decode(request, list[Note]):
            image = "" if known is None else known.image
            self.broker.diary.add(note.kind, image=image, agent=agent, words=note.words)

    async def _leave(self, agent: str, _: Request) -> None:
        self.broker.lost(agent, "agent-left")
        self._pulls.leave(agent)
        self._pulls.feed_all()

    _acts: Mapping[str, Callable[[Service, str, Request], Awaitable[Any]]] = {
        "pull": _pull,
        "report": _report,
        "crashed": _crashed,
        "returned": _returned,
        "notes": _notes,
        "leave": _leave,
    }


def _decode(request: Request, type_: Any) -> Any:
    if request.headers.get("content-type", "").startswith(JSON):
        return msgspec.json.decode(request.body, type=type_)
    return msgspec.msgpack.decode(request.body, type=type_)


def _answer(request: Request, status: int, found: Any, headers: Mapping[str, str] | None = None) -> Answer:
    if wants_json(request):
        return Answer(status, msgspec.json.encode(found) + b"\n", JSON, headers=headers or {})
    return Answer(status, _encode(found), headers=headers or {})


def _problem(
    request: Request, code: str, message: str, advice: str, headers: Mapping[str, str] | None = None
) -> Answer:
    problem = Problem(code=code, message=message, advice=advice)
    return _answer(request, _STATUSES.get(code, 507), problem, headers)
