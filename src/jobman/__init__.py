"""jobman: one job language, one command, any cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobman.version import __version__

if TYPE_CHECKING:
    from jobman.api import JobSpec, load, load_all, loads
    from jobman.plan.model import Plan
    from jobman.spec.problems import Place, Problem, SpecError

__all__ = ["JobSpec", "Place", "Plan", "Problem", "SpecError", "__version__", "load", "load_all", "loads"]

_HOMES = {
    "JobSpec": "jobman.api",
    "load": "jobman.api",
    "load_all": "jobman.api",
    "loads": "jobman.api",
    "Plan": "jobman.plan.model",
    "Place": "jobman.spec.problems",
    "Problem": "jobman.spec.problems",
    "SpecError": "jobman.spec.problems",
}


def __getattr__(name: str) -> Any:
    # Names are imported when they are used: the command line must not pay for what it does not need.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'jobman' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
