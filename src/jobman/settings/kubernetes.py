"""The cluster that jobs run on, with and without a service, as the settings write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from yaml.nodes import Node

from jobman.spec.kinds import Flag, Items, Names, Text
from jobman.spec.names import LABEL_KEY, LABEL_VALUE, NAME, WORD
from jobman.spec.reading import Reading
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


_IMAGE = Text("an image", r"[^\s\0]{1,1024}", "such as `rclone/rclone`")
_OBJECT = Text(
    "an object's name", r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", "small letters, digits, `-` and `.`"
)


class KeepLogs(Element, frozen=True, kw_only=True):
    noun = "`keep_logs`"
    image: Annotated[str | None, Key(_IMAGE, "one with rclone and a shell")] = None
    secret: Annotated[str | None, Key(_OBJECT, "the Secret with what the store asks for")] = None


def _as_values(written: KeepLogs, _node: Node, _reading: Reading) -> dict[str, str]:
    """Only what was given: the rest may come from another file."""
    return dict(written.given)


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
    keep_logs: Annotated[
        dict[str, str], Key(Of(KeepLogs, _as_values), "who writes to an object store, and as whom")
    ] = {}


KUBERNETES = Of(Kubernetes)


class LogKeeper(msgspec.Struct, frozen=True, kw_only=True):
    """Who carries output to an object store."""

    image: str = "rclone/rclone"
    secret: str = "jobman-logs"
    """Of the namespace; its entries are the keeper's environment, and nobody else's."""


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
    keep_logs: LogKeeper = LogKeeper()


def cluster_of(values: Mapping[str, Any]) -> Cluster:
    """The section of settings as they were read."""
    return msgspec.convert(values.get("kubernetes", {}), Cluster)
