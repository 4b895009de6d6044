"""From a look to rows of cells: what stands in each pane, and what a filter leaves of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobman.cli.amounts import amount_of
from jobman.cli.bars import bar, colour_of
from jobman.cli.estimates import is_now, latest, moment
from jobman.cli.jobs import progress_of, state_cell
from jobman.cli.tables import Cell
from jobman.cli.times import length

if TYPE_CHECKING:
    from jobman.cli.top.looks import Look
    from jobman.control.answers import Job, Node

WAITING = ("#", "job", "name", "owner", "queue", "starts by", "expected", "9 in 10", "why")
RUNNING = ("job", "name", "owner", "queue", "done", "used", "limit", "", "state")
NODES = ("node", "state", "load", "cores", "gpu load", "gpus", "memory", "jobs", "reason")
STATES = {"up": "green", "draining": "yellow"}


class Row(NamedTuple):
    """A row of a pane, known by the id of its job or the name of its node."""

    key: str
    cells: tuple[Cell, ...]


def _row(key: str, *cells: str | Cell) -> Row:
    return Row(key, tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells))


# -- jobs ---------------------------------------------------------------------------------------------------


def waiting(look: Look, words: str = "") -> list[Row]:
    """Those who wait, in the order in which they start."""
    return [_waiting(job, look.at) for job in look.waiting if fits(words, *_of_job(job))]


def _waiting(job: Job, now: float) -> Row:
    return _row(
        job.id,
        f"{job.estimate.position:,}" if job.estimate is not None and job.estimate.position else "",
        Cell(job.id, "dim"),
        job.name,
        job.owner,
        _queue(job),
        *_outlook(job, now),
        Cell("held", "yellow") if job.held else job.reason,
    )


def _outlook(job: Job, now: float) -> tuple[Cell, Cell, Cell]:
    """By when it starts, when that is expected, and by when with nine chances in ten."""
    estimate = job.estimate
    nothing = Cell("")
    if estimate is None:
        return nothing, nothing, nothing
    if is_now(estimate, now):
        return Cell("now", "green"), nothing, nothing
    promised, expected, p90 = estimate.guaranteed_by, estimate.expected_at, estimate.expected_p90
    return (
        Cell("no promise", "yellow") if promised is None else Cell(latest(promised, now)),
        nothing if expected is None else Cell("any moment" if expected <= now else moment(expected, now)),
        nothing if p90 is None or p90 <= now else Cell(latest(p90, now)),
    )


def running(look: Look, words: str = "") -> list[Row]:
    """Those who run, the newest first."""
    return [_running(job, look.at) for job in look.running if fits(words, *_of_job(job))]


def _running(job: Job, now: float) -> Row:
    start = job.started_at or now
    used = max(now - start, 0.0)
    limit = None if job.ends_by is None else max(job.ends_by - start, 0.0)
    return _row(
        job.id,
        Cell(job.id, "dim"),
        job.name,
        job.owner,
        _queue(job),
        progress_of(job.counts),
        _whole(used),
        Cell("none", "dim") if limit is None else _whole(limit),
        Cell("") if limit is None else Cell(bar(used, limit), "red" if used >= 0.9 * limit else "cyan"),
        state_cell(job),
    )


def _whole(seconds: float) -> str:
    """A length that does not flicker: to the second."""
    return f"{seconds:.0f} s" if seconds < 60 else length(seconds)


def _queue(job: Job) -> str:
    return job.queue or (job.estimate.queue if job.estimate is not None else "")


def _of_job(job: Job) -> Iterable[str]:
    labels = (f"{key}={value}" for key, value in job.labels.items())
    return (
        job.id,
        job.name,
        job.owner,
        job.state,
        "held" if job.held else "",
        _queue(job),
        job.flavor or "",
        job.account or "",
        job.reason,
        *labels,
    )


# -- nodes --------------------------------------------------------------------------------------------------


def nodes(look: Look, words: str = "") -> list[Row]:
    """The nodes with what is in use of them."""
    return [_node(node) for node in look.nodes if fits(words, node.name, node.state, node.reason, *node.jobs)]


def _node(node: Node) -> Row:
    return _row(
        node.name,
        node.name,
        Cell(node.state, STATES.get(node.state, "red")),
        *_load(node, "core"),
        *_load(node, "gpu"),
        _load(node, "memory")[1],
        f"{len(node.jobs):,}" if node.jobs else "",
        node.reason,
    )


def _load(node: Node, kind: str) -> tuple[Cell, Cell]:
    total, used = node.amounts.get(kind, 0.0), node.used.get(kind, 0.0)
    if not total:
        return Cell(""), Cell("")
    style = colour_of(used, total)
    return Cell(bar(used, total), style), Cell(f"{amount_of(kind, used)}/{amount_of(kind, total)}", style)


# -- all of it ----------------------------------------------------------------------------------------------


def totals(look: Look) -> list[Cell]:
    """How many wait and run, and how much of everything is in use."""
    said = [
        Cell(f"{_count(look.counts, look.waiting, 'waiting'):,} waiting", "yellow"),
        Cell(f"{_count(look.counts, look.running, 'running'):,} running", "cyan"),
    ]
    for kind, noun in (("core", "cores"), ("gpu", "gpus")):
        total = sum(node.amounts.get(kind, 0.0) for node in look.nodes)
        used = sum(node.used.get(kind, 0.0) for node in look.nodes)
        if total:
            figures = f"{amount_of(kind, used)}/{amount_of(kind, total)} {noun}"
            said.append(Cell(f"{bar(used, total)} {figures}", colour_of(used, total)))
    away = [node for node in look.nodes if node.state != "up"]
    said.append(Cell(f"{len(look.nodes):,} node{'' if len(look.nodes) == 1 else 's'}"))
    if away:
        said.append(Cell(f"{len(away):,} not up", "red"))
    return said


def _count(counts: dict[str, int], read: Sequence[Job], state: str) -> int:
    return max(counts.get(state, 0), len(read))


def fits(words: str, *texts: str) -> bool:
    """Whether each word of a filter occurs somewhere."""
    found = "\n".join(texts).casefold()
    return all(word in found for word in words.casefold().split())
