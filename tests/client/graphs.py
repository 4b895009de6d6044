"""Graphs of small tasks, as documents that run on a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.engines.kubernetes.cluster import image

SMALL = {"type": "slot", "count": 1, "with": [{"type": "memory", "count": "16Mi"}]}


def task(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": ["sh", "-c", script], "resources": SMALL, **more}


def document(folder: Path, *tasks: dict[str, Any], **more: Any) -> str:
    path = folder / "graph.yaml"
    whole = {"version": 1, "name": "graph", "image": image(), "grace": "1s", **more, "tasks": list(tasks)}
    path.write_text(yaml.safe_dump(whole))
    return str(path)
