"""The kinds of objects we deal with: where the API has them, and as what they are read."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from jobman.engines.kubernetes.errors import WrongName
from jobman.engines.kubernetes.link import JSON
from jobman.engines.kubernetes.objects import (
    ConfigMap,
    Event,
    Job,
    JobSet,
    Kept,
    Node,
    Page,
    Pod,
    Quota,
    RuntimeClass,
    VolumeClaim,
)

T = TypeVar("T", bound=Kept)
_METADATA, _METADATA_LIST = (
    f"{JSON};as={form};g=meta.k8s.io;v=v1" for form in ("PartialObjectMetadata", "PartialObjectMetadataList")
)


class Kind(Generic[T]):
    """A kind of object, such as `Job` of `batch/v1`."""

    def __init__(
        self,
        api: str,
        kind: str,
        plural: str,
        read_as: type[T],
        *,
        namespaced: bool = True,
        only_metadata: bool = False,
    ) -> None:
        """With `only_metadata` the cluster is asked for nothing else, which spares it most of the work."""
        self.api = api
        """Group and version, or only the version for the oldest kinds."""
        self.kind = kind
        self.plural = plural
        self.namespaced = namespaced
        self.one: msgspec.json.Decoder[T] = msgspec.json.Decoder(read_as)
        page: Any = Page[read_as]  # type: ignore[valid-type]
        self.page: msgspec.json.Decoder[Page[T]] = msgspec.json.Decoder(page)
        self.read_as = read_as
        self.accept = _METADATA if only_metadata else JSON
        """In which form one is wanted, and below a list of them."""
        self.accept_list = _METADATA_LIST if only_metadata else JSON

    @property
    def group(self) -> str:
        return self.api.rpartition("/")[0]

    @property
    def root(self) -> str:
        """Where the API of its group begins."""
        return f"/apis/{self.api}" if self.group else f"/api/{self.api}"

    def path(self, namespace: str | None, name: str | None = None, part: str | None = None) -> str:
        """The path of all, of one, or of a part of one such as its `log`."""
        steps = [self.root]
        if self.namespaced and namespace:
            steps += ["namespaces", _step(namespace)]
        steps.append(self.plural)
        steps += [_step(step) for step in (name, part) if step is not None]
        return "/".join(steps)

    def __repr__(self) -> str:
        return f"<Kind {self.kind} of {self.api}>"


def _step(name: str) -> str:
    """A name as a step of a path; none may lead to all objects of a kind, or upwards."""
    if name in ("", ".", ".."):
        raise WrongName(f"{name!r} is not a name that an object can have.")
    return quote(name, safe="")


PODS = Kind("v1", "Pod", "pods", Pod)
JOBS = Kind("batch/v1", "Job", "jobs", Job)
OWNERS = Kind("batch/v1", "Job", "jobs", Kept, only_metadata=True)
"""Jobs, of which only matters that they are there."""
NODES = Kind("v1", "Node", "nodes", Node, namespaced=False)
EVENTS = Kind("v1", "Event", "events", Event)
QUOTAS = Kind("v1", "ResourceQuota", "resourcequotas", Quota)
CLAIMS = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", VolumeClaim)
CONFIG_MAPS = Kind("v1", "ConfigMap", "configmaps", ConfigMap)
SECRETS = Kind("v1", "Secret", "secrets", Kept)
SERVICES = Kind("v1", "Service", "services", Kept)
SERVICE_ACCOUNTS = Kind("v1", "ServiceAccount", "serviceaccounts", Kept)
NAMESPACES = Kind("v1", "Namespace", "namespaces", Kept, namespaced=False)
RUNTIME_CLASSES = Kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", RuntimeClass, namespaced=False)
NETWORK_POLICIES = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", Kept)
JOB_SETS = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", JobSet)

KINDS: dict[tuple[str, str], Kind[Any]] = {
    (kind.api, kind.kind): kind
    for kind in (
        PODS,
        JOBS,
        NODES,
        EVENTS,
        QUOTAS,
        CLAIMS,
        CONFIG_MAPS,
        SECRETS,
        SERVICES,
        SERVICE_ACCOUNTS,
        NAMESPACES,
        RUNTIME_CLASSES,
        NETWORK_POLICIES,
        JOB_SETS,
    )
}
"""By API and kind, as objects name them; what is not here is asked of the cluster."""
