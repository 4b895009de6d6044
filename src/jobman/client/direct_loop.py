"""An event loop in a thread of its own: what is asynchronous, called from ordinary code."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from queue import Full, Queue
from typing import Any, Generic, TypeVar

from jobman.client.failures import Refused, Unreachable
from jobman.control.answers import Failure
from jobman.control.refusals import Refusal
from jobman.engines.kubernetes.errors import UNREACHABLE, ApiError, Forbidden, KubernetesError
from jobman.engines.kubernetes.roles import direct_needs, role_yaml

T = TypeVar("T")
_MOST_WAITING = 10_000
_PAUSE = 0.05
_TIDY_SECONDS = 5.0
_CODES = {401: "unauthenticated", 403: "forbidden", 404: "not-found", 409: "conflict", 422: "cannot"}


class LoopThread:
    """Runs coroutines; the errors of a cluster come out as those of a client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="jobman-direct", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """The result of a coroutine; raises TimeoutError, and Ctrl-C stops it when it has tidied up."""
        done = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_and_then(work, done.set), self._loop)
        try:
            with as_failures():
                return future.result(timeout)
        except BaseException:
            if future.cancel():
                done.wait(_TIDY_SECONDS)
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> Begun[T]:
        """Start a coroutine and go on with something else."""
        return Begun(work, self._loop)

    def iterate(self, work: AsyncGenerator[T, None]) -> Iterator[T]:
        """The items of a generator as they come; one that is slow to take them slows it down."""
        items: Queue[T | _End] = Queue(_MOST_WAITING)
        future = asyncio.run_coroutine_threadsafe(_pump(work, items), self._loop)
        try:
            while True:
                item = items.get()
                if isinstance(item, _End):
                    if item.error is not None:
                        with as_failures():
                            raise item.error
                    return
                yield item
        finally:
            future.cancel()

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Do one last thing, and end the loop."""
        if self._loop.is_closed():
            last.close()
            return
        with contextlib.suppress(KubernetesError, TimeoutError):
            asyncio.run_coroutine_threadsafe(_finish(last), self._loop).result(5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        if not self._loop.is_running():
            self._loop.close()


class Begun(Generic[T]):
    """Something that goes on in the background."""

    def __init__(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._tidy = threading.Event()
        self._future = asyncio.run_coroutine_threadsafe(_and_then(work, self._tidy.set), loop)

    @property
    def is_over(self) -> bool:
        return self._future.done()

    def result(self) -> T:
        """What comes of it, when it is over; raises as a client does."""
        with as_failures():
            return self._future.result()

    def stop(self) -> None:
        """End it, and wait until it has tidied up."""
        if self._future.cancel():
            self._tidy.wait(_TIDY_SECONDS)


class _End:
    """There are no more items."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


async def _and_then(work: Coroutine[Any, Any, T], tell: Callable[[], None]) -> T:
    try:
        return await work
    finally:
        tell()


async def _finish(last: Coroutine[Any, Any, None]) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last


async def _pump(work: AsyncGenerator[T, None], items: Queue[T | _End]) -> None:
    end = _End()
    try:
        async with aclosing(work) as open_work:
            async for item in open_work:
                await _put(items, item)
    except Exception as error:
        end = _End(error)
    await _put(items, end)


async def _put(items: Queue[T], item: T) -> None:
    while True:
        try:
            items.put_nowait(item)
        except Full:
            await asyncio.sleep(_PAUSE)
        else:
            return


@contextmanager
def as_failures() -> Iterator[None]:
    """Errors of a cluster and refusals of our own as a client tells them."""
    try:
        yield
    except Refusal as refusal:
        raise Refused(refusal.status, refusal.failure()) from refusal
    except KubernetesError as error:
        if error.exit_code == UNREACHABLE:
            raise Unreachable(error.message, error.advice) from error
        status = error.code if isinstance(error, ApiError) else 400
        code = _CODES.get(status, "bad-request" if status == 400 else "cannot")
        if "exceeded quota" in error.message:
            code = "quota"
        advice = _whole_role(error) if isinstance(error, Forbidden) else error.advice
        failure = Failure(code=code, message=error.message, advice=advice, exit=error.exit_code)
        raise Refused(status, failure) from error


def _whole_role(error: Forbidden) -> str:
    """All rights that one needs here, so that nobody has to ask for them one by one."""
    need = error.need
    if need is None or not need.namespace:
        return error.advice
    needs = direct_needs(need.namespace, need.user)
    if need not in needs:
        return error.advice
    return f"Ask whoever runs the cluster for this, which is all that jobman needs there:\n{role_yaml(needs)}"
