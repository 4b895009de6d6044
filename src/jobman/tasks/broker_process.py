"""A broker as a process: its journal, its socket, on one machine its workers, and when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec
import uvloop

from jobman.control.store.database import Database, open_database
from jobman.tasks.addresses import Place, parse
from jobman.tasks.beside import cancelled
from jobman.tasks.leading import Lead
from jobman.tasks.local_types import LocalTable, LocalTypes
from jobman.tasks.mapper import Table
from jobman.tasks.mappers import Mappers
from jobman.tasks.pool import Pool
from jobman.tasks.serving import Service
from jobman.tasks.settings import SiteSettings
from jobman.tasks.wire import TEXT, Answer, Request, Server

log = logging.getLogger("jobman.tasks")
_LOOK = 3.0
_BRINGS_WORK = {("POST", "/v1/tasks"), ("POST", "/v1/tasks/dead/retry")}
_STANDBY = 3.0
"""Seconds after which it is told that another broker is there."""


class BrokerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a broker is run."""

    listen: str
    store: str
    settings: SiteSettings = SiteSettings()
    types: Path | None = None
    """The file of types of this machine; with it the broker has workers here."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    lease: float = 10.0
    """Seconds of silence after which an agent is lost, and what it has is given to others."""
    grace: float = 3.0
    """Seconds after a restart in which agents come again before what they have is given to others."""
    idle: float | None = None
    """End after so many seconds in which nobody asked and nothing was to be done."""


class BrokerProcess:
    """A broker from its start to its end."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._types = None if options.types is None else LocalTypes(options.types)
        self._pool: Pool | None = None
        self._service: Service
        self._asking = 0
        self._heard = 0.0
        self._over = asyncio.Event()

    async def run(self, ready: Callable[[int], None] | None = None) -> None:
        """Answer until it is told to end; `ready` is called with the port whenever it begins to.

        Of several brokers with one database of PostgreSQL one leads. The others do not listen, so that
        whoever looks for a broker finds the one that leads; when that is gone, one of them takes over.
        """
        options = self._options
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._over.set)
        # A mapper that is not there is told before anything else is begun.
        self._mappers = Mappers(options.settings.mappers)
        database = await asyncio.to_thread(open_database, options.store)
        lead = Lead(database)
        try:
            while not self._over.is_set():
                if await self._takes(lead):
                    await self._lead(database, lead, ready)
                lead.release()
        finally:
            await asyncio.to_thread(database.close)

    async def _takes(self, lead: Lead) -> bool:
        """Wait for the lead; false where it is over before."""
        taking, over = asyncio.create_task(lead.take()), asyncio.create_task(self._over.wait())
        waiting = {taking, over}
        done, _ = await asyncio.wait(waiting, timeout=_STANDBY, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            log.info("another broker leads: standing by")
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting - done:
            await cancelled(task)
        return taking in done

    async def _lead(self, database: Database, lead: Lead, ready: Callable[[int], None] | None) -> None:
        """Be the broker until the end, or until another one is."""
        async with contextlib.AsyncExitStack() as stack:
            self._service = self._made(database)
            await self._service.start()
            stack.push_async_callback(self._service.close)
            server = Server(self._handle)
            place = parse(self._options.listen).place
            port = await server.listen(place, self._tls())
            stack.push_async_callback(server.close)
            if self._types is not None:
                self._with_pool(stack)
            self._beside(stack, self._watch(place))
            self._heard = asyncio.get_running_loop().time()
            if ready is not None:
                ready(port)
            ends = [asyncio.create_task(each) for each in self._ends(lead)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in ends:
                await cancelled(task)
            if not self._over.is_set():
                log.warning("another broker has taken over")

    def _ends(self, lead: Lead) -> list[Coroutine[None, None, object]]:
        return [self._over.wait(), self._service.replaced.wait(), lead.lost()]

    def _made(self, database: Database) -> Service:
        settings = self._options.settings
        return Service(
            database,
            self._table(),
            tokens=settings.tokens or None,
            operators=settings.operators,
            quotas=settings.quotas,
            limits=settings.scaling,
            mappers=self._mappers,
            price=settings.price,
            lease=self._options.lease,
            # Workers of this machine end with their broker: nobody comes again.
            grace=0.0 if self._types is not None else self._options.grace,
        )

    def _table(self) -> Table:
        return Table(self._options.settings.types) if self._types is None else LocalTable(self._types)

    def _tls(self) -> ssl.SSLContext | None:
        if self._options.tls_cert is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._options.tls_cert, self._options.tls_key)
        return context

    def _with_pool(self, stack: contextlib.AsyncExitStack) -> None:
        assert self._types is not None
        service = self._service
        self._pool = Pool(service.broker, self._types, service.handle, give_up=service.give_up)
        stack.push_async_callback(self._pool.close)
        self._beside(stack, self._pool.run())

    def _beside(self, stack: contextlib.AsyncExitStack, work: Coroutine[None, None, None]) -> None:
        """Do something beside answering, to the end; a fault in it is the end of all."""
        task = asyncio.create_task(work)

        def ended(_: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                log.critical("a fault", exc_info=error)
                self._over.set()

        task.add_done_callback(ended)
        stack.push_async_callback(cancelled, task)

    # -- requests ----------------------------------------------------------------------------------

    async def _handle(self, request: Request) -> Answer:
        if request.path.startswith("/v1/agents/"):
            return await self._service.handle(request)
        if (request.method, request.path) == ("POST", "/v1/stop") and self._options.types is not None:
            self._over.set()
            return Answer(200, b"stopping\n", TEXT)
        self._asking += 1
        try:
            return await self._service.handle(request)
        finally:
            self._asking -= 1
            self._heard = asyncio.get_running_loop().time()
            if self._pool is not None and (request.method, request.path) in _BRINGS_WORK:
                self._wake(self._pool)

    def _wake(self, pool: Pool) -> None:
        """Let it look at once where something waits for workers: what one has taken can do without."""
        broker = self._service.broker
        if any(map(broker.has_work, list(broker.queues))):
            pool.wake()

    # -- its end -----------------------------------------------------------------------------------

    async def _watch(self, place: Place) -> None:
        """End when nobody needs it, or nobody can reach it."""
        idle = self._options.idle
        pause = _LOOK if idle is None else min(_LOOK, max(0.05, idle / 4))
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(pause)
            has_workers = self._pool is not None and not self._pool.is_idle
            if self._asking or self._service.broker.open or has_workers:
                self._heard = clock()
            if idle is not None and clock() - self._heard >= idle:
                log.info("nobody asked for a while, ended")
                self._over.set()
            if isinstance(place, Path) and not place.exists():
                log.warning("its socket is gone")
                self._over.set()


def run_broker(options: BrokerOptions, ready: Callable[[int], None] | None = None) -> None:
    """Be a broker until it is told to end."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s broker: %(message)s")
    uvloop.run(BrokerProcess(options).run(ready))
