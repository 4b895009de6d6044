"""`jobman task results`: what became of tasks, a line each, from any place on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.state import INTERRUPTED, say
from jobman.cli.tasks.asking import Asking, asks
from jobman.cli.tasks.options import Batches

if TYPE_CHECKING:
    from jobman.tasks.grid import Grid, Result

_WAIT = 20.0
_LAST_WAIT = 1.0


@asks
def results(
    batches: Batches = None,
    follow: Annotated[
        bool,
        typer.Option("-f", "--follow", help="Wait for more: until the batches that are named have ended."),
    ] = False,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="PLACE", help="Only what came behind this place.")
    ] = 0,
    failed: Annotated[bool, typer.Option("--failed", help="Only of tasks that did not complete.")] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Have the broker forget batches that have ended and are printed.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Do not say from where to read on.")] = False,
    *,
    asking: Asking,
) -> None:
    """Print what became of tasks, a line of JSON each; at the end stderr says from where to read on."""
    from jobman.cli.tasks.names import Named

    # Whoever did not ask for data is told in words what is wrong.
    with asking as grid:
        reading = Reading(grid, Named(grid).batches(batches or ()), after)
        try:
            reading.print(asking.form_of_results, follow=follow, failed=failed)
            reading.check()
            if forget:
                reading.forget()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            reading.say_place(quiet=quiet)
            raise SystemExit(INTERRUPTED) from None
    reading.say_place(quiet=quiet)


class Reading:
    """Results of some batches, or of all, and how far they are read."""

    def __init__(self, grid: Grid, batches: list[int], place: int) -> None:
        self._grid = grid
        self._batches = batches
        self._place = place
        self._only = batches[0] if len(batches) == 1 else None
        self._seen: set[int] = set()

    def print(self, form: str, *, follow: bool, failed: bool) -> None:
        """Print what there is; with `follow` what comes."""
        from jobman.cli.tasks.told import print_result

        for result in self._results(follow=follow):
            if self._batches and result.batch not in self._batches:
                continue
            self._seen.add(result.batch)
            if not (failed and result.status == "completed"):
                print_result(result, form)

    def _results(self, *, follow: bool) -> Iterator[Result]:
        while True:
            is_last, end = (True, 0) if not follow else self._end()
            wait = 0.0 if not follow else _LAST_WAIT if is_last else _WAIT
            before = self._place
            found, place = self._grid.results_once(before, batch=self._only, wait=wait)
            yield from found
            sys.stdout.flush()
            # Only when all of them are printed: who is interrupted before reads them again.
            self._place = place
            if is_last and (place == before or (follow and place >= end and not found)):
                return

    def _end(self) -> tuple[bool, int]:
        """Whether all batches that were named have ended, and up to where the broker had decided by then."""
        if not self._batches:
            return False, 0
        left = self._left()
        if any(left.get(batch, 0) for batch in self._batches):
            return False, 0
        return True, self._grid.place()

    def _left(self) -> dict[int, int]:
        from jobman.cli.tasks.names import batches_of

        return {each["batch"]: each["left"] for each in batches_of(self._grid)}

    def check(self) -> None:
        """Raises GridError where nothing came of a batch because the broker has none of that number."""
        for batch in set(self._batches) - self._seen:
            self._grid.ask("GET", f"/v1/tasks/{batch}/0")

    def forget(self) -> None:
        """Tell the broker that nobody will ask again for what has ended and was printed."""
        left = self._left()
        for batch in sorted(self._seen):
            if left.get(batch) == 0:
                self._grid.fetched(batch)

    def say_place(self, *, quiet: bool) -> None:
        """Say from where to read on."""
        if not quiet:
            say(f"read on with --after {self._place}")
