"""A stage: a director whose time passes only when a test says so, with an engine whose attempts last as told.

```
 test ──pass_time──▶ clock ──▶ attempts end, windows begin, promises come due ──▶ director, settled
```

Hours of work pass in no time, and the same scene always goes the same way.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count

from jobman.control.admission import SettingsShelf
from jobman.control.answers import FINAL_STATES, Submission
from jobman.control.director import Director
from jobman.control.store.store import Store
from jobman.engines import base
from jobman.engines.memory import MemoryEngine, Play
from jobman.plan.nodes import ClusterNode

NOON = 1_800_000_000.0
MOST_STEPS = 20_000
EXACT = """
scheduler: {stop_margin: 0s}
priorities: [{name: low, value: -1000}, {name: normal, value: 0}, {name: high, value: 1000}]
"""
"""Settings by which a limit in the plan is the duration of the document, to the second."""


class Clock:
    """Time that stands still, or but for a tick at each look."""

    def __init__(self, now: float = NOON, tick: float = 0.0) -> None:
        self.now = now
        self._tick = tick

    def __call__(self) -> float:
        self.now += self._tick
        return self.now


class Actors(MemoryEngine):
    """Plays attempts by the clock of the stage; who plays without an end is ended by the test."""

    def __init__(self, clock, script=None, nodes=1, cores=4, labels=(), lasting=0.0, news=()):
        super().__init__(script or (lambda _order: Play(seconds=None)))
        self._nodes = [
            ClusterNode(
                name=f"node-{number}",
                amounts={"core": cores, "memory": cores * 2**32},
                labels=labels[number] if number < len(labels) else {},
            )
            for number in range(nodes)
        ]
        self.clock = clock
        self.now_playing: dict[base.Address, base.Order] = {}
        self.lasting = lasting
        """Seconds that an attempt goes on after it was asked to stop."""
        self.news = news
        """What it has to say of its nodes from the beginning."""
        self._ends: list[tuple[float, int, base.Address, str, int]] = []
        self._count = count()

    async def recover(self, orders):
        await super().recover(orders)
        if self.news:
            self.nodes_changed(*self.news)

    def _play(self, order):
        play = self._script(order)
        address = order.address
        self._started[address] = self.clock()
        self.now_playing[address] = order
        job, key, attempt = address
        self._report(base.Running(job=job, key=key, attempt=attempt, at=self.clock(), ports=play.ports))
        if play.seconds is not None:
            reason = play.reason or ("exit" if play.exit_code else "")
            self._end_at(self.clock() + play.seconds, address, reason, play.exit_code)

    def _end_at(self, moment, address, reason, code):
        heappush(self._ends, (moment, next(self._count), address, reason, code))

    def next_end(self):
        return self._ends[0][0] if self._ends else None

    def play_on(self):
        """End what has come to its end."""
        while self._ends and self._ends[0][0] <= self.clock():
            _, _, address, reason, code = heappop(self._ends)
            self.end(address, reason, code)

    def end(self, address, reason="", code=0):
        if self.now_playing.pop(address, None) is not None:
            job, key, attempt = address
            self._report(
                base.Over(
                    job=job,
                    key=key,
                    attempt=attempt,
                    at=self.clock(),
                    reason=reason,
                    exit_code=code,
                    started_at=self._started[address],
                )
            )

    async def stop(self, address, why):
        del why
        self._end_at(self.clock() + self.lasting, address, "signal", 143)
        self.play_on()

    async def close(self):
        self.now_playing = {}


class Stage:
    """A director on a stage, and what a test does with it."""

    def __init__(self, director, clock, engine):
        self.director = director
        self.clock = clock
        self.engine = engine
        self.each_time: list[Callable[[Stage], None]] = []
        """Called whenever everything has settled."""

    @property
    def now(self):
        return self.clock.now

    @property
    def floor(self):
        return self.director._floor

    @property
    def planning(self):
        return self.director._floor.planning

    @property
    def store(self):
        return self.director.store

    # -- acting ------------------------------------------------------------------------------------------

    async def submit(self, text, owner="ada", **more):
        """Submit a document; the id of its first job."""
        return (await self.answer(text, owner, **more)).jobs[0].id

    async def answer(self, text, owner="ada", **more):
        """Submit a document; all that is answered."""
        found = await self.director.submit(Submission(document=text, **more), owner, None)
        await self.settle()
        return found

    async def end(self, job, key=None, code=0):
        """Let what a job runs come to its end now."""
        for address in list(self.engine.now_playing):
            if address[0] == job and key in (None, address[1]):
                self.engine.end(address, "exit" if code else "", code)
        await self.settle()

    # -- time --------------------------------------------------------------------------------------------

    async def settle(self):
        """Wait until nothing happens any more at this moment."""
        for _ in range(MOST_STEPS):
            assert not self.director.has_failed, self.director.trouble
            # A batch in which nothing else happened leaves nothing to be done.
            batch = await self.director._ask(lambda batch, future: batch.waiting.append((future, batch)))
            is_empty = batch.is_empty and not batch.launches and not batch.acts
            if self.planning.is_busy:
                await asyncio.sleep(0.001)
            elif is_empty and self.director._inbox.empty() and not self.planning.is_due(self.now):
                for look in self.each_time:
                    look(self)
                return
        raise AssertionError("it never settles")

    async def pass_time(self, seconds):
        """Let time pass, with everything that happens on the way."""
        await self.until(self.now + seconds)

    async def until(self, moment):
        await self.settle()
        for _ in range(MOST_STEPS):
            due = self._next_due()
            if due is None or due > moment:
                break
            await self._go_to(max(self.now, due))
        else:
            raise AssertionError("time does not pass: something is due again and again")
        await self._go_to(moment)

    async def play_out(self, most=10 * 365 * 86400.0):
        """Let time pass until no job is left."""
        end = self.now + most
        while self.floor.jobs and self.now < end:
            due = self._next_due()
            assert due is not None, f"nothing will ever happen to {list(self.floor.jobs)}"
            await self._go_to(max(self.now, due))
        assert not self.floor.jobs, f"{list(self.floor.jobs)} never end"

    async def _go_to(self, moment):
        self.clock.now = moment
        self.engine.play_on()
        self.director._put(self.director._ring)
        await self.settle()

    def _next_due(self):
        dues = (
            self.engine.next_end(),
            self.floor.next_due(),
            self.planning.due,
            self.director._government.next_due(),
        )
        return min((due for due in dues if due is not None), default=None)

    # -- looking -----------------------------------------------------------------------------------------

    def state(self, job):
        return self.store.job(job).state

    def is_over(self, job):
        return self.state(job) in FINAL_STATES

    def running(self):
        """The jobs of which something runs, in the order in which it began."""
        return list(dict.fromkeys(address[0] for address in self.engine.now_playing))

    def launched(self):
        """The jobs whose attempts began, in order."""
        return [address[0] for address in self.engine.launched]

    def begun(self, job):
        """When the first attempt of a job began."""
        return min(at for address, at in self.engine._started.items() if address[0] == job)

    def promise(self, job, key=None):
        """What is stored of the promise to a job's replica; None where there is none."""
        found = [each for each in self.store.promises() if each.job == job and key in (None, each.key)]
        return found[0] if found else None

    def by(self, job, key=None):
        """In how many seconds a job starts at the latest, as it was told."""
        promise = self.promise(job, key)
        return None if promise is None or promise.guaranteed_by is None else promise.guaranteed_by - self.now

    def nodes_of(self, job, key=None):
        """The nodes on which something of a job runs."""
        return [
            held.node
            for address, order in self.engine.now_playing.items()
            if address[0] == job and key in (None, address[1])
            for held in order.allocation.held
        ]

    def kinds(self, job):
        return [event.kind for event in self.store.events(job)]

    def told(self, job, kind):
        """The words of all events of a kind."""
        return [event.message for event in self.store.events(job) if event.kind == kind]


@asynccontextmanager
async def on_stage(url, script=None, *, settings=None, clock=None, **machine):
    """A stage over a store, until the block ends; `settings` is a file."""
    clock = clock or Clock()
    store = Store.open(url)
    store.claim("test")
    engine = Actors(clock, script, **machine)
    director = Director(store, engine, settings=SettingsShelf(str(settings)), clock=clock)
    await director.start()
    stage = Stage(director, clock, engine)
    try:
        await stage.settle()
        yield stage
    finally:
        await director.stop()


def document(cores=1, duration=None, *, replicas=None, name="job", nodes=None, task=None, **keys):
    """A job of one task; `nodes` for whole nodes instead of cores, `duration` in seconds."""
    resources = (
        {"type": "node", "count": nodes}
        if nodes
        else {"type": "slot", "count": 1, "with": [{"type": "core", "count": cores}]}
    )
    work = {"name": "work", "command": "x", "resources": resources, **(task or {})}
    if replicas is not None:
        work["replicas"] = replicas
    if duration is not None:
        work["attributes"] = {"duration": f"{duration}s"}
    return json.dumps({"version": 1, "name": name, "grace": "0s", "tasks": [work], **keys})


class Theatre:
    """One store, one clock, one file of settings: who comes on stage after somebody takes over from them."""

    def __init__(self, url, folder, settings=EXACT, tick=0.0):
        self.url = url
        self.clock = Clock(tick=tick)
        self._settings = folder / "settings.yaml"
        self.decree(settings)

    def decree(self, settings):
        """From the next stage on other settings hold."""
        self._settings.write_text(settings)

    def stage(self, script=None, **machine):
        return on_stage(self.url, script, settings=self._settings, clock=self.clock, **machine)

    def play(self, scene, script=None, **machine):
        """Play one scene."""

        async def act():
            async with self.stage(script, **machine) as stage:
                await scene(stage)

        asyncio.run(act())


def lasting(**seconds):
    """A script: how long jobs of these names take; others go on until they are stopped."""
    return lambda order: Play(seconds=seconds.get(order.job_name))
