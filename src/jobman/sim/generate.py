"""Small traces out of a seed: for tests, examples and benchmarks that have no log of a real machine."""

from __future__ import annotations

from random import Random

from jobman.sim.trace import Trace, TraceJob

_LIMITS = (300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600)
"""People ask for round times, so many ends coincide."""


def generate(
    seed: int,
    jobs: int = 500,
    processors: int = 64,
    *,
    users: int = 12,
    load: float = 0.8,
    grain: int = 60,
) -> Trace:
    """A trace of so many jobs; `load` is the part of the machine they need, `grain` makes times coincide.

    Sizes are mostly powers of two, few jobs use the time they asked for, and those of a user are alike.
    """
    dice = Random(seed)
    drawn = [_draw(dice, processors, users, grain) for _ in range(jobs)]
    work = sum(run * size for run, size, _, _ in drawn)
    span = work / (processors * load) if jobs else 0.0
    submits = sorted(int(dice.random() * span) // grain * grain for _ in drawn)
    found = [
        TraceJob(number, submit, run, size, limit, user, user)
        for number, (submit, (run, size, limit, user)) in enumerate(zip(submits, drawn, strict=True), 1)
    ]
    note = f"generated from seed {seed}; {users} users, load {load:g}, times of {grain} s"
    header = {"Computer": "none", "Note": note}
    return Trace(name=f"seed {seed}", jobs=found, processors=processors, header=header)


def _draw(dice: Random, processors: int, users: int, grain: int) -> tuple[int, int, int, str]:
    user = int(users * dice.random() ** 2)
    widest = max(processors.bit_length() - 1, 0)
    size = min(processors, 1 << max(0, min(widest, int(dice.gauss(user % (widest + 1), 1.2)))))
    if dice.random() < 0.1:
        size = dice.randint(1, processors)
    limit = _LIMITS[(user + dice.randint(0, 2)) % len(_LIMITS)]
    used = 1.0 if dice.random() < 0.12 else dice.random() ** 2
    run = max(grain, int(limit * used) // grain * grain)
    return run, size, limit, str(user + 1)
