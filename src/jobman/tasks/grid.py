"""Short tasks from a program: `with Grid() as grid: for result in grid.map("price", payloads): …`.

Without an address the broker is the one that JOBMAN_BROKER names, or else this user's own, with workers on
this machine; that is started when needed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

import msgspec

from jobman.control.places import Places
from jobman.tasks import embedded, worker
from jobman.tasks.addresses import Address, WrongAddress, parse
from jobman.tasks.batches import Status
from jobman.tasks.calls import pack, unpack
from jobman.tasks.courier import Courier
from jobman.tasks.executor import GridExecutor
from jobman.tasks.failures import GridError
from jobman.tasks.handles import Counter, Handle
from jobman.tasks.mapping import Mapping, reason_of
from jobman.tasks.model import Told
from jobman.tasks.options import TaskOptions, Template, template

P = ParamSpec("P")
R = TypeVar("R")
BROKER, TOKEN = "JOBMAN_BROKER", "JOBMAN_TOKEN"
_WAIT = 20.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a task."""

    batch: int
    index: int
    status: str
    result: bytes = b""
    reason: str = ""
    attempts: int = 1
    seconds: float = 0.0
    place: int
    """From where to read on: `grid.results(after=place)`; the last few may then be told again."""


class TaskFunction(Generic[P, R]):
    """A function that can be called here, and as tasks of a grid."""

    def __init__(
        self,
        grid: Grid,
        function: Callable[P, R],
        name: str,
        options: TaskOptions,
        resources: dict[str, Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name
        self.options = options
        self.resources = {name: str(amount) for name, amount in (resources or {}).items()}
        self._grid = grid

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def submit(self, payload: Any, **options: Any) -> Handle:
        """Have it done; see Grid.submit."""
        return self._grid.submit(self, payload, **options)

    def map(self, payloads: Iterable[Any], **options: Any) -> Iterator[R]:
        """Have it done for many; see Grid.map."""
        return self._grid.map(self, payloads, **options)

    def __reduce__(self) -> Any:
        # In a worker it is a plain function again.
        return _same, (self.function,)


def _same(function: Callable[P, R]) -> Callable[P, R]:
    return function


class Grid:
    """A broker, as a program sees it."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tenant: str | None = None,
        state: str | os.PathLike[str] | None = None,
        ca_file: str | None = None,
    ) -> None:
        """`state` is the folder of an own broker, by default the usual one."""
        if url is None and state is None:
            url = os.environ.get(BROKER) or None
        self._url = url
        self._token = os.environ.get(TOKEN) if token is None and url is not None else token
        self._tenant = tenant
        self._ca_file = ca_file
        self._address: Address | None = None
        self.places: Places | None = None
        if url is None:
            self.places = embedded.places_of_tasks(None if state is None else Path(state).absolute())
        else:
            try:
                self._address = parse(url)
            except WrongAddress as error:
                raise GridError(error.code, str(error), error.advice) from None
        self.notice: Callable[[str], None] | None = None
        """Told in words why something has to wait, from another thread; set before anything is asked."""
        self._couriers: dict[str | None, tuple[Courier, Counter]] = {}
        self._calls: str | None = None
        self._versions: dict[tuple[Any, ...], str] = {}

    # -- tasks -------------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...

    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        resources: dict[str, Any] | None = None,
        **options: Unpack[TaskOptions],
    ) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        resources: dict[str, Any] | None = None,
        **options: Unpack[TaskOptions],
    ) -> Any:
        """Make a function one whose calls can be tasks; at a site its name is that of a type there.

        `name` names the type, by default as the function is called; the other options are for all its tasks.
        `resources` is what a worker on this machine needs, such as `{"cpu": 2, "memory": "1Gi", "gpu": 1}`.
        """

        def made(function: Callable[..., Any]) -> TaskFunction[..., Any]:
            worker.raw(function)  # what is wrong with it is told here
            name = options.pop("name", function.__name__)
            return TaskFunction(self, function, name, options, resources)

        return made if function is None else made(function)

    def map(
        self,
        type: str | Callable[..., Any],
        payloads: Iterable[Any],
        *,
        ordered: bool = True,
        errors: str = "raise",
        tenant: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Iterator[Any]:
        """The results of payloads, which may have no end, as they come; in their order unless told otherwise.

        With a function, values go in and come out. With the name of a type, payloads that are no bytes are
        written as JSON, and results are bytes. A task that failed raises TaskFailed in its turn, or with
        `errors="yield"` that is what comes in its place. Who stops iterating ends the rest.
        """
        if errors not in ("raise", "yield"):
            raise GridError("wrong", f"`{errors}` says nothing of errors", "write raise or yield")
        form, encode, decode = self._kind(type, options)
        courier, _ = self._courier(tenant)
        encoded = (form.checked(encode(payload)) for payload in payloads)
        mapping = Mapping(courier, form, encoded, decode, ordered=ordered, raises=errors == "raise")
        return iter(mapping)

    def submit(
        self,
        type: str | Callable[..., Any],
        payload: Any = b"",
        *,
        tenant: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Handle:
        """Submit one task; its handle has `result()`, `done()` and `cancel()`."""
        form, encode, decode = self._kind(type, options)
        _, counter = self._courier(tenant)
        handle = Handle(form.checked(encode(payload)), decode)
        counter.put(form, handle)
        return handle

    def submit_call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any
    ) -> Handle:
        """Have a function called by a worker, with any arguments that can be pickled; see `executor`."""
        from jobman.tasks.functions import CALLS, register_calls

        if self.places is not None:
            if self._calls is None:
                self._calls = register_calls(self.places)
            options = {**options, "version": self._calls}
        handle = self.submit(CALLS, pack(function, args, kwargs), **options)
        handle.decode = unpack
        return handle

    def submit_many(
        self,
        type: str | Callable[..., Any],
        payloads: Iterable[Any],
        *,
        tenant: str | None = None,
        key: str = "",
        **options: Unpack[TaskOptions],
    ) -> int:
        """Submit tasks as one batch, and return its number when it is accepted; `results` tells of them."""
        form, encode, _ = self._kind(type, options)
        encoded = [form.checked(encode(payload)) for payload in payloads]
        whole = form.of(encoded, key or os.urandom(16).hex())
        found = self._courier(tenant)[0].ask("POST", "/v1/tasks", whole, type_=dict[str, int])
        return found["batch"]

    def executor(self, **options: Any) -> GridExecutor:
        """A concurrent.futures.Executor whose calls are tasks, with the options of `submit`."""
        return GridExecutor(self, **options)

    # -- what became of them -----------------------------------------------------------------------

    def results(
        self, after: int = 0, *, batch: int | None = None, follow: bool = False, tenant: str | None = None
    ) -> Iterator[Result]:
        """What became of tasks, from a place on; with `follow` it goes on with what comes."""
        while True:
            found, place = self.results_once(after, batch=batch, wait=_WAIT if follow else 0.0, tenant=tenant)
            yield from found
            if not follow and place == after:
                return
            after = place

    def results_once(
        self, after: int = 0, *, batch: int | None = None, wait: float = 0.0, tenant: str | None = None
    ) -> tuple[list[Result], int]:
        """Some of what became of tasks behind a place, and from where to read on."""
        only = "" if batch is None else f"&batch={batch}"
        courier, _ = self._courier(tenant)
        told = courier.ask("GET", f"/v1/tasks/results?after={after}&wait={wait}{only}", type_=Told)
        return list(_results(told, after)), told.place

    def place(self, *, tenant: str | None = None) -> int:
        """From where on `results` tells what ends from now on."""
        courier, _ = self._courier(tenant)
        return courier.do(courier.place()).result()

    def cancel(self, batch: int, indexes: Sequence[int] | None = None, *, tenant: str | None = None) -> int:
        """End what waits and what runs of a batch: all of it, or these; tells how many that were."""
        some = None if indexes is None else list(indexes)
        found = self.ask("POST", f"/v1/tasks/{batch}/cancel", some, tenant=tenant)
        return int(found["cancelled"])

    def fetched(self, batch: int, *, tenant: str | None = None) -> None:
        """The results of a batch were read: when all of it has ended it is forgotten."""
        self.ask("POST", f"/v1/tasks/{batch}/fetched", tenant=tenant)

    def ask(self, method: str, path: str, body: object = None, *, tenant: str | None = None) -> Any:
        """Any request of a broker, as the page on short tasks lists them; the answer in plain values."""
        return self._courier(tenant)[0].ask(method, path, body, type_=Any)

    # -- its life ----------------------------------------------------------------------------------

    def wait(self) -> None:
        """Until all that was submitted with handles has ended."""
        for _, counter in self._couriers.values():
            counter.wait()

    def close(self) -> None:
        """Let go of the broker; what is under way there goes on."""
        while self._couriers:
            _, (courier, counter) = self._couriers.popitem()
            courier.do(courier.settled()).result()
            courier.close()
            counter.close()

    def __enter__(self) -> Grid:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wait()
        self.close()

    def __reduce__(self) -> Any:
        state = None if self.places is None else str(self.places.state.parent)
        return functools.partial(Grid, tenant=self._tenant, state=state, ca_file=self._ca_file), (self._url,)

    # -- inside ------------------------------------------------------------------------------------

    def _courier(self, tenant: str | None) -> tuple[Courier, Counter]:
        tenant = tenant or self._tenant
        if tenant not in self._couriers:
            headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
            if tenant is not None:
                headers["x-jobman-tenant"] = tenant
            courier = Courier(self._find, headers, self._ca_file, self._tell)
            self._couriers[tenant] = courier, Counter(courier)
        return self._couriers[tenant]

    def _tell(self, words: str) -> None:
        if self.notice is not None:
            self.notice(words)

    def _find(self) -> Address:
        return self._address or Address(embedded.ensure_broker(self.places))

    def _kind(
        self, type_: str | Callable[..., Any], options: TaskOptions
    ) -> tuple[Template, Callable[[Any], bytes], Callable[[bytes], Any]]:
        """How a task of a type is submitted, how its payload is written, and how its result is read."""
        if isinstance(type_, str):
            form = template(type_, options)
            return form, _place if form.by_reference else _encoded, _as_it_is
        if not isinstance(type_, TaskFunction):
            type_ = self.task(type_)
        given = type_.options | options
        given["version"] = self._version(type_, given.get("version"))
        encode, decode = worker.ends_of(type_.function)
        return template(type_.name, given), encode, decode

    def _version(self, function: TaskFunction[..., Any], version: str | None) -> str | None:
        """At a site the version that was named; here the function itself."""
        if self.places is None:
            return version
        known = (function.function, function.name, version, *sorted(function.resources.items()))
        if known not in self._versions:
            from jobman.tasks.functions import register

            exact = register(self.places, function.function, function.name, version, function.resources)
            self._versions[known] = exact
        return self._versions[known]


def _encoded(payload: Any) -> bytes:
    return payload if isinstance(payload, bytes) else msgspec.json.encode(payload)


def _place(payload: Any) -> bytes:
    return payload if isinstance(payload, bytes) else str(payload).encode()


def _as_it_is(result: bytes) -> bytes:
    return result


def _results(told: Told, before: int) -> Iterator[Result]:
    rows = [(batch, ends, place) for batch, ends in told.ends for place in range(len(ends.indexes))]
    for number, (batch, ends, place) in enumerate(rows, 1):
        index = ends.indexes[place]
        body = ends.results[place] if ends.results else b""
        is_done = ends.status == Status.COMPLETED
        yield Result(
            batch=batch,
            index=index,
            status=Status(ends.status).name.lower(),
            result=body if is_done else b"",
            reason="" if is_done else reason_of(ends, place),
            attempts=ends.attempts.get(index, 1),
            seconds=ends.seconds[place] if ends.seconds else 0.0,
            place=told.place if number == len(rows) else before,
        )
