"""What a site's settings decide of everything that is compiled for its cluster."""

from __future__ import annotations

from typing import Any

from jobman.engines.kubernetes.target import TOPOLOGY
from jobman.settings import Settings
from jobman.settings.kubernetes import cluster_of


def of_site(settings: Settings) -> dict[str, Any]:
    """The fields of a Target that come from the settings; levels are added to those that are usual."""
    cluster, site = cluster_of(settings.values), settings.site()
    found: dict[str, Any] = {
        "default_image": site.default_image,
        "image_prefix": site.image_prefix,
        "topology": {**TOPOLOGY, **cluster.topology},
        "keeper": cluster.keep_logs,
    }
    if cluster.gpu_resource is not None:
        found["gpu_resource"] = cluster.gpu_resource
    return found
