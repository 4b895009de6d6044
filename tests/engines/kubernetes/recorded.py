"""Situations that were made to happen on a real cluster (Kubernetes 1.35), as far as we read its objects."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from jobman.engines.kubernetes.objects import Event, Job, Node, Object, Pod, Quota, VolumeClaim

FOLDER = Path(__file__).parent / "objects"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


class Situation(Object, kw_only=True):
    """A Job, and everything that was there because of it."""

    job: Job
    pods: list[Pod] = []
    events: list[Event] = []
    quotas: list[Quota] = []
    claims: list[VolumeClaim] = []
    nodes: list[str] = []

    def node_objects(self) -> list[Node]:
        return [node(name) for name in self.nodes]


@cache
def recorded(name: str) -> Situation:
    """A situation by the name of its Job."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Situation)


@cache
def node(name: str) -> Node:
    return msgspec.json.decode((FOLDER / "nodes" / f"{name}.json").read_bytes(), type=Node)


def changed(thing: Any, **fields: Any) -> Any:
    """A copy of an object with other values, which are reached by `__` between names."""
    for path, value in fields.items():
        name, _, rest = path.partition("__")
        new = changed(getattr(thing, name), **{rest: value}) if rest else value
        thing = msgspec.structs.replace(thing, **{name: new})
    return thing
