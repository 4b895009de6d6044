"""From a plan to sbatch scripts: one for each task or group at the top, with all that it needs in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from math import ceil

import msgspec

from jobman.engines.scripts import program
from jobman.engines.scripts.graph import After, Piece, pieces_of
from jobman.engines.scripts.parts import facts_of
from jobman.engines.scripts.site import Job
from jobman.engines.scripts.times import time_needed
from jobman.engines.slurm import components, shape
from jobman.engines.slurm.facts import constraint
from jobman.engines.slurm.options import displaced, lines, value
from jobman.engines.slurm.shortcut import shortcut
from jobman.plan.model import Plan, Unit
from jobman.settings.slurm import SlurmSite
from jobman.spec.policies import Policies
from jobman.spec.shapes import Alternative

AFTER: dict[After, str] = {"ok": "afterok", "not-ok": "afternotok", "any": "afterany", "begun": "after"}
COMMENT = "jobman"
_LAUNCH = ("--kill-on-bad-exit=1", "--mem=0", "--input=none")


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A piece, and its script."""

    piece: Piece
    text: str
    beside: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self.piece.name


def dependency(piece: Piece, ids: Mapping[str, str]) -> list[str]:
    """What a piece waits for, by the ids of those submitted before it."""
    if not piece.after:
        return []
    found = ",".join(f"{AFTER[when]}:{ids[name]}" for when, name in piece.after)
    return [f"--dependency={found}", "--kill-on-invalid-dep=yes"]


def compile_plan(plan: Plan, job: Job, site: SlurmSite) -> list[Script]:
    """The scripts of a plan, in the order in which they can be submitted."""
    return [_script(piece, plan, job, site) for piece in pieces_of(plan, job.done)]


def comment(job_id: str, piece: str) -> str:
    """What a job of Slurm is known by."""
    return f"{COMMENT}:{job_id}:{piece}"


def _with_comment(head: list[str], given: list[str]) -> tuple[list[str], list[str]]:
    """A comment of the document's own stands behind the one that a job is known by."""
    own = [word.partition("=")[2] for word in given if word.startswith("--comment=")]
    if not own:
        return head, given
    known = [
        "#SBATCH --comment=" + value(f"{line.partition('=')[2]};{own[-1]}") if "--comment=" in line else line
        for line in head
    ]
    return known, [word for word in given if not word.startswith("--comment=")]


def _script(piece: Piece, plan: Plan, job: Job, site: SlurmSite) -> Script:
    if piece.unit is None:
        words = ["--ntasks=1", "--time=5", *_queue(plan, site)]
        small = [*_about(piece, job), *(f"#SBATCH {word}" for word in words)]
        return Script(piece=piece, text=program.closing_script(piece, plan, job, small, runtime("runtime")))
    head = list(header(piece, piece.unit, plan, job, site))
    if len(components.components(piece.unit, plan)) > 1:
        manager, launch, everywhere = (
            runtime("runtime", "components"),
            _step_on_components,
            components.EVERYWHERE,
        )
    else:
        more = ["beside"] if components.are_beside(piece.unit, plan) else []
        manager, launch, everywhere = runtime("runtime", *more), _step, runtime("everywhere")
    short = shortcut(piece, plan, job)
    text = program.script(piece, plan, job, head, manager, launch, everywhere, shortcut=short)
    beside = {program.PLAIN: program.plain_functions(manager)} if short else {}
    return Script(piece=piece, text=text, beside=beside)


def _step_on_components(unit: Unit) -> list[str]:
    return components.step(program.chosen(unit), _LAUNCH)


def _step(unit: Unit) -> list[str]:
    parts, given = program.chosen(unit), list(unit.flags.slurm or ()) if unit.parent is not None else []
    if len(parts) > 1:
        return components.steps(parts, _LAUNCH, given)
    words = [*displaced(["srun", *_LAUNCH, *shape.step(parts)], given), *given]
    return ["whole", *words] if shape.is_whole(parts) else words


@cache
def runtime(*names: str) -> str:
    """Functions that speak to Slurm: those of all scripts, and those for what only some have."""
    folder = files("jobman.engines.slurm")
    return "\n".join(folder.joinpath(f"{name}.sh").read_text() for name in names)


# -- the header ----------------------------------------------------------------------------------------------


def header(piece: Piece, unit: Unit, plan: Plan, job: Job, site: SlurmSite) -> Iterator[str]:
    """The lines of `#SBATCH` of a piece."""
    about, given = _with_comment(list(_about(piece, job)), list(unit.flags.slurm or ()))
    first, *others = components.components(unit, plan)
    yield from about
    if unit.replicas > 1:
        throttle = unit.policies.parallelism
        yield f"#SBATCH --array={_elements(piece, unit)}{f'%{throttle}' if throttle else ''}"
    if job.earliest is not None and piece.unit is not None:
        yield f"#SBATCH --begin={datetime.fromtimestamp(job.earliest):%Y-%m-%dT%H:%M:%S}"
    yield from _asked(first, unit, plan, site, given)
    for parts in others:
        # A component has the name, the comment and the output of the first, and nothing else of it.
        yield components.SEPARATOR
        yield from _asked(parts, unit, plan, site, given)


def _asked(parts: Alternative, unit: Unit, plan: Plan, site: SlurmSite, given: list[str]) -> Iterator[str]:
    """What a job asks for, or one component of it."""
    generated = [
        *shape.allocation(parts, site.resources),
        *_time(unit, plan, site),
        *_limits(unit, parts, site),
        *_queue(plan, site, unit.policies),
    ]
    yield from (f"#SBATCH {word}" for word in displaced(generated, given))
    if given:
        yield "# as the document says, in place of what would be here"
        yield from (f"#SBATCH {line}" for line in lines(given))


def _elements(piece: Piece, unit: Unit) -> str:
    return ",".join(map(str, piece.elements)) if piece.elements else f"0-{unit.replicas - 1}"


def _about(piece: Piece, job: Job) -> Iterator[str]:
    element = "%A_%a" if piece.unit is not None and piece.unit.replicas > 1 else "%j"
    yield f"#SBATCH --job-name={value(f'{job.name}/{piece.name}')}"
    yield f"#SBATCH --comment={comment(job.id, piece.name)}"
    # In the name of a file, % begins a pattern.
    yield "#SBATCH --output=" + value(f"{job.folder.replace('%', '%%')}/slurm-{element}.out")
    yield "#SBATCH --open-mode=append"
    if job.cwd is not None:
        yield f"#SBATCH --chdir={value(job.cwd)}"
    yield "#SBATCH --requeue"


def _time(unit: Unit, plan: Plan, site: SlurmSite) -> Iterator[str]:
    """Long enough for all attempts and a peaceful end: the script keeps the limits of each by itself."""
    seconds = time_needed(unit, plan, site.default_time)
    if seconds is not None:
        yield f"--time={ceil(seconds / 60)}"


def _limits(unit: Unit, parts: Alternative, site: SlurmSite) -> Iterator[str]:
    placement = unit.policies.placement
    if found := constraint(facts_of(unit, parts), site.facts):
        yield f"--constraint={found}"
    if placement is not None and placement.exclusive:
        yield "--exclusive"


def partition(plan: Plan, site: SlurmSite) -> str | None:
    """Where a job of a plan waits; None where Slurm decides it."""
    return site.queues.get(plan.queue, plan.queue) if plan.queue else site.partition


def _queue(plan: Plan, site: SlurmSite, policies: Policies | None = None) -> Iterator[str]:
    account = plan.account or site.account
    priority = policies.priority if policies is not None else None
    qos = site.priorities.get(priority or "", site.qos)
    for name, wanted in (
        ("partition", partition(plan, site)),
        ("account", account),
        ("qos", qos),
        ("reservation", site.reservation),
    ):
        if wanted:
            yield f"--{name}={wanted}"
