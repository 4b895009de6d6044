"""What this machine has for workers, as the local engine finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobman.engines.local.gpus import find_gpus
from jobman.engines.local.hardware import find_cores, find_memory
from jobman.tasks.failures import GridError
from jobman.tasks.room import Amounts, WrongResources, lacking, needs_of

_UNKNOWN = 2**62
"""Bytes, where the kernel does not say how many there are."""


class Machine(NamedTuple):
    """The room there is, and what programs call the GPUs in it."""

    room: Amounts
    gpus: tuple[str, ...] = ()


def this_machine() -> Machine:
    """Looks for GPUs, which may take a second."""
    gpus = tuple(gpu.uuid for gpu in find_gpus())
    return Machine(Amounts(find_cores().amount * 1000, find_memory() or _UNKNOWN, len(gpus)), gpus)


def check_resources(resources: Mapping[str, str]) -> None:
    """Raises GridError where no worker can ever have these here."""
    try:
        needs = needs_of(resources)
    except WrongResources as error:
        raise GridError("wrong", str(error), error.advice) from None
    if words := lacking(needs, this_machine().room):
        raise GridError("unable", words, "let it need less, or use the broker of a site")
