"""A worker made of a Python function.

A function that says `bytes` for its parameter gets the payload as it is, and one that says `bytes` for what
it returns gives the result as it is. Everything else is JSON, both ways; an annotation says what it must be.

The function runs in the main thread, one task at a time, so that signals and extensions work as in any
program. Another thread answers a ping meanwhile.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import signal
import sys
import threading
import traceback
import types
import typing
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jobman.tasks.desk import Caller, Desk, Place
from jobman.tasks.wire import TEXT, Answer, Request

SOCKET, PORT = "JOBMAN_WORKER_SOCKET", "JOBMAN_WORKER_PORT"
COMPLETED, FAILED, KILLED = "completed", "failed", "killed"
_INTERRUPT = signal.SIGUSR2
_STATUSES = {COMPLETED: 200, FAILED: 500, KILLED: 410}
_BYTES = "application/octet-stream"
_NO_PLACE = (
    f"a worker is told by {SOCKET} or {PORT} where to listen: "
    "start it by an agent, `jobman task agent … -- COMMAND`"
)
_MOST_EARLY = 1000
_rows = msgspec.msgpack.Decoder(list[tuple[str, int, float | None, bytes]]).decode
Raw = Callable[[bytes], bytes]
Outcome = tuple[str, bytes]
"""A status, and the result or what went wrong."""


class Called(msgspec.Struct, frozen=True):
    """The task that is being executed, for a function that wants to know."""

    id: str
    attempt: int = 1
    seconds: float | None = None
    """How long it may take, where that is limited."""


class Cancelled(BaseException):
    """Raised in a function whose task nobody wants any more."""


class WrongFunction(Exception):
    """There is no worker in what was named, and why."""


# -- a function of bytes -------------------------------------------------------------------------------------


def raw(function: Callable[..., Any]) -> Raw:
    """The same function, of bytes and to bytes, by its annotations."""
    hints = _hints(function)
    read, write = _reader(_first(function), hints), _writer(hints.get("return"))

    def execute(payload: bytes) -> bytes:
        return write(function(read(payload)))

    return execute


def ends_of(function: Callable[..., Any]) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """For who calls such a worker: how payloads are written, and how results are read."""
    hints = _hints(function)
    wanted = hints.get("return", Any)
    if wanted is bytes:
        return _writer(hints.get(_first(function))), bytes
    try:
        decoder = msgspec.json.Decoder(wanted)
    except TypeError:
        decoder = msgspec.json.Decoder(Any)
    return _writer(hints.get(_first(function))), decoder.decode


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = (
        function if isinstance(function, types.FunctionType | types.MethodType) else type(function).__call__
    )
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError):
        # Names that only a type checker knows: then the values are plain JSON.
        said = getattr(target, "__annotations__", {})
        return {name: bytes for name, words in said.items() if words in ("bytes", bytes)}


def _first(function: Callable[..., Any]) -> str:
    """The name of the parameter that the payload goes to."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # something of C that does not tell
        return ""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [each for each in parameters if each.kind in (*kinds, inspect.Parameter.VAR_POSITIONAL)]
    needed = [each for each in found[1:] if each.kind in kinds and each.default is each.empty]
    if not found or needed:
        raise WrongFunction("a function for tasks takes one argument, the payload")
    return found[0].name


def _reader(name: str, hints: dict[str, Any]) -> Callable[[bytes], Any]:
    wanted = hints.get(name, Any)
    if wanted is bytes:
        return lambda payload: payload
    decoder = msgspec.json.Decoder(wanted)
    return lambda payload: decoder.decode(payload or b"null")


def _writer(wanted: Any) -> Callable[[Any], bytes]:
    if wanted is bytes:
        return _only_bytes
    encode = msgspec.json.encode

    def write(value: Any) -> bytes:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(
                "bytes are taken and returned by functions that say so: `f(payload: bytes) -> bytes`"
            )
        return encode(value)

    return write


def _only_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"the function says bytes, and this is {type(value).__name__}")
    return bytes(value)


def told(error: BaseException) -> str:
    """Its type, its words, and where it was raised."""
    words = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return words
    last = frames[-1]
    return f"{words} ({Path(last.filename).name}:{last.lineno}, in {last.name}: {last.line})"


# -- executing ----------------------------------------------------------------------------------------------


class _Job(msgspec.Struct, frozen=True, eq=False):
    """Tasks that are executed one after the other, or a step before or after all of them."""

    caller: Caller
    ids: frozenset[str]
    dropped: set[str]
    """Those that nobody wants any more."""


class Executing:
    """What the main thread executes, and how the other one interrupts it."""

    def __init__(self) -> None:
        self._job: _Job | None = None
        self._now: Called | None = None
        self._unwanted = ""
        self._early: deque[str] = deque(maxlen=_MOST_EARLY)
        """Tasks that somebody gave up before they came to be executed."""
        self._thread = threading.main_thread().ident or 0

    @property
    def current(self) -> Called | None:
        return self._now

    def run(self, function: Raw, tasks: list[tuple[Called, bytes]], caller: Caller) -> list[Outcome]:
        """Execute tasks; called in the main thread."""
        ids = frozenset(called.id for called, _ in tasks)
        job = self._job = _Job(caller, ids, {id_ for id_ in self._early if id_ in ids})
        try:
            return [self._one(function, job, called, payload) for called, payload in tasks]
        finally:
            self._job = None

    def _one(self, function: Raw, job: _Job, called: Called, payload: bytes) -> Outcome:
        try:
            return self._try(function, job, called, payload)
        except Cancelled:
            return KILLED, b"cancelled"
        finally:
            self._now = None

    def _try(self, function: Raw, job: _Job, called: Called, payload: bytes) -> Outcome:
        try:
            self._now = called
            if called.id in job.dropped:
                raise Cancelled
            return COMPLETED, function(payload)
        except (Cancelled, KeyboardInterrupt):
            raise
        except BaseException as error:
            return FAILED, told(error).encode()

    def interrupted(self, *_: object) -> None:
        """The signal by which the other thread ends what the main thread does."""
        if self._now is not None and self._now.id == self._unwanted:
            self._unwanted = ""
            raise Cancelled

    def cancel(self, id_: str) -> bool:
        """End a task that waits or runs; false where there is none of that name, or not yet."""
        job = self._job
        if job is None or id_ not in job.ids:
            self._early.append(id_)
            return False
        self._drop(job, id_)
        return True

    def gone(self, caller: Caller) -> None:
        """Who does not wait for its tasks any more has cancelled them."""
        job = self._job
        if job is not None and job.caller is caller:
            for id_ in job.ids:
                self._drop(job, id_)

    def _drop(self, job: _Job, id_: str) -> None:
        if id_ in job.dropped:
            return
        # In this order: what begins from now on sees that it is not wanted.
        job.dropped.add(id_)
        now = self._now
        if now is not None and now.id == id_:
            self._unwanted = id_
            signal.pthread_kill(self._thread, _INTERRUPT)


_EXECUTING = Executing()


def this_task() -> Called | None:
    """The task that the calling function executes; None outside of one."""
    return _EXECUTING.current


# -- what a worker answers -----------------------------------------------------------------------------------


class _Answers:
    """What a worker made of a function answers."""

    def __init__(
        self, executing: Executing, function: Raw, steps: Mapping[str, Callable[[], object]], batches: bool
    ) -> None:
        self._executing = executing
        self._function = function
        self._batches = batches
        self._work = {"/execute": self._execute} | (
            {"/execute_batch": self._execute_batch} if batches else {}
        )
        self._steps = {f"/{name}": step for name, step in steps.items()}

    def is_work(self, request: Request) -> bool:
        path = request.path
        return request.method == "POST" and (path in self._work or path in self._steps)

    def work(self, request: Request, caller: Caller) -> Answer:
        if request.path in self._steps:
            return self._step(request.path, caller)
        return self._work[request.path](request, caller)

    def beside(self, request: Request, waiting: Iterable[Request]) -> Answer:
        match (request.method, request.path):
            case ("GET", "/ping"):
                return _words(200, "ready", {"x-jobman-batches": "1"} if self._batches else {})
            case ("POST", "/cancel"):
                id_ = _task_of(request)
                is_known = self._executing.cancel(id_) or any(_task_of(each) == id_ for each in waiting)
                return _words(200, "cancelled") if is_known else _words(404, "there is no such task here")
        return _words(404, f"there is no {request.method} {request.path}")

    def gone(self, caller: Caller) -> None:
        self._executing.gone(caller)

    def _execute(self, request: Request, caller: Caller) -> Answer:
        headers = request.headers
        try:
            seconds = float(headers["x-jobman-deadline"]) if "x-jobman-deadline" in headers else None
            called = Called(_task_of(request), int(headers.get("x-jobman-attempt", 1)), seconds)
        except ValueError as error:
            return _words(400, f"the headers of the task are wrong: {error}")
        ((status, body),) = self._executing.run(self._function, [(called, request.body)], caller)
        return Answer(_STATUSES[status], body, _BYTES if status == COMPLETED else TEXT)

    def _execute_batch(self, request: Request, caller: Caller) -> Answer:
        try:
            rows = _rows(request.body)
        except msgspec.DecodeError as error:
            return _words(400, f"a batch is a list of [id, attempt, deadline, payload]: {error}")
        tasks = [(Called(id_, attempt, seconds), payload) for id_, attempt, seconds, payload in rows]
        return Answer(200, msgspec.msgpack.encode(self._executing.run(self._function, tasks, caller)))

    def _step(self, path: str, caller: Caller) -> Answer:
        step = self._steps[path]

        def execute(_: bytes) -> bytes:
            step()
            return b""

        ((status, body),) = self._executing.run(execute, [(Called(path), b"")], caller)
        return Answer(_STATUSES[status], body, TEXT)


def _task_of(request: Request) -> str:
    return request.headers.get("x-jobman-task", "")


def _words(status: int, words: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, f"{words}\n".encode(), TEXT, headers or {})


def place_here(environment: typing.Mapping[str, str] | None = None) -> Place:
    """Where the agent of this worker expects it."""
    environment = os.environ if environment is None else environment
    if path := environment.get(SOCKET):
        return Path(path)
    port = environment.get(PORT, "")
    if not port.isdecimal():
        raise WrongFunction(_NO_PLACE)
    return "127.0.0.1", int(port)


def serve(
    function: Callable[..., Any],
    *,
    initialize: Callable[[], object] | None = None,
    finalize: Callable[[], object] | None = None,
    batches: bool = True,
    place: Place | None = None,
) -> None:
    """Be a worker that executes tasks by a function, for as long as this process lives."""
    steps = {"initialize": initialize, "finalize": finalize}
    known = {name: step for name, step in steps.items() if step is not None}
    answers = _Answers(_EXECUTING, raw(function), known, batches)
    signal.signal(_INTERRUPT, _EXECUTING.interrupted)
    Desk(answers).run(place or place_here())


# -- from the command line -----------------------------------------------------------------------------------


def find(name: str) -> Callable[..., Any]:
    """The function of `module:function`; modules of the current folder are found too."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise WrongFunction(f"`{name}` does not name a function: write module:function")
    if (here := str(Path.cwd())) not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise WrongFunction(
            f"there is no module `{module}`: is it in this folder or on PYTHONPATH?"
        ) from None
    for word in attribute.split("."):
        found = getattr(found, word, None)
        if found is None:
            raise WrongFunction(f"`{module}` has no `{attribute}`")
    if not callable(found):
        raise WrongFunction(f"`{name}` cannot be called")
    return typing.cast("Callable[..., Any]", found)


def serve_named(
    name: str,
    *,
    initialize: str | None = None,
    finalize: str | None = None,
    batches: bool = True,
    place: Place | None = None,
) -> None:
    """Be a worker of functions that are named."""
    serve(
        find(name),
        initialize=None if initialize is None else find(initialize),
        finalize=None if finalize is None else find(finalize),
        batches=batches,
        place=place,
    )


def main(arguments: Iterable[str] | None = None) -> int:
    """Be a worker: of `module:function`, or of a function in a file that Grid has written."""
    parser = argparse.ArgumentParser(prog="jobman-worker", description="Executes short tasks by a function.")
    parser.add_argument("function", nargs="?", help="module:function")
    parser.add_argument("--pickled", type=Path, help="a file with the function")
    options = parser.parse_args(None if arguments is None else list(arguments))
    try:
        if options.pickled is None:
            serve_named(options.function or "")
        else:
            import cloudpickle  # type: ignore[import-untyped]

            serve(cloudpickle.loads(options.pickled.read_bytes()))
    except WrongFunction as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    # Under its own name, so that `this_task` of those who import this module is the same.
    from jobman.tasks.worker import main as main_by_name

    sys.exit(main_by_name())
