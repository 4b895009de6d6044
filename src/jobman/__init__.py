"""jobman: one job language, one command, any cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobman.version import __version__

if TYPE_CHECKING:
    from jobman.api.documents import JobSpec, load, load_all, loads
    from jobman.api.jobs import AsyncJob, Job, JobFailed, find, submit, submit_async, what_if
    from jobman.api.rehearsal import Rehearsal
    from jobman.client import Client, Refused, Unreachable
    from jobman.engines.memory import Play
    from jobman.plan.model import Plan
    from jobman.spec.problems import Place, Problem, SpecError

__all__ = [
    "AsyncJob",
    "Client",
    "Job",
    "JobFailed",
    "JobSpec",
    "Place",
    "Plan",
    "Play",
    "Problem",
    "Refused",
    "Rehearsal",
    "SpecError",
    "Unreachable",
    "__version__",
    "find",
    "load",
    "load_all",
    "loads",
    "submit",
    "submit_async",
    "what_if",
]

_HOMES = {
    "JobSpec": "jobman.api.documents",
    "load": "jobman.api.documents",
    "load_all": "jobman.api.documents",
    "loads": "jobman.api.documents",
    "AsyncJob": "jobman.api.jobs",
    "Job": "jobman.api.jobs",
    "JobFailed": "jobman.api.jobs",
    "find": "jobman.api.jobs",
    "submit": "jobman.api.jobs",
    "submit_async": "jobman.api.jobs",
    "what_if": "jobman.api.jobs",
    "Rehearsal": "jobman.api.rehearsal",
    "Client": "jobman.client",
    "Refused": "jobman.client",
    "Unreachable": "jobman.client",
    "Play": "jobman.engines.memory",
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
