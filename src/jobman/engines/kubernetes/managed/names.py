"""Names of what a service makes on a cluster: they follow from an address, so that they are found again.

A key such as `train.0/test.3` becomes `train-0-test-3`. Where that would not tell keys apart, or is too long,
a digest of the key stands at its end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from jobman.engines.base import Address, Order
from jobman.engines.kubernetes.names import (
    ATTEMPT,
    FLAVOR,
    INDEX,
    JOB,
    KEY,
    NAME,
    OWNER,
    PREFIX,
    REPLICA,
    TASK,
    UNIT,
    dns_label,
)

__all__ = [
    "ATTEMPT",
    "BOOT",
    "CONNECT",
    "CONTROLLER",
    "COPY",
    "FINALIZER",
    "FLAVOR",
    "GATE",
    "INDEX",
    "JOB",
    "JOB_NAME",
    "KEY",
    "NAME",
    "OWNER",
    "REPLICA",
    "SERVICE",
    "TASK",
    "UNIT",
    "attempt_name",
    "attempt_name_of",
    "connections",
    "exposed_name",
    "full_host_name",
    "host_label",
    "host_name",
    "pod_name",
    "relabelled",
    "service_name",
]

CONTROLLER = PREFIX + "controller"
"""Who looks after our Jobs instead of the cluster's own controller."""
FINALIZER = PREFIX + "attempt"
"""Keeps a Job and its pods until the end of the attempt is written down."""
GATE = PREFIX + "gang"
"""Keeps a pod from being scheduled until all of its attempt are there."""
SERVICE = PREFIX + "service"
"""Which service made an object."""
COPY = PREFIX + "copy"
BOOT = PREFIX + "boot"
"""The life of the node for which a pod was released."""
CONNECT = "connect.jobman.io/"
"""With the id of a job: its pods may talk with the pod that carries it."""
JOB_NAME = "batch.kubernetes.io/job-name"

LONGEST_ATTEMPT = 52
_LONGEST_HOST = 63
_LONGEST_TASK = 40
_DIGITS = 12
_PLAIN_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.[0-9]+(/[a-z0-9]+(-[a-z0-9]+)*\.[0-9]+)*")
_NUMBER = re.compile(r"(^|[-/])[0-9]+[-.]")
"""A word of a name that could be taken for the number of a replica."""


def attempt_name(order: Order) -> str:
    """What the Job of an attempt is called."""
    return attempt_name_of(order.address)


def attempt_name_of(address: Address) -> str:
    job, key, attempt = address
    end = f"-{job}-{attempt}"
    return _key_label(key, LONGEST_ATTEMPT - len(end)) + end


def pod_name(attempt: str, copy: int) -> str:
    """The pod of a copy; `attempt` is the name of its Job."""
    return f"{attempt}-{copy}"


def service_name(job: str) -> str:
    """The headless Service that gives all pods of a job their names."""
    return f"jobman-{job}"


def exposed_name(job: str, unit: str) -> str:
    """What a task's ports are reached by from outside its job."""
    return f"{service_name(job)}-{_told_apart(unit, _LONGEST_TASK)}"


def host_label(key: str, copy: int) -> str:
    """What a copy calls itself, in whichever attempt."""
    end = f"-{copy}"
    return _key_label(key, _LONGEST_HOST - len(end)) + end


def host_name(job: str, key: str, copy: int = 0) -> str:
    """Where a copy is reached from inside the namespace."""
    return f"{host_label(key, copy)}.{service_name(job)}"


def full_host_name(job: str, key: str, copy: int, namespace: str, domain: str) -> str:
    """Where a copy is reached from anywhere in the cluster."""
    return f"{host_name(job, key, copy)}.{namespace}.svc.{domain}"


def connections(partners: Iterable[str]) -> dict[str, str]:
    """The labels of a pod that may talk with the pods of these jobs."""
    return {CONNECT + partner: "yes" for partner in partners}


def relabelled(labels: Mapping[str, str], partners: Iterable[str]) -> dict[str, str | None]:
    """Which labels of a pod change when these are its partners from now on; None takes one away."""
    wanted = connections(partners)
    changes: dict[str, str | None] = {
        key: None for key in labels if key.startswith(CONNECT) and key not in wanted
    }
    return changes | {key: value for key, value in wanted.items() if labels.get(key) != value}


def _key_label(key: str, longest: int) -> str:
    """A key as part of a name. Names and numbers take turns in it, so that it can be read only one way."""
    if _PLAIN_KEY.fullmatch(key) and not _NUMBER.search(key) and len(key) <= longest:
        return re.sub(r"[./]", "-", key)
    return _with_digest(key, longest)


def _told_apart(text: str, longest: int) -> str:
    """A text as part of a name: as it is where it can be, or with a digest."""
    is_plain = re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) and len(text) <= longest
    return text if is_plain else _with_digest(text, longest)


def _with_digest(text: str, longest: int) -> str:
    # It begins with a letter, so that it is no number of a replica.
    end = f"-d{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"
    return dns_label(text)[: longest - len(end)].rstrip("-") + end
