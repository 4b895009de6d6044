"""The document as written: tasks, groups and their keys, each with the node it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.attributes import Attributes
from jobman.spec.commands import Command
from jobman.spec.expressions import Expression
from jobman.spec.kinds import Choice, Flag, Forms, Items, Kind, MomentKind, Names, Schema, Text, Whole
from jobman.spec.names import FREE, IDENTIFIER, IMAGE, LABEL_KEY, LABEL_VALUE, NAME, WORD
from jobman.spec.policies import Bonds, Policies
from jobman.spec.quantities import Moment
from jobman.spec.ranges import MAX_REPLICAS
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of, Record
from jobman.spec.resources import REQUIRES, RESOURCES, NamedResources, Shape
from jobman.spec.steps import Stage, Step, Write
from jobman.spec.yaml import scalar_value

VERSIONS = (1,)
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
        "max_retries": "retries",
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
    earliest: Annotated[Moment | None, Key(MomentKind(), "not before")] = None
    latest: Annotated[Moment | None, Key(MomentKind(), "not after")] = None


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
