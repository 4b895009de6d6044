"""A director with the in-memory engine on a real store, led by plain coroutines."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

from jobman.control.answers import Submission
from jobman.control.director import Director
from jobman.control.store.store import Store
from jobman.engines.memory import MemoryEngine, Play

PATIENCE = 20.0
ONE = "resources: {type: slot, count: 1, with: [{type: core, count: 1}]}"


@asynccontextmanager
async def directing(url, script=None, **machine):
    """A director over a store, until the block ends."""
    store = Store.open(url)
    store.claim("test")
    director = Director(store, MemoryEngine(script, **machine))
    await director.start()
    try:
        yield director
    finally:
        await director.stop()


def play(url, scene: Callable[[Director], Awaitable[None]], script=None, **machine) -> None:
    """Run a scene with a director."""

    async def act():
        async with directing(url, script, **machine) as director:
            await scene(director)

    asyncio.run(act())


async def submit(director, text, key=None, owner="ada", **more):
    """Submit a document; the id of its (first) job."""
    answer = await director.submit(Submission(document=text, **more), owner, key)
    return answer.jobs[0].id


async def until(condition, director=None):
    """Wait until something is so."""
    for _ in range(int(PATIENCE / 0.005)):
        if director is not None and director.has_failed:
            raise AssertionError(director.trouble)
        found = condition()
        if found:
            return found
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to that")


async def ended(director, job_id):
    """The record of a job, once it is over."""
    final = ("succeeded", "failed", "cancelled")
    return await until(lambda: (job := director.store.job(job_id)) and job.state in final and job, director)


def failing(*names, code=1, until_attempt=10**9, seconds=0.0):
    """A script: these tasks fail, up to an attempt; the others succeed."""

    def script(order):
        hit = order.unit.name in names and order.attempt <= until_attempt
        return Play(seconds=seconds, exit_code=code if hit else 0)

    return script
