"""Flux through its own Python bindings, where this interpreter has them: no command has to start.

Whatever is not as expected here costs nothing but time: nothing is told then, and the command is asked
instead, which is tried again where that may help, and whose errors are known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Thread
from typing import Any, TypeVar

import msgspec

from jobman.engines.flux.queue import FluxJob

T = TypeVar("T")
_PATIENCE = 10.0
"""Seconds after which an instance is not asked this way again."""
_PLAIN = ("name", "userid", "queue", "urgency", "dependencies", "duration", "t_inactive", "annotations")
_EXCEPTION = ("type", "note")
_ASKED = [*_PLAIN, "state", "result", *(f"exception_{each}" for each in _EXCEPTION)]
# The numbers are those of Flux's protocol.
_STATES = {2: "DEPEND", 4: "PRIORITY", 8: "SCHED", 16: "RUN", 32: "CLEANUP", 64: "INACTIVE"}
_RESULTS = {1: "COMPLETED", 2: "FAILED", 4: "CANCELED", 8: "TIMEOUT"}


class Bindings:
    """The instance that the command reaches in this environment, as far as that can be had without it."""

    def __init__(self, environment: Mapping[str, str], patience: float = _PATIENCE) -> None:
        self._uri = environment.get("FLUX_URI")
        self._patience = patience
        # Without a URI the library looks at the environment of this process; other ways start other commands.
        self._is_usable = self._uri.startswith("local://") if self._uri else "FLUX_URI" not in os.environ

    def jobs(self, states: str, *, everybody: bool = False) -> list[FluxJob] | None:
        """What `flux jobs` lists: this user's jobs in these states, or those of all."""
        return self._answer(lambda: self._jobs(states, everybody=everybody))

    def resources(self) -> dict[str, str] | None:
        """What `flux resource R` prints, by state: of all, of those that are allocated, and those down."""
        return self._answer(self._resources)

    def _jobs(self, states: str, *, everybody: bool) -> list[FluxJob]:
        flux = import_module("flux.job")
        user = "all" if everybody else None
        asked = flux.JobList(self._handle(), attrs=_ASKED, filters=[states], max_entries=0, user=user)
        # As they come: what the bindings make of each takes longer than all the rest.
        return [_job(raw, flux.JobID) for raw in asked.fetch_jobs().get_jobs()]

    def _resources(self) -> dict[str, str]:
        found = import_module("flux.resource").resource_list(self._handle()).get()
        return {state: found[state].encode() for state in ("all", "allocated", "down")}

    def _handle(self) -> Any:
        return import_module("flux").Flux(*([self._uri] if self._uri else []))

    def _answer(self, ask: Callable[[], T]) -> T | None:
        """Nobody waits for a broker that does not answer: a thread does, and is left behind."""
        self._is_usable = self._is_usable and _can_be_imported()
        if not self._is_usable:
            return None
        found: list[T] = []
        asking = Thread(target=_try, args=(ask, found), daemon=True)
        asking.start()
        asking.join(self._patience)
        self._is_usable = not asking.is_alive()
        return found[0] if found else None


def _can_be_imported() -> bool:
    """Others may be for another version of Python, or lack a library: they fail as they like."""
    try:
        import_module("flux.job")
    except Exception:
        return False
    return True


def _try(ask: Callable[[], T], found: list[T]) -> None:
    try:
        found.append(ask())
    except Exception:
        return


def _job(raw: Mapping[str, Any], id_: Callable[[int], Any]) -> FluxJob:
    """Checked: what another version tells differently is not taken for something else."""
    told = {name: raw[name] for name in _PLAIN if name in raw}
    told["jobid"] = id_(raw["id"]).f58plain
    told["state"] = _STATES[raw["state"]]
    told["result"] = _RESULTS.get(raw.get("result", 0), "")
    told["exception"] = {each: raw[f"exception_{each}"] for each in _EXCEPTION if f"exception_{each}" in raw}
    return msgspec.convert(told, FluxJob)
