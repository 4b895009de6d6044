"""From a plan to scripts for Flux: one for each task or group at the top, with all that it needs in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from math import ceil

import msgspec

from jobman.engines.flux.facts import constraint
from jobman.engines.flux.names import title
from jobman.engines.flux.options import directives, displaced
from jobman.engines.flux.shape import request
from jobman.engines.scripts import program
from jobman.engines.scripts.graph import After, Piece, pieces_of
from jobman.engines.scripts.parts import facts_of
from jobman.engines.scripts.quoting import number
from jobman.engines.scripts.site import Job
from jobman.engines.scripts.times import time_needed
from jobman.plan.model import Plan, Unit
from jobman.settings.flux import FluxSite
from jobman.spec.policies import Policies

AFTER: dict[After, str] = {"ok": "afterok", "not-ok": "afternotok", "any": "afterany", "begun": "afterstart"}
_LAUNCH = ("run_step", "flux", "run", "-o", "exit-timeout=none", "-o", "exit-on-error")
_GUARD = "guarded"


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A piece, and its script."""

    piece: Piece
    text: str
    beside: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self.piece.name


def is_alone(piece: Piece) -> bool:
    """Whether its script is all that runs: then it needs no instance of its own, and starts the sooner."""
    return piece.unit is None or (piece.unit.kind == "task" and program.is_direct(piece.unit, piece.unit))


def dependency(piece: Piece, ids: Mapping[str, str], begun: str = AFTER["begun"]) -> list[str]:
    """What a piece waits for, by the ids of those submitted before it: one option for each of them."""
    found = []
    for when, name in piece.after:
        before = plain_ids(ids[name])
        word = begun if when == "begun" else AFTER[when]
        if when == "not-ok" and len(before) > 1:
            # One of them is enough: its script looks whether any has failed.
            word = AFTER["any"]
        found += [f"--dependency={word}:{id_}" for id_ in before]
    return found


def plain_ids(text: str) -> list[str]:
    """The ids of a piece, without the urgency that each is to have: `f1,f2`, or `f1@24,f2@24`."""
    return [each.partition("@")[0] for each in text.split(",") if each]


def compile_plan(plan: Plan, job: Job, site: FluxSite) -> list[Script]:
    """The scripts of a plan, in the order in which they can be submitted."""
    return [_script(piece, plan, job, site) for piece in pieces_of(plan, job.done)]


def _script(piece: Piece, plan: Plan, job: Job, site: FluxSite) -> Script:
    if piece.unit is None:
        head = list(directives([*_about(piece, job, ""), "-n1", "-t5m", *_queue(plan, site)]))
        return Script(piece=piece, text=program.closing_script(piece, plan, job, head, runtime("runtime")))
    head = list(header(piece, piece.unit, plan, job, site))

    def launch(unit: Unit) -> list[str]:
        words = [*_LAUNCH, *request(program.chosen(unit), site.memory_per_core), *_constraint(unit, site)]
        given = list(unit.flags.flux or ()) if unit.parent is not None else []
        return [*displaced(words, given), *given]

    text = program.script(
        piece, plan, job, head, runtime("runtime"), launch, runtime("everywhere"), guard=_GUARD
    )
    return Script(piece=piece, text=text)


@cache
def runtime(name: str) -> str:
    """Functions that speak to Flux."""
    return files("jobman.engines.flux").joinpath(f"{name}.sh").read_text()


# -- the header ----------------------------------------------------------------------------------------------


def header(piece: Piece, unit: Unit, plan: Plan, job: Job, site: FluxSite) -> Iterator[str]:
    """The lines of a script that `flux batch` reads. Others are given the same words as options."""
    given = list(unit.flags.flux or ())
    generated = [
        *needs(unit, site),
        *_time(unit, plan, site),
        *_queue(plan, site, unit.policies),
        *([f"--begin-time={_clock(job.earliest)}"] if job.earliest is not None else []),
    ]
    urgency = site.priorities.get(unit.policies.priority or "")
    about = _about(piece, job, "" if urgency is None else f"@{urgency}")
    yield from directives([*about, *displaced(generated, given)])
    if given:
        yield "# as the document says, in place of what would be here"
        yield from directives(given)


def needs(unit: Unit, site: FluxSite) -> list[str]:
    """What a unit must be given: by this it is decided whether it can ever be had."""
    words = request(program.chosen(unit), site.memory_per_core)
    placement = unit.policies.placement
    if placement is not None and placement.exclusive and "--exclusive" not in words:
        # Flux gives nodes as a whole only to who says how many.
        words += [*(["-N1"] if not any(word.startswith("-N") for word in words) else []), "--exclusive"]
    return [*words, *_constraint(unit, site)]


def _about(piece: Piece, job: Job, urgency: str) -> Iterator[str]:
    yield f"--job-name={title(job.name, piece.name, job.id, urgency=urgency)}"
    yield f"--output={job.folder}/flux-{{{{id}}}}.out"
    if job.cwd is not None and "\n" not in job.cwd:
        yield f"--cwd={job.cwd}"


def _time(unit: Unit, plan: Plan, site: FluxSite) -> Iterator[str]:
    """Long enough for all attempts and a peaceful end: the script keeps the limits of each by itself."""
    seconds = time_needed(unit, plan, site.default_time)
    if seconds is not None:
        yield f"-t{number(ceil(seconds))}s"


def _constraint(unit: Unit, site: FluxSite) -> Iterator[str]:
    if found := constraint(facts_of(unit), site.facts):
        yield f"--requires={found}"


def _queue(plan: Plan, site: FluxSite, policies: Policies | None = None) -> Iterator[str]:
    if queue := queue_of(plan, site):
        yield f"-q{queue}"
    if bank := plan.account or site.account:
        yield f"-B{bank}"
    priority = policies.priority if policies is not None else None
    if priority in site.priorities:
        yield f"--urgency={site.priorities[priority]}"


def queue_of(plan: Plan, site: FluxSite) -> str | None:
    """Where a plan is submitted to; None leaves it to Flux."""
    return site.queues.get(plan.queue, plan.queue) if plan.queue else site.queue


def _clock(moment: float) -> str:
    return f"{datetime.fromtimestamp(ceil(moment)):%Y-%m-%d %H:%M:%S}"
