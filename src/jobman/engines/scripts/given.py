"""Secrets and variables from elsewhere, kept in the folder of a job: they never stand in a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from jobman.engines.vault import Vault, arrange, variables_from
from jobman.plan.model import Plan, Unit

FOLDER = "given"


def given_to(plan: Plan, tags: Mapping[str, int], vault: Vault, folder: str, cwd: Path) -> dict[str, bytes]:
    """Files by their paths in the folder of the job; raises Unavailable where something is not there."""
    found: dict[str, bytes] = {}
    for unit in plan.units:
        if is_given(unit):
            found.update(_of(unit, tags[unit.id], vault, folder, cwd))
    return found


def is_given(unit: Unit) -> bool:
    """Whether a task has something that is not in the document."""
    return unit.kind == "task" and bool(unit.policies.secrets or unit.policies.env_from)


def _of(unit: Unit, tag: int, vault: Vault, folder: str, cwd: Path) -> Iterator[tuple[str, bytes]]:
    """What stands before the variables of the document, what behind them, and the files that those name."""
    yield f"{FOLDER}/{tag}.before", _entries(variables_from(unit.policies.env_from, vault, cwd))
    arranged = arrange(unit.policies.secrets, vault)
    folders = {variable: f"{folder}/{FOLDER}/{tag}/{below}" for variable, below in arranged.folders.items()}
    yield f"{FOLDER}/{tag}.behind", _entries({**arranged.variables, **folders})
    for path, content in arranged.files.items():
        yield f"{FOLDER}/{tag}/{path}", content


def _entries(variables: Mapping[str, str]) -> bytes:
    """As a shell reads them one by one, whatever is in them."""
    return b"".join(f"{name}={value}".encode() + b"\0" for name, value in variables.items())
