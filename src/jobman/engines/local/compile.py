"""From an order of the service to what the launcher is told, one copy at a time. Pure."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import msgspec

from jobman.engines import base
from jobman.engines.local import orders
from jobman.engines.local.containers import Container, client_environment, container_name, run_argv, stop_argv
from jobman.engines.local.nodes import LocalNode, physical_cores
from jobman.engines.local.prepared import Copy, Prepared
from jobman.engines.local.records import path_of
from jobman.engines.local.runtimes import Runtime
from jobman.engines.local.variables import gpu_names, variables
from jobman.engines.local.volumes import Mount
from jobman.sched.allocation import Slot
from jobman.spec.access import Capabilities, Security
from jobman.spec.lifecycle import Hooks
from jobman.spec.quantities import parse_size
from jobman.spec.shapes import Part
from jobman.spec.steps import Stage, Write

_NO_SECURITY = Security()
_NO_CAPABILITIES = Capabilities()
_NO_HOOKS = Hooks()


def compile_order(order: base.Order, prepared: Prepared, nodes: Mapping[str, LocalNode]) -> tuple[Copy, ...]:
    """One copy for each slot of the order."""
    slots = order.allocation.slots
    return tuple(
        _compile(order, prepared, nodes.get(slot.node), number, part)
        for number, (slot, part) in enumerate(zip(slots, _parts(order), strict=False))
    )


def is_contained(order: base.Order) -> bool:
    """Whether its copies run in containers."""
    unit = order.unit
    return bool(unit.image and unit.command) and not unit.local and not order.no_container


def host_cwd(order: base.Order) -> str:
    """The folder of this machine where steps run and relative paths begin."""
    cwd = order.unit.cwd
    return order.cwd if cwd is None or _is_of_the_image(order) else joined(order.cwd, cwd)


def output_paths(order: orders.Order) -> dict[str, str]:
    """The files of a copy's two streams."""
    own = f"{order.folder}/{order.copy}"
    return {
        "stdout": f"{own}.out" if order.stdout is None else joined(order.cwd, order.stdout),
        "stderr": f"{own}.err" if order.stderr is None else joined(order.cwd, order.stderr),
    }


def _parts(order: base.Order) -> Iterator[Part | None]:
    """The part of the shape that each slot is of: ranks follow the parts as they are written."""
    alternatives, placed = order.unit.alternatives, order.allocation.alternative
    if placed < len(alternatives):
        for part in alternatives[placed]:
            yield from [part] * part.copies
    while True:
        yield None


def _compile(
    order: base.Order, prepared: Prepared, node: LocalNode | None, number: int, part: Part | None
) -> Copy:
    slot = order.allocation.slots[number]
    given = variables(order, prepared, number, node)
    plain = _plain(order, prepared, number, given)
    memory = _memory(slot, part)
    name = container_name("jobman", *order.address, number, prepared.id.partition(":")[0])
    is_caged = memory is not None or order.unit.policies.suspend == "freeze"
    limited = msgspec.structs.replace(
        plain,
        cores=physical_cores(node, slot.cores) if node is not None else (),
        memory=memory,
        cgroup=name if is_caged else None,
    )
    ports = prepared.ports[number] if prepared.ports else {}
    if prepared.runtime is None:
        return Copy(order=limited, node=slot.node, ports=ports)
    container = Container(
        name=name,
        image=order.unit.image or "",
        argv=order.unit.command,
        variables=given,
        file=f"{prepared.private}/{number}.env",
        workdir=_workdir(order),
        mounts=tuple(_mounts(order, prepared, number)),
        cores=limited.cores,
        memory=memory,
        gpus=gpu_names(slot, node) if node is not None and node.gpus else (),
        security=order.unit.policies.security or _NO_SECURITY,
    )
    contained = _contained(limited, container, prepared, prepared.runtime)
    return Copy(order=contained, node=slot.node, ports=ports, container=container, runtime=prepared.runtime)


def _plain(order: base.Order, prepared: Prepared, number: int, given: dict[str, str]) -> orders.Order:
    """A copy that runs on this machine as it is."""
    unit, policies = order.unit, order.unit.policies
    hooks = policies.hooks or _NO_HOOKS
    security = policies.security or _NO_SECURITY
    capabilities = security.capabilities or _NO_CAPABILITIES
    warning = policies.signal
    return orders.Order(
        id=f"{prepared.id}/{number}",
        folder=prepared.folder,
        copy=number,
        argv=unit.command,
        environment={**prepared.submitted, **given},
        cwd=host_cwd(order),
        stdout=unit.stdout,
        stderr=unit.stderr,
        uid=security.uid,
        gid=security.gid,
        groups=security.groups,
        umask=None if security.umask is None else int(security.umask.lower().replace("o", ""), 8),
        no_new_privileges=not security.privileged and security.no_new_privileges is not False,
        add_capabilities=capabilities.add,
        drop_capabilities=capabilities.drop,
        steps=tuple(_step(step, order) for step in unit.steps),
        before=hooks.before,
        after=hooks.after,
        on_stop=hooks.on_stop,
        result_file=policies.result_file,
        duration=unit.duration,
        signal=None if warning is None else warning.name,
        signal_before=60.0 if warning is None else warning.before,
        grace=orders.DEFAULT_GRACE if policies.grace is None else policies.grace,
    )


def _contained(
    plain: orders.Order, container: Container, prepared: Prepared, runtime: Runtime
) -> orders.Order:
    """The same copy as the client of its container: rights and limits are the container's."""

    def turn(name: str, argv: tuple[str, ...]) -> tuple[str, ...]:
        beside = msgspec.structs.replace(container, name=f"{container.name}-{name}", argv=argv)
        return run_argv(runtime, beside) if argv else ()

    started = path_of(plain.folder, plain.copy, "started")
    return msgspec.structs.replace(
        plain,
        argv=run_argv(runtime, container),
        environment=client_environment(runtime, container.variables, prepared.submitted, prepared.client),
        memory=None if "memory" in runtime.limits else plain.memory,
        # The runtime has groups of its own, which a group around the client would know nothing of.
        cgroup=None,
        uid=None,
        gid=None,
        groups=None,
        umask=None,
        # An ordinary user's container is set up by programs that gain rights.
        no_new_privileges=False,
        add_capabilities=(),
        drop_capabilities=(),
        before=turn("before", plain.before),
        after=turn("after", plain.after),
        on_stop=stop_argv(runtime, container, plain.on_stop, plain.grace, started),
        result_file=_on_host(plain.result_file, container),
    )


def _memory(slot: Slot, part: Part | None) -> int | None:
    """The limit a flavor sets, else what was asked for; a share of a whole node is no limit."""
    if part is None:
        return None
    limit = part.flavor.limits.get("memory") if part.flavor is not None else None
    if limit is not None and (size := parse_size(limit)) is not None:
        return size
    asked = slot.amounts.get("memory") if "memory" in part.each else None
    return None if asked is None else int(asked)


def _step(step: Stage | Write, order: base.Order) -> orders.Step:
    """What is brought is found from the folder of submission; where it goes begins where the copy runs."""
    if isinstance(step, Write):
        return orders.Write(step.path, step.content, step.mode)
    return orders.Stage(joined(order.cwd, step.path), step.path if step.to is None else step.to)


def _is_of_the_image(order: base.Order) -> bool:
    """Whether the folder to run in is one of the image's, not one of this machine."""
    cwd = order.unit.cwd or ""
    return is_contained(order) and cwd.startswith("/") and not _is_below(cwd, order.cwd)


def _workdir(order: base.Order) -> str | None:
    """Where a copy in a container runs: as its document says, else with its files, else as the image says."""
    if order.unit.cwd is not None:
        return joined(order.cwd, order.unit.cwd)
    return order.cwd if any(not target.startswith("/") for target in _targets(order)) else None


def _targets(order: base.Order) -> list[str]:
    """Where the steps of a task put files."""
    return [step.to or step.path if isinstance(step, Stage) else step.path for step in order.unit.steps]


def _mounts(order: base.Order, prepared: Prepared, number: int) -> Iterator[Mount]:
    """What a container shares with this machine: its scratch folder, the files of its steps, its volumes."""
    scratch = prepared.scratch.get(order.allocation.slots[number].node)
    if scratch is not None:
        yield Mount("scratch", scratch, scratch)
    targets = [joined(host_cwd(order), target) for target in _targets(order)]
    is_needed = bool(targets) or (order.unit.cwd is not None and not _is_of_the_image(order))
    if is_needed and order.cwd != "/":
        yield Mount("cwd", order.cwd, order.cwd)
    for target in targets:
        if not _is_below(target, order.cwd):
            yield Mount("step", target, target)
    yield from prepared.mounts[number] if prepared.mounts else ()


def _on_host(path: str | None, container: Container) -> str | None:
    """Where a file of a container is on this machine; as written where it is in nothing that is shared."""
    if path is None:
        return None
    inside = joined(container.workdir or "/", path)
    for mount in container.mounts:
        if _is_below(inside, mount.to):
            return joined(mount.source, os.path.relpath(inside, mount.to))
    return path


def joined(cwd: str, path: str) -> str:
    """A path that may be relative to a folder."""
    return os.path.normpath(PurePosixPath(cwd) / path)


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder
