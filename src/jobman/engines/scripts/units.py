"""A unit as a function of a shell that says all there is to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from jobman.engines.peers import shouted
from jobman.engines.scripts import checks, containers, steps
from jobman.engines.scripts.given import FOLDER, is_given
from jobman.engines.scripts.quoting import AXIS, array, number, quoted, spans
from jobman.engines.scripts.site import Job
from jobman.plan.model import Plan, Unit
from jobman.spec.failures import FailureRule
from jobman.spec.shapes import Part

DEFAULT_GRACE = 30.0
VARIABLES = (
    *("name", "kind", "replicas", "copies", "grace", "restart", "cores", "gpus", "duration", "warning"),
    *("warn_after", "cwd", "stdout", "stderr", "command", "before", "after", "at_stop", "result_file"),
    *("scratch", "coordinator", "wrap", "rules", "retries", "delay", "factor", "retry_codes"),
    *("retry_reasons", "environment", "step", "ready", "alive", "begun", "listens", "given", "free_ports"),
)
"""Everything a unit may say. A copy that runs elsewhere is given these."""


def unit_function(
    unit: Unit, tag: int, plan: Plan, job: Job, parts: Sequence[Part], launch: Sequence[str]
) -> list[str]:
    """The lines of a unit's function; `launch` are the words before its command where it is a step."""
    axes = tuple(unit.matrix)
    body = [*_what(unit, job, parts, axes), *_ends(unit, job), *_failures(unit, plan)]
    if unit.kind == "task":
        if is_given(unit):
            body.append(f'given="$J/{FOLDER}/{tag}"')
        body += [*_surroundings(unit, axes), *_commands(unit, tag, job, axes), *checks.lines(unit)]
        if containers.is_contained(unit, job):
            body += containers.checked(unit)
        body += [f"DIRECT= {array('step', launch)}" if launch else "DIRECT=1"]
    found = [f"# {describe(unit, job.file)}", f"unit_{tag}() {{", '    unset "${OF_A_UNIT[@]}"']
    found += [f"    {line}" for line in [*_axes(unit), *body]]
    found += ["}", *steps.function(unit, tag, axes), *containers.function(unit, job)]
    return found


def describe(unit: Unit, file: str) -> str:
    """Who it is, and where that was written."""
    place = f" ({file}, line {unit.line})" if unit.line else ""
    many = f", {unit.replicas} replicas" if unit.replicas > 1 else ""
    return f"{unit.kind} `{unit.id}`{place}{many}"


def _what(unit: Unit, job: Job, parts: Sequence[Part], axes: Sequence[str]) -> Iterator[str]:
    copies = sum(part.copies for part in parts) if unit.kind == "task" and not unit.local else 1
    yield f"name={quoted(unit.name)} kind={unit.kind} replicas={unit.replicas} copies={copies or 1}"
    cores, gpus = amounts(parts)
    if cores is not None:
        yield f"cores={cores} gpus={gpus}"
    elif parts:
        yield f"gpus={gpus}"
    if job.scratch is not None:
        yield f"scratch={quoted(job.scratch)}"
    cwd = folder_of(unit, job)
    if unit.kind == "task" and cwd is not None:
        yield f"cwd={quoted(cwd, axes)}"


def amounts(parts: Sequence[Part]) -> tuple[int | None, int]:
    """The cores and the GPUs of a copy; no cores are all of its node."""
    each = parts[0].each if parts else {}
    has_cores = "core" in each or (bool(parts) and not parts[0].is_whole)
    return max(1, ceil(each.get("core", 1))) if has_cores else None, ceil(each.get("gpu", 0))


def folder_of(unit: Unit, job: Job) -> str | None:
    """Where it runs; None where the manager says it."""
    if job.cwd is None or (unit.cwd is not None and unit.cwd.startswith("/")):
        return unit.cwd
    return job.cwd if unit.cwd is None else f"{job.cwd}/{unit.cwd}"


def _ends(unit: Unit, job: Job) -> Iterator[str]:
    policies = unit.policies
    # Where the container of a command must be ended, that keeps the grace, and this is for when it does not.
    grace = _grace(unit) + containers.clearing(unit, job)
    yield f"grace={number(grace)} restart={policies.restart or 'never'}"
    if unit.duration is not None:
        yield f"duration={number(unit.duration)}"
        if policies.signal is not None and unit.kind == "task":
            wait = max(0.0, unit.duration - policies.signal.before)
            yield f"warning={policies.signal.name} warn_after={number(wait)}"


def _grace(unit: Unit) -> float:
    return DEFAULT_GRACE if unit.policies.grace is None else unit.policies.grace


def _failures(unit: Unit, plan: Plan) -> Iterator[str]:
    if rules := list(_rules(unit, plan)):
        yield array("rules", rules)
    retries = unit.policies.retries
    if retries is None:
        return
    yield f"retries={retries.limit} delay={number(retries.delay)} factor={retries.factor:g}"
    if retries.on is not None:
        codes, reasons = spans(retries.on.exit_codes), ",".join(retries.on.reasons)
        yield f"retry_codes={codes} retry_reasons={reasons}"


def _rules(unit: Unit, plan: Plan) -> Iterator[str]:
    """From the inside out. Numbers of replicas are those of the rule's own unit, so no other has them."""
    yield from (_rule(rule) for rule in unit.policies.on_failure)
    above = unit.parent
    while above is not None:
        group = plan.unit(above)
        yield from (_rule(rule) for rule in group.policies.on_failure if not rule.replicas)
        above = group.parent
    yield from (_rule(rule) for rule in plan.policies.on_failure if not rule.replicas)


def _rule(rule: FailureRule) -> str:
    return "|".join((rule.action, spans(rule.exit_codes), ",".join(rule.reasons), spans(rule.replicas)))


def _axes(unit: Unit) -> Iterator[str]:
    """The values of a replica: the last axis turns fastest."""
    left = unit.replicas
    for axis, values in unit.matrix.items():
        left //= len(values)
        yield array("of_axis", values)
        yield f"{AXIS}{axis}=${{of_axis[INDEX / {left} % {len(values)}]}}"
        yield f'environment+=({axis}="${AXIS}{axis}")'


def _surroundings(unit: Unit, axes: Sequence[str]) -> Iterator[str]:
    for name, value in unit.environment.items():
        yield f"environment+=({name}={quoted(value, axes)})"
    if unit.coordinator is not None:
        yield f"coordinator={quoted(unit.coordinator.unit)}"
    if unit.policies.ports:
        yield "listens=1"
    if free := [shouted(port.name) for port in unit.policies.ports if port.name and port.port is None]:
        yield array("free_ports", free)
    for port in unit.policies.ports:
        if port.name is not None and port.port is not None:
            variable = f"PORT_{shouted(port.name)}={port.port}"
            yield f"{variable} environment+=({variable})"
    for name in ("stdout", "stderr"):
        if (path := getattr(unit, name)) is not None:
            yield f"{name}={quoted(path, axes)}"
    if unit.policies.result_file is not None:
        yield f"result_file={quoted(unit.policies.result_file, axes)}"


def _commands(unit: Unit, tag: int, job: Job, axes: Sequence[str]) -> Iterator[str]:
    yield from containers.lines(unit, tag, job, _grace(unit), axes)
    hooks = unit.policies.hooks
    if hooks is not None:
        is_inside = containers.is_contained(unit, job)
        before, beside = ('"${wrap[@]}" ', '"${inside[@]}" ') if is_inside else ("", "")
        for name, words, where in (
            ("before", hooks.before, before),
            ("after", hooks.after, before),
            ("at_stop", hooks.on_stop, beside),
        ):
            if words:
                yield f"{name}=({where}{' '.join(quoted(word, axes) for word in words)})"
    if unit.command:
        yield array("command", unit.command, axes)
