"""Handing scripts to Flux: a job for each piece, or one for each replica, and each of them once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jobman.engines.flux.compile import AFTER, dependency, is_alone
from jobman.engines.flux.names import title, whose
from jobman.engines.flux.options import read_directives
from jobman.engines.flux.queue import FluxJob
from jobman.engines.scripts.commands import Commands, Failed, NotThere, Said
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.quoting import number

_AMBIGUOUS = 90.0
"""Seconds after which a submission that may or may not have arrived is given up."""
_HELD = "--urgency=0"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One piece, and how it is to be submitted."""

    piece: Piece
    job: str
    job_name: str
    script: str
    options: tuple[str, ...]
    """Those of its head."""
    more: tuple[str, ...]
    """Those that are known only now: what it waits for, and whether it is held."""

    @property
    def elements(self) -> Sequence[int]:
        """The replicas that it runs; none where it is no more than one job."""
        if self.piece.unit is None or self.piece.unit.replicas == 1:
            return ()
        return self.piece.elements or range(self.piece.unit.replicas)

    @property
    def at_once(self) -> int | None:
        return None if self.piece.unit is None else self.piece.unit.policies.parallelism

    @property
    def urgency(self) -> str:
        """What it has when it is not held, as its ids tell it; nothing where it has the usual one."""
        given = [word.partition("=")[2] for word in self.options if word.startswith("--urgency=")]
        return f"@{given[-1]}" if given else ""

    def words(self, element: object = None, more: Sequence[str] = ()) -> list[str]:
        """The command that submits it, or one element of it.

        A script that runs nothing beside itself is a plain job: an instance of its own would only cost time.
        """
        name = title(self.job_name, self.piece.name, self.job, element, len(self.elements), self.urgency)
        named = [] if element is None else [f"--job-name={name}"]
        rest = [self.script, *([] if element is None else [str(element)])]
        if is_alone(self.piece):
            return ["flux", "submit", *self.options, *self.more, *named, *more, *rest]
        return ["flux", "batch", *self.more, *named, *more, *rest]


def order_for(
    piece: Piece,
    folder: Folder,
    ids: Mapping[str, str],
    *,
    held: bool,
    begun: str = AFTER["begun"],
    longest: Callable[[str | None], float | None] = lambda _: None,
) -> Order:
    """`longest` says how many seconds a job of a queue may ask for."""
    script = folder.script(piece.name)
    options = read_directives(script.read_text())
    return Order(
        piece=piece,
        job=folder.path.name,
        job_name=folder.about().name,
        script=str(script),
        options=tuple(options),
        more=(
            *dependency(piece, ids, begun),
            *_shortened(piece, options, longest(_value("-q", options))),
            *([_HELD] if held else []),
        ),
    )


def _shortened(piece: Piece, options: Sequence[str], limit: float | None) -> Iterator[str]:
    """No more time than there can be had, where all that is too long is what an end in peace takes."""
    asked = re.fullmatch(r"([\d.]+)s", _value("-t", options) or "")
    if limit is None or asked is None or piece.unit is None or piece.unit.duration is None:
        return
    retries = piece.unit.policies.retries
    tries = 1 if retries is None else retries.limit + 1
    if tries * piece.unit.duration <= limit < float(asked[1]):
        yield f"-t{number(limit)}s"


def _value(option: str, options: Sequence[str]) -> str | None:
    found = [word.removeprefix(option) for word in options if word.startswith(option)]
    return found[-1] if found else None


class Submitter:
    """Submits orders; `known` lists what Flux has."""

    def __init__(
        self,
        commands: Commands,
        known: Callable[[], list[FluxJob]],
        environment: Mapping[str, str] | None,
        patience: float = _AMBIGUOUS,
    ) -> None:
        self._commands = commands
        self._known = known
        self._environment = environment
        self._patience = patience

    def submit(self, order: Order) -> str:
        """The ids of all its jobs, each with the urgency it is to have: f1,f2 or f1@24,f2@24."""
        ids = self._many(order) if order.elements else [self._one(order, None, ())]
        return ",".join(f"{id_}{order.urgency}" for id_ in ids)

    def _many(self, order: Order) -> list[str]:
        """A job for each replica: there are no arrays. Where none waits for another, one command does it."""
        there = self._elements(order)
        if not there and order.at_once is None and _can_be_repeated(order):
            there = self._repeated(order)
        for place, element in enumerate(order.elements):
            if element not in there:
                there[element] = self._one(order, element, _turn(order, place, there))
        return [there[element] for element in order.elements]

    def _repeated(self, order: Order) -> dict[int, str]:
        words = order.words("{cc}", [f"--cc={','.join(map(str, order.elements))}"])
        said = self._commands.once(*words, environment=self._environment)
        ids = said.out.split()
        if said.code == 0 and len(ids) == len(order.elements):
            return dict(zip(order.elements, ids, strict=True))
        if said.code != 0 and not ids and not self._commands.is_transient(said):
            raise _refused(said)
        return self._elements(order)

    def _one(self, order: Order, element: int | None, more: Sequence[str]) -> str:
        """Whatever happens on the way, there is one such job in the end."""
        words = order.words(element, more)
        deadline = time.monotonic() + self._patience
        while True:
            said = self._commands.once(*words, environment=self._environment)
            if said.code == 0:
                return said.out.strip().splitlines()[-1]
            if not self._commands.is_transient(said):
                raise _refused(said)
            if time.monotonic() > deadline:
                raise NotThere(f"Flux does not answer: {said.words}", "try again in a while")
            time.sleep(1.0)
            # It may have arrived all the same.
            if (known := self._elements(order).get(element or 0)) is not None:
                return known

    def _elements(self, order: Order) -> dict[int, str]:
        return dict(_of_piece(self._known(), order))


def _refused(said: Said) -> Failed:
    """What Flux says, without who in it says so and the number of the error."""
    words = re.sub(r"^(?:flux-\w+: )?(?:ERROR: )?(?:\[Errno \d+\] )?", "", said.error, flags=re.MULTILINE)
    return Failed(msgspec.structs.replace(said, error=words), "flux")


def _of_piece(jobs: Sequence[FluxJob], order: Order) -> Iterator[tuple[int, str]]:
    for job in jobs:
        found = whose(job.name)
        if found is not None and (found.job, found.piece) == (order.job, order.piece.name):
            yield found.element or 0, job.jobid


def _can_be_repeated(order: Order) -> bool:
    """Only plain jobs can, and in whose words no braces stand: they would be filled in."""
    return is_alone(order.piece) and not any("{" in re.sub(r"\{\{id\}\}", "", word) for word in order.words())


def _turn(order: Order, place: int, there: Mapping[int, str]) -> list[str]:
    """With `parallelism: N` each waits for the end of the one N before it.

    So there are never more than N, nobody has to count, and a script that is killed stops nobody else.
    """
    if order.at_once is None or place < order.at_once:
        return []
    return [f"--dependency={AFTER['any']}:{there[order.elements[place - order.at_once]]}"]
