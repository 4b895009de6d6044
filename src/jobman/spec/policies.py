"""The policies of section 7: what Kubernetes jobs have and HPC jobs lack, as plain values.

Two kinds: a policy *of the thing* it is written on (its replicas, its failures, its queueing), and a
*setting* that everything below inherits, the nearest winning. `INHERITED` lists the second.
"""

from __future__ import annotations

from typing import Annotated, Literal

from jobman.spec.access import ENV_FROM, SECRETS, EnvFrom, Secret, Security
from jobman.spec.checks import Checks
from jobman.spec.devices import DEVICES, Device
from jobman.spec.failures import FAILURE_RULES, RETRIES, SUCCESS, FailureRule, Retries, Success
from jobman.spec.kinds import Choice, Duration, Flag, Items, Text, Whole
from jobman.spec.lifecycle import SIGNAL, Hooks, Signal
from jobman.spec.names import NAME, PATH
from jobman.spec.networks import PORTS, Network, Port
from jobman.spec.placement import RUNTIME, Placement, Runtime
from jobman.spec.ranges import MAX_REPLICAS
from jobman.spec.records import Key, Of, Record
from jobman.spec.volumes import VOLUMES, Volume


class Inherited(Record, frozen=True, kw_only=True):
    """Settings that everything below inherits, the nearest winning."""

    restart: Annotated[
        Literal["never", "on-failure", "always"] | None,
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
        Literal["failed", "terminating"] | None,
        Key(
            Choice(("failed", "terminating"), "replacement policy"),
            "when a replacement is made: once it failed, or already while it ends",
        ),
    ] = None
    suspend: Annotated[
        Literal["requeue", "freeze"] | None,
        Key(Choice(("requeue", "freeze"), "way of suspending"), "what hold does to a running job"),
    ] = None
    grace: Annotated[
        float | None, Key(Duration(zero=True), "time between the request to stop and the kill")
    ] = None
    signal: Annotated[Signal | None, Key(SIGNAL, "a warning before the time limit")] = None
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
    runtime: Annotated[Runtime | None, Key(RUNTIME, "runtime class and operating system")] = None
    identity: Annotated[str | None, Key(NAME, "service account the copies act as")] = None
    secrets: Annotated[tuple[Secret, ...], Key(SECRETS, "secrets and licence tokens")] = ()
    env_from: Annotated[tuple[EnvFrom, ...], Key(ENV_FROM, "environment from elsewhere")] = ()
    profiles: Annotated[
        tuple[str, ...],
        Key(
            Items(NAME, "a list of profile names", unique=True, single=True), "named contexts of the settings"
        ),
    ] = ()
    security: Annotated[Security | None, Key(Of(Security), "security context")] = None
    devices: Annotated[tuple[Device, ...], Key(DEVICES, "device claims")] = ()
    volumes: Annotated[tuple[Volume, ...], Key(VOLUMES, "storage on demand")] = ()
    ports: Annotated[tuple[Port, ...], Key(PORTS, "ports the copies listen on")] = ()
    result_file: Annotated[str | None, Key(PATH, "its last 4 KiB are kept with the job")] = None


class Policies(Inherited, frozen=True, kw_only=True):
    """Every policy a task, a group or the document may carry: its own, and what it inherits."""

    retries: Annotated[Retries | None, Key(RETRIES, "try again after a failure")] = None
    parallelism: Annotated[int | None, Key(Whole(1, MAX_REPLICAS), "at most so many replicas at once")] = None
    completions: Annotated[
        int | None, Key(Whole(1, MAX_REPLICAS), "done when so many replicas succeeded")
    ] = None
    max_failed: Annotated[int | None, Key(Whole(0, MAX_REPLICAS), "give up when more replicas failed")] = None
    on_failure: Annotated[
        tuple[FailureRule, ...], Key(FAILURE_RULES, "failure policy, first match wins")
    ] = ()
    success: Annotated[Success | None, Key(SUCCESS, "done early; the rest is stopped")] = None
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
