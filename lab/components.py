"""The components that the scripts of this folder provide, and what of them can be had here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent

MISSING = 3
STATUS_SECONDS = 30

_HEAD = re.compile(r"^# component ([a-z][a-z0-9-]*): (.+)$", re.MULTILINE)
_SETTING = re.compile(r"^([A-Z_][A-Z0-9_]*)=(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Component:
    """Something real that a test may ask for by name."""

    name: str
    title: str
    script: Path


@dataclass(frozen=True)
class State:
    """Ready, with what tests find in their environment; or else the reason in words."""

    reason: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return not self.reason


def discover(folder: Path = FOLDER) -> dict[str, Component]:
    """Every component of the folder, by name."""
    scripts = sorted(path for path in folder.glob("*") if path.is_file() and os.access(path, os.X_OK))
    found = [
        Component(name, title, script)
        for script in scripts
        for name, title in _HEAD.findall(script.read_text(encoding="utf-8"))
    ]
    return {component.name: component for component in sorted(found, key=lambda each: each.name)}


def state(component: Component) -> State:
    """Ask the component's script, which changes nothing."""
    script = f"{component.script.name} status {component.name}"
    try:
        answer = subprocess.run(
            [component.script, "status", component.name],
            env={**os.environ, "JOBMAN_LAB_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STATUS_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return State(f"{script} gave no answer in {STATUS_SECONDS} s")
    if answer.returncode == 0:
        return State(environment=dict(_SETTING.findall(answer.stdout)))
    if answer.returncode == MISSING:
        return State(_last_line(answer.stdout) or f"{script} gave no reason")
    return State(f"{script} is broken (exit code {answer.returncode}): {_last_line(answer.stderr)}")


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


if __name__ == "__main__":
    for each in discover().values():
        print(f"{each.name:<12} {each.title:<28} {state(each).reason or 'ready'}")
