"""Whole scripts: who a piece is, what it may call, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import ceil

from jobman.engines.peers import shouted
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.quoting import array, quoted, spans, table
from jobman.engines.scripts.site import Job
from jobman.engines.scripts.units import VARIABLES, describe, unit_function
from jobman.plan.model import Plan, Unit
from jobman.spec.shapes import Alternative

Launch = Callable[[Unit], Sequence[str]]
"""The words that start the copies of a task in the nodes of its group, or in its own."""
_BELOW = "# Above is what this job asks for; below is how it is done, which is the same for all jobs."
_PLAIN = ("base", "command", "copy", "attempt", "piece")
"""What a command needs that has nothing around it."""
PLAIN = "_plain"
"""The file of that, where several scripts share it; no task has such a name."""
_OLD_BASH = "((${BASH_VERSINFO[0]}${BASH_VERSINFO[1]} >= 44)) || { echo 'needs bash 4.4' >&2; exit 1; }"
_COUNTS = "declare -A GOOD=() BAD=() GONE=() SKIPPED=() WANTED=() WASTED=()"
_ROOM = 64
"""Replicas at once in a group, where nobody can say how many it has room for."""


def script(
    piece: Piece,
    plan: Plan,
    job: Job,
    header: Sequence[str],
    manager: str,
    launch: Launch,
    everywhere: str,
    guard: str = "",
    shortcut: Sequence[str] = (),
) -> str:
    """The script of a piece. `manager` are the functions that speak to the manager.

    `everywhere` are those for all nodes at once. `guard` is the one that runs all of it, where the manager's
    signals are not only for the script. `shortcut` mostly makes the rest unnecessary: functions are in a file
    of their own then, `plain_functions`, and the manager need not carry them about.
    """
    unit = piece.unit
    assert unit is not None
    inside = list(_inside(unit, plan))
    lines = [
        "#!/bin/bash",
        *header,
        "",
        f"# jobman: job {job.id} ({job.name}), {describe(unit, job.file)}",
        *_begin(job, piece, shortcut),
        "",
        "# What must be known of several tasks at once, by their numbers.",
        *filter(None, _tables(plan, _known(inside, plan), inside[1:])),
        "",
    ]
    tags = tags_of(plan)
    for each in inside:
        parts = chosen(each)
        words = [] if each.kind == "group" or is_direct(each, unit) else launch(each)
        lines += [*unit_function(each, tags[each.id], plan, job, parts, words), ""]
    lines += [_BELOW, "", f"OF_A_UNIT=({' '.join(VARIABLES)})"]
    if shortcut:
        lines.append(f'source "$J/scripts/{PLAIN}.sh" || exit 1')
    elif is_plain(piece, plan, job):
        lines += ["", *_fragments(_PLAIN), *manager.splitlines()]
    else:
        lines += [_COUNTS, "", *_peers(plan), *_fragments(_needed(inside)), *manager.splitlines()]
        if any(each.steps for each in inside):
            lines += ["", *everywhere.splitlines()]
    lines += ["", *_end(piece, plan, job, tags, guard)]
    return "\n".join(lines) + "\n"


def plain_functions(manager: str) -> str:
    """What commands with nothing around them need where not all goes well, the same for all of a job."""
    return "\n".join([*_fragments(_PLAIN), *manager.splitlines()]) + "\n"


def closing_script(piece: Piece, plan: Plan, job: Job, header: Sequence[str], manager: str) -> str:
    """The script that ends the services of a job."""
    services = " ".join(quoted(unit.name) for unit in plan.children() if unit.service)
    lines = [
        "#!/bin/bash",
        *header,
        "",
        f"# jobman: job {job.id} ({job.name}): its tasks are over, and its services end with them",
        *_begin(job, piece),
        *_fragment("base"),
        *manager.splitlines(),
        ': >"$J/served"',
        f"cancel_pieces {services}",
    ]
    return "\n".join(lines) + "\n"


def tags_of(plan: Plan) -> dict[str, int]:
    """A number for each unit; 0 stands for the document."""
    return {unit.id: number for number, unit in enumerate(plan.units, 1)}


def chosen(unit: Unit) -> Alternative:
    """The alternative that is asked for: by now there is one."""
    return unit.alternatives[0] if unit.alternatives else ()


def is_direct(unit: Unit, top: Unit) -> bool:
    """Whether its one copy runs where the script does."""
    return unit.local or (unit is top and sum(part.copies for part in chosen(unit)) <= 1)


def _inside(unit: Unit, plan: Plan) -> Iterator[Unit]:
    yield unit
    for child in plan.children(unit.id) if unit.kind == "group" else ():
        yield from _inside(child, plan)


def _begin(job: Job, piece: Piece, shortcut: Sequence[str] = ()) -> Iterator[str]:
    yield "# All that it leaves is in the folder J. `submit.sh` of `jobman render` makes it and submits this"
    yield "# script with the others. Nothing of jobman is needed where it runs."
    yield _OLD_BASH
    yield from job.prologue
    yield from shortcut
    yield "# What is exported by now is for the commands; all names below are for this script alone."
    exported = "< <(env -0)" if job.prologue else "</proc/self/environ"
    yield f"mapfile -d '' -t JOBMAN_INHERITED {exported}"
    yield f"J={quoted(job.folder)}"
    yield f"JOBMAN_JOB_ID={quoted(job.id)} JOBMAN_JOB_NAME={quoted(job.name)} PIECE={quoted(piece.name)}"


def _known(inside: Sequence[Unit], plan: Plan) -> list[Unit]:
    """What a script knows of the top of the document: what it waits for, and all where it looks at the job.

    A thousand scripts that each know of a thousand tasks would take long to read.
    """
    tops = list(plan.children())
    if inside[0].cleanup or any(unit.service for unit in tops):
        return tops
    own = {unit.id for unit in inside}
    needed = {inside[0].id, *(edge.after for edge in plan.edges if edge.unit in own)}
    return [unit for unit in tops if unit.id in needed]


def _tables(plan: Plan, tops: Sequence[Unit], inside: Sequence[Unit]) -> Iterator[str]:
    """Those without an entry are empty: nothing reads more of them than one entry at a time."""
    tags = tags_of(plan)
    units = [*tops, *inside]
    wanted: dict[int, list[int]] = {0: [tags[unit.id] for unit in tops]}
    for unit in units:
        if unit.kind == "group":
            wanted[tags[unit.id]] = [tags[child.id] for child in plan.children(unit.id)]
    named = {tags[unit.id]: unit for unit in units}
    after = {tag: _edges(unit, plan, tags) for tag, unit in named.items()}
    goals = {tag: goal(unit) for tag, unit in named.items()}
    yield table("MEMBERS", {tag: " ".join(map(str, inner)) for tag, inner in wanted.items()})
    yield table("NAMES", {tag: unit.name for tag, unit in named.items()})
    yield table("REPLICAS", {tag: unit.replicas for tag, unit in named.items()})
    yield table("ROOM", {tag: room(unit, plan) for tag, unit in named.items()})
    yield table("WHEN", {tag: unit.when for tag, unit in named.items()})
    yield table("AFTER", after)
    yield table("IS_SERVICE", _flags(named, lambda unit: unit.service))
    yield table("IS_CLEANUP", _flags(named, lambda unit: unit.cleanup))
    yield table("BLOCKS", _flags(named, lambda unit: unit.blocks))
    yield table("HOLDS", _flags(named, lambda unit: unit.policies.hold))
    yield table("GATES", {tag: " ".join(unit.policies.gates) for tag, unit in named.items()})
    yield table("CAN_BE_READY", _flags(named, lambda unit: can_be_ready(unit, plan)))
    yield table("MAX_FAILED", {tag: unit.policies.max_failed for tag, unit in named.items()})
    yield table("GOAL", {tag: found[0] for tag, found in goals.items() if found})
    yield table("GOAL_SIZE", {tag: found[1] for tag, found in goals.items() if found})
    yield table("GOAL_OF", {tag: found[2] for tag, found in goals.items() if found})


def _peers(plan: Plan) -> Iterator[str]:
    """The tasks that listen somewhere, for those who want to reach them."""
    listening = [unit for unit in plan.units if unit.kind == "task" and unit.policies.ports]
    if listening:
        yield "peers() {"
        for unit in listening:
            ports = " ".join(
                f"{shouted(port.name or str(port.port))}={port.port}"
                for port in unit.policies.ports
                if port.port
            )
            yield f"    peer {quoted(unit.name)} {shouted(unit.name)} {unit.replicas} {ports}".rstrip()
        yield "}"


def _flags(named: Mapping[int, Unit], test: Callable[[Unit], bool]) -> dict[int, object]:
    return {tag: "1" if test(unit) else "" for tag, unit in named.items()}


def _edges(unit: Unit, plan: Plan, tags: Mapping[str, int]) -> str:
    return " ".join(f"{tags[edge.after]}:{edge.when}" for edge in plan.edges if edge.unit == unit.id)


def goal(unit: Unit) -> tuple[int, int, str] | None:
    """How many must succeed, of how many, and of which; None where all must."""
    success, size = unit.policies.success, unit.replicas
    if success is not None:
        if success.replicas:
            size = len({i for low, high in success.replicas for i in range(low, min(high, size - 1) + 1)})
        return size if success.count is None else success.count, size, spans(success.replicas)
    completions = unit.policies.completions
    return None if completions is None else (completions, size, "")


def can_be_ready(unit: Unit, plan: Plan) -> bool:
    """Whether a task has a check for it, or a group such a task."""
    if unit.kind == "group":
        return any(can_be_ready(child, plan) for child in plan.children(unit.id))
    return unit.policies.checks is not None and unit.policies.checks.ready is not None


def room(unit: Unit, plan: Plan) -> int:
    """How many replicas may be under way at once: more of them would only wait for each other."""
    most = unit.policies.parallelism or unit.replicas
    if unit.parent is None:
        return most
    return max(1, min(most, _fitting(unit, plan.unit(unit.parent))))


def _fitting(unit: Unit, group: Unit) -> int:
    """As many as the cores of the group suffice for; where that is not said, as many as is sensible."""
    own, all_of_it = _cores(unit), _cores(group)
    return ceil(all_of_it / own) if own and all_of_it else _ROOM


def _cores(unit: Unit) -> float:
    return unit.totals[0].amounts.get("core", 0) if unit.totals else 0


def is_plain(piece: Piece, plan: Plan, job: Job) -> bool:
    """Whether it is one command with nothing around it, before it or behind it: its script can be short."""
    unit = piece.unit
    assert unit is not None
    policies = unit.policies
    asks = (policies.retries, policies.hooks, policies.checks, policies.success, policies.completions)
    return (
        is_direct(unit, unit)
        and unit.kind == "task"
        and unit.when == "success"
        and not (unit.local or unit.service or unit.steps or unit.stdout or unit.stderr)
        and all(each is None for each in (*asks, policies.max_failed, policies.result_file, unit.duration))
        and policies.restart in (None, "never")
        and not (policies.on_failure or plan.policies.on_failure or piece.ready_for)
        and job.latest is None
        and not any(edge.unit == unit.id for edge in plan.edges)
        and not any(each.service or each.policies.ports for each in plan.units)
    )


def _needed(units: Sequence[Unit]) -> Iterator[str]:
    """Only what these units need."""
    yield from ("base", "command", "copy", "around")
    if any(unit.policies.checks is not None for unit in units if unit.kind == "task"):
        yield "checks"
    if any(unit.steps for unit in units):
        yield "steps"
    yield from ("attempt", "rules", "elsewhere")
    if any(unit.kind == "group" for unit in units):
        yield "scope"
    yield from ("piece", "graph")


def _fragments(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from _fragment(name)


@cache
def _fragment(name: str) -> tuple[str, ...]:
    text = files("jobman.engines.scripts").joinpath("runtime", f"{name}.sh").read_text()
    return (*text.splitlines(), "")


def _may_end_all(unit: Unit, plan: Plan) -> bool:
    """Whether the end of something in a unit may be the end of the job."""
    policies = [plan.policies, *(each.policies for each in _inside(unit, plan))]
    return any(rule.action == "fail-job" for each in policies for rule in each.on_failure)


def _end(piece: Piece, plan: Plan, job: Job, tags: Mapping[str, int], guard: str) -> Iterator[str]:
    assert piece.unit is not None
    tops = plan.children() if _may_end_all(piece.unit, plan) else ()
    others = [quoted(unit.name) for unit in tops if unit.when != "always"]
    yield f"OTHERS={quoted(' '.join(others))}"
    yield array("READY_FOR", piece.ready_for)
    if job.latest is not None:
        yield f"LATEST={int(job.latest)}"
    yield "allocation"
    yield f'{guard} piece {tags[piece.unit.id]} "$ELEMENT"'.lstrip()
