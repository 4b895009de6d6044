"""Names and labels: how the objects of a job are called, and by what they are found again."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

from jobman.plan.model import Plan, Unit

PREFIX = "jobman.io/"
JOB = PREFIX + "job"
NAME = PREFIX + "name"
OWNER = PREFIX + "owner"
TASK = PREFIX + "task"
FLAVOR = PREFIX + "flavor"
REPLICA = PREFIX + "replica"
NODE = PREFIX + "node"
"""Which node of its replica a copy belongs to; `each` where every copy has a node of its own."""
ALLOCATION = PREFIX + "allocation"
"""The same on all copies that stand on the same allocation."""
FIRST = PREFIX + "first"
"""How many copies of its replica are before those of a Job, where several Jobs are one replica."""

DOCUMENT = PREFIX + "document"
PLAN = PREFIX + "plan"
DIGEST = PREFIX + "digest"
SUBMITTED_BY = PREFIX + "submitted-by"
VERSION = PREFIX + "version"
UNIT = PREFIX + "unit"
"""The id of a unit as the plan has it; the label of the same task may be shortened."""
KEY = PREFIX + "key"
"""The replica that a driven Job is an attempt of, such as `train.0/test.3`; the label may be shortened."""
ATTEMPT = PREFIX + "attempt"
PART = PREFIX + "part"
"""Which part of its replica a driven Job is, where there are several."""
COURSE = PREFIX + "course"
"""On the ConfigMap that holds how far a driven job is."""
TARGET = PREFIX + "target"
"""What only the submission of a driven job knew, for whoever drives it later."""
DRIVER = PREFIX + "driver"
"""Who drives a job, and when they last said so."""
HOLD = PREFIX + "hold"
SUSPEND = PREFIX + "suspend"
MAX_FAILED = PREFIX + "max-failed"
"""A Job that failed with no more failed indexes than this has succeeded, in the words of the language."""
BELONGS_TO = PREFIX + "belongs-to"
MANAGED_BY = PREFIX + "managed-by"
GATE = PREFIX + "gate-"
"""What the name of a scheduling gate begins with; on a driven job, the mark of one that is open."""

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"

LONGEST_NAME = 50
"""A pod's name is that of its Job, an index of up to five digits and five letters: 63 at most."""
_LONGEST_LABEL = 63
_SHORT_ID = 6
_LONGEST_SET = 24
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def is_object_name(text: str) -> bool:
    """Whether an object of a cluster can be called so."""
    return _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    return _LABEL_KEY.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.fullmatch(text) is not None


def label_value(text: str) -> str:
    """A text as a label can carry it: as it is, or with other letters and then a digest of the true one."""
    if is_label_value(text):
        return text
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", text).strip("._-")
    return f"{plain[: _LONGEST_LABEL - 7].rstrip('._-') or 'x'}-{_digest(text)}"


def dns_label(text: str, longest: int = _LONGEST_LABEL) -> str:
    """A text as a part of a host's name: small letters, digits and `-`, beginning with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not plain or not plain[0].isalpha():
        plain = f"j{plain}"
    if len(plain) > longest:
        plain = f"{plain[: longest - 7].rstrip('-')}-{_digest(text)}"
    return plain


def job_labels(plan: Plan, job_id: str, name: str, owner: str) -> dict[str, str]:
    """The labels of every object of a job."""
    labels = {**plan.labels, JOB: job_id, NAME: label_value(name), OWNER: label_value(owner)}
    if plan.managed_by is not None:
        labels.setdefault("app.kubernetes.io/managed-by", label_value(plan.managed_by))
    if plan.owner is not None:
        labels.setdefault("app.kubernetes.io/part-of", label_value(plan.owner))
    return labels


class Naming:
    """The names of a job's objects: `NAME-ID6`, or `NAME-TASK-ID6` where there is more than one Job."""

    def __init__(self, plan: Plan, job_id: str) -> None:
        self._id = job_id[:_SHORT_ID]
        self._base = plan.name or _only_name(plan) or "job"
        self.job = self._called(self._base)
        plain = Counter(dns_label(unit.id) for unit in plan.units)
        # Two tasks whose names differ only in letters that a host's name cannot have are told apart.
        self._ambiguous = {label for label, count in plain.items() if count > 1}

    def task(self, unit: Unit, *parts: int) -> str:
        """The name of an object of a task; `parts` are numbers such as its replica."""
        return self._called(f"{self._base}-{self._told_apart(unit)}", *parts)

    def attempt(self, unit: Unit, indices: tuple[int, ...], attempt: int, part: int | None = None) -> str:
        """The name of the Job that is one attempt of one replica, or of a part of it."""
        ends = [f"r{'-'.join(map(str, indices))}", f"a{attempt}", *([] if part is None else [f"p{part}"])]
        return self._called(f"{self._base}-{self._told_apart(unit)}", *ends)

    def single(self, *parts: int) -> str:
        """The name of an object of the only task."""
        return self._called(self._base, *parts)

    def _told_apart(self, unit: Unit) -> str:
        label = dns_label(unit.id)
        return f"{label}-{_digest(unit.id)}" if label in self._ambiguous else label

    def _called(self, text: str, *parts: int | str) -> str:
        end = "-".join((self._id, *map(str, parts)))
        return f"{dns_label(text, LONGEST_NAME - len(end) - 1)}-{end}"


class SetNaming(Naming):
    """The names of a job that is a JobSet, whose controller calls its Jobs `SET-MEMBER-0`."""

    def __init__(self, plan: Plan, job_id: str) -> None:
        super().__init__(plan, job_id)
        self.job = f"{dns_label(self._base, _LONGEST_SET - len(self._id) - 1)}-{self._id}"

    def task(self, unit: Unit, *parts: int) -> str:
        return f"{self.job}-{self._member(unit, *parts)}-0"

    def member_of(self, name: str) -> str:
        """What a Job of this name is called among the members of its set."""
        return name.removeprefix(f"{self.job}-").removesuffix("-0")

    def _member(self, unit: Unit, *parts: int) -> str:
        end = "".join(f"-{part}" for part in parts)
        room = LONGEST_NAME - _LONGEST_SET - len("--0") - len(end)
        return dns_label(self._told_apart(unit), room) + end


def _only_name(plan: Plan) -> str | None:
    tasks = [unit for unit in plan.units if unit.kind == "task"]
    return tasks[0].name if len(tasks) == 1 else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]
