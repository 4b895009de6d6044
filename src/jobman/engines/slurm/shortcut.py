"""What a script begins with where a task is a command with nothing around it: its first attempt, in short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from jobman.engines.scripts import containers
from jobman.engines.scripts.given import is_given
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.program import chosen, is_plain
from jobman.engines.scripts.quoting import quoted
from jobman.engines.scripts.site import Job
from jobman.engines.scripts.units import amounts, folder_of
from jobman.plan.model import Plan, Unit

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OF_THE_SHELL = re.compile(
    r"BASH.*|COMP_.*|DIRSTACK|E?UID|EPOCH.*|FUNCNAME|GROUPS|HIST.*|LINENO|OPT.*|PIPESTATUS|POSIXLY_CORRECT|PPID"
    r"|RANDOM|READLINE_.*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|jobman_.*"
)
"""Variables that are more to a shell than their value."""


def shortcut(piece: Piece, plan: Plan, job: Job) -> list[str]:
    """Its lines; none where there is more to do."""
    unit = piece.unit
    assert unit is not None
    if not _is_short(piece, unit, plan, job):
        return []
    return ["", *_about(unit, plan, job), *_enter(unit, job), *_run(unit, job), *_text(), ""]


def _is_short(piece: Piece, unit: Unit, plan: Plan, job: Job) -> bool:
    return (
        is_plain(piece, plan, job)
        and bool(unit.command)
        and not (job.prologue or unit.matrix or unit.coordinator or is_given(unit))
        and not containers.is_contained(unit, job)
        and all(_NAME.fullmatch(name) and not _OF_THE_SHELL.fullmatch(name) for name in unit.environment)
    )


def _about(unit: Unit, plan: Plan, job: Job) -> Iterator[str]:
    others = "1" if sum(1 for _ in plan.children()) > 1 else ""
    scratch = "${TMPDIR:-/tmp}" if job.scratch is None else quoted(job.scratch)
    yield f"jobman_folder={quoted(job.folder)} jobman_id={job.id} jobman_scratch={scratch}"
    yield f"jobman_task={quoted(unit.name)} jobman_replicas={unit.replicas} jobman_others={others}"


def _enter(unit: Unit, job: Job) -> Iterator[str]:
    """Whether its program is there, and its folder: where it is not, the rest of the script says so."""
    path, cwd = unit.environment.get("PATH"), folder_of(unit, job)
    found = (
        f"{'' if path is None else f'PATH={quoted(path)} '}type -P -- {quoted(unit.command[0])} >/dev/null"
    )
    yield f"jobman_enter() {{ {found}{'' if cwd is None else f' && cd -- {quoted(cwd)} 2>/dev/null'}; }}"


def _run(unit: Unit, job: Job) -> Iterator[str]:
    """One command of the shell, so that nothing of its environment is the script's."""
    cores, gpus = amounts(chosen(unit))
    own = {
        "JOBMAN_JOB_ID": quoted(job.id),
        "JOBMAN_JOB_NAME": quoted(job.name),
        "JOBMAN_TASK": quoted(unit.name),
        "JOBMAN_REPLICA": "${SLURM_ARRAY_TASK_ID:-0}",
        "JOBMAN_REPLICAS": unit.replicas,
        "JOBMAN_ATTEMPT": 1,
        "JOBMAN_RANK": 0,
        "JOBMAN_SIZE": 1,
        "JOBMAN_NODE_RANK": 0,
        "JOBMAN_NNODES": "$SLURM_JOB_NUM_NODES",
        "JOBMAN_NODELIST": "$SLURM_JOB_NODELIST",
        "JOBMAN_CORES": "${SLURM_CPUS_ON_NODE:-1}" if cores is None else cores,
        "JOBMAN_GPUS": gpus,
        "JOBMAN_SCRATCH": "$jobman_scratch",
    }
    yield "jobman_run() {"
    for name, value in unit.environment.items():
        if name not in own:
            yield f"    {name}={quoted(value)} \\"
    yield "    " + " ".join(f"{name}={value}" for name, value in own.items()) + " \\"
    yield f"        exec -- {' '.join(map(quoted, unit.command))}"
    yield "}"


@cache
def _text() -> list[str]:
    return files("jobman.engines.slurm").joinpath("shortcut.sh").read_text().splitlines()
