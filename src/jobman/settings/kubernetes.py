"""The cluster that jobs run on, with and without a service, as the settings write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from jobman.spec.kinds import Flag, Items, Names, Text
from jobman.spec.names import LABEL_KEY, LABEL_VALUE, NAME, WORD
from jobman.spec.records import Element, Key, Of

_FILE = Text("a file's path", r"~?/[^\0]{1,4095}", "it starts with `/` or `~/`")
_NAMESPACE = Text(
    "a namespace's name", r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", "small letters, digits and `-`, at most 63"
)
_RESOURCE = Text(
    "the full name of a resource",
    r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
    "`domain/name`, such as `nvidia.com/gpu`",
)


class Kubernetes(Element, frozen=True, kw_only=True):
    noun = "the `kubernetes` section"
    habits = {"config": "kubeconfig", "gpu": "gpu_resource", "levels": "topology"}
    kubeconfig: Annotated[str | None, Key(_FILE, "instead of the one kubectl would take")] = None
    context: Annotated[str | None, Key(WORD, "of the kubeconfig, instead of its current one")] = None
    namespace: Annotated[str | None, Key(_NAMESPACE, "instead of the context's")] = None
    gpu_resource: Annotated[str | None, Key(_RESOURCE, "what a `gpu` of a shape is called")] = None
    topology: Annotated[
        dict[str, str], Key(Names(NAME, LABEL_KEY, "a mapping of labels"), "the label of nodes by level")
    ] = {}
    nodes: Annotated[
        dict[str, str],
        Key(Names(LABEL_KEY, LABEL_VALUE, "a mapping of labels"), "which nodes a service plans with; all"),
    ] = {}
    tolerates: Annotated[
        tuple[str, ...],
        Key(Items(LABEL_KEY, "a list of taints", unique=True), "taints of these that keep others away"),
    ] = ()
    job_sets: Annotated[bool, Key(Flag(), "whether graphs become JobSets where the cluster has them")] = True


KUBERNETES = Of(Kubernetes)


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say of the cluster; None leaves it to the kubeconfig, or to what is usual."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    gpu_resource: str | None = None
    topology: dict[str, str] = {}
    nodes: dict[str, str] = {}
    tolerates: tuple[str, ...] = ()
    job_sets: bool = True


def cluster_of(values: Mapping[str, Any]) -> Cluster:
    """The section of settings as they were read."""
    return msgspec.convert(values.get("kubernetes", {}), Cluster)
