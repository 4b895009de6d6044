"""A concurrent.futures.Executor whose calls are short tasks: of any function that can be pickled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from jobman.tasks.grid import Grid
    from jobman.tasks.handles import Handle

P = ParamSpec("P")
R = TypeVar("R")


class GridExecutor(Executor):
    """Calls go to the workers of a grid. At a site they are tasks of the type `python-call`."""

    def __init__(self, grid: Grid, **options: Any) -> None:
        self._grid = grid
        self._options = options
        self._open: set[Handle] = set()
        self._is_shut = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Have a function called by a worker."""
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        handle = self._grid.submit_call(fn, args, kwargs, **self._options)
        self._open.add(handle)
        handle.add_done_callback(lambda _: self._open.discard(handle))
        return handle

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more; wait for what is under way, or end it."""
        self._is_shut = True
        under_way = list(self._open)
        if cancel_futures:
            for handle in under_way:
                handle.cancel()
        if wait:
            wait_for(under_way)
