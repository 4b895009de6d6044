"""Short tasks: messages that long-lived workers take in turn. Nothing of the job language enters here."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobman.tasks.failures import BrokerAway, GridError, TaskFailed
    from jobman.tasks.grid import Grid, Result, TaskFunction
    from jobman.tasks.handles import Handle
    from jobman.tasks.worker import serve, this_task

_HOMES = {
    "BrokerAway": "failures",
    "Grid": "grid",
    "GridError": "failures",
    "Handle": "handles",
    "Result": "grid",
    "TaskFailed": "failures",
    "TaskFunction": "grid",
    "serve": "worker",
    "this_task": "worker",
}
__all__ = [
    "BrokerAway",
    "Grid",
    "GridError",
    "Handle",
    "Result",
    "TaskFailed",
    "TaskFunction",
    "serve",
    "this_task",
]


def __getattr__(name: str) -> Any:
    # Agents and workers start often, and pay only for what they use.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
