"""A job that somebody drives, as objects: what its attempts share, and each attempt by itself. Pure.

An attempt is a Job whose name says which one it is, so that nobody makes it twice. Names of pods change from
one attempt to the next; whoever listens is reached by a Service of its own, whose name stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec

from jobman.engines.kubernetes import names, services
from jobman.engines.kubernetes.affinity import tasks_of
from jobman.engines.kubernetes.compile import Compiler, Outline
from jobman.engines.kubernetes.environment import shouted
from jobman.engines.kubernetes.jobs import job
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.piece import Piece, host_name
from jobman.engines.kubernetes.resources import claim_name
from jobman.engines.kubernetes.slices import chosen, slices
from jobman.engines.kubernetes.surroundings import groups_around
from jobman.engines.kubernetes.target import Compiled, Target
from jobman.plan.model import Coordinator, Plan, Unit
from jobman.plan.replicas import for_replica

_MOST_REACHED = 64
"""Replicas of a task that others are told of by number."""


class Spot(msgspec.Struct, frozen=True):
    """A replica of a task: its unit, and its number in each group around it and then in its task."""

    unit: Unit
    indices: tuple[int, ...]

    @property
    def key(self) -> str:
        names_ = self.unit.id.split("/")
        return "/".join(f"{name}.{index}" for name, index in zip(names_, self.indices, strict=True))


def spot_of(plan: Plan, key: str) -> Spot:
    """The replica of a key such as `train.0/test.3`."""
    parts = [part.rpartition(".") for part in key.split("/")]
    unit = plan.unit("/".join(name for name, _, _ in parts))
    return Spot(unit, tuple(int(index) for _, _, index in parts))


def kept_target(target: Target) -> str:
    """What is remembered of a target, for whoever drives the job later: files are in the cluster by then."""
    files = {
        path: tuple(msgspec.structs.replace(file, content=b"") for file in brought)
        for path, brought in target.files.items()
    }
    return msgspec.json.encode(msgspec.structs.replace(target, files=files, document="")).decode()


def target_from(text: str) -> Target:
    """The same, read back."""
    return msgspec.json.decode(text, type=Target)


class DrivenCompiler(Compiler):
    """The compilation of a job that is driven."""

    def __init__(self, plan: Plan, target: Target) -> None:
        super().__init__(plan, msgspec.structs.replace(target, driven=True))

    def compiled(self) -> Compiled:
        """Everything but the Jobs, which are made one by one."""
        support = self._support_of_all()
        for unit in self._tasks:
            support.extend(self._support_of(unit))
            for replica in range(unit.replicas) if unit.matrix else (0,):
                filled = for_replica(unit, replica) if unit.matrix else unit
                self._files(filled, self._files_of(unit, replica), support)
        support.extend(self._doors())
        anchor = self._config(self._naming.job, self._labels(), {})
        notes = {**self._annotations(), names.TARGET: kept_target(self._target)}
        anchor["metadata"]["annotations"] = notes
        return Compiled(anchor=anchor, support=support, units={})

    def samples(self) -> dict[str, list[Written]]:
        """The first attempt of each task, for a cluster to look at."""
        firsts = (Spot(unit, (0,) * (unit.id.count("/") + 1)) for unit in self._tasks)
        return {spot.unit.id: self.attempt(spot.key, 1) for spot in firsts}

    def parts(self, unit: Unit) -> int:
        """How many Jobs an attempt of a task is."""
        return len(slices(chosen(unit, self._target.chosen.get(unit.id, 0))))

    def attempt(self, key: str, attempt: int) -> list[Written]:
        """The Jobs of one attempt of one replica: one, or one for each of its parts."""
        spot = spot_of(self._plan, key)
        unit, replica = spot.unit, spot.indices[-1]
        pieces = slices(chosen(unit, self._target.chosen.get(unit.id, 0)))
        outlines = [
            Outline(self._attempt_name(spot, attempt, number, len(pieces)), replica, piece)
            for number, piece in enumerate(pieces)
        ]
        hosts = self._hosts_in(outlines)
        filled = for_replica(unit, replica) if unit.matrix else unit
        size = sum(piece.count for piece in pieces)
        written = []
        for number, outline in enumerate(outlines):
            labels = self._labels_of(unit, outline, size)
            labels |= {names.KEY: names.label_value(key), names.ATTEMPT: str(attempt)}
            if len(outlines) > 1:
                labels[names.PART] = str(number)
            if names.ALLOCATION in labels:
                labels[names.ALLOCATION] = names.label_value(f"{self._target.job_id[:6]}-{key}-{attempt}")
            piece_ = Piece(
                plan=self._plan,
                target=self._target,
                unit=filled,
                name=outline.name,
                slice=outline.slice,
                replica=replica,
                size=size,
                hosts=hosts,
                subdomain=self._subdomain,
                alternatives=self._alternatives(unit),
                labels=labels,
                annotations={**self._plan.annotations, names.UNIT: unit.id, names.KEY: key},
                files=self._files(filled, self._files_of(unit, replica), []),
                variable_files=dict(self._variable_files(unit)),
                peers={**dict(self._reached_from(spot)), **self._coordinator_of(spot)},
                ports=self._ports[unit.id],
                claims={
                    claim_name(each): self._claim(unit, claim_name(each)) for each in unit.policies.devices
                },
                attempt=attempt,
            )
            written.append(job(piece_))
        return written

    # -- names: those of Jobs depend on attempts -------------------------------------------------------------

    def _outlined(self) -> dict[str, list[Outline]]:
        return {}

    def _needs_names(self) -> bool:
        return True

    def _hosts_of(self, unit: Unit) -> dict[int, tuple[str, ...]]:
        del unit
        return {}

    def _peers(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def _attempt_name(self, spot: Spot, attempt: int, number: int, count: int) -> str:
        return self._naming.attempt(spot.unit, spot.indices, attempt, number if count > 1 else None)

    def _files_of(self, unit: Unit, replica: int) -> str:
        return self._naming.task(unit, replica) if unit.matrix else self._naming.task(unit)

    def _hosts_in(self, outlines: list[Outline]) -> tuple[str, ...]:
        """A host for each node of an attempt, in the order of their numbers."""
        nodes: dict[int, str] = {}
        for outline in outlines:
            for index in range(outline.slice.count):
                host = host_name(outline.name, index, self._subdomain)
                nodes.setdefault(outline.slice.node_of(index), host)
        return tuple(nodes.values())

    # -- how others are reached ------------------------------------------------------------------------------

    def _doors(self) -> Iterator[Written]:
        """A Service for each replica that others may look for."""
        coordinated = {tasks_of(self._plan, found.unit)[0]: found.replica for found in self._coordinators()}
        for unit in self._tasks:
            if not (unit.service or unit.policies.ports or unit.id in coordinated):
                continue
            most = max(_MOST_REACHED, coordinated.get(unit.id, 0) + 1)
            counts = [group.replicas for group in reversed([*groups_around(self._plan, unit)])]
            for indices in product(*map(range, [*counts, min(unit.replicas, most)])):
                yield self._door(Spot(unit, indices))

    def _coordinators(self) -> Iterator[Coordinator]:
        for found in (self._plan.coordinator, *(unit.coordinator for unit in self._plan.units)):
            if found is not None:
                yield found

    def _door(self, spot: Spot) -> Written:
        """Leads to the first copy of a replica, whichever attempt it is."""
        selector = {
            names.JOB: self._target.job_id,
            names.KEY: names.label_value(spot.key),
            names.INDEX: "0",
        }
        if self.parts(spot.unit) > 1:
            selector[names.PART] = "0"
        labels = {**self._labels(), names.TASK: names.label_value(spot.unit.id)}
        return services.door(self._door_name(spot), selector, labels, self._target)

    def _door_name(self, spot: Spot) -> str:
        return self._naming.task(spot.unit, *spot.indices)

    def _reached_from(self, spot: Spot) -> Iterator[tuple[str, str]]:
        """Tasks that listen, as one replica sees them: those around it are in the same replicas of groups."""
        for unit in self._tasks:
            if not (unit.service or unit.policies.ports):
                continue
            around = self._around(unit, spot)
            for replica in range(min(unit.replicas, _MOST_REACHED)):
                host = self._door_name(Spot(unit, (*around, replica)))
                ends = [f"_{replica}"] if unit.replicas > 1 else []
                for end in ends if replica else ["", *ends]:
                    yield f"JOBMAN_HOST_{shouted(unit.name)}{end}", host
                    for name, number in self._ports[unit.id].items():
                        yield f"JOBMAN_PORT_{shouted(unit.name)}_{shouted(name)}{end}", str(number)

    def _around(self, unit: Unit, spot: Spot) -> tuple[int, ...]:
        """In which replicas of its groups a unit is looked for: the looker's own, else the first."""
        mine, theirs = spot.unit.id.split("/")[:-1], unit.id.split("/")[:-1]
        shared = 0
        while shared < min(len(mine), len(theirs)) and mine[shared] == theirs[shared]:
            shared += 1
        return spot.indices[:shared] + (0,) * (len(theirs) - shared)

    def _coordinator_of(self, spot: Spot) -> dict[str, str]:
        nearest = (group.coordinator for group in groups_around(self._plan, spot.unit))
        found = next(filter(None, nearest), self._plan.coordinator)
        if found is None:
            return {}
        unit = self._plan.unit(tasks_of(self._plan, found.unit)[0])
        return {"JOBMAN_COORDINATOR": self._door_name(Spot(unit, (*self._around(unit, spot), found.replica)))}
