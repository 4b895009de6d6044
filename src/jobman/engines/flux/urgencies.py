"""Holding and releasing: many jobs with one question, in the order in which they are given."""

from __future__ import annotations

from collections.abc import Iterable

USUAL, HELD = 16, 0
PROGRAM = """
import sys, flux, flux.job
handle = flux.Flux()
asked = []
for line in sys.stdin:
    name, urgency = line.split()
    values = {"id": int(flux.job.JobID(name)), "urgency": int(urgency)}
    asked.append((name, handle.rpc("job-manager.urgency", values)))
for name, future in asked:
    try:
        future.get()
    except OSError as error:
        print(f"{name}: {error.strerror or error}")
"""
"""What `flux job urgency` does with one; it tells of those with which it could not be done."""


def written(wanted: Iterable[tuple[str, int]]) -> str:
    """What the program reads."""
    return "".join(f"{id_} {urgency}\n" for id_, urgency in wanted)


def asked_for(ids: Iterable[str]) -> list[tuple[str, int]]:
    """Each job with the urgency that it has when it is not held: `f1`, or `f1@24`."""
    pairs = [one.partition("@") for each in ids for one in each.split(",") if one]
    return [(id_, int(urgency) if urgency else USUAL) for id_, _, urgency in pairs]
