"""The document as written: tasks, groups, shapes and their keys, each with the node it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobman.spec import quantities
from jobman.spec.commands import Command
from jobman.spec.expressions import Expression, ExpressionKind
from jobman.spec.kinds import (
    Choice,
    Duration,
    Flag,
    Forms,
    Items,
    Kind,
    Moment,
    Names,
    Schema,
    Text,
    VerbatimMapping,
    Whole,
)
from jobman.spec.names import (
    FREE,
    IDENTIFIER,
    IMAGE,
    LABEL_KEY,
    LABEL_VALUE,
    NAME,
    PATH,
    TYPE,
    VARIABLE,
    WORD,
)
from jobman.spec.policies import MAX_REPLICAS, Bonds, Policies
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of, Record
from jobman.spec.suggest import closest, listing
from jobman.spec.yaml import scalar_value

VERSIONS = (1,)
SIZED_TYPES = ("memory", "storage")
TYPES = ("node", "slot", "socket", "core", "gpu", *SIZED_TYPES)
PLURALS = {f"{name}s": name for name in TYPES if name not in SIZED_TYPES}
TYPE_HABITS = {
    "cpu": "core",
    "cpus": "core",
    "thread": "core",
    "pu": "core",
    "mem": "memory",
    "ram": "memory",
    "disk": "storage",
    "host": "node",
    "machine": "node",
    "task": "slot",
    "rank": "slot",
    "gres": "gpu",
}


# -- requires ---------------------------------------------------------------------------------------------


class Requires(Kind):
    """Compatibility facts: nested mappings and dotted keys are the same thing, values are texts."""

    noun = "a mapping of facts"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        facts: dict[str, str] = {}
        self._flatten(node, "", facts, reading)
        return facts

    def _flatten(self, node: MappingNode, prefix: str, facts: dict[str, str], reading: Reading) -> None:
        for key, value in node.value:
            name = prefix + key.value
            if isinstance(value, MappingNode):
                self._flatten(value, name + ".", facts, reading)
            elif name in facts:
                reading.report("JS602", key, key=name)
            elif (text := self._value(value, reading)) is not BAD:
                facts[name] = text

    def _value(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, SequenceNode):
            reading.report("JS601", node)
            return BAD
        value = reading.scalar(node) if isinstance(node, ScalarNode) else BAD
        if isinstance(value, bool):
            return "yes" if value else "no"
        return FREE.read(node, reading)

    def schema(self) -> Schema:
        return {"$ref": "#/$defs/Requires"}


REQUIRES = Requires()


# -- shapes -----------------------------------------------------------------------------------------------


class _Count(Kind):
    """A count: checked against its type by the shape that holds it."""

    noun = "a count"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode):
            return self.refuse(node, reading)
        return reading.text(node).strip()

    def schema(self) -> Schema:
        sizes = r"^\d+(\.\d+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$|\{\{"
        return {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": sizes}]}


class Shape(Element, frozen=True, kw_only=True):
    """A tree of resources."""

    noun = "a shape"
    habits = {"number": "count", "amount": "count", "children": "with", "contains": "with", "kind": "type"}
    type: Annotated[
        str, Key(TYPE, "node, slot, socket, core, gpu, memory, storage or a site's own", required=True)
    ]
    count: Annotated[Any, Key(_Count(), "how many, or how much of memory and storage", required=True)]
    with_: Annotated[
        tuple[Any, ...],
        Key(Items(SHAPE, "a list of shapes", least=1), "what each of them holds", name="with"),
    ] = ()
    exclusive: Annotated[bool, Key(Flag(), "the whole node")] = False
    requires: Annotated[dict[str, str], Key(REQUIRES, "facts its nodes must have")] = {}


def _counted(shape: Shape, node: Node, reading: Reading) -> Any:
    """A shape with its type's singular and its count as a number."""
    kind = _singular(shape, node, reading)
    count_node = child(node, "count") or node
    count = (
        _size(shape.count, kind, count_node, reading)
        if kind in SIZED_TYPES
        else _number(shape.count, count_node, reading)
    )
    return Shape(
        type=kind,
        count=1 if count is BAD else count,
        with_=shape.with_,
        exclusive=shape.exclusive,
        requires=shape.requires,
        node=node,
        given=shape.given,
    )


def _singular(shape: Shape, node: Node, reading: Reading) -> str:
    singular = PLURALS.get(shape.type)
    if singular is None:
        return shape.type
    type_node = child(node, "type") or node
    reading.report(
        "JS405", type_node, fix=reading.replace(type_node, singular), plural=shape.type, singular=singular
    )
    return singular


def _number(text: str, node: Node, reading: Reading) -> Any:
    if text.isascii() and text.isdigit() and int(text[:12]) > 0 and len(text) < 12:
        return int(text)
    reading.report("JS406", node, text=text[:40])
    return BAD


def _size(text: str, kind: str, node: Node, reading: Reading) -> Any:
    size = quantities.parse_size(text)
    if not size:
        reading.report("JS209", node, text=text[:40], hint=quantities.size_hint(text))
        return BAD
    if size < 2**20:
        number = text.rstrip("Kik")
        why = "a bare number is bytes; " if number == text else ""
        reading.report("JS407", node, type=kind, text=text, number=number, why=why)
    return size


class _ShapeKind(Of):
    """A shape as a mapping; pointed words for the forms that look like one."""

    def __init__(self) -> None:
        super().__init__(Shape, _counted)

    @property
    def noun(self) -> str:  # type: ignore[override]
        return "a shape such as `{type: node, count: 1}`"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, SequenceNode):
            reading.report("JS401", node)
            return BAD
        return super().read(node, reading)


SHAPE = _ShapeKind()
_EXPRESSION = ExpressionKind()


class Resources(Kind):
    """Where a shape is expected: an inline tree, or an expression over names."""

    noun = "a shape, a name or an expression such as `gpu|cpu`"

    def read(self, node: Node, reading: Reading) -> Any:
        return (_EXPRESSION if isinstance(node, ScalarNode) else SHAPE).read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [_EXPRESSION.schema(), SHAPE.schema()]}


RESOURCES = Resources()


class NamedResources(Names):
    """The document's named shapes."""

    def __init__(self) -> None:
        super().__init__(NAME, RESOURCES, "a mapping of named shapes")

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, MappingNode) and isinstance(child(node, "type"), ScalarNode):
            reading.report("JS402", node)
            return BAD
        return super().read(node, reading)


# -- attributes -------------------------------------------------------------------------------------------


class Flags(Record, frozen=True, kw_only=True):
    """Options handed to one engine as they are."""

    noun = "`flags`"
    habits = {"k8s": "kubernetes", "sbatch": "slurm"}
    slurm: Annotated[
        tuple[str, ...] | None, Key(Items(WORD, "a list of options"), "options of sbatch and srun")
    ] = None
    flux: Annotated[tuple[str, ...] | None, Key(Items(WORD, "a list of options"), "options of flux")] = None
    kubernetes: Annotated[dict[str, Any] | None, Key(VerbatimMapping("a mapping"), "fields of the pod")] = (
        None
    )


class Attributes(Record, frozen=True, kw_only=True):
    """How things are run."""

    noun = "`attributes`"
    habits = {
        "env": "environment",
        "time": "duration",
        "timeout": "duration",
        "walltime": "duration",
        "time_limit": "duration",
        "timelimit": "duration",
        "workdir": "cwd",
        "working_dir": "cwd",
        "working_directory": "cwd",
        "chdir": "cwd",
        "output": "stdout",
        "error": "stderr",
        "stream": "watch",
    }
    duration: Annotated[float | None, Key(Duration(), "the longest it may run")] = None
    environment: Annotated[
        dict[str, str] | None, Key(Names(VARIABLE, FREE, "a mapping of variables"), "variables of the copies")
    ] = None
    cwd: Annotated[str | None, Key(PATH, "where the command runs")] = None
    watch: Annotated[bool | None, Key(Flag(), "stream the output; later tasks wait for its end")] = None
    stdout: Annotated[str | None, Key(PATH, "file for the output")] = None
    stderr: Annotated[str | None, Key(PATH, "file for the errors")] = None
    flags: Annotated[Flags | None, Key(Of(Flags), "options handed to one engine as they are")] = None


# -- steps ------------------------------------------------------------------------------------------------


class Stage(Record, frozen=True, kw_only=True, tag="stage", tag_field="name"):
    """Make a file or folder present on every node of the task."""

    noun = "a stage step"
    habits = {"source": "path", "from": "path", "target": "to", "destination": "to"}
    path: Annotated[str, Key(PATH, "what to bring", required=True)]
    to: Annotated[str | None, Key(PATH, "where to; without it the same path")] = None


_MODE = Text("an octal mode", r"(?:0o?)?[0-7]{3,4}", "three or four octal digits such as `0755`")


class Write(Record, frozen=True, kw_only=True, tag="write", tag_field="name"):
    """Write a file without a shell."""

    noun = "a write step"
    habits = {"text": "content", "to": "path", "contents": "content", "file": "path"}
    path: Annotated[str, Key(PATH, "where to", required=True)]
    content: Annotated[str, Key(FREE, "what to write", required=True)]
    mode: Annotated[str, Key(_MODE, "mode of the file, octal")] = "0644"


def _octal(step: Write, _node: Node, _reading: Reading) -> Any:
    digits = step.mode.lower().removeprefix("0o").lstrip("0") or "0"
    return Write(path=step.path, content=step.content, mode=f"0{digits:0>3}")


STEP_KINDS: dict[str, Of] = {"stage": Of(Stage), "write": Of(Write, _octal)}
_STEP_HABITS = {"copy": "stage", "files": "write", "file": "write", "script": "write", "archive": "stage"}


_STEP_NAME = Text("the kind of a step")


class Step(Kind):
    """A step: its `name` says its kind."""

    noun = "a step such as `{name: stage, path: data}`"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        name = child(node, "name")
        if name is node or name is None:
            reading.report("JS604", node, known=listing(STEP_KINDS))
            return BAD
        if not isinstance(name, ScalarNode):
            return _STEP_NAME.read(name, reading)
        kind = STEP_KINDS.get(str(name.value))
        if kind is None:
            meant = closest(str(name.value), STEP_KINDS, _STEP_HABITS)
            hint = f"did you mean `{meant}`?" if meant else f"known steps are {listing(STEP_KINDS)}"
            reading.report("JS603", name, name=name.value, hint=hint)
            return BAD
        pairs = [(key, value) for key, value in node.value if key.value != "name"]
        return kind.read(
            MappingNode(node.tag, pairs, node.start_mark, node.end_mark, node.flow_style), reading
        )

    def schema(self) -> Schema:
        return {"anyOf": [{"$ref": f"#/$defs/{kind.cls.__name__}"} for kind in STEP_KINDS.values()]}


# -- tasks, groups, document ------------------------------------------------------------------------------

WHEN_HABITS = {
    "ok": "success",
    "succeeded": "success",
    "afterok": "success",
    "completed": "success",
    "failed": "failure",
    "afternotok": "failure",
    "always": "any",
    "afterany": "any",
    "running": "started",
    "after": "started",
    "healthy": "ready",
}
EDGE_CONDITIONS = ("success", "failure", "any", "started", "ready")


class Dependency(Element, frozen=True, kw_only=True):
    noun = "a dependency"
    habits = {"task": "name", "group": "name", "condition": "when", "on": "when"}
    name: Annotated[str, Key(WORD, "a task or group", required=True)]
    when: Annotated[
        str | None, Key(Choice(EDGE_CONDITIONS, "condition", WHEN_HABITS), "what it waits for")
    ] = None


class _DependencyName(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = super().read(node, reading)
        return BAD if name is BAD else Dependency(name=name, node=node)


DEPENDS_ON = Items(
    Forms("a task's name", scalar=_DependencyName("a task's name"), mapping=Of(Dependency)),
    "a list of task names",
    single=True,
)


class Matrix(Names):
    """Axes of values; a replica for each combination."""

    def __init__(self) -> None:
        super().__init__(
            IDENTIFIER, Items(FREE, "a list of values", least=1, unique=True), "a mapping of lists"
        )

    def read(self, node: Node, reading: Reading) -> Any:
        axes = super().read(node, reading)
        if axes is BAD:
            return BAD
        if not node.value:
            reading.report("JS213", node, noun="the matrix")
        total = 1
        for values in axes.values():
            total = min(total * len(values), 10**15)
        if total > MAX_REPLICAS:
            reading.report("JS305", node, total=f"{total:,}", limit=f"{MAX_REPLICAS:,}")
            return BAD
        return axes or BAD

    def schema(self) -> Schema:
        return {**super().schema(), "minProperties": 1}


WHEN = Choice(
    ("success", "failure", "always"),
    "condition",
    {"any": "always", "failed": "failure", "on_failure": "failure"},
)
_LEVEL = "nesting follows from `- group: NAME`; remove it"


class Task(Element, frozen=True, kw_only=True):
    """Work to run."""

    noun = "a task"
    includes = (Policies,)
    retired = {"level": _LEVEL, "commands": "a task has one `command`; write a task for each"}
    habits = {
        "cmd": "command",
        "run": "command",
        "script": "command",
        "exec": "command",
        "args": "command",
        "depend_on": "depends_on",
        "dependson": "depends_on",
        "dependencies": "depends_on",
        "depends": "depends_on",
        "needs": "depends_on",
        "after": "depends_on",
        "container": "image",
        "count": "replicas",
        "repeat": "replicas",
        "array": "replicas",
        "ntasks": "replicas",
        "resource": "resources",
        "require": "requires",
        "retry": "retries",
        "backoff_limit": "retries",
        "volume_mounts": "volumes",
        "probes": "checks",
    }
    name: Annotated[str | None, Key(NAME, "needed only where the task is referenced")] = None
    command: Annotated[
        tuple[str, ...] | None, Key(Command(), "what to run: a list, or a text that is split")
    ] = None
    group: Annotated[str | None, Key(NAME, "run that group here")] = None
    steps: Annotated[
        tuple[Stage | Write, ...],
        Key(Items(Step(), "a list of steps", least=1), "stage and write, before the command"),
    ] = ()
    replicas: Annotated[int | None, Key(Whole(1, MAX_REPLICAS), "run so many times")] = None
    matrix: Annotated[dict[str, tuple[str, ...]] | None, Key(Matrix(), "one replica per combination")] = None
    depends_on: Annotated[tuple[Dependency, ...], Key(DEPENDS_ON, "what must come first")] = ()
    local: Annotated[bool, Key(Flag(), "run in the driver of the group, in order, blocking")] = False
    service: Annotated[bool, Key(Flag(), "never waited for; stopped when its group ends")] = False
    when: Annotated[str | None, Key(WHEN, "for cleanup tasks")] = None
    image: Annotated[str | None, Key(IMAGE, "container image")] = None
    resources: Annotated[Shape | Expression | None, Key(RESOURCES, "what each replica needs")] = None
    requires: Annotated[dict[str, str] | None, Key(REQUIRES, "facts the nodes must have")] = None
    attributes: Annotated[Attributes | None, Key(Of(Attributes), "how it is run")] = None


MATRIX_USERS = ("command", "image", "steps", "attributes", "hooks", "result_file")


class TaskKind(Of):
    """A task; `{{axis}}` of its matrix stands in what each replica runs."""

    def __init__(self) -> None:
        super().__init__(Task)

    def read(self, node: Node, reading: Reading) -> Any:
        axes = child(node, "matrix") if isinstance(node, MappingNode) else node
        if isinstance(axes, MappingNode) and axes is not node:
            reading.matrix = frozenset(key.value for key, _ in axes.value)
            task = super().read(node, reading)
            reading.matrix = frozenset()
            return task
        return super().read(node, reading)

    def _make_table(self) -> dict[str, tuple[str, Callable[[Node, Reading], Any]]]:
        table = super()._make_table()
        for key in MATRIX_USERS:
            field, read = table[key]
            table[key] = (field, _with_matrix(read))
        return table


def _with_matrix(read: Callable[[Node, Reading], Any]) -> Callable[[Node, Reading], Any]:
    def inner(node: Node, reading: Reading) -> Any:
        if not reading.matrix:
            return read(node, reading)
        reading.matrix_keys = reading.matrix
        value = read(node, reading)
        reading.matrix_keys = frozenset()
        return value

    return inner


TASKS = Items(TaskKind(), "a list of tasks", least=1)


class Group(Element, frozen=True, kw_only=True):
    """Tasks under one allocation."""

    noun = "a group"
    includes = (Policies, Bonds)
    retired = {
        "commands": "write a task with `local: true` for each command",
        "level": _LEVEL,
        "groups": "define every group at the top level and run it here with `- group: NAME`",
        "command": "a group holds `tasks`; put the command into one of them",
    }
    habits = Task.habits
    name: Annotated[str, Key(NAME, "its name", required=True)]
    tasks: Annotated[tuple[Task, ...], Key(TASKS, "the work, in order", required=True)]
    depends_on: Annotated[tuple[Dependency, ...], Key(DEPENDS_ON, "what must come first")] = ()
    when: Annotated[str | None, Key(WHEN, "for cleanup groups")] = None
    replicas: Annotated[int | None, Key(Whole(1, MAX_REPLICAS), "the whole group so many times")] = None
    image: Annotated[str | None, Key(IMAGE, "default image of its tasks")] = None
    resources: Annotated[Shape | Expression | None, Key(RESOURCES, "the allocation")] = None
    requires: Annotated[dict[str, str] | None, Key(REQUIRES, "facts for everything below")] = None
    attributes: Annotated[Attributes | None, Key(Of(Attributes), "defaults for everything below")] = None


class Start(Record, frozen=True, kw_only=True):
    """The window in which a job may start."""

    noun = "`start`"
    habits = {
        "after": "earliest",
        "not_before": "earliest",
        "begin": "earliest",
        "before": "latest",
        "deadline": "latest",
    }
    earliest: Annotated[str | None, Key(Moment(), "not before")] = None
    latest: Annotated[str | None, Key(Moment(), "not after")] = None


class ScalarValue(Kind):
    noun = "a number, a text or `true`/`false`"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode):
            return self.refuse(node, reading)
        return scalar_value(node)

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}


class Document(Element, frozen=True, kw_only=True):
    """One job."""

    noun = "the document"
    includes = (Policies, Bonds)
    retired = {
        "duration": "write it under `attributes`, as a value: `attributes: {duration: VALUE}`",
        "command": "put it into a task: `tasks: [{command: …}]`",
    }
    habits = {
        "task": "tasks",
        "group": "groups",
        "jobs": "tasks",
        "steps": "tasks",
        "params": "parameters",
        "variables": "parameters",
        "vars": "parameters",
        "partition": "queue",
        "metadata": "labels",
        "require": "requires",
        "resource": "resources",
        "apiversion": "version",
        "project": "account",
        "bank": "account",
    }
    version: Annotated[int, Key(Whole(-(10**9), 10**9), "version of the language")] = 1
    name: Annotated[str | None, Key(NAME, "the job's name")] = None
    labels: Annotated[
        dict[str, str], Key(Names(LABEL_KEY, LABEL_VALUE, "a mapping of labels"), "short facts to select by")
    ] = {}
    annotations: Annotated[dict[str, str], Key(Names(WORD, FREE, "a mapping of texts"), "facts to keep")] = {}
    managed_by: Annotated[str | None, Key(WORD, "the tool that made the job")] = None
    owner: Annotated[str | None, Key(WORD, "what the job belongs to, such as a workflow")] = None
    queue: Annotated[str | None, Key(NAME, "interactive, batch or a site's own")] = None
    account: Annotated[str | None, Key(NAME, "who pays")] = None
    start: Annotated[Start | None, Key(Of(Start), "window in which it may start")] = None
    requires: Annotated[dict[str, str] | None, Key(REQUIRES, "facts for everything below")] = None
    resources: Annotated[dict[str, Shape | Expression], Key(NamedResources(), "named shapes")] = {}
    parameters: Annotated[
        dict[str, Any],
        Key(Names(IDENTIFIER, ScalarValue(), "a mapping of values"), "values that `--set` overrides"),
    ] = {}
    attributes: Annotated[Attributes | None, Key(Of(Attributes), "defaults for everything below")] = None
    image: Annotated[str | None, Key(IMAGE, "default image")] = None
    tasks: Annotated[tuple[Task, ...], Key(TASKS, "the work")] = ()
    groups: Annotated[
        tuple[Group, ...], Key(Items(Of(Group), "a list of groups", least=1), "work under shared allocations")
    ] = ()


DOCUMENT = Of(Document)
