"""The settings as written, read with the same care as a JobSpec."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import Node

from jobman.settings.accounting import ACCOUNTING
from jobman.settings.accounts import ACCOUNTS, Account
from jobman.settings.flux import FLUX, Flux
from jobman.settings.kubernetes import KUBERNETES, Kubernetes
from jobman.settings.queues import QUEUES, Queue
from jobman.settings.registries import IMAGE_PREFIX, REGISTRIES, Registry
from jobman.settings.scheduler import SCHEDULER, Scheduler
from jobman.settings.slurm import SLURM, Slurm
from jobman.settings.tasks import TASKS, Tasks
from jobman.spec import quantities
from jobman.spec.attributes import Attributes
from jobman.spec.kinds import Items, Names, Text, Whole
from jobman.spec.model import ScalarValue
from jobman.spec.names import FREE, IDENTIFIER, IMAGE, LABEL_KEY, NAME, TYPE
from jobman.spec.policies import Inherited
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of, Record, has_key
from jobman.spec.resources import SHAPE, Requires

_CORE_KEYS = {"cpu": "core", "memory": "memory", "ephemeral-storage": "storage"}
_SIZED = ("memory", "ephemeral-storage")


class Amounts(Names):
    """Requests or limits as Kubernetes writes them."""

    def __init__(self) -> None:
        super().__init__(Text("a resource name"), FREE, "a mapping of amounts")

    def read(self, node: Node, reading: Reading) -> Any:
        amounts = super().read(node, reading)
        if amounts is BAD:
            return BAD
        wrong = [(name, text) for name, text in amounts.items() if amount_of(name, text) is None]
        for name, text in wrong:
            reading.report("JS422", child(node, name), text=text, name=name)
        return BAD if wrong else amounts


def amount_of(name: str, text: str) -> int | float | None:
    """A number of cores, bytes or devices."""
    if name in _SIZED:
        return quantities.parse_size(text) or None
    if name == "cpu":
        amount = quantities.parse_amount(text)
        return int(amount) if amount and amount.is_integer() else amount or None
    return int(text) if text.isascii() and text.isdigit() and int(text) else None


def type_of(name: str) -> str:
    """The resource type that a Kubernetes resource name stands for; every vendor's GPU is a gpu."""
    if name in _CORE_KEYS:
        return _CORE_KEYS[name]
    return "gpu" if name.endswith("/gpu") or "/mig-" in name else name


class FlavorResources(Record, frozen=True, kw_only=True):
    noun = "a flavor's `resources`"
    requests: Annotated[dict[str, str], Key(Amounts(), "what is reserved", required=True)]
    limits: Annotated[dict[str, str], Key(Amounts(), "what may be used at most")] = {}


def _limits_above(resources: FlavorResources, node: Node, reading: Reading) -> Any:
    for name, request in resources.requests.items():
        limit = resources.limits.get(name)
        if limit is not None and (amount_of(name, limit) or 0) < (amount_of(name, request) or 0):
            reading.report("JS423", child(node, "limits", name), name=name, request=request)
            return BAD
    return resources


class Flavor(Element, frozen=True, kw_only=True):
    """A shape with a name, for everybody."""

    noun = "a flavor"
    name: Annotated[str, Key(NAME, "its name", required=True)]
    description: Annotated[str | None, Key(FREE, "what it is for")] = None
    resources: Annotated[
        FlavorResources | None, Key(Of(FlavorResources, _limits_above), "as Kubernetes writes it")
    ] = None
    shape: Annotated[Any, Key(SHAPE, "as a JobSpec writes it")] = None


def _shaped(flavor: Flavor, node: Node, reading: Reading) -> Any:
    if has_key(node, "resources") is has_key(node, "shape"):
        reading.report("JS421", node)
        return BAD
    return flavor


class NamedProfile(Element, frozen=True, kw_only=True):
    """A context that documents name, or that a label brings."""

    noun = "a profile"
    includes = (Inherited,)
    refused = ("profiles",)
    name: Annotated[str, Key(NAME, "its name", required=True)]
    labels: Annotated[
        dict[str, str], Key(Names(LABEL_KEY, FREE), "labels that bring it; an empty value matches any")
    ] = {}
    attributes: Annotated[Attributes | None, Key(Of(Attributes), "attributes it adds")] = None
    requires: Annotated[dict[str, str] | None, Key(Requires(), "facts it adds")] = None


class Priority(Element, frozen=True, kw_only=True):
    noun = "a priority class"
    name: Annotated[str, Key(NAME, "its name", required=True)]
    value: Annotated[int, Key(Whole(-(10**9), 10**9), "its weight", required=True)]


class Written(Element, frozen=True, kw_only=True):
    """One file of settings."""

    noun = "the settings"
    habits = {"harbor": "registries", "registry": "registries", "prefix": "image_prefix"}
    flavors: Annotated[
        tuple[Flavor, ...], Key(Items(Of(Flavor, _shaped), "a list of flavors"), "named shapes")
    ] = ()
    default_flavor: Annotated[str | None, Key(NAME, "for tasks without resources")] = None
    default_image: Annotated[str | None, Key(IMAGE, "for tasks without an image")] = None
    image_prefix: Annotated[
        str | None, Key(IMAGE_PREFIX, "stands before images that name no registry, on clusters")
    ] = None
    registries: Annotated[tuple[Registry, ...], Key(REGISTRIES, "where images come from")] = ()
    resource_types: Annotated[tuple[str, ...], Key(Items(TYPE, unique=True), "a site's own types")] = ()
    facts: Annotated[
        dict[str, str] | None, Key(Requires(), "facts of this machine besides those that are found")
    ] = None
    user: Annotated[
        dict[str, Any], Key(Names(IDENTIFIER, ScalarValue(), "a mapping of values"), "`{{user.…}}`")
    ] = {}
    profiles: Annotated[
        tuple[NamedProfile, ...], Key(Items(Of(NamedProfile), "a list of profiles"), "named contexts")
    ] = ()
    queues: Annotated[tuple[Queue, ...], Key(QUEUES, "queues jobs may name")] = ()
    accounts: Annotated[tuple[Account, ...], Key(ACCOUNTS, "who pays, as a tree")] = ()
    scheduler: Annotated[Scheduler | None, Key(SCHEDULER, "how jobs are scheduled")] = None
    kubernetes: Annotated[Kubernetes | None, Key(KUBERNETES, "the cluster that jobs run on")] = None
    slurm: Annotated[Slurm | None, Key(SLURM, "the Slurm cluster that jobs are submitted to")] = None
    flux: Annotated[Flux | None, Key(FLUX, "the Flux instance that jobs are submitted to")] = None
    tasks: Annotated[Tasks | None, Key(TASKS, "the broker that short tasks go to")] = None
    accounting: Annotated[dict[str, Any], Key(ACCOUNTING, "how usage is charged")] = {}
    priorities: Annotated[
        tuple[Priority, ...], Key(Items(Of(Priority), "a list of classes"), "priority classes jobs may name")
    ] = ()


WRITTEN = Of(Written)
