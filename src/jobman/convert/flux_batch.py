"""A batch script of Flux as a JobSpec: on one node a task of its own, else the driver of a group."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from jobman.convert.allocation import Allocation
from jobman.convert.flux_keys import FluxKeys, Told, seconds_of
from jobman.convert.flux_lines import muted, read_directives
from jobman.convert.moments import moment_of
from jobman.convert.options import Given
from jobman.convert.outcome import Converted, as_name, literal
from jobman.convert.remarks import Remarks
from jobman.convert.shapes import Shape, copies_of, spread, whole
from jobman.convert.values import Wrong, count_of
from jobman.convert.wrapper import command_of, sound_interpreter
from jobman.convert.writing import Path
from jobman.spec.problems import Place

_LAUNCHES = re.compile(r"^\s*[^#\n]*\bflux\s+(?:run|submit|bulksubmit|alloc|batch|exec|mini)\b", re.MULTILINE)
_SHAPE = ("nodes", "nslots", "cores-per-slot", "gpus-per-slot", "exclusive")
_FIELDS = {"nslots": "ntasks", "cores-per-slot": "cpus_per_task", "gpus-per-slot": "gpus_per_task"}


def convert_flux_script(
    name: str, text: str, now: datetime, *, arguments: Sequence[str] = (), strict: bool = False
) -> Converted:
    """A script with `# flux:` directives."""
    remarks = Remarks(strict=strict)
    read = read_directives(name, text, remarks)
    given = {one.option.name: one for one in read}
    interpreter = sound_interpreter(name, text, remarks)
    keys, allocation = FluxKeys(remarks), Allocation()
    _read_shape(given, allocation, remarks)
    for one in read:
        if one.option.name == "env" or given[one.option.name] is one:  # rules about variables add up
            _carry(one, keys, now, remarks)
    if remarks.have_errors() or interpreter is None:
        return Converted(None, remarks.in_order())
    title = name.rpartition("/")[2] or "script"
    keys.job_name = keys.job_name or title
    command = command_of(interpreter, muted(text), (), title, arguments)
    document = put_together(keys, allocation_shapes(allocation, text), command, text)
    tell_of_flux(text, keys, name)
    problems = remarks.in_order()
    if remarks.have_errors():
        return Converted(None, problems)
    return Converted(literal(document), problems, _comments(keys, given, document))


def allocation_shapes(allocation: Allocation, text: str) -> list[Shape]:
    """One node is for the script itself; several, or steps of its own, need their slots."""
    is_alone = (allocation.node_count or 1) == 1 and not _LAUNCHES.search(text)
    return [whole(allocation)] if is_alone else spread(allocation)


def put_together(keys: FluxKeys, shapes: list[Shape], command: list[str], text: str) -> dict[str, Any]:
    """A task where one node is asked for and no step is started, else a group that the script leads."""
    is_group = bool(_LAUNCHES.search(text)) or sum(map(copies_of, shapes)) > 1
    name = as_name(keys.job_name)
    head: dict[str, Any] = {"version": 1, "name": name, **keys.head}
    named = {f"part-{number}": shape for number, shape in enumerate(shapes)} if len(shapes) > 1 else {}
    if named:
        head["resources"] = named
    task: dict[str, Any] = {"name": name, "resources": "&".join(named) or shapes[0], **keys.task}
    if keys.attributes:
        task["attributes"] = keys.attributes
    if is_group:
        return {
            **head,
            "groups": [{**task, "tasks": [{"name": "script", "local": True, "command": command}]}],
        }
    return {**head, "tasks": [{**task, "command": command}]}


def tell_of_flux(text: str, keys: FluxKeys, where: str | Place) -> None:
    """Where a script starts its steps by Flux; `where` is its file, or the place of all of it."""
    found = _LAUNCHES.search(text)
    if found is None:
        return
    line = text.count("\n", 0, found.end()) + 1
    place = Place(where, line, 1, line, 2) if isinstance(where, str) else where
    keys.tell(
        "JC203",
        Told(found[0].strip(), place),
        difference="the script starts its steps by `flux`, which only Flux has",
        advice="write the steps as tasks of the group to run it elsewhere",
    )


def _read_shape(given: dict[str, Given], allocation: Allocation, remarks: Remarks) -> None:
    for name in _SHAPE:
        one = given.get(name)
        if one is None:
            continue
        try:
            value: Any = True if name == "exclusive" else count_of(one.value or "")
            setattr(allocation, _FIELDS.get(name, name), value)
        except Wrong as wrong:
            _tell_wrong(one, wrong, remarks)
    if allocation.nodes and allocation.ntasks is None:
        allocation.exclusive = True  # nodes alone are whole nodes


def _carry(one: Given, keys: FluxKeys, now: datetime, remarks: Remarks) -> None:
    told = _told(one)
    if one.option.fate == "engine":
        value = "" if one.value is None else f"={one.value}"
        keys.keep(f"--{one.option.name}{value}", told, one.option.words)
    elif one.option.fate == "left":
        keys.leave(told, one.option.words, one.option.advice)
    elif one.option.name in CARRIED - set(_SHAPE):
        try:
            if one.option.name == "begin-time":
                _begin(keys, one.value or "", told, now)
            else:
                _CARRY[one.option.name](keys, one.value or "", told)
        except Wrong as wrong:
            _tell_wrong(one, wrong, remarks)


def _time_limit(keys: FluxKeys, text: str, told: Told) -> None:
    keys.duration(seconds_of(text, "m"), told)


def _begin(keys: FluxKeys, text: str, told: Told, now: datetime) -> None:
    if text.startswith("+"):
        keys.earliest(f"+{round(seconds_of(text[1:]) or 0)}s", told)
    else:
        keys.earliest(moment_of(text, now), told)


def _env(keys: FluxKeys, text: str, told: Told) -> None:
    name, equals, value = text.partition("=")
    if equals and "$" not in value:
        keys.variable(name, value, told)
    else:
        keys.leave(told, "it is a rule about the environment of submission", "write it into the script")


def _alarm(keys: FluxKeys, text: str, told: Told) -> None:
    name, _, before = text.partition("@")
    keys.alarm(name or "USR1", (seconds_of(before) or 0) if before else 60, told)


_CARRY: dict[str, Callable[[FluxKeys, str, Told], None]] = {
    "bank": lambda keys, text, told: keys.named("account", text, "bank", told),
    "cwd": lambda keys, text, told: keys.cwd(text, told),
    "env": _env,
    "error": lambda keys, text, told: keys.stream("stderr", text, told),
    "job-name": lambda keys, text, told: keys.name(text, told),
    "output": lambda keys, text, told: keys.stream("stdout", text, told),
    "queue": lambda keys, text, told: keys.named("queue", text, "queue", told),
    "requires": lambda keys, text, told: keys.properties(text.split(","), text, told),
    "signal": _alarm,
    "time-limit": _time_limit,
}
CARRIED = frozenset((*_CARRY, "begin-time", *_SHAPE))
"""Every option that somebody reads; a test compares it with the table."""


def _told(one: Given) -> Told:
    return Told(one.written, one.place, one.line_text)


def _tell_wrong(one: Given, wrong: Wrong, remarks: Remarks) -> None:
    option = f"--{one.option.name}"
    remarks.add(
        "JC105",
        one.place,
        one.line_text,
        text=one.value,
        option=option,
        reason=wrong.reason,
        wanted=wrong.wanted,
    )


def _comments(keys: FluxKeys, given: dict[str, Given], document: dict[str, Any]) -> dict[Path, str]:
    key = "groups" if "groups" in document else "tasks"
    lines = sorted({one.place.line for name in _SHAPE if (one := given.get(name)) and one.place})
    comments: dict[Path, str] = {}
    if lines:
        word = "line" if len(lines) == 1 else "lines"
        comments[key, 0, "resources"] = f"{word} {', '.join(map(str, lines))}"
    for path, told in keys.origins.items():
        here = path if path[0] != "task" else (key, 0, *path[1:])
        if told.place is not None:
            comments[here] = f"line {told.place.line}: {told.written}"
    return comments
