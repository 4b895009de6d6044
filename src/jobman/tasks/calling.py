"""One call of a worker, and every way in which it can come out.

A worker answers `POST /execute` with 200 and the result, or with 202 and calls `POST /complete` of the agent
when it is done. Everything else is a failure with a reason; a connection that breaks may be its end. One that
takes batches answers `POST /execute_batch` with how each of them came out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec

from jobman.tasks.batches import Status
from jobman.tasks.wire import MOST_BYTES, Answer, Broken, Connection, Request

_COMPLETIONS = {"completed": Status.COMPLETED, "failed": Status.FAILED, "killed": Status.KILLED}
_PING_SECONDS = 5.0
_CANCEL_SECONDS = 2.0
_LOOK = 1.0
"""Seconds after which is looked whether somebody is still there who said that a task is done later."""
_MOST_BYTES = 4 * 2**20
_MISSING = (404, 405, 501)
"""What those answer who do not have something."""
_answers = msgspec.msgpack.Decoder(list[tuple[str, bytes]]).decode


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A task as a worker gets it."""

    id: str
    attempt: int
    payload: bytes
    reference: str = ""
    """Where the payload is, in place of it."""
    seconds: float | None = None
    """How long it may take."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a call came out."""

    status: Status
    seconds: float
    result: bytes = b""
    reason: str = ""


class WorkerLost(Exception):
    """The worker hung up in the middle of a call, or does not answer."""

    def __init__(self, words: str, *, is_sent: bool = True) -> None:
        super().__init__(words)
        self.is_sent = is_sent
        """Whether it may have heard of what it was asked."""


class Worker:
    """A worker next to this agent, at a port or a path."""

    def __init__(self, place: Path | tuple[str, int], *, most: int = _MOST_BYTES) -> None:
        self._place = place
        self._most = most
        self._free: dict[tuple[int, bool], list[Connection]] = {}
        """By the bytes that an answer may have, and apart those for questions beside the work.

        A worker may have one thread for each connection, and one that computes does not answer over its own.
        """
        self._completions: dict[str, asyncio.Future[tuple[Status, bytes]]] = {}
        self._later = 0
        self.takes_batches = False
        self.note: Callable[[str, str], None] = _unheard
        """Told of what happens beside the calls: its kind, and words."""

    # -- what a worker is asked --------------------------------------------------------------------

    async def ping(self) -> bool:
        """Whether it answers."""
        try:
            answer = await self._ask("GET", "/ping", seconds=_PING_SECONDS, is_beside=True)
        except (WorkerLost, Broken, TimeoutError):
            return False
        self.takes_batches = answer.headers.get("x-jobman-batches", "") not in ("", "0")
        return answer.status < 300

    async def prepare(self, step: str) -> str:
        """`initialize` or `finalize`, for those who have them; tells what went wrong."""
        try:
            answer = await self._ask("POST", f"/{step}", seconds=600.0)
        except (WorkerLost, Broken, TimeoutError) as error:
            return f"{step}: {str(error) or 'no answer'}"
        return "" if answer.status < 300 or answer.status in _MISSING else _words(answer)

    async def cancel(self, id_: str) -> None:
        """Ask it to let go of a task; one that cannot says so, and that is all the same."""
        try:
            headers = {"x-jobman-task": id_}
            answer = await self._ask(
                "POST", "/cancel", headers=headers, seconds=_CANCEL_SECONDS, is_beside=True
            )
        except (WorkerLost, Broken, TimeoutError):
            return
        done = self._completions.get(id_)
        if answer.status < 300 and done is not None and not done.done():
            # Who let go of it will not complete it later.
            done.set_result((Status.KILLED, b"cancelled"))

    async def execute(self, call: Call) -> Outcome:
        """Raises WorkerLost where it hung up."""
        clock = asyncio.get_running_loop().time
        start = clock()
        done: asyncio.Future[tuple[Status, bytes]] = asyncio.get_running_loop().create_future()
        self._completions[call.id] = done
        try:
            answer = await self._ask("POST", "/execute", call.payload, headers=_headers(call))
            if answer.status == 202:
                status, result = await self._completed(done)
                reason = "" if status == Status.COMPLETED else result[:300].decode("utf-8", "replace")
                return Outcome(status=status, seconds=clock() - start, result=result, reason=reason)
        except Broken as error:
            return Outcome(status=Status.FAILED, seconds=clock() - start, reason=f"bad-answer: {error}")
        finally:
            del self._completions[call.id]
        if answer.status == 200:
            return Outcome(status=Status.COMPLETED, seconds=clock() - start, result=answer.body)
        return Outcome(status=Status.FAILED, seconds=clock() - start, reason=_words(answer))

    @property
    def is_waiting(self) -> bool:
        """Whether it has said of anything that it is done later."""
        return bool(self._later)

    async def _completed(self, done: asyncio.Future[tuple[Status, bytes]]) -> tuple[Status, bytes]:
        """What a worker says later; one that nobody can reach meanwhile is gone, and so is what it did."""
        self._later += 1
        try:
            while not (await asyncio.wait([done], timeout=_LOOK))[0]:
                if not await self._is_listening():
                    raise WorkerLost("the worker is gone that was to complete it")
            return done.result()
        finally:
            self._later -= 1

    async def _is_listening(self) -> bool:
        try:
            await self._ask("GET", "/ping", seconds=_PING_SECONDS, is_beside=True)
        except WorkerLost as lost:
            return lost.is_sent
        except (Broken, TimeoutError):
            return True
        return True

    def ended(self, words: str) -> None:
        """Its process has ended: what it was to complete later is lost, though the next one answers."""
        self.note("worker-ended", words)
        for done in self._completions.values():
            if not done.done():
                done.set_exception(WorkerLost("the worker ended"))
                # Where it is still before its 202, the connection tells the same.
                done.exception()

    async def execute_batch(self, calls: list[Call]) -> list[Outcome]:
        """Several in one call, each with its outcome; raises WorkerLost where it hung up."""
        clock = asyncio.get_running_loop().time
        start = clock()
        body = msgspec.msgpack.encode([(call.id, call.attempt, call.seconds, call.payload) for call in calls])
        try:
            answer = await self._ask("POST", "/execute_batch", body, most=MOST_BYTES)
        except Broken as error:
            return self._all_failed(calls, clock() - start, f"bad-answer: {error}")
        if answer.status in _MISSING:
            self.takes_batches = False
            return [await self.execute(call) for call in calls]
        seconds = (clock() - start) / len(calls)
        if answer.status != 200:
            return self._all_failed(calls, seconds, _words(answer))
        try:
            return self._outcomes(answer.body, len(calls), seconds)
        except (msgspec.DecodeError, ValueError) as error:
            return self._all_failed(calls, seconds, f"bad-answer: {error}")

    def _outcomes(self, body: bytes, count: int, seconds: float) -> list[Outcome]:
        found = _answers(body)
        if len(found) != count:
            raise ValueError(f"{count} tasks, and {len(found)} answers")
        return [self._outcome(status, result, seconds) for status, result in found]

    def _outcome(self, word: str, result: bytes, seconds: float) -> Outcome:
        status = _COMPLETIONS.get(word)
        if status is None:
            reason = f"bad-answer: `{word[:40]}` is no status"
            return Outcome(status=Status.FAILED, seconds=seconds, reason=reason)
        if len(result) > self._most:
            reason = f"bad-answer: the answer has more than {self._most:,} bytes"
            return Outcome(status=Status.FAILED, seconds=seconds, reason=reason)
        reason = "" if status == Status.COMPLETED else result[:300].decode("utf-8", "replace")
        return Outcome(status=status, seconds=seconds, result=result, reason=reason)

    def _all_failed(self, calls: list[Call], seconds: float, reason: str) -> list[Outcome]:
        return [Outcome(status=Status.FAILED, seconds=seconds, reason=reason)] * len(calls)

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        headers: dict[str, str] | None = None,
        seconds: float | None = None,
        most: int | None = None,
        is_beside: bool = False,
    ) -> Answer:
        limit = most or self._most
        free = self._free.setdefault((limit, is_beside), [])
        connection = free.pop() if free else Connection(self._place, most=limit)
        try:
            async with asyncio.timeout(seconds):
                answer = await connection.ask(method, path, body, headers)
        except Broken as error:
            if error.is_wrong:
                raise
            raise WorkerLost(str(error), is_sent=error.is_sent) from error
        free.append(connection)
        return answer

    # -- what a worker says by itself --------------------------------------------------------------

    async def handle(self, request: Request) -> Answer:
        """`POST /complete?id=ID&status=completed`, with the result as its body."""
        if (request.method, request.path) != ("POST", "/complete"):
            return _told(404, "there is POST /complete")
        query = dict(parse_qsl(request.query))
        status = _COMPLETIONS.get(query.get("status", ""))
        if status is None:
            return _told(400, f"a status is one of {', '.join(_COMPLETIONS)}")
        done = self._completions.get(query.get("id", ""))
        if done is None or done.done():
            self.note("stray-answer", f"of the task {query.get('id', '')[:80]}, for which nobody waits")
            return _told(409, "nobody waits for this task, or not any more")
        if len(request.body) > self._most:
            status, body = Status.FAILED, f"bad-answer: more than {self._most:,} bytes".encode()
            done.set_result((status, body))
            return _told(413, f"a result has at most {self._most:,} bytes")
        done.set_result((status, request.body))
        return _told(200, "thank you")


def _unheard(kind: str, words: str) -> None:
    """Nobody listens."""
    del kind, words


def _headers(call: Call) -> dict[str, str]:
    found = {
        "x-jobman-task": call.id,
        "x-jobman-attempt": str(call.attempt),
        "content-type": "application/octet-stream",
    }
    if call.seconds is not None:
        found["x-jobman-deadline"] = f"{call.seconds:.3f}"
    if call.reference:
        found["x-jobman-reference"] = call.reference
    return found


def _words(answer: Answer) -> str:
    """What a worker says of a failure, in short."""
    text = answer.body[:300].decode("utf-8", "replace").strip()
    return f"{answer.status}: {text}" if text else f"{answer.status}"


def _told(status: int, words: str) -> Answer:
    return Answer(status, json.dumps({"message": words}).encode() + b"\n", "application/json")
