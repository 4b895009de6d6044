"""Alternatives: of `a|b` the leftmost that Slurm could ever run, asked before anything is submitted."""

from __future__ import annotations

from collections.abc import Callable

from jobman.engines.scripts.alternatives import only, settled
from jobman.engines.scripts.commands import Failed, Said
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.site import Job
from jobman.engines.slurm.compile import header
from jobman.plan.model import Plan, Unit
from jobman.settings.slurm import SlurmSite


def choose(plan: Plan, job: Job, site: SlurmSite, could_run: Callable[[str], Said]) -> tuple[Plan, list[str]]:
    """The plan with one alternative for each unit, and what was chosen, in words."""
    if all(len(unit.alternatives) <= 1 for unit in plan.units):
        return plan, []
    chosen: dict[str, int] = {}
    notes: list[str] = []
    for unit in plan.children():
        if len(unit.alternatives) > 1:
            chosen[unit.id] = _leftmost(unit, plan, job, site, could_run)
            if chosen[unit.id]:
                notes.append(
                    f"{unit.id}: alternative {chosen[unit.id] + 1} of {len(unit.alternatives)} is asked for; "
                    "those before it can never be had here"
                )
    return settled(plan, chosen), notes


def _leftmost(unit: Unit, plan: Plan, job: Job, site: SlurmSite, could_run: Callable[[str], Said]) -> int:
    said = Said(1, "", "nothing is asked for")
    for number in range(len(unit.alternatives)):
        trial = only(unit, number)
        lines = ["#!/bin/bash", *header(Piece(name=unit.name, unit=trial), trial, plan, job, site), "true"]
        said = could_run("\n".join(lines) + "\n")
        if said.code == 0:
            return number
    raise Failed(said, "sbatch")
