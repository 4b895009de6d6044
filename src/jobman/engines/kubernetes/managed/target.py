"""Where a service puts what it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from jobman.engines.kubernetes.target import TOPOLOGY, Target


class ManagedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where a service puts what it starts, and how the cluster is set up."""

    namespace: str
    service: str
    """Tells the objects of this service from those of others: the value of a label."""
    gpu_resource: str = "nvidia.com/gpu"
    image_prefix: str = ""
    default_image: str | None = None
    topology: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(TOPOLOGY))
    cluster_domain: str = "cluster.local"
    proxies: Mapping[str, str] = msgspec.field(default_factory=lambda: {"app.kubernetes.io/name": "jobman"})
    """The labels of pods that may connect to every job."""
    proxy_namespace: str = ""
    """Where they are; empty for the namespace of the jobs."""
    egress: Literal["all", "jobs"] = "all"
    """What copies may connect to: everything, or only their own job and those it is connected with."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """Taints of the pool's nodes that keep others away from it, and not us."""

    def for_job(self, job: str, owner: str = "") -> Target:
        """The same for what a pod is made of wherever it runs."""
        return Target(
            namespace=self.namespace,
            job_id=job,
            owner=owner,
            document="",
            gpu_resource=self.gpu_resource,
            image_prefix=self.image_prefix,
            default_image=self.default_image,
            topology=self.topology,
            driven=True,
        )
