"""A batch script of Slurm as a JobSpec.

A script runs once, on the first node of its allocation, and `srun` inside starts the copies. So one that
asks for one node becomes a task of one copy with all its resources; one that only prepares and ends with
`srun COMMAND` becomes a task of that many copies; any other of several nodes leads a group of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jobman.convert.allocation import ABOUT_SHAPES, Allocation, read_allocation
from jobman.convert.body import final_step, launcher_in
from jobman.convert.carrying import Carrying, Site
from jobman.convert.options import Given
from jobman.convert.outcome import Converted, as_name, literal
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch_lines import Script, read_script
from jobman.convert.shapes import Shape, spread, whole
from jobman.convert.wrapper import Facts, Form, command_of, slurm_lines, sound_interpreter
from jobman.convert.writing import Path

_UNCOUNTED = {
    "shape.socket": ("ntasks_per_socket", "ntasks-per-socket"),
    "shape.storage": ("tmp", "tmp"),
}
_EXCLUDING = (("mem", "mem-per-cpu", "mem-per-gpu"), ("requeue", "no-requeue"))


def convert_sbatch(
    name: str,
    text: str,
    now: datetime,
    *,
    arguments: Sequence[str] = (),
    given: Sequence[Given] = (),
    refused: Mapping[str, str] | None = None,
    queues: Sequence[str] | None = None,
    submit_dir: str | None = None,
    strict: bool = False,
) -> Converted:
    """A script and the options of its command line, which win over its lines.

    `refused` are features that the engine does not have, with its reason: what can be left out is, and is
    told. So is a queue that is none of `queues`, where those are known.
    """
    remarks = Remarks(strict=strict)
    script = read_script(name, text, remarks)
    site = Site(now, refused or {}, None if queues is None else tuple(queues), submit_dir)
    conversion = _Conversion(script, site, tuple(arguments), tuple(given), remarks)
    document = conversion.document()
    problems = remarks.in_order()
    if remarks.have_errors() or document is None:
        return Converted(None, problems, asked=conversion.asked)
    return Converted(literal(document), problems, conversion.comments, conversion.asked)


def merged(lines: Sequence[Given], above: Sequence[Given] = ()) -> dict[str, Given]:
    """Of several options the last holds; one that is given nothing is taken back."""
    found: dict[str, Given] = {}
    for one in (*lines, *above):
        for names in _EXCLUDING:
            if one.option.name in names:
                found = {name: each for name, each in found.items() if name not in names}
        found.pop(one.option.name, None)
        if one.value != "":
            found[one.option.name] = one
    return found


class _Conversion:
    def __init__(
        self,
        script: Script,
        site: Site,
        arguments: tuple[str, ...],
        above: tuple[Given, ...],
        remarks: Remarks,
    ) -> None:
        self._script = script
        self._site = site
        self._arguments = arguments
        self._remarks = remarks
        self._given = merged(script.parts[0], above)
        self._carrying = Carrying(self._given, site, remarks)
        self.comments: dict[Path, str] = {}
        self.asked = {name: one.value for name, one in self._given.items() if one.option.fate == "command"}

    def document(self) -> dict[str, Any] | None:
        carrying = self._carrying
        interpreter = sound_interpreter(self._script.name, self._script.text, self._remarks)
        if interpreter is None:
            return None
        allocations = [self._allocation(part) for part in self._parts()]
        carrying.read(self._title())
        if self._remarks.have_errors():
            return None
        allocation = allocations[0]
        form, text = self._form(allocations)
        shapes = self._shapes(form, allocations)
        facts = Facts(
            form,
            carrying.job_name,
            allocation,
            carrying.array,
            carrying.told,
            self._submit_dir(),
            form != "copies" and launcher_in(self._script.text) is not None,
            carrying.redirections,
        )
        command = command_of(interpreter, text, slurm_lines(facts), self._title(), self._arguments)
        carrying.check(form)
        return self._put_together(form, shapes, command)

    def _submit_dir(self) -> str | None:
        """Where nobody says it, the script starts in that folder, unless it is sent elsewhere."""
        if self._site.submit_dir is not None:
            return self._site.submit_dir
        return None if self._carrying.has_cwd else ""

    # -- what it asks for ----------------------------------------------------------------------------------

    def _parts(self) -> list[dict[str, Given]]:
        return [self._given, *(merged(part) for part in self._script.parts[1:])]

    def _allocation(self, given: Mapping[str, Given]) -> Allocation:
        allocation = read_allocation(given, self._remarks, self._carrying.keep)
        if given is not self._given:
            self._carrying.tell_of_part(given)
        asked, nodes = allocation.nodes or 0, given.get("nodes")
        if nodes and allocation.tasks < asked:
            self._differs(
                nodes,
                f"there are only {allocation.tasks} copies for them, and so many nodes are asked for",
                "ask for as many copies as nodes at least",
            )
        for name in ("cpus-per-gpu", "mem-per-gpu"):
            if name in given and not allocation.gpu_total:
                reason = "no GPU is asked for"
                self._tell("JC201", given[name], reason=reason, advice="ask for GPUs, or remove it")
        return allocation

    def _form(self, allocations: list[Allocation]) -> tuple[Form, str]:
        """The form of the script, and its text in it."""
        text, allocation = self._script.text, allocations[0]
        several = len(allocations) > 1
        nodes = sum(each.node_count or 1 for each in allocations)
        if not several and allocation.tasks > 1 and (step := final_step(text, allocation)):
            return "copies", step.text
        if nodes == 1:
            if allocation.node_count is None and launcher_in(text) and "ntasks" in self._given:
                self._one_node_is_asked_for(allocation)
            return "script", text
        self._tell_of_several(nodes)
        return "group", text

    def _one_node_is_asked_for(self, allocation: Allocation) -> None:
        self._differs(
            self._given["ntasks"],
            f"one node with room for all {allocation.tasks} is asked for, as the number of nodes is not said",
            "write `-N 1`, or how many nodes it should have",
        )

    def _tell_of_several(self, nodes: int) -> None:
        launcher = launcher_in(self._script.text)
        place = self._given["nodes"] if "nodes" in self._given else next(iter(self._given.values()))
        if self._carrying.array is not None:
            self._tell("JC110", self._given["array"], nodes=nodes)
        elif launcher:
            self._tell("JC205", place, launcher=launcher, nodes=nodes)
        else:
            self._differs(
                place,
                f"the script runs on the first of {nodes} nodes, and nothing is started on the others",
                "end the script with one plain `srun COMMAND`, which becomes copies on all of them",
            )

    def _shapes(self, form: Form, allocations: list[Allocation]) -> list[Shape]:
        for each in allocations:
            self._leave_out(each)
            self._tell_of_sockets(form, each)
        if form == "script":
            return [whole(allocations[0])]
        first = allocations[0]
        if first.node_count is None and first.is_by_node and "ntasks" in self._given:
            self._one_node_is_asked_for(first)
        if first.gpus and first.gpus % (first.node_count or 1):
            self._differs(
                self._given["gpus"],
                "every node is asked for the same number, rounded up",
                "write `--gpus-per-node`",
            )
        return [shape for each in allocations for shape in spread(each)]

    def _tell_of_sockets(self, form: Form, allocation: Allocation) -> None:
        """Sockets count only where they divide the copies of a node."""
        by_socket = allocation.ntasks_per_socket
        one = self._given.get("ntasks-per-socket")
        if by_socket is None or one is None:
            return
        by_node = allocation.tasks // (allocation.node_count or 1)
        if form == "script" or allocation.node_count is None or by_node % by_socket:
            self._carrying.keep(one)
            self._tell("JC202", one, engine="Slurm", elsewhere="copies are not counted by socket")
            allocation.ntasks_per_socket = None

    def _leave_out(self, allocation: Allocation) -> None:
        """What the engine does not count is not asked for."""
        for feature, (field, name) in _UNCOUNTED.items():
            reason, one = self._site.refused.get(feature), self._given.get(name)
            if reason and one is not None and getattr(allocation, field) is not None:
                self._tell("JC206", one, reason=reason, advice="nothing else changes")
                setattr(allocation, field, None)

    # -- the document --------------------------------------------------------------------------------------

    def _put_together(self, form: Form, shapes: list[Shape], command: list[str]) -> dict[str, Any]:
        carrying = self._carrying
        name = as_name(carrying.job_name)
        named = {f"part-{number}": shape for number, shape in enumerate(shapes)} if len(shapes) > 1 else {}
        head: dict[str, Any] = {"version": 1, "name": name, **carrying.head}
        if named:
            head["resources"] = named
        resources: Any = "&".join(named) if named else shapes[0]
        task: dict[str, Any] = {"name": name, "resources": resources, **carrying.task}
        attributes = carrying.attributes
        if attributes:
            task["attributes"] = attributes
        if form == "group":
            policies = {key: task.pop(key) for key in ("on_failure",) if key in task}
            task["tasks"] = [{"name": "script", "local": True, **policies, "command": command}]
        else:
            task["command"] = command
        key = "groups" if form == "group" else "tasks"
        self._comment(key, named)
        return {**head, key: [task]}

    def _comment(self, key: str, named: Mapping[str, Shape]) -> None:
        lines = [one for name in ABOUT_SHAPES if (one := self._given.get(name)) and one.place is not None]
        numbers = sorted({one.place.line for one in lines if one.place is not None})
        if numbers:
            word = "line" if len(numbers) == 1 else "lines"
            path: Path = ("resources",) if named else (key, 0, "resources")
            self.comments[path] = f"{word} {', '.join(map(str, numbers))}"
        for path, one in self._carrying.origins.items():
            here = path if path[0] != "task" else (key, 0, *path[1:])
            self.comments[here] = f"line {one.place.line}: {one.written}" if one.place else one.written

    def _title(self) -> str:
        """The script as messages and `$0` name it."""
        return self._script.name.rpartition("/")[2] or "script"

    def _tell(self, code: str, one: Given, **values: Any) -> None:
        self._remarks.add(code, one.place, one.line_text, option=one.written, **values)

    def _differs(self, one: Given, difference: str, advice: str) -> None:
        self._tell("JC203", one, difference=difference, advice=advice)
