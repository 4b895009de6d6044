"""Room for workers on a machine: what each needs of it, and how many of each there may be. Pure.

Resources are named and written as at a site: `cpu: 500m`, `memory: 1Gi`, `gpu: 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from fractions import Fraction
from typing import NamedTuple

from jobman.engines.kubernetes.quantities import named, parse_quantity


class Amounts(NamedTuple):
    """What a worker needs, or what there is."""

    cpu: int = 0
    """Thousandths of a core."""
    memory: int = 0
    """Bytes."""
    gpu: int = 0


USUAL = Amounts(cpu=1000)
"""What a worker needs of which nothing is said."""
_KINDS = {"cpu": "cpu", "memory": "memory", "gpu": "gpu", "nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}
_UNITS = {"cpu": 1000, "memory": 1, "gpu": 1}
_SPOKEN: dict[str, Callable[[int], str]] = {
    "cpu": lambda amount: named("cpu", Fraction(amount, 1000)),
    "memory": lambda amount: named("memory", Fraction(amount)),
    "gpu": lambda amount: f"{amount or 'no'} {'GPU' if amount == 1 else 'GPUs'}",
}
_ADVICE = "write such as cpu=2 or cpu=500m, memory=1Gi, gpu=1; what is not needed is left out"


class WrongResources(ValueError):
    """Resources that nobody can give a worker here, and why."""

    code = "wrong-resources"
    advice = _ADVICE

    def __init__(self, place: str, words: str) -> None:
        super().__init__(f"`{place}`: {words}")
        self.place = place


def needs_of(resources: Mapping[str, str]) -> Amounts:
    """What a worker needs: one core, where nothing else is said. Raises WrongResources."""
    said = {_kind(name, text): _amount(name, text) for name, text in resources.items()}
    return USUAL._replace(**said)


def _kind(name: str, text: str) -> str:
    if name not in _KINDS:
        raise WrongResources(f"{name}={text}", "nothing of that name is counted on this machine")
    return _KINDS[name]


def _amount(name: str, text: str) -> int:
    try:
        amount = parse_quantity(text) * _UNITS[_KINDS[name]]
    except ValueError as error:
        raise WrongResources(f"{name}={text}", str(error)) from None
    if amount < 1 or amount.denominator != 1:
        raise WrongResources(f"{name}={text}", "so little of it cannot be given to anybody")
    return int(amount)


def times_in(needs: Amounts, room: Amounts) -> int:
    """How many workers there is room for; each needs something."""
    return min(has // asked for asked, has in zip(needs, room, strict=True) if asked)


def without(room: Amounts, needs: Amounts) -> Amounts:
    """What is left beside a worker; where it needs more than there is, nothing."""
    return Amounts(*(max(0, has - asked) for asked, has in zip(needs, room, strict=True)))


def lacking(needs: Amounts, room: Amounts) -> str:
    """Why a worker can never have room, in words; nothing where it can."""
    for kind, asked, has in zip(Amounts._fields, needs, room, strict=True):
        if asked > has:
            return f"a worker needs {_SPOKEN[kind](asked)}, and this machine has {_SPOKEN[kind](has)}"
    return ""


def share(
    wanted: Mapping[str, int],
    needs: Mapping[str, Amounts],
    room: Amounts,
    idle: Container[str] = frozenset(),
) -> dict[str, int]:
    """How many workers each may have where all that are wanted are too many; first come those named first.

    Each gets one, then whoever has least of the machine gets the next. What somebody needs who has to wait is
    kept free, unless it is idle, as far as there is something: else those who need little would always be
    before it.
    """
    found, left = {}, room
    for image in wanted:
        fits = times_in(needs[image], left) > 0
        found[image] = min(wanted[image], 1) if fits else 0
        if found[image] or image not in idle:
            left = without(left, needs[image])
    growing = [image for image in wanted if 0 < found[image] < wanted[image]]
    while growing:
        next_ = min(growing, key=lambda image: _part(found[image], needs[image], room))
        if not times_in(needs[next_], left):
            growing.remove(next_)
            continue
        left = without(left, needs[next_])
        found[next_] += 1
        if found[next_] == wanted[next_]:
            growing.remove(next_)
    return found


def _part(count: int, needs: Amounts, room: Amounts) -> float:
    """The largest part that so many workers have of anything there is."""
    return max(count * asked / has for asked, has in zip(needs, room, strict=True) if has)
