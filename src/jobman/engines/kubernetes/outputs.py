"""Outputs: whose output there is to read in a cluster, and how its lines are told apart. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import attempts_of, by_age, index_of
from jobman.engines.kubernetes.objects import ContainerStatus, Pod

_BILLION = 1_000_000_000
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a container wrote since it was last started, or before that."""

    pod: str
    namespace: str
    uid: str
    container: str
    restart: int
    """How often the container had been started before."""
    previous: bool
    """Whether it has been started again since; only the last but one is kept."""
    is_main: bool
    """Whether it is the command itself, and no step or helper."""
    task: str
    replica: int
    copy: int
    attempt: int
    node: str
    whose: str = ""
    """The key of the replica, where the pod says it."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.uid, self.container, self.restart

    @property
    def label(self) -> str:
        """A name that tells it from the others of its job: task.replica, and what is not as usual."""
        copy = f"/{self.copy}" if self.copy else ""
        attempt = f"#{self.attempt + self.restart}" if self.attempt + self.restart > 1 else ""
        return f"{self.task}.{self.replica}{copy}{attempt}{'' if self.is_main else f':{self.container}'}"


class Line(msgspec.Struct, frozen=True):
    """One line of an output, without its end."""

    output: Output
    at: int
    """Nanoseconds since 1970, as the node stamped it; 0 where it did not."""
    text: str
    is_note: bool = False
    """Whether we say this about the output, which we could not read."""

    @property
    def seconds(self) -> float:
        return self.at / _BILLION


def outputs_of(pods: Iterable[Pod]) -> list[Output]:
    """All that can be read now, in the order in which pods came and containers run."""
    found = sorted(pods, key=by_age)
    attempts = _numbers(found)
    return [
        output
        for pod in found
        for status in [*pod.status.init_container_statuses, *pod.status.container_statuses]
        for output in _of_container(pod, status, attempts[pod.metadata.uid])
    ]


def copy_of(pod: Pod) -> tuple[str, int]:
    """Which copy a pod is an attempt of."""
    owners = (owner.uid for owner in pod.metadata.owner_references if owner.controller)
    return next(owners, pod.metadata.uid), index_of(pod)


def stamped(output: Output, line: bytes) -> Line:
    """A line as a cluster gives it with its time before it."""
    text = line.decode(errors="replace")
    stamp, _, rest = text.partition(" ")
    at = parse_stamp(stamp)
    return Line(output, 0, text) if at is None else Line(output, at, rest)


def parse_stamp(stamp: str) -> int | None:
    """Nanoseconds since 1970 of a time such as 2026-01-31T12:00:00.123456789Z; None for what is no time."""
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return None
    whole, digits, zone = match.groups()
    return int(datetime.fromisoformat(whole + zone).timestamp()) * _BILLION + int(
        (digits or "").ljust(9, "0")
    )


def _of_container(pod: Pod, status: ContainerStatus, attempt: int) -> Iterable[Output]:
    now, before = status.state, status.last_state.terminated
    if now.waiting and before:
        # Between two starts the last one is still what is read.
        yield _output(pod, status, attempt, status.restart_count, previous=False)
    elif before and status.restart_count:
        yield _output(pod, status, attempt, status.restart_count - 1, previous=True)
    if now.running or now.terminated:
        yield _output(pod, status, attempt, status.restart_count, previous=False)


def _output(pod: Pod, status: ContainerStatus, attempt: int, restart: int, *, previous: bool) -> Output:
    meta = pod.metadata
    replica, index = meta.labels.get(names.REPLICA, ""), index_of(pod)
    before = int(meta.labels.get(names.FIRST, 0))
    return Output(
        pod=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        container=status.name,
        restart=restart,
        previous=previous,
        is_main=bool(pod.spec.containers) and status.name == pod.spec.containers[0].name,
        task=meta.annotations.get(names.UNIT) or meta.labels.get(names.TASK, ""),
        replica=int(replica) if replica.isdecimal() else index,
        copy=before + index if replica.isdecimal() else 0,
        attempt=attempt,
        node=pod.spec.node_name,
        whose=meta.annotations.get(names.KEY, ""),
    )


def _numbers(pods: Iterable[Pod]) -> dict[str, int]:
    """Which attempt each pod is."""
    copies: defaultdict[tuple[str, int], list[Pod]] = defaultdict(list)
    for pod in pods:
        copies[copy_of(pod)].append(pod)
    return {
        pod.metadata.uid: attempt.number
        for own in copies.values()
        for pod, attempt in zip(sorted(own, key=by_age), attempts_of(own), strict=True)
    }
