"""The course of a driven job: how far it is, and who drives it, as a ConfigMap of the cluster keeps it. Pure.

What is decided stands here before anything is done because of it. Whoever writes names the version they read,
so that of two who drive at once only one gets on.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.objects import ConfigMap, Written

VERSION = 1
MOST_BYTES = 900_000
"""A ConfigMap holds a mebibyte, with all that it says of itself."""
LEASE_SECONDS = 15.0
"""Somebody who drives and has said nothing for so long does not drive any more."""
RENEW_SECONDS = 4.0
_FIELD = "course"


class UnknownCourse(ValueError):
    """A course that another version wrote, or nobody of us."""


class TaskAt(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A unit in a scope: `scope` is the key of the group's replica, if any."""

    scope: str = ""
    unit: str
    verdict: str | None = None
    outcome: str | None = None
    counts: dict[str, int] = {}


class ReplicaStands(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A replica that has left the line at least once."""

    key: str
    unit: str
    index: int = 0
    state: str
    attempt: int = 0
    since: float = 0.0
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    """How its last attempt failed, in words."""
    life: dict[str, Any] = {}
    made: bool = False
    """Whether the Job of its attempt is known to have been made: it is not made again."""


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """Something that happened to a replica; `kind` is a word of our events."""

    at: float
    kind: str
    replica: str
    attempt: int = 0
    message: str = ""


class Course(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far a job is."""

    version: int = VERSION
    state: str = "waiting"
    """waiting, running, succeeded, failed or cancelled."""
    failure: tuple[str, str, int | None] | None = None
    """What made the job fail: a replica, the reason and its exit code."""
    started_at: float | None = None
    ended_at: float | None = None
    job: dict[str, Any] = {}
    """What is known of the job as a whole."""
    tasks: list[TaskAt] = []
    replicas: list[ReplicaStands] = []
    story: list[Moment] = []
    """What happened, the oldest first; of a long story the end."""


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """Who drives a job."""

    who: str
    """In words, such as `ada on login1`."""
    token: str
    """One driver of all there ever were."""
    place: str = ""
    """The machine since its start, and the processes that can be seen there."""
    pid: int = 0
    began: int = 0
    """When the process began, so that another one of the same number is not taken for it."""
    renewed: float = 0.0
    """When they last said so, by their own clock."""


def course_of(config: ConfigMap) -> Course:
    """The course that a ConfigMap holds; raises UnknownCourse."""
    try:
        packed = base64.b64decode(config.data[_FIELD])
        course = msgspec.json.decode(gzip.decompress(packed), type=Course)
    except (KeyError, ValueError, EOFError, OSError) as error:
        raise UnknownCourse(f"its course cannot be read: {error}") from error
    if course.version != VERSION:
        raise UnknownCourse(f"its course is of version {course.version}; {VERSION} is understood")
    return course


def driver_of(config: ConfigMap) -> Driver | None:
    """Who drives, if anybody does or did until something happened to them."""
    written = config.metadata.annotations.get(names.DRIVER)
    try:
        return None if not written else msgspec.json.decode(written, type=Driver)
    except msgspec.MsgspecError:
        return None


def is_fresh(driver: Driver | None, now: float) -> bool:
    """Whether somebody drives, as far as clocks agree."""
    return driver is not None and now - driver.renewed < LEASE_SECONDS


def course_data(course: Course) -> dict[str, str]:
    """A course as the ConfigMap holds it; the same course is the same text."""
    text = msgspec.json.encode(course, order="deterministic")
    return {_FIELD: base64.b64encode(gzip.compress(text, mtime=0)).decode()}


def driver_note(driver: Driver | None) -> str | None:
    return None if driver is None else msgspec.json.encode(driver).decode()


def course_name(anchor: str) -> str:
    return f"{anchor}-course"


def new_course(anchor: Written) -> Written:
    """The ConfigMap beside an anchor, of a job that nobody has driven yet."""
    meta: Mapping[str, Any] = anchor["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": course_name(meta["name"]),
            "namespace": meta["namespace"],
            "labels": dict(meta["labels"]),
            "annotations": {names.COURSE: str(VERSION)},
        },
        "data": course_data(Course()),
    }
