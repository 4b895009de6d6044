"""Short tasks beside other systems for them, on the same two cores: how many a second, how soon, what memory.

A task does nothing, so that the numbers are the cost of having it done. Ours are durable: a submission is
answered, and a result is told, when it is on disk. `python -m bench.tasks --quick` leaves the million out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from bench import Row, _grid
from bench.__main__ import table
from bench._grid import FEW, MANY, SOME, Ours
from bench._task_peers.clock import WORKERS, Found, latency, singles
from bench._task_peers.places import PEERS, Missing, Peer, measured

Pair = tuple[Peer, Found, Found | str]
"""A peer, ours around it, and what was measured of it or why nothing was."""


def main(*, quick: bool = False) -> list[Row]:
    """Ours and theirs take turns."""
    with _grid.ours(batches=True) as grid:
        pairs = [_turn(grid, peer) for peer in PEERS]
    return [*_beside(pairs), *_one_call(pairs), *_alone(quick)]


def _turn(grid: Ours, peer: Peer) -> Pair:
    _say(f"jobman and {peer.name}")
    grid.warm()
    took = singles(grid.run_one)
    theirs: Found | str
    try:
        theirs = measured(peer)
    except Missing as error:
        theirs = str(error)
    grid.warm()
    # A machine is not as fast at all times: single ones before and after theirs.
    took += singles(grid.run_one)
    return peer, Found(SOME, grid.rate(SOME), *latency(took)), theirs


def _say(words: str) -> None:
    print(f"  … {words}", file=sys.stderr, flush=True)


# -- rows ----------------------------------------------------------------------------------------------------


def _beside(pairs: Sequence[Pair]) -> Iterator[Row]:
    what = f"tasks that do nothing, {WORKERS} workers, submit to all results"
    for peer, ours, theirs in pairs:
        if isinstance(theirs, str):
            yield Row(what, ours.rate, "tasks/s", peer.name, note=theirs)
        else:
            note = f"{theirs.tasks:,} of theirs; {peer.note}"
            yield Row(what, ours.rate, "tasks/s", peer.name, theirs.rate, note)
    for number, words in (("p50", "half are faster"), ("p95", "95 of 100 are faster")):
        for peer, ours, theirs in pairs:
            if not isinstance(theirs, str):
                mine, other = (1000 * getattr(found, number) for found in (ours, theirs))
                yield Row(f"one task, {number}", mine, "ms", peer.name, other, words)


def _one_call(pairs: Sequence[Pair]) -> Iterator[Row]:
    """Beside the fastest of them."""
    found = [(theirs.rate, peer.name) for peer, _, theirs in pairs if not isinstance(theirs, str)]
    rate, name = max(found, default=(None, ""))
    what = "the same, with an HTTP call of the worker for each"
    _say("jobman with a call for each task")
    with _grid.ours(batches=False) as grid:
        grid.warm()
        yield Row(f"{what}, {FEW:,}", grid.rate(FEW), "tasks/s", name, rate, "the fastest peer")
        yield Row("one task, p50", 1000 * latency(singles(grid.run_one))[0], "ms")


def _alone(quick: bool) -> Iterator[Row]:
    """How the rate holds, and what a queue costs."""
    sizes = (FEW, SOME) if quick else (FEW, SOME, MANY)
    rates: list[float] = []
    with _grid.ours(batches=True) as grid:
        for size in sizes:
            _say(f"jobman with {size:,} tasks")
            grid.warm()
            rates.append(grid.rate(size))
            yield Row(f"{size:,} tasks", rates[-1], "tasks/s", f"{FEW:,} tasks", rates[0], "target: ≥ 0.8")
        yield Row("memory of the broker after those, at most", grid.memory(), "MB")
    queued = SOME if quick else MANY
    _say(f"jobman with {queued:,} tasks that wait")
    with _grid.ours_waiting() as grid:
        grid.queue(queued)
        note = "" if quick else "target: ≤ 1,074 (1 GiB)"
        yield Row(f"memory of the broker with {queued:,} queued, at most", grid.memory(), "MB", note=note)


if __name__ == "__main__":
    print(table(main(quick="--quick" in sys.argv[1:])))
