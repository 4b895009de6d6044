"""The Flux instance that jobs are submitted to, as the settings write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from jobman.settings.slurm import Batch, BatchSite
from jobman.spec.kinds import Names, Size, Whole
from jobman.spec.names import NAME, WORD
from jobman.spec.records import Key, Of

_HIGHEST = 31


class Flux(Batch, frozen=True, kw_only=True):
    noun = "the `flux` section"
    habits = {"bank": "account", "properties": "facts", "constraints": "facts", "modules": "prologue"}
    queue: Annotated[str | None, Key(WORD, "where the document names no queue")] = None
    priorities: Annotated[
        dict[str, int],
        Key(Names(NAME, Whole(1, _HIGHEST), "a mapping of urgencies"), "the urgency of each priority class"),
    ] = {}
    memory_per_core: Annotated[
        int | None, Key(Size(), "what a core comes with: who asks for more memory gets more cores")
    ] = None


FLUX = Of(Flux)


class FluxSite(BatchSite, frozen=True, kw_only=True):
    """What the settings say of a Flux instance; None leaves it to Flux."""

    queue: str | None = None
    priorities: dict[str, int] = {}
    memory_per_core: int | None = None
    reservation: str | None = None
    """Flux has none: whoever asks for one is told so."""


def flux_of(values: Mapping[str, Any]) -> FluxSite:
    """The section of settings as they were read."""
    return msgspec.convert(values.get("flux", {}), FluxSite)
