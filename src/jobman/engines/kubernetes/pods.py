"""The pod of a copy: one container that runs the command, and all that surrounds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.affinity import placement
from jobman.engines.kubernetes.environment import calculated, environment, environment_from
from jobman.engines.kubernetes.failures import Forgiven, forgiven
from jobman.engines.kubernetes.keeper import keeper
from jobman.engines.kubernetes.kept_logs import KeptLogs, log_base
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.piece import Piece
from jobman.engines.kubernetes.probes import probes
from jobman.engines.kubernetes.resources import claim_name, requests
from jobman.engines.kubernetes.security import container_security, helper_security, pod_security
from jobman.engines.kubernetes.shell import Around, around, command
from jobman.engines.kubernetes.target import Target
from jobman.engines.kubernetes.volumes import Storage, inside, storage, workdir
from jobman.plan.model import Unit

MAIN = "main"
"""The container that runs the command."""


def pod_template(piece: Piece) -> Written:
    """The pod that a Job makes, again and again if need be."""
    metadata: dict[str, Any] = {"labels": piece.labels}
    if piece.annotations:
        metadata["annotations"] = piece.annotations
    flags = piece.unit.flags.kubernetes or {}
    return {"metadata": metadata, "spec": displaced(_pod_spec(piece), flags)}


def image_of(unit: Unit, target: Target) -> str | None:
    """The image with its full name: the site's prefix stands before those that name no registry."""
    image = unit.image or target.default_image
    return None if image is None else prefixed(image, target)


def prefixed(image: str, target: Target) -> str:
    host, slash, _ = image.partition("/")
    names_registry = bool(slash) and ("." in host or ":" in host or host == "localhost")
    return image if names_registry else target.image_prefix + image


def port_name(name: str) -> str:
    """A port's name as a pod has it: at most 15 small letters, digits and single dashes."""
    return "-".join(part for part in name.lower().replace("_", "-").split("-") if part)


def displaced(written: Any, given: Any) -> Any:
    """What a document gives displaces what was written for the same option, item by item in named lists."""
    if isinstance(written, dict) and isinstance(given, Mapping):
        return {**written, **{key: displaced(written.get(key), value) for key, value in given.items()}}
    if _is_named(written) and _is_named(given):
        found = {_known_by(item): item for item in written}
        laid = {_known_by(item): displaced(found.get(_known_by(item)), item) for item in given}
        return list({**found, **laid}.values())
    return given


def _known_by(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """A volume may be mounted at several places."""
    return item["name"], item.get("mountPath")


def _is_named(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and "name" in each for each in value)
    )


def _pod_spec(piece: Piece) -> dict[str, Any]:
    unit, policies = piece.unit, piece.unit.policies
    found = storage(unit, piece.files, piece.target)
    in_place = policies.restart == "on-failure" and piece.attempt is None
    spec: dict[str, Any] = {"restartPolicy": "OnFailure" if in_place else "Never"}
    if piece.subdomain is not None:
        spec["subdomain"] = piece.subdomain
    if unit.duration is not None:
        spec["activeDeadlineSeconds"] = max(1, ceil(unit.duration))
    if policies.priority is not None:
        spec["priorityClassName"] = policies.priority
    if policies.scheduler is not None:
        spec["schedulerName"] = policies.scheduler
    return {**spec, **placement(piece), **contents(piece, found)}


def contents(piece: Piece, found: Storage) -> dict[str, Any]:
    """What is in a pod, whoever finds a place for it: who it is, its containers and what they mount."""
    unit, policies = piece.unit, piece.unit.policies
    spec = _identity(unit)
    if policies.grace is not None:
        spec["terminationGracePeriodSeconds"] = ceil(policies.grace)
    spec.update(_runtime(unit))
    if context := pod_security(unit):
        spec["securityContext"] = context
    if beside := [*_clones(piece, found), *_keepers(piece)]:
        spec["initContainers"] = beside
    spec["containers"] = [_container(piece, found.mounts)]
    if piece.claims:
        spec["resourceClaims"] = [_claim(piece, device) for device in policies.devices]
    spec["volumes"] = found.volumes
    return spec


def _clones(piece: Piece, found: Storage) -> Iterator[dict[str, Any]]:
    shared = _shared(piece)
    yield from ({**clone, **shared} for clone in found.clones)


def _keepers(piece: Piece) -> Iterator[dict[str, Any]]:
    """Who carries output to a store, where it is kept in one."""
    target = piece.target
    if (kept := _in_a_store(target)) is not None:
        made = keeper(kept, target.job_id, prefixed(target.keeper.image, target), target.keeper.secret)
        yield {**made, "securityContext": helper_security(piece.unit)}


def _identity(unit: Unit) -> dict[str, Any]:
    """Without an identity a copy is nobody: it gets no token of the cluster."""
    identity = unit.policies.identity
    given = {} if identity is None else {"serviceAccountName": identity}
    return {**given, "automountServiceAccountToken": identity is not None, "enableServiceLinks": False}


def _runtime(unit: Unit) -> dict[str, Any]:
    runtime = unit.policies.runtime
    fields: dict[str, Any] = {
        "runtimeClassName": runtime.class_ if runtime else None,
        "os": {"name": runtime.os} if runtime and runtime.os else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _container(piece: Piece, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    unit, policies = piece.unit, piece.unit.policies
    container: dict[str, Any] = {
        "name": MAIN,
        "image": image_of(unit, piece.target),
        "command": command(unit.command, _around(piece)),
    }
    if folder := workdir(unit):
        container["workingDir"] = folder
    container.update(_shared(piece, is_main=True))
    if policies.ports:
        container["ports"] = _ports(piece)
    container.update(probes(policies.checks, piece.ports))
    if policies.hooks is not None and policies.hooks.on_stop:
        container["lifecycle"] = {"preStop": {"exec": {"command": list(policies.hooks.on_stop)}}}
    if policies.result_file is not None:
        container["terminationMessagePath"] = inside(unit, policies.result_file)
    container["volumeMounts"] = mounts
    return container


def _around(piece: Piece) -> Around:
    """What the shell has to do; whoever numbers the attempts also starts each of them in a pod of its own."""
    wanted = around(piece.unit, calculated(piece), _forgiven(piece), _kept(piece))
    return msgspec.structs.replace(
        wanted,
        counts=wanted.counts and piece.attempt is None,
        carried=_in_a_store(piece.target) is not None,
    )


def _in_a_store(target: Target) -> KeptLogs | None:
    """Where output is kept, if somebody has to carry it there."""
    kept = target.keep_logs
    return kept if kept is not None and kept.bucket else None


def _forgiven(piece: Piece) -> tuple[Forgiven, ...]:
    """What a shell has to forgive: where somebody drives the job, they do."""
    return forgiven(piece.plan, piece.unit) if piece.attempt is None else ()


def _kept(piece: Piece) -> str | None:
    """Where its output is kept."""
    return log_base(piece.target.job_id, piece.unit.id) if piece.target.keep_logs is not None else None


def _shared(piece: Piece, *, is_main: bool = False) -> dict[str, Any]:
    """What all containers of the pod have in common."""
    fields: dict[str, Any] = {
        "image": image_of(piece.unit, piece.target),
        "env": environment(piece),
        "envFrom": environment_from(piece),
        "resources": requests(piece.slice.part, piece.target),
        "securityContext": container_security(piece.unit),
    }
    if is_main and piece.claims:
        claims = [{"name": names.dns_label(claim_name(device))} for device in piece.unit.policies.devices]
        fields["resources"] = {**fields["resources"], "claims": claims}
    return {name: value for name, value in fields.items() if value}


def _ports(piece: Piece) -> list[dict[str, Any]]:
    found = []
    for port in piece.unit.policies.ports:
        number = piece.ports[port.name or str(port.port)]
        entry: dict[str, Any] = {"containerPort": number, "protocol": port.protocol.upper()}
        found.append({"name": port_name(port.name), **entry} if port.name else entry)
    return found


def _claim(piece: Piece, device: Any) -> dict[str, Any]:
    kind = "resourceClaimName" if device.shared else "resourceClaimTemplateName"
    return {"name": names.dns_label(claim_name(device)), kind: piece.claims[claim_name(device)]}
