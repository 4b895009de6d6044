"""The objects of a cluster as far as we look at them: fields that nobody reads are not decoded."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class Object(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Fields are spelled as in JSON, which is how Kubernetes writes them."""


class Owner(Object, kw_only=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Object, kw_only=True):
    """What every object says of itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []
    finalizers: list[str] = []


class Kept(Object, kw_only=True):
    """Anything that has a name in a cluster."""

    metadata: Meta = msgspec.field(default_factory=Meta)


class ConfigMap(Kept, kw_only=True):
    """Texts by name."""

    data: dict[str, str] = {}


class Condition(Object, kw_only=True):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


# -- pods ----------------------------------------------------------------------------------------------------


class Running(Object, kw_only=True):
    started_at: datetime | None = None


class Waiting(Object, kw_only=True):
    reason: str = ""
    message: str = ""


class Terminated(Object, kw_only=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Object, kw_only=True):
    """One of the three."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Object, kw_only=True):
    name: str = ""
    image: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)


class Resources(Object, kw_only=True):
    """Quantities as they are written, such as `500m` and `2Gi`."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class Probe(Object, kw_only=True):
    """That there is one; what it does is the node's business."""


class Container(Object, kw_only=True):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    """`Always` makes a helper of a container that starts before the others."""
    resources: Resources = msgspec.field(default_factory=Resources)
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    startup_probe: Probe | None = None


class Toleration(Object, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Gate(Object, kw_only=True):
    name: str


class Claim(Object, kw_only=True):
    claim_name: str = ""


class PodVolume(Object, kw_only=True):
    name: str = ""
    persistent_volume_claim: Claim | None = None


class Requirement(Object, kw_only=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeTerm(Object, kw_only=True):
    """All of it must hold."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeChoice(Object, kw_only=True):
    """One of the terms must hold."""

    node_selector_terms: list[NodeTerm] = []


class NodeAffinity(Object, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeChoice | None = None


class Affinity(Object, kw_only=True):
    node_affinity: NodeAffinity | None = None


class PodSpec(Object, kw_only=True):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    service_account_name: str = ""
    priority_class_name: str = ""
    runtime_class_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, str | int | float] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    scheduling_gates: list[Gate] = []
    volumes: list[PodVolume] = []
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class PodStatus(Object, kw_only=True):
    phase: str = ""
    """Pending, Running, Succeeded, Failed or Unknown."""
    observed_generation: int = 0
    """Of the pod as its node knew it when it wrote this; nothing before Kubernetes 1.34."""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    host_ip: str = msgspec.field(default="", name="hostIP")
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(Kept, kw_only=True):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


# -- jobs ----------------------------------------------------------------------------------------------------


class PodTemplate(Kept, kw_only=True):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class SuccessRule(Object, kw_only=True):
    """So many of these indexes, or all of them."""

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Object, kw_only=True):
    rules: list[SuccessRule] = []


class JobSpec(Object, kw_only=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    suspend: bool = False
    managed_by: str = ""
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    success_policy: SuccessPolicy | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class JobStatus(Object, kw_only=True):
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    conditions: list[Condition] = []


class Job(Kept, kw_only=True):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class JobSetSpec(Object, kw_only=True):
    suspend: bool = False


class JobSetStatus(Object, kw_only=True):
    conditions: list[Condition] = []


class JobSet(Kept, kw_only=True):
    """Several Jobs that a controller of the cluster makes in turn."""

    spec: JobSetSpec = msgspec.field(default_factory=JobSetSpec)
    status: JobSetStatus = msgspec.field(default_factory=JobSetStatus)


# -- the cluster ---------------------------------------------------------------------------------------------


class Taint(Object, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object, kw_only=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeInfo(Object, kw_only=True):
    boot_id: str = msgspec.field(default="", name="bootID")
    architecture: str = ""
    operating_system: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""


class NodeStatus(Object, kw_only=True):
    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    conditions: list[Condition] = []
    node_info: NodeInfo = msgspec.field(default_factory=NodeInfo)


class Node(Kept, kw_only=True):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Overhead(Object, kw_only=True):
    pod_fixed: dict[str, str | int | float] = {}


class RuntimeClass(Kept, kw_only=True):
    overhead: Overhead | None = None


class Involved(Object, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class Event(Kept, kw_only=True):
    involved_object: Involved = msgspec.field(default_factory=Involved)
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None


class QuotaStatus(Object, kw_only=True):
    hard: dict[str, str | int | float] = {}
    used: dict[str, str | int | float] = {}


class Quota(Kept, kw_only=True):
    status: QuotaStatus = msgspec.field(default_factory=QuotaStatus)


class ClaimSpec(Object, kw_only=True):
    storage_class_name: str = ""
    volume_name: str = ""


class ClaimStatus(Object, kw_only=True):
    phase: str = ""


class VolumeClaim(Kept, kw_only=True):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


# -- lists and watches ---------------------------------------------------------------------------------------


class ListMeta(Object, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(Object, Generic[T], kw_only=True):
    """A part of a list; `metadata.continue_` leads to the next."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    found: list[T] | None = msgspec.field(name="items", default=None)
    """None is how some servers write that there is nothing."""

    @property
    def items(self) -> list[T]:
        return self.found or []


class Change(Object, Generic[T], kw_only=True):
    """One line of a watch; an error has a `Status` for its object."""

    type: str
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""
    object: T


class StatusCause(Object, kw_only=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Object, kw_only=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int | None = None


class Status(Object, kw_only=True):
    """What the API server answers instead of an object."""

    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


Written = dict[str, Any]
"""An object as we write it: plain JSON, so that every field of the API can be set."""
