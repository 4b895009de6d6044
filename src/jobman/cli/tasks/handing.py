"""Tasks on their way to a broker, and what becomes of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from jobman.cli.state import INTERRUPTED, ExitCode, emit, say
from jobman.cli.tasks.payloads import CHUNK, Chunk, WrongLine, chunks
from jobman.cli.tasks.progress import Rate, Steps, count_of, rate_of, steps_for
from jobman.cli.tasks.tally import Tally
from jobman.cli.tasks.told import print_result
from jobman.cli.times import length
from jobman.tasks.grid import Grid
from jobman.tasks.model import Submission


def wrong_line(error: WrongLine, form: str, so_far: str) -> NoReturn:
    """End the command because of a line."""
    advice = f"{error.advice}\n{so_far}"
    if form == "table":
        say(f"{error.place}: {error.message}", advice)
    else:
        told = {"code": "wrong-line", "message": error.message, "advice": advice, "place": error.place}
        emit({**told, "exit": int(ExitCode.DOCUMENT)}, form)
    raise SystemExit(ExitCode.DOCUMENT)


class Handing:
    """Tasks on their way to a broker, and what becomes of them."""

    def __init__(
        self, grid: Grid, template: Submission, form: str, *, by_reference: bool, quiet: bool
    ) -> None:
        self._grid = grid
        self._template = template
        self._form = form
        self._by_reference = by_reference
        self._quiet = quiet
        self._tally = Tally()
        self._accepted: list[dict[str, int]] = []
        # Under a key that was used before, some may have ended already.
        self._place = 0 if template.key else grid.place()

    # -- in ----------------------------------------------------------------------------------------

    def hand_in(self, payloads: Iterator[bytes], total: int | None, most: int | None) -> None:
        """Submit all; ends the command where that cannot be."""
        try:
            with steps_for("submitting", total, quiet=self._quiet) as steps:
                self._grid.notice = steps.notice
                for number, chunk in enumerate(chunks(payloads, most or CHUNK)):
                    self._submit(number, chunk)
                    steps.show(self._tally.size)
        except WrongLine as error:
            wrong_line(error, self._form, self._so_far())
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            say(self._so_far())
            raise SystemExit(INTERRUPTED) from None
        except Exception:
            if self._accepted and self._form == "table":
                say(self._so_far())
            raise

    def _submit(self, number: int, chunk: Chunk) -> None:
        key = f"{self._template.key}/{number}" if self._template.key else os.urandom(16).hex()
        texts = [each.decode() for each in chunk.payloads] if self._by_reference else []
        whole = msgspec.structs.replace(
            self._template,
            key=key,
            payloads=[] if self._by_reference else chunk.payloads,
            references=texts,
        )
        found = self._grid.ask("POST", "/v1/tasks", whole)
        self._tally.add(found["batch"], found["size"])
        self._accepted.append({"batch": found["batch"], "size": found["size"], "first": chunk.first})

    def _so_far(self) -> str:
        if not self._accepted:
            return "nothing was submitted"
        last = self._accepted[-1]["first"] + self._accepted[-1]["size"] - 1
        were = "was" if self._tally.size == 1 else "were"
        said = f"{count_of(self._tally.size, 'task')} (up to line {last:,}) {were} accepted: {self._named()}"
        if self._template.key:
            return f"{said}; the same command goes on behind them"
        return f"{said}; `jobman task cancel {self._named()}` ends them"

    def _named(self) -> str:
        """How the batches are typed."""
        if self._template.name:
            return self._template.name
        numbers = self._tally.batches
        return " ".join(map(str, numbers if len(numbers) < 6 else [*numbers[:5], "…"]))

    # -- out ---------------------------------------------------------------------------------------

    def tell(self) -> None:
        """Say what was accepted."""
        self._print()
        if not self._quiet and self._form == "table":
            say(f"{self._what()}; follow with `jobman task results -f {self._named()}`")

    def _what(self) -> str:
        batches = len(self._accepted)
        among = f" in {count_of(batches, 'batch')}" if batches > 1 else ""
        return f"{count_of(self._tally.size, 'task')} submitted{among}"

    def _print(self, **more: Any) -> None:
        if self._form != "table":
            answer = {"tasks": self._tally.size, "batches": self._accepted, **more}
            emit(answer, self._form)
            return
        for each in self._accepted:
            sys.stdout.write(f"{each['batch']}\n")
        sys.stdout.flush()

    def follow(self, form: str | None) -> int:
        """Wait until all have ended, and where a form is named print the results in it; the exit code."""
        rate = Rate()
        # Lines and a bar on one terminal would write over each other.
        is_bare = self._quiet or (form is not None and sys.stdout.isatty())
        try:
            if form is None and self._form == "table":
                self._print()
            with steps_for(self._template.type, self._tally.size, quiet=is_bare) as steps:
                self._grid.notice = steps.notice
                self._hear(steps, form)
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            say(f"the tasks go on; return with `jobman task results -f {self._named()}`")
            say(f"end them with `jobman task cancel {self._named()}`")
            raise SystemExit(INTERRUPTED) from None
        tally = self._tally
        if form is None and self._form != "table":
            self._print(counts=tally.counts, seconds=round(rate.seconds, 3))
        if not self._quiet:
            counted = ", ".join(f"{number:,} {status}" for status, number in tally.counts.items())
            speed = f", {rate_of(rate.overall(tally.size))}" if tally.size > 1 else ""
            say(f"{counted} in {length(rate.seconds)}{speed}")
            if tally.failed:
                say(f"`jobman task results --failed {self._named()}` says why")
        return ExitCode.FAILED if tally.failed else ExitCode.DONE

    def _hear(self, steps: Steps, form: str | None) -> None:
        tally = self._tally
        only = tally.batches[0] if len(tally.batches) == 1 else None
        shown = 0
        for result in self._grid.results(self._place, batch=only, follow=True):
            if not tally.end(result.batch, result.index, result.status):
                continue
            if form is not None:
                print_result(result, form)
            shown += 1
            if tally.left == 0 or shown % 100 == 0 or result.place != self._place:
                self._place = result.place
                sys.stdout.flush()
                steps.show(tally.ended, f"{tally.failed:,} failed" if tally.failed else "")
            if not tally.left:
                return
