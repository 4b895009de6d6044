"""The policies of section 7: what Kubernetes jobs have and HPC jobs lack, as plain values.

Two kinds: a policy *of the thing* it is written on (its replicas, its failures, its queueing), and a
*setting* that everything below inherits, the nearest winning. `INHERITED` lists the second.
"""

from __future__ import annotations

import re
import signal
from typing import Annotated, Any

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.commands import Command
from jobman.spec.kinds import (
    TEMPLATE_SCHEMA,
    Choice,
    Duration,
    Flag,
    Forms,
    Items,
    Kind,
    Names,
    Number,
    Schema,
    Size,
    Text,
    Whole,
)
from jobman.spec.names import (
    ABSOLUTE_PATH,
    FREE,
    IMAGE,
    JOB_REFERENCE,
    LABEL_KEY,
    LABEL_VALUE,
    NAME,
    PATH,
    VARIABLE,
    WORD,
)
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record, has_key
from jobman.spec.suggest import closest
from jobman.spec.yaml import is_null

MAX_REPLICAS = 1_000_000
REASONS = (
    "exit",
    "signal",
    "timeout",
    "out-of-memory",
    "unhealthy",
    "launch-failed",
    "stage-failed",
    "node-lost",
    "preempted",
)
_REASON_HABITS = {
    "oom": "out-of-memory",
    "oomkilled": "out-of-memory",
    "time_limit": "timeout",
    "timelimit": "timeout",
    "deadline": "timeout",
    "deadlineexceeded": "timeout",
    "evicted": "preempted",
    "preemption": "preempted",
    "node_failure": "node-lost",
    "node_fail": "node-lost",
    "error": "exit",
    "nonzero": "exit",
    "killed": "signal",
}
INFRASTRUCTURE_REASONS = ("node-lost", "preempted")
SIGNALS = tuple(sorted(s.name.removeprefix("SIG") for s in signal.Signals if not s.name.startswith("SIGRT")))

_REASON = Choice(REASONS, "reason of failure", _REASON_HABITS)


class Ranges(Kind):
    """A list of numbers and `a-b` ranges; the value is sorted numbers."""

    def __init__(self, noun: str, least: int, most: int) -> None:
        self.noun = noun
        self.least = least
        self.most = most

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, MappingNode) or is_null(node):
            return self.refuse(node, reading)
        items = [node] if isinstance(node, ScalarNode) else node.value
        if not items:
            reading.report("JS213", node, noun=f"the list of {self.noun}")
            return BAD
        found: set[tuple[int, int]] = set()
        for item in items:
            if isinstance(item, ScalarNode) and (span := self._span(item, reading)):
                found.add(span)
            else:
                reading.report("JS231", item, noun=self.noun, least=self.least, most=self.most)
                return BAD
        return tuple(_joined(found))

    def _span(self, node: ScalarNode, reading: Reading) -> tuple[int, int] | None:
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", reading.text(node).strip())
        if not match:
            return None
        low, high = int(match[1]), int(match[2] or match[1])
        return (low, high) if self.least <= low <= high <= self.most else None

    def hint(self, _node: Node) -> str:
        return "write a list of numbers and ranges such as `[1, 3-5]`"

    def schema(self) -> Schema:
        one = {
            "anyOf": [{"type": "integer", "minimum": self.least, "maximum": self.most}, {"type": "string"}]
        }
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def _joined(spans: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping and touching ranges as one, so that one meaning has one form."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


Span = tuple[int, int]
EXIT_CODES = Ranges("exit codes", 1, 255)
REPLICA_INDEXES = Ranges("replica numbers", 0, MAX_REPLICAS - 1)


class Condition(Record, frozen=True, kw_only=True):
    """Which failures a retry is for."""

    noun = "`on`"
    exit_codes: Annotated[tuple[Span, ...], Key(EXIT_CODES, "exit codes and ranges, 1 to 255")] = ()
    reasons: Annotated[tuple[str, ...], Key(Items(_REASON, single=True), "reasons of failure")] = ()


def _names_a_failure(condition: Condition, node: Node, reading: Reading) -> Any:
    if not has_key(node, "exit_codes", "reasons"):
        reading.report("JS701", node)
        return BAD
    return condition


class Retries(Record, frozen=True, kw_only=True):
    """How often and when to try again."""

    noun = "`retries`"
    habits = {"max": "limit", "count": "limit", "attempts": "limit", "backoff": "delay", "wait": "delay"}
    limit: Annotated[int, Key(Whole(0, 10_000), "how often to try again", required=True)]
    delay: Annotated[float, Key(Duration(zero=True), "wait before the first retry")] = 0.0
    factor: Annotated[float, Key(Number(1, 1000), "each wait is this many times the one before")] = 1.0
    on: Annotated[Condition | None, Key(Of(Condition, _names_a_failure), "retry only these failures")] = None


class _Limit(Whole):
    def read(self, node: Node, reading: Reading) -> Any:
        limit = super().read(node, reading)
        return BAD if limit is BAD else Retries(limit=limit)


ACTIONS = ("retry", "ignore", "fail-task", "fail-job", "restart-group")


class FailureRule(Record, frozen=True, kw_only=True):
    """One line of a failure policy; all selectors given must match."""

    noun = "a failure rule"
    exit_codes: Annotated[tuple[Span, ...], Key(EXIT_CODES, "exit codes and ranges, 1 to 255")] = ()
    reasons: Annotated[tuple[str, ...], Key(Items(_REASON, single=True), "reasons of failure")] = ()
    replicas: Annotated[tuple[Span, ...], Key(REPLICA_INDEXES, "replica numbers and ranges")] = ()
    action: Annotated[
        str,
        Key(
            Choice(
                ACTIONS,
                "action",
                {
                    "fail": "fail-task",
                    "failjob": "fail-job",
                    "fail_index": "fail-task",
                    "restart": "restart-group",
                },
            ),
            "what to do",
            required=True,
        ),
    ]


def _rule_selects(rule: FailureRule, node: Node, reading: Reading) -> Any:
    if not has_key(node, "exit_codes", "reasons", "replicas"):
        reading.report("JS701", node)
        return BAD
    return rule


class Success(Record, frozen=True, kw_only=True):
    """When a set of replicas counts as done."""

    noun = "`success`"
    replicas: Annotated[tuple[Span, ...], Key(REPLICA_INDEXES, "replicas that must succeed")] = ()
    count: Annotated[int | None, Key(Whole(1, MAX_REPLICAS), "how many must succeed")] = None


def _success_says(success: Success, node: Node, reading: Reading) -> Any:
    if not has_key(node, "replicas", "count"):
        reading.report("JS702", node)
        return BAD
    return success


class Hooks(Record, frozen=True, kw_only=True):
    """Commands at the turns of a life."""

    noun = "`hooks`"
    habits = {"prolog": "before", "epilog": "after", "pre": "before", "post": "after", "pre_stop": "on_stop"}
    before: Annotated[
        tuple[str, ...], Key(Command(), "runs before the command; its failure fails the copy")
    ] = ()
    after: Annotated[tuple[str, ...], Key(Command(), "runs after the command, whatever its outcome")] = ()
    on_stop: Annotated[tuple[str, ...], Key(Command(), "runs first when the copy is asked to stop")] = ()


class SignalName(Choice):
    """A signal, with or without its SIG."""

    def __init__(self) -> None:
        super().__init__(SIGNALS, "signal")

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode):
            name = reading.text(node).upper().removeprefix("SIG")
            if name in SIGNALS:
                return name
            if meant := closest(name, SIGNALS):
                reading.report(
                    "JS212", node, text=node.value, noun=self.noun, hint=f"did you mean `{meant}`?"
                )
                return BAD
        return super().read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": [*SIGNALS, *(f"SIG{name}" for name in SIGNALS)]}, TEMPLATE_SCHEMA]}


class Signal(Record, frozen=True, kw_only=True):
    """A warning before the time limit."""

    noun = "`signal`"
    name: Annotated[str, Key(SignalName(), "the signal to send", required=True)]
    before: Annotated[float, Key(Duration(), "how long before the limit")] = 60.0


class _SignalOnly(SignalName):
    def read(self, node: Node, reading: Reading) -> Any:
        name = super().read(node, reading)
        return BAD if name is BAD else Signal(name=name)


PORT_NUMBER = Whole(1, 65535, "a port number")


class _PortReference(Kind):
    """A port by number, or by its name in `ports`."""

    noun = "a port number or the name of a port"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode) and re.fullmatch(r"\d+", reading.text(node)):
            number = PORT_NUMBER.read(node, reading)
            return BAD if number is BAD else str(number)
        return IDENTIFIER_OR_NAME.read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [PORT_NUMBER.schema(), IDENTIFIER_OR_NAME.schema()]}


IDENTIFIER_OR_NAME = Text(
    "the name of a port", r"[A-Za-z][A-Za-z0-9_-]{0,14}", "at most 15 letters, digits, `-` and `_`"
)


class HttpCheck(Record, frozen=True, kw_only=True):
    noun = "`http`"
    port: Annotated[str, Key(_PortReference(), "port number or name", required=True)]
    path: Annotated[str, Key(Text("a path", r"/\S*", "it starts with `/`"), "path of the request")] = "/"
    scheme: Annotated[str, Key(Choice(("http", "https"), "scheme"), "http or https")] = "http"
    headers: Annotated[dict[str, str], Key(Names(WORD, FREE), "request headers")] = {}


class TcpCheck(Record, frozen=True, kw_only=True):
    noun = "`tcp`"
    port: Annotated[str, Key(_PortReference(), "port number or name", required=True)]


class _TcpPort(_PortReference):
    def read(self, node: Node, reading: Reading) -> Any:
        port = super().read(node, reading)
        return BAD if port is BAD else TcpCheck(port=port)


class Check(Record, frozen=True, kw_only=True):
    """One probe: exactly one of exec, http and tcp."""

    noun = "a check"
    habits = {
        "command": "exec",
        "interval": "every",
        "period": "every",
        "retries": "failures",
        "start_period": "delay",
        "http_get": "http",
        "initialdelayseconds": "delay",
        "periodseconds": "every",
        "timeoutseconds": "timeout",
        "failurethreshold": "failures",
    }
    exec: Annotated[tuple[str, ...], Key(Command(), "a command that exits 0")] = ()
    http: Annotated[HttpCheck | None, Key(Of(HttpCheck), "a request answered with 200 to 399")] = None
    tcp: Annotated[
        TcpCheck | None,
        Key(Forms("a port", scalar=_TcpPort(), mapping=Of(TcpCheck)), "a port that accepts connections"),
    ] = None
    delay: Annotated[float, Key(Duration(zero=True), "wait before the first try")] = 0.0
    every: Annotated[float, Key(Duration(), "time between tries")] = 10.0
    timeout: Annotated[float, Key(Duration(), "time for one try")] = 1.0
    failures: Annotated[int, Key(Whole(1, 10_000), "tries in a row that must fail")] = 3
    successes: Annotated[int, Key(Whole(1, 10_000), "tries in a row that must succeed")] = 1


def _found(given: list[str]) -> dict[str, Any]:
    return {"found": " and ".join(given) or "none of them", "do": "keep" if given else "add"}


def _one_probe(check: Check, node: Node, reading: Reading) -> Any:
    given = [name for name in ("exec", "http", "tcp") if has_key(node, name)]
    if len(given) != 1:
        reading.report(
            "JS703", node, found=" and ".join(given) or "none of them", do="keep" if given else "add"
        )
        return BAD
    return check


CHECK = Of(Check, _one_probe)


class Checks(Record, frozen=True, kw_only=True):
    noun = "`checks`"
    habits = {"readiness": "ready", "liveness": "alive", "startup": "started", "live": "alive"}
    ready: Annotated[Check | None, Key(CHECK, "when the copy can serve others")] = None
    alive: Annotated[Check | None, Key(CHECK, "a copy that fails it is restarted or failed")] = None
    started: Annotated[Check | None, Key(CHECK, "holds the other checks back until it succeeds")] = None


class Relation(Record, frozen=True, kw_only=True):
    """Copies that belong together or apart."""

    noun = "a placement relation"
    tasks: Annotated[
        tuple[str, ...], Key(Items(NAME, single=True, unique=True), "tasks; without it the task's own copies")
    ] = ()
    by: Annotated[str, Key(WORD, "topology level: `node`, or a site's own such as `rack`")] = "node"
    required: Annotated[bool, Key(Flag(), "false: a preference only")] = True


class _RelationTo(Items):
    """`near: [a, b]` or `near: a`."""

    def __init__(self) -> None:
        super().__init__(NAME, "a list of task names", least=1, unique=True, single=True)

    def read(self, node: Node, reading: Reading) -> Any:
        names = super().read(node, reading)
        return BAD if names is BAD else Relation(tasks=names)


RELATION = Forms(
    "a task's name or a relation", scalar=_RelationTo(), items=_RelationTo(), mapping=Of(Relation)
)


class Spread(Record, frozen=True, kw_only=True):
    noun = "`spread`"
    by: Annotated[str, Key(WORD, "topology level to spread over", required=True)]
    skew: Annotated[int, Key(Whole(1, 10_000), "largest difference in copies")] = 1
    required: Annotated[bool, Key(Flag(), "false: a preference only")] = True


class _SpreadBy(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        by = super().read(node, reading)
        return BAD if by is BAD else Spread(by=by)


class Placement(Record, frozen=True, kw_only=True):
    noun = "`placement`"
    habits = {"node_selector": "labels", "affinity": "near", "anti_affinity": "apart", "selector": "labels"}
    labels: Annotated[dict[str, str], Key(Names(LABEL_KEY, LABEL_VALUE), "labels the nodes must carry")] = {}
    near: Annotated[Relation | None, Key(RELATION, "close to these tasks' copies")] = None
    apart: Annotated[Relation | None, Key(RELATION, "away from these tasks' copies")] = None
    spread: Annotated[
        Spread | None,
        Key(
            Forms("a topology level", scalar=_SpreadBy(), mapping=Of(Spread)), "evenly over a topology level"
        ),
    ] = None
    exclusive: Annotated[bool, Key(Flag(), "share no node with other jobs")] = False


class Runtime(Record, frozen=True, kw_only=True):
    noun = "`runtime`"
    class_: Annotated[str | None, Key(NAME, "runtime class", name="class")] = None
    os: Annotated[str | None, Key(Choice(("linux", "windows"), "operating system"), "operating system")] = (
        None
    )


class _RuntimeClass(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = NAME.read(node, reading)
        return BAD if name is BAD else Runtime(class_=name)


class Secret(Record, frozen=True, kw_only=True):
    """A secret or licence token given to the copies; its value never enters a document."""

    noun = "a secret"
    habits = {"env": "variable", "as": "variable", "to": "path", "file": "path"}
    name: Annotated[str, Key(NAME, "name of the secret", required=True)]
    key: Annotated[str | None, Key(WORD, "one entry of it; without it all")] = None
    variable: Annotated[str | None, Key(VARIABLE, "environment variable that carries it")] = None
    path: Annotated[str | None, Key(ABSOLUTE_PATH, "file that carries it")] = None


class _SecretName(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = NAME.read(node, reading)
        return BAD if name is BAD else Secret(name=name)


class EnvFrom(Record, frozen=True, kw_only=True):
    """Variables that come from elsewhere: exactly one of secret, config and file."""

    noun = "an `env_from` entry"
    habits = {"config_map": "config", "configmap": "config", "secret_ref": "secret", "path": "file"}
    secret: Annotated[str | None, Key(NAME, "every entry of a secret")] = None
    config: Annotated[str | None, Key(NAME, "every entry of a configuration")] = None
    file: Annotated[str | None, Key(PATH, "a file of NAME=value lines")] = None
    prefix: Annotated[str, Key(VARIABLE, "put before each name")] = ""


def _one_origin(entry: EnvFrom, node: Node, reading: Reading) -> Any:
    given = [name for name in ("secret", "config", "file") if has_key(node, name)]
    if len(given) != 1:
        reading.report(
            "JS704", node, found=" and ".join(given) or "none of them", do="keep" if given else "add"
        )
        return BAD
    return entry


class Capabilities(Record, frozen=True, kw_only=True):
    noun = "`capabilities`"
    add: Annotated[
        tuple[str, ...], Key(Items(Text("a capability", r"[A-Z_]+", "upper case"), unique=True), "give")
    ] = ()
    drop: Annotated[
        tuple[str, ...], Key(Items(Text("a capability", r"[A-Z_]+", "upper case"), unique=True), "take")
    ] = ()


_UMASK = Text("an octal mode", r"0?o?[0-7]{3,4}", "three or four octal digits")


class Security(Record, frozen=True, kw_only=True):
    noun = "`security`"
    habits = {
        "run_as_user": "uid",
        "runasuser": "uid",
        "user": "uid",
        "run_as_group": "gid",
        "group": "gid",
        "fs_group": "groups",
        "readonlyrootfilesystem": "read_only_root",
        "allowprivilegeescalation": "no_new_privileges",
        "no_new_privs": "no_new_privileges",
    }
    uid: Annotated[int | None, Key(Whole(0, 2**31 - 1, "a user id"), "user id of the copies")] = None
    gid: Annotated[int | None, Key(Whole(0, 2**31 - 1, "a group id"), "group id of the copies")] = None
    groups: Annotated[
        tuple[int, ...] | None, Key(Items(Whole(0, 2**31 - 1), unique=True), "further group ids")
    ] = None
    capabilities: Annotated[Capabilities | None, Key(Of(Capabilities), "Linux capabilities")] = None
    privileged: Annotated[bool | None, Key(Flag(), "every right on the node")] = None
    no_new_privileges: Annotated[
        bool | None, Key(Flag(), "no rights gained by running a program; on unless privileged")
    ] = None
    read_only_root: Annotated[bool | None, Key(Flag(), "the image cannot be written to")] = None
    umask: Annotated[str | None, Key(_UMASK, "mode bits taken from new files")] = None
    seccomp: Annotated[str | None, Key(WORD, "seccomp profile: `default`, `unconfined` or a path")] = None


class Device(Record, frozen=True, kw_only=True):
    """A claim on devices by class."""

    noun = "a device"
    class_: Annotated[str, Key(LABEL_KEY, "device class", name="class", required=True)]
    name: Annotated[str | None, Key(NAME, "name of the claim")] = None
    count: Annotated[int, Key(Whole(1, 1024), "how many")] = 1
    selectors: Annotated[
        tuple[str, ...], Key(Items(WORD, single=True), "expressions a device must satisfy")
    ] = ()
    shared: Annotated[bool, Key(Flag(), "all copies share one claim")] = False


class _DeviceClass(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = LABEL_KEY.read(node, reading)
        return BAD if name is BAD else Device(class_=name)


VOLUME_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "host": (("path",), ("create",)),
    "scratch": ((), ("size",)),
    "ephemeral": (("size",), ("class_",)),
    "claim": (("claim",), ()),
    "csi": (("driver",), ("attributes", "fs_type")),
    "nfs": (("server", "path"), ()),
    "git": (("repository",), ("revision",)),
    "image": (("image",), ()),
    "secret": (("secret",), ("mode",)),
    "config": (("config",), ("mode",)),
    "memory": (("size",), ()),
}


class Volume(Record, frozen=True, kw_only=True):
    """Storage that is there when the copy starts."""

    noun = "a volume"
    habits = {
        "type": "kind",
        "mount": "to",
        "mount_path": "to",
        "mountpath": "to",
        "target": "to",
        "source": "path",
        "host_path": "path",
        "readonly": "read_only",
        "repo": "repository",
        "url": "repository",
        "ref": "revision",
        "branch": "revision",
        "storage_class": "class",
    }
    name: Annotated[str, Key(NAME, "name of the volume", required=True)]
    kind: Annotated[
        str,
        Key(
            Choice(
                VOLUME_KINDS,
                "volume kind",
                {
                    "hostpath": "host",
                    "host_path": "host",
                    "bind": "host",
                    "emptydir": "scratch",
                    "empty_dir": "scratch",
                    "tmp": "scratch",
                    "pvc": "claim",
                    "configmap": "config",
                    "config_map": "config",
                    "tmpfs": "memory",
                    "shm": "memory",
                },
            ),
            "what it is",
            required=True,
        ),
    ]
    to: Annotated[str, Key(ABSOLUTE_PATH, "where the copies find it", required=True)]
    read_only: Annotated[bool, Key(Flag(), "cannot be written to")] = False
    path: Annotated[str | None, Key(ABSOLUTE_PATH, "path on the host or server (host, nfs)")] = None
    create: Annotated[bool, Key(Flag(), "make the folder if it is missing (host)")] = False
    size: Annotated[int | None, Key(Size(), "how much (scratch, ephemeral, memory)")] = None
    class_: Annotated[str | None, Key(NAME, "storage class (ephemeral)", name="class")] = None
    claim: Annotated[str | None, Key(NAME, "name of the claim (claim)")] = None
    driver: Annotated[str | None, Key(LABEL_KEY, "CSI driver (csi)")] = None
    attributes: Annotated[dict[str, str], Key(Names(WORD, FREE), "what the driver is told (csi)")] = {}
    fs_type: Annotated[str | None, Key(WORD, "file system (csi)")] = None
    server: Annotated[str | None, Key(WORD, "host of the server (nfs)")] = None
    repository: Annotated[str | None, Key(WORD, "address of the repository (git)")] = None
    revision: Annotated[str | None, Key(WORD, "branch, tag or commit (git)")] = None
    image: Annotated[str | None, Key(IMAGE, "image whose files are mounted (image)")] = None
    secret: Annotated[str | None, Key(NAME, "name of the secret (secret)")] = None
    config: Annotated[str | None, Key(NAME, "name of the configuration (config)")] = None
    mode: Annotated[str | None, Key(_UMASK, "mode of the files (secret, config)")] = None


_OF_EVERY_KIND = {"name", "kind", "to", "read_only"}


def _fits_its_kind(volume: Volume, node: Node, reading: Reading) -> Any:
    needed, optional = VOLUME_KINDS[volume.kind]
    given = {key.value: key for key, _ in node.value}
    names = {"class_": "class"}
    for field in needed:
        if names.get(field, field) not in given:
            reading.report("JS705", node, kind=volume.kind, key=names.get(field, field))
            return BAD
    allowed = _OF_EVERY_KIND | {names.get(field, field) for field in needed + optional}
    for key, key_node in given.items():
        if key not in allowed:
            reading.report("JS706", key_node, kind=volume.kind, key=key, known=", ".join(sorted(allowed)))
    return volume


class Port(Record, frozen=True, kw_only=True):
    """A port the copies listen on; without a number a free one is found."""

    noun = "a port"
    habits = {"container_port": "port", "number": "port", "containerport": "port"}
    name: Annotated[str | None, Key(IDENTIFIER_OR_NAME, "its name, for `PORT_NAME` variables")] = None
    port: Annotated[int | None, Key(PORT_NUMBER, "its number; without it a free one is found")] = None
    protocol: Annotated[str, Key(Choice(("tcp", "udp", "sctp"), "protocol", {"http": "tcp"}), "protocol")] = (
        "tcp"
    )
    expose: Annotated[bool, Key(Flag(), "reachable from outside the job")] = False


class _PortForm(Kind):
    noun = "a port number or name"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, ScalarNode) and re.fullmatch(r"\d+", reading.text(node)):
            number = PORT_NUMBER.read(node, reading)
            return BAD if number is BAD else Port(port=number)
        name = IDENTIFIER_OR_NAME.read(node, reading)
        return BAD if name is BAD else Port(name=name)

    def schema(self) -> Schema:
        return {"anyOf": [PORT_NUMBER.schema(), IDENTIFIER_OR_NAME.schema()]}


def _named_or_numbered(port: Port, node: Node, reading: Reading) -> Any:
    if not has_key(node, "name", "port"):
        reading.report("JS707", node)
        return BAD
    return port


class Network(Record, frozen=True, kw_only=True):
    noun = "`network`"
    connect: Annotated[
        tuple[str, ...],
        Key(Items(JOB_REFERENCE, single=True, unique=True), "jobs to overlap with and to reach"),
    ] = ()
    isolated: Annotated[bool, Key(Flag(), "no traffic from or to other jobs")] = False


class Inherited(Record, frozen=True, kw_only=True):
    """Settings that everything below inherits, the nearest winning."""

    restart: Annotated[
        str | None,
        Key(
            Choice(
                ("never", "on-failure", "always"),
                "restart policy",
                {"onfailure": "on-failure", "no": "never"},
            ),
            "whether a copy that ended is started again in place",
        ),
    ] = None
    replace: Annotated[
        str | None,
        Key(
            Choice(("failed", "terminating"), "replacement policy"),
            "when a replacement is made: once it failed, or already while it ends",
        ),
    ] = None
    suspend: Annotated[
        str | None,
        Key(Choice(("requeue", "freeze"), "way of suspending"), "what hold does to a running job"),
    ] = None
    grace: Annotated[
        float | None, Key(Duration(zero=True), "time between the request to stop and the kill")
    ] = None
    signal: Annotated[
        Signal | None,
        Key(
            Forms("a signal", scalar=_SignalOnly(), mapping=Of(Signal)),
            "a warning before the time limit",
        ),
    ] = None
    checks: Annotated[Checks | None, Key(Of(Checks), "probes: ready, alive, started")] = None
    placement: Annotated[Placement | None, Key(Of(Placement), "where the copies may go")] = None
    priority: Annotated[
        str | None,
        Key(
            Text("the name of a priority class", r"[A-Za-z][A-Za-z0-9._-]{0,62}", "a name, not a number"),
            "a named class",
        ),
    ] = None
    scheduler: Annotated[str | None, Key(NAME, "another scheduler by name")] = None
    runtime: Annotated[
        Runtime | None,
        Key(
            Forms("a runtime class", scalar=_RuntimeClass(), mapping=Of(Runtime)),
            "runtime class and operating system",
        ),
    ] = None
    identity: Annotated[str | None, Key(NAME, "service account the copies act as")] = None
    secrets: Annotated[
        tuple[Secret, ...],
        Key(
            Items(Forms("a secret", scalar=_SecretName(), mapping=Of(Secret)), "a list of secrets"),
            "secrets and licence tokens",
        ),
    ] = ()
    env_from: Annotated[
        tuple[EnvFrom, ...],
        Key(Items(Of(EnvFrom, _one_origin), "a list of origins"), "environment from elsewhere"),
    ] = ()
    profiles: Annotated[
        tuple[str, ...],
        Key(
            Items(NAME, "a list of profile names", unique=True, single=True), "named contexts of the settings"
        ),
    ] = ()
    security: Annotated[Security | None, Key(Of(Security), "security context")] = None
    devices: Annotated[
        tuple[Device, ...],
        Key(
            Items(Forms("a device", scalar=_DeviceClass(), mapping=Of(Device)), "a list of devices"),
            "device claims",
        ),
    ] = ()
    volumes: Annotated[
        tuple[Volume, ...], Key(Items(Of(Volume, _fits_its_kind), "a list of volumes"), "storage on demand")
    ] = ()
    ports: Annotated[
        tuple[Port, ...],
        Key(
            Items(
                Forms("a port", scalar=_PortForm(), mapping=Of(Port, _named_or_numbered)),
                "a list of ports",
                single=True,
            ),
            "ports the copies listen on",
        ),
    ] = ()
    result_file: Annotated[str | None, Key(PATH, "its last 4 KiB are kept with the job")] = None


class Policies(Inherited, frozen=True, kw_only=True):
    """Every policy a task, a group or the document may carry: its own, and what it inherits."""

    retries: Annotated[
        Retries | None,
        Key(
            Forms("a number of retries", scalar=_Limit(0, 10_000), mapping=Of(Retries)),
            "try again after a failure",
        ),
    ] = None
    parallelism: Annotated[int | None, Key(Whole(1, MAX_REPLICAS), "at most so many replicas at once")] = None
    completions: Annotated[
        int | None, Key(Whole(1, MAX_REPLICAS), "done when so many replicas succeeded")
    ] = None
    max_failed: Annotated[int | None, Key(Whole(0, MAX_REPLICAS), "give up when more replicas failed")] = None
    on_failure: Annotated[
        tuple[FailureRule, ...],
        Key(
            Items(Of(FailureRule, _rule_selects), "a list of failure rules", least=1),
            "failure policy, first match wins",
        ),
    ] = ()
    success: Annotated[Success | None, Key(Of(Success, _success_says), "done early; the rest is stopped")] = (
        None
    )
    hold: Annotated[bool, Key(Flag(), "wait for `jobman release`")] = False
    gates: Annotated[
        tuple[str, ...],
        Key(Items(NAME, "a list of gate names", unique=True, single=True), "wait for `jobman gate open`"),
    ] = ()
    hooks: Annotated[Hooks | None, Key(Of(Hooks), "commands before, after and at a stop")] = None


class Bonds(Record, frozen=True, kw_only=True):
    """What binds the tasks of a group or a document together."""

    coordinator: Annotated[
        str | None,
        Key(
            Text(
                "a task",
                rf"{NAME.pattern.pattern if NAME.pattern else ''}(?:/[A-Za-z0-9._-]+)*",
                "`TASK` or `TASK/REPLICA`",
            ),
            "the copy others report to: TASK or TASK/REPLICA",
        ),
    ] = None
    network: Annotated[Network | None, Key(Of(Network), "connected jobs and isolation")] = None


INHERITED = (
    "restart",
    "replace",
    "suspend",
    "grace",
    "signal",
    "checks",
    "placement",
    "priority",
    "scheduler",
    "runtime",
    "identity",
    "security",
    "result_file",
)
MERGED_BY_NAME = ("secrets", "env_from", "profiles", "devices", "volumes", "ports")
OWN = (
    "retries",
    "parallelism",
    "completions",
    "max_failed",
    "on_failure",
    "success",
    "hold",
    "gates",
    "hooks",
)
