"""Flux's own V1 jobspec as a JobSpec: one program on its slots, or a batch script that leads its nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from jobman.convert.flux_batch import put_together, tell_of_flux
from jobman.convert.flux_keys import USR1, FluxKeys, Told
from jobman.convert.flux_lines import muted
from jobman.convert.outcome import Converted, as_name, literal
from jobman.convert.remarks import Remarks
from jobman.convert.shapes import Shape, copies_of
from jobman.convert.wrapper import command_of, sound_interpreter
from jobman.spec.problems import Place

_TYPES = ("node", "slot", "socket", "core", "gpu")
_USUAL = ("rlimit", "mpi", "exit-timeout", "per-resource", "verbose")
"""Shell options that Flux writes by itself, and that have no meaning elsewhere."""
_WRONG_KIND = (TypeError, ValueError, OverflowError, AttributeError, KeyError)
"""What comes of a text where a number is meant, and the like; Flux would refuse such a jobspec, too."""
_DEFAULT_OUTPUT = "flux-{{id}}.out"


class NoJobspec(Exception):
    """Why a specification cannot be read."""

    def __init__(
        self, what: str, advice: str = "give what `flux run --dry-run` or `flux batch --dry-run` prints"
    ) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def is_jobspec(data: Any) -> bool:
    """Whether a value is meant as a job specification of Flux."""
    return isinstance(data, dict) and {"resources", "tasks", "attributes"} <= set(data) and "version" in data


def convert_jobspec(name: str, data: dict[str, Any], *, strict: bool = False) -> Converted:
    remarks = Remarks(strict=strict)
    place = Place(name, 1, 1, 1, 2)
    try:
        document = _Jobspec(name, data, place, remarks).document()
    except NoJobspec as error:
        remarks.add("JC112", place, what=error.what, advice=error.advice)
        document = None
    except _WRONG_KIND:
        usual = NoJobspec("a value in it is of the wrong kind")
        remarks.add("JC112", place, what=usual.what, advice=usual.advice)
        document = None
    return Converted(
        None if remarks.have_errors() or document is None else literal(document), remarks.in_order()
    )


class _Jobspec:
    def __init__(self, name: str, data: dict[str, Any], place: Place, remarks: Remarks) -> None:
        self._name = name
        self._data = data
        self._place = place
        self._remarks = remarks
        self._keys = FluxKeys(remarks)

    def document(self) -> dict[str, Any]:
        if self._data["version"] != 1:
            raise NoJobspec(f"version {self._data['version']} of the jobspec is not read, version 1 is")
        shape, task = self._shape(), self._task()
        attributes = self._mapping(self._data, "attributes")
        system = self._mapping(attributes, "system")
        self._read_system(system)
        self._read_user(self._mapping(attributes, "user"))
        command = task["command"]
        script = self._script(system)
        if script is not None and command[:1] == ["flux"]:
            return self._batch(shape, script)
        keys = self._keys
        name = as_name(keys.job_name or command[0].rpartition("/")[2])
        shapes = self._copies(shape, task.get("count") or {})
        named = {f"part-{number}": each for number, each in enumerate(shapes)} if len(shapes) > 1 else {}
        head = {"version": 1, "name": name, **keys.head, **({"resources": named} if named else {})}
        one = {"name": name, "resources": "&".join(named) or shapes[0], **keys.task}
        if keys.attributes:
            one["attributes"] = keys.attributes
        return {**head, "tasks": [{**one, "command": command}]}

    def _batch(self, shape: Shape, script: str) -> dict[str, Any]:
        interpreter = sound_interpreter(self._name, script, self._remarks)
        if interpreter is None:
            raise NoJobspec("the script in it cannot be run by itself", "give the script instead")
        self._keys.job_name = self._keys.job_name or "batch"
        tell_of_flux(script, self._keys, self._place)
        command = command_of(interpreter, muted(script), (), "script")
        return put_together(self._keys, [shape], command, script)

    # -- resources and tasks -------------------------------------------------------------------------------

    def _shape(self) -> Shape:
        resources = self._data["resources"]
        if not isinstance(resources, list) or len(resources) != 1:
            raise NoJobspec("`resources` is no list of one resource")
        return self._vertex(resources[0])

    def _vertex(self, vertex: Any) -> Shape:
        kind = vertex.get("type") if isinstance(vertex, dict) else None
        if kind not in _TYPES:
            raise NoJobspec(f"`{kind}` is no resource that is known here", f"use {', '.join(_TYPES)}")
        shape: Shape = {"type": kind, "count": self._count(vertex.get("count"))}
        if vertex.get("exclusive") and kind == "node":
            shape["exclusive"] = True
        inside = [self._vertex(inner) for inner in vertex.get("with") or ()]
        if any(inner["type"] == "node" for inner in inside):
            raise NoJobspec("a node stands inside of something", "put the slots into the nodes")
        return {**shape, "with": inside} if inside else shape

    def _count(self, count: Any) -> int:
        if isinstance(count, dict) and isinstance(count.get("min"), int):
            told = Told(f"count: {json.dumps(count)}", self._place)
            self._keys.tell(
                "JC203",
                told,
                difference=f"{count['min']} are asked for",
                advice="write how many it should have",
            )
            count = count["min"]
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise NoJobspec(f"`{json.dumps(count)}` is no count")
        return count

    def _task(self) -> dict[str, Any]:
        tasks = self._data["tasks"]
        if not isinstance(tasks, list) or len(tasks) != 1 or not isinstance(tasks[0], dict):
            raise NoJobspec("`tasks` is no list of one task")
        task: dict[str, Any] = tasks[0]
        command = task.get("command")
        if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
            raise NoJobspec("the task has no command")
        return task

    def _copies(self, shape: Shape, count: dict[str, Any]) -> list[Shape]:
        """The shape for so many copies; slots that no copy would use are not asked for."""
        total, slots = count.get("total"), copies_of(shape)
        if count.get("per_slot", 1) != 1:
            raise NoJobspec("more than one copy in a slot", "ask for as many slots as copies")
        if total is None or total == slots:
            return [shape]
        if not isinstance(total, int) or not 0 < total < slots or shape.get("count", 0) > total:
            raise NoJobspec(f"{total} copies do not go into {slots} slots")
        told = Told(f"total: {total}", self._place)
        self._keys.tell(
            "JC203",
            told,
            difference=f"{total} slots are asked for, as only so many have a copy",
            advice="ask for as many slots as copies",
        )
        return list(_divided(shape, total))

    # -- attributes ----------------------------------------------------------------------------------------

    def _read_system(self, system: dict[str, Any]) -> None:
        for key, value in system.items():
            told = Told(f"attributes.system.{key}", self._place)
            if key in _SYSTEM:
                try:
                    _SYSTEM[key](self, value, told)
                except _WRONG_KIND:
                    raise NoJobspec(f"`{told.written}` is not understood") from None
            elif key not in ("files", "shell"):
                self._keys.leave(told, "a JobSpec has no such thing", "remove it")
        for name in self._mapping(system, "files"):
            if name != "script":
                told = Told(f"attributes.system.files.{name}", self._place)
                self._keys.leave(
                    told, "files do not travel with the document", "add a `stage` or `write` step"
                )
        self._read_shell(self._mapping(self._mapping(system, "shell"), "options"))

    def _read_shell(self, options: dict[str, Any]) -> None:
        for key, value in options.items():
            told = Told(f"attributes.system.shell.options.{key}", self._place)
            if key == "output":
                self._output(value)
            elif key == "signal" and isinstance(value, dict):
                number = str(value.get("signum", USR1))
                self._keys.alarm(number, float(value.get("timeleft", 60)), told)
            elif key not in _USUAL:
                self._keys.keep(f"--setopt={key}={json.dumps(value)}", told, "nothing is done about it")

    def _output(self, value: Any) -> None:
        for key in ("stdout", "stderr"):
            stream = value.get(key) if isinstance(value, dict) else None
            path = stream.get("path") if isinstance(stream, dict) else None
            if isinstance(path, str) and path != _DEFAULT_OUTPUT:
                self._keys.stream(key, path, Told(f"output.{key}: {path}", self._place))

    def _read_user(self, user: dict[str, Any]) -> None:
        """Users may keep what they like there, under any name that is one."""
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in user.items()}
        if any(texts):
            self._keys.head["annotations"] = {key: text for key, text in texts.items() if key}

    def _job(self, value: Any, told: Told) -> None:
        if (name := value.get("name")) is not None:
            self._keys.name(str(name), told)

    def _environment(self, value: Any, told: Told) -> None:
        for name, text in value.items():
            self._keys.variable(str(name), str(text), told)

    def _dependencies(self, value: Any, told: Told) -> None:
        for one in value:
            if one.get("scheme") == "begin-time":
                self._keys.begin(float(one["value"]), told)
            else:
                text = f"{told.written}: {one.get('scheme')}"
                self._keys.leave(
                    told._replace(written=text),
                    "it names jobs by their id",
                    "write both jobs into one document, with `depends_on`",
                )

    def _constraints(self, value: Any, told: Told) -> None:
        names = value.get("properties") if isinstance(value, dict) and len(value) == 1 else None
        if isinstance(names, list):
            self._keys.properties([str(name) for name in names], ",".join(map(str, names)), told)
        else:
            self._keys.leave(
                told, "only a list of properties is read", "write `requires`, or shapes joined by `|`"
            )

    def _script(self, system: dict[str, Any]) -> str | None:
        script = self._mapping(system, "files").get("script")
        if not isinstance(script, dict) or script.get("encoding", "utf-8") != "utf-8":
            return None
        return str(script["data"]) if isinstance(script.get("data"), str) else None

    def _mapping(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        found = value.get(key, {})
        if not isinstance(found, dict):
            raise NoJobspec(f"`{key}` is no mapping")
        return found


_SYSTEM: dict[str, Callable[[_Jobspec, Any, Told], None]] = {
    "duration": lambda spec, value, told: spec._keys.duration(float(value) or None, told),
    "cwd": lambda spec, value, told: spec._keys.cwd(str(value), told),
    "environment": _Jobspec._environment,
    "queue": lambda spec, value, told: spec._keys.named("queue", str(value), "queue", told),
    "bank": lambda spec, value, told: spec._keys.named("account", str(value), "bank", told),
    "job": _Jobspec._job,
    "dependencies": _Jobspec._dependencies,
    "constraints": _Jobspec._constraints,
}


def _divided(shape: Shape, total: int) -> Iterator[Shape]:
    """The same nodes with fewer slots in them."""
    if shape["type"] == "slot":
        yield {**shape, "count": total}
        return
    fewest, more = divmod(total, shape["count"])
    for nodes, slots in ((more, fewest + 1), (shape["count"] - more, fewest)):
        if nodes:
            inside = [
                {**inner, "count": slots} if inner["type"] == "slot" else inner for inner in shape["with"]
            ]
            yield {**shape, "count": nodes, "with": inside}
