"""From a plan to the objects of a cluster. Pure: nothing here talks to one."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from jobman.engines.base import Refused
from jobman.engines.kubernetes import names, services, volumes
from jobman.engines.kubernetes.affinity import tasks_of
from jobman.engines.kubernetes.environment import shouted, variables_in
from jobman.engines.kubernetes.features import refusals
from jobman.engines.kubernetes.jobs import job
from jobman.engines.kubernetes.manifest import to_yaml
from jobman.engines.kubernetes.names import Naming
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.piece import Piece, host_name
from jobman.engines.kubernetes.resources import claim_name, claim_spec
from jobman.engines.kubernetes.slices import Slice, chosen, differ_in_requires_only, slices
from jobman.engines.kubernetes.surroundings import groups_around
from jobman.engines.kubernetes.target import CannotCompile, Compiled, StagedFile, Target, owned
from jobman.plan.model import Plan, Unit
from jobman.plan.replicas import for_replica
from jobman.spec.networks import Port
from jobman.version import __version__

__all__ = ["CannotCompile", "Compiled", "StagedFile", "Target", "compile_plan", "owned", "to_yaml"]

_LARGE_PLAN = 100_000
_MOST_ANNOTATIONS = 250_000
_MOST_NUMBERED_PEERS = 64


def compile_plan(plan: Plan, target: Target) -> Compiled:
    """All objects of a job; raises CannotCompile where a cluster cannot do what the plan asks for."""
    if found := refusals(plan, target):
        raise CannotCompile(found)
    return Compiler(plan, target).compiled()


class Outline(msgspec.Struct, frozen=True):
    """A Job that will be: its name and which copies it makes."""

    name: str
    replica: int | None
    slice: Slice


class Compiler:
    """The compilation of one plan: names first, since copies are told the names of others."""

    _names: type[Naming] = Naming

    def __init__(self, plan: Plan, target: Target) -> None:
        self._plan = plan
        self._target = target
        self._naming = self._names(plan, target.job_id)
        self._tasks = [unit for unit in plan.units if unit.kind == "task"]
        self._ports = {unit.id: services.port_numbers(unit.policies.ports) for unit in self._tasks}
        self._outlines = self._outlined()
        self._subdomain = self._naming.job if self._needs_names() else None
        self._hosts = {unit.id: self._hosts_of(unit) for unit in self._tasks}
        self._reached = dict(self._peers())

    def compiled(self) -> Compiled:
        support = self._support_of_all()
        units: dict[str, list[Written]] = {}
        for unit in self._tasks:
            support.extend(self._support_of(unit))
            units[unit.id] = [job(piece) for piece in self._pieces(unit, support)]
        jobs = [each for written in units.values() for each in written]
        anchor = jobs[0] if len(jobs) == 1 else self._config(self._naming.job, self._labels(), {})
        anchor["metadata"].setdefault("annotations", {}).update(self._annotations())
        return Compiled(anchor=anchor, support=support, units=units)

    # -- names -----------------------------------------------------------------------------------------------

    def _outlined(self) -> dict[str, list[Outline]]:
        shapes = {unit.id: slices(chosen(unit, self._target.chosen.get(unit.id, 0))) for unit in self._tasks}
        count = sum(number_of_jobs(unit, shapes[unit.id]) for unit in self._tasks)
        return {unit.id: list(self._outline(unit, shapes[unit.id], count == 1)) for unit in self._tasks}

    def _outline(self, unit: Unit, pieces: tuple[Slice, ...], is_only: bool) -> Iterator[Outline]:
        if is_only:
            yield Outline(self._naming.single(), 0 if is_split(unit, pieces) else None, pieces[0])
        elif not is_split(unit, pieces):
            yield Outline(self._naming.task(unit), None, pieces[0])
        else:
            for replica in range(unit.replicas):
                for number, piece in enumerate(pieces):
                    numbers: tuple[int, ...] = (replica,) if unit.replicas > 1 else ()
                    numbers += (number,) if len(pieces) > 1 else ()
                    yield Outline(self._naming.task(unit, *numbers), replica, piece)

    def _needs_names(self) -> bool:
        """One pod alone needs none."""
        pods = sum(
            unit.replicas if outline.replica is None else outline.slice.count
            for unit in self._tasks
            for outline in self._outlines[unit.id]
        )
        return pods > 1 or any(self._ports.values()) or self._plan.coordinator is not None

    def _hosts_of(self, unit: Unit) -> dict[int, tuple[str, ...]]:
        """For each replica a host for each of its nodes, in the order of their numbers."""
        found: dict[int, dict[int, str]] = {}
        for outline in self._outlines[unit.id]:
            if outline.replica is None:
                return {
                    replica: (host_name(outline.name, replica, self._subdomain),)
                    for replica in range(min(unit.replicas, _MOST_NUMBERED_PEERS))
                }
            nodes = found.setdefault(outline.replica, {})
            for index in range(outline.slice.count):
                host = host_name(outline.name, index, self._subdomain)
                nodes.setdefault(outline.slice.node_of(index), host)
        return {replica: tuple(nodes.values()) for replica, nodes in found.items()}

    def _peers(self) -> Iterator[tuple[str, str]]:
        """Where tasks that listen are reached: by the first replica, and where there are several by each."""
        for unit in self._tasks:
            if not (unit.service or unit.policies.ports):
                continue
            for replica, hosts in self._hosts[unit.id].items():
                ends = [f"_{replica}"] if unit.replicas > 1 else []
                for end in ends if replica else ["", *ends]:
                    yield f"JOBMAN_HOST_{shouted(unit.name)}{end}", hosts[0]
                    for name, number in self._ports[unit.id].items():
                        yield f"JOBMAN_PORT_{shouted(unit.name)}_{shouted(name)}{end}", str(number)

    def _coordinator(self, unit: Unit) -> dict[str, str]:
        nearest = (group.coordinator for group in groups_around(self._plan, unit))
        found = next(filter(None, nearest), self._plan.coordinator)
        if found is None:
            return {}
        # What a group reports to is the first of its tasks.
        coordinator = tasks_of(self._plan, found.unit)[0]
        hosts = self._hosts[coordinator].get(found.replica)
        if hosts is None:
            first = self._outlines[coordinator][0].name
            hosts = (host_name(first, found.replica, self._subdomain),)
        return {"JOBMAN_COORDINATOR": hosts[0]}

    # -- Jobs ------------------------------------------------------------------------------------------------

    def _pieces(self, unit: Unit, support: list[Written]) -> Iterator[Piece]:
        size = sum(piece.count for piece in slices(chosen(unit, self._target.chosen.get(unit.id, 0))))
        peers = {**self._reached, **self._coordinator(unit)}
        alternatives = self._alternatives(unit)
        variable_files = dict(self._variable_files(unit))
        claims = {
            claim_name(device): self._claim(unit, claim_name(device)) for device in unit.policies.devices
        }
        files: str | None = None
        seen: int | None = -1
        for outline in self._outlines[unit.id]:
            filled = for_replica(unit, outline.replica or 0) if unit.matrix else unit
            if seen == -1 or (unit.matrix and outline.replica != seen):
                files = self._files(filled, outline.name, support)
                seen = outline.replica
            yield Piece(
                plan=self._plan,
                target=self._target,
                unit=filled,
                name=outline.name,
                slice=outline.slice,
                replica=outline.replica,
                size=size,
                hosts=() if outline.replica is None else self._hosts[unit.id][outline.replica],
                subdomain=self._subdomain,
                alternatives=alternatives,
                labels=self._labels_of(unit, outline, size),
                annotations=dict(self._plan.annotations),
                files=files,
                variable_files=variable_files,
                peers=peers,
                ports=self._ports[unit.id],
                claims=claims,
            )

    def _alternatives(self, unit: Unit) -> tuple[tuple[Any, ...], ...]:
        if unit.id in self._target.chosen or not differ_in_requires_only(unit.alternatives) or unit.local:
            return ()
        return unit.alternatives

    # -- what stands beside the Jobs -------------------------------------------------------------------------

    def _support_of_all(self) -> list[Written]:
        support: list[Written] = []
        if self._subdomain is not None:
            support.append(services.headless(self._subdomain, self._labels(), self._target))
        return [*support, *self._walls()]

    def _walls(self) -> Iterator[Written]:
        if self._plan.network is not None and self._plan.network.isolated:
            yield services.isolation(self._naming.job, self._open_ports(), self._labels(), self._target)

    def _support_of(self, unit: Unit) -> Iterator[Written]:
        labels = {**self._labels(), names.TASK: names.label_value(unit.id)}
        service = services.exposed(self._naming.task(unit), unit, self._ports[unit.id], labels, self._target)
        if service is not None:
            yield service
        for path, name in self._variable_files(unit):
            (file,) = self._target.files[path]
            yield self._config(name, labels, {"data": variables_in(file.content.decode()) or {}})
        for device in unit.policies.devices:
            yield self._device_claim(unit, device, labels)

    def _device_claim(self, unit: Unit, device: Any, labels: Mapping[str, str]) -> Written:
        kind = "ResourceClaim" if device.shared else "ResourceClaimTemplate"
        spec = claim_spec(device) if device.shared else {"spec": claim_spec(device)}
        name = self._claim(unit, claim_name(device))
        metadata = {"name": name, "namespace": self._target.namespace, "labels": dict(labels)}
        return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}

    def _claim(self, unit: Unit, name: str) -> str:
        return f"{self._naming.task(unit)}-{names.dns_label(name)}"

    def _variable_files(self, unit: Unit) -> Iterator[tuple[str, str]]:
        paths = [origin.file for origin in unit.policies.env_from if origin.file is not None]
        for number, path in enumerate(dict.fromkeys(paths)):
            yield path, f"{self._naming.task(unit)}-env-{number}"

    def _files(self, unit: Unit, called: str, support: list[Written]) -> str | None:
        files = volumes.files_of(unit, self._target)
        if not files:
            return None
        name = f"{called}-files"
        labels = {**self._labels(), names.TASK: names.label_value(unit.id)}
        support.append(self._config(name, labels, volumes.files_data(files)))
        return name

    def _config(self, name: str, labels: Mapping[str, str], content: Mapping[str, Any]) -> Written:
        metadata = {"name": name, "namespace": self._target.namespace, "labels": dict(labels)}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}

    def _open_ports(self) -> list[Port]:
        return [
            msgspec.structs.replace(port, port=self._ports[unit.id][port.name or str(port.port)])
            for unit in self._tasks
            for port in unit.policies.ports
            if port.expose
        ]

    # -- labels and annotations ------------------------------------------------------------------------------

    def _labels(self) -> dict[str, str]:
        plan, target = self._plan, self._target
        return names.job_labels(plan, target.job_id, plan.name or self._naming.job, target.owner)

    def _labels_of(self, unit: Unit, outline: Outline, size: int) -> dict[str, str]:
        labels = {**self._labels(), names.TASK: names.label_value(unit.id)}
        if outline.slice.part.flavor is not None:
            labels[names.FLAVOR] = names.label_value(outline.slice.part.flavor.name)
        if outline.replica is not None:
            labels[names.REPLICA] = str(outline.replica)
        if size > 1:
            short = f"{self._target.job_id[:6]}-{unit.id}-{outline.replica}"
            labels[names.ALLOCATION] = names.label_value(short)
            if outline.slice.first_rank:
                labels[names.FIRST] = str(outline.slice.first_rank)
            if outline.slice.has_node:
                together = outline.slice.is_together
                labels[names.NODE] = str(outline.slice.first_node) if together else "each"
        return labels

    def _annotations(self) -> dict[str, str]:
        """What is needed to show the job and to run it again, from the cluster alone."""
        plan = self._plan
        text = plan.to_json()
        found = {
            **plan.annotations,
            names.DOCUMENT: self._target.document,
            names.PLAN: text.decode() if len(text) <= _LARGE_PLAN else packed(text),
            names.DIGEST: plan.digest,
            names.SUBMITTED_BY: self._target.owner,
            names.VERSION: __version__,
        }
        if plan.managed_by is not None:
            found[names.MANAGED_BY] = plan.managed_by
        if plan.owner is not None:
            found[names.BELONGS_TO] = plan.owner
        if sum(len(value.encode()) for value in found.values()) > _MOST_ANNOTATIONS:
            found[names.DOCUMENT] = packed(self._target.document.encode())
            found[names.PLAN] = packed(text)
        if sum(len(value.encode()) for value in found.values()) > _MOST_ANNOTATIONS:
            note = "a cluster keeps 256 KiB with an object at most, and this document is larger; split it"
            raise CannotCompile([Refused("command", (), note)])
        return found


def packed(text: bytes) -> str:
    """A long text as an annotation carries it."""
    return "gzip:" + base64.b64encode(gzip.compress(text, mtime=0)).decode()


def unpacked(text: str) -> str:
    """The text of an annotation, whether it was packed or not."""
    if not text.startswith("gzip:"):
        return text
    return gzip.decompress(base64.b64decode(text.removeprefix("gzip:"))).decode()


def number_of_jobs(unit: Unit, pieces: tuple[Slice, ...]) -> int:
    """How many Jobs a task is."""
    return (unit.replicas if is_split(unit, pieces) else 1) * len(pieces)


def is_split(unit: Unit, pieces: tuple[Slice, ...]) -> bool:
    """Whether each replica has Jobs of its own: its copies belong together, or its command is another."""
    return bool(unit.matrix) or sum(piece.count for piece in pieces) > 1
