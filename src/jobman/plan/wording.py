"""Shapes and amounts as a person would say them."""

from __future__ import annotations

from jobman.spec.quantities import format_size
from jobman.spec.shapes import SIZED_TYPES, Alternatives, Amount, Part


def format_amount(key: str, amount: Amount) -> str:
    return format_size(amount) if key in SIZED_TYPES else f"{amount:g}"


def describe_amounts(amounts: dict[str, Amount]) -> str:
    """`4 cores, 1 gpu, 2Gi memory`."""
    return ", ".join(
        f"{format_amount(key, amount)} {key}{'' if amount == 1 or key in SIZED_TYPES else 's'}"
        for key, amount in amounts.items()
    )


def describe_part(part: Part) -> str:
    """`4 nodes, each 2 slots of 4 core`, as a person would say it."""
    held = describe_amounts(part.each)
    if part.slots:
        held = f"{part.slots} slot{'s' if part.slots > 1 else ''}" + (f" of {held}" if held else "")
    if part.beside:
        held += f" and {describe_amounts(part.beside)}"
    if part.nodes is None:
        return held or "room for one copy"
    count = f"{part.nodes} node{'s' if part.nodes > 1 else ''}"
    within = "".join(f" in {n} {name}" for name, n in part.within)
    whole = " (whole)" if part.is_whole else ""
    return f"{count}{within}{whole}" + (f", each {held}" if held else "")


def describe_alternatives(alternatives: Alternatives) -> str:
    """Either of several, each perhaps of several parts."""
    return " or ".join(" and ".join(map(describe_part, parts)) for parts in alternatives)


def format_duration(seconds: float) -> str:
    """`40 s`, `6 min`, `1 h`, `2.5 h`, `3 days`: as exact as anybody wants to know."""
    for unit, length, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 2 * 86400)):
        if seconds < most and (unit != "min" or seconds != 3600):
            return f"{round(seconds / length, 1 if unit == 'h' else None):g} {unit}"
    return f"{round(seconds / 86400, 1):g} days"
