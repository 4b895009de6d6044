"""Workers in a cluster: for each image that tasks need, a Deployment of the size that the work asks for.

Each round looks at what is outstanding and at what stands in the cluster, and does what is missing; nothing
is kept from one to the next but what is calm for how long. So it may be ended and started at any time, and
two that run at once do the same twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum

import msgspec

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import ApiError
from jobman.engines.kubernetes.kinds import PODS, Kind
from jobman.engines.kubernetes.objects import Kept, Object, Written
from jobman.tasks.departures import Busy, Departures
from jobman.tasks.mapper import Executor
from jobman.tasks.pods import (
    IMAGE,
    SELECTOR,
    Place,
    autoscaler,
    deployment,
    name_of,
    scaled_object,
    short,
    trust,
)
from jobman.tasks.scaling import Limits, Scale

log = logging.getLogger("jobman.tasks.cluster")
_FORGET = 3600.0
_ANEW = 300.0
"""Seconds after which an object is written again, whatever we remember of it."""


class Way(Enum):
    """Who changes the number of pods."""

    OWN = "own"
    HPA = "hpa"
    """And this program from none to one and back, which an HPA does not do."""
    KEDA = "keda"


class Outstanding(msgspec.Struct, frozen=True, kw_only=True):
    """The work of an image, as the broker tells it."""

    workable: float = 0.0
    """Seconds that are outstanding, as far as quotas let workers have them."""
    busy: int = 0
    """Slots that have something to do."""
    resources: dict[str, str] = {}
    """Of a worker, and its environment, as a mapper said that the settings know nothing of."""
    environment: dict[str, str] = {}


class Broker(msgspec.Struct, frozen=True):
    """The two questions to a broker."""

    outstanding: Callable[[], Awaitable[Mapping[str, Outstanding]]]
    agents: Callable[[], Awaitable[Mapping[str, Busy]]]


class DeploymentSpec(Object, kw_only=True):
    replicas: int = 1


class Deployment(Kept, kw_only=True):
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)


DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments", Deployment)
AUTOSCALERS = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", Kept)
SCALED_OBJECTS = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects", Kept)
_SCALERS = {Way.HPA: AUTOSCALERS, Way.KEDA: SCALED_OBJECTS}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a site says of images."""

    place: Place
    executors: Mapping[str, Executor] = {}
    limits: Mapping[str, Limits] = {}
    """By image; under `*` those of all others."""
    way: Way = Way.OWN
    prometheus: str = ""
    """Where KEDA asks."""
    forget: float = _FORGET
    """Seconds after which a Deployment without pods is deleted."""

    def executor(self, image: str, work: Outstanding) -> Executor | None:
        """Who executes tasks of an image; None where nobody says it now, since there are none."""
        if image in self.executors:
            return self.executors[image]
        if work == Outstanding():
            return None
        return Executor(image=image, resources=work.resources, environment=work.environment)

    def limits_of(self, image: str) -> Limits:
        return self.limits.get(image) or self.limits.get("*") or Limits()


def size(way: Way, wanted: int, there: int) -> int | None:
    """How many pods to set; None where that is for others to say, or is so already."""
    if way is Way.OWN and wanted != there:
        return wanted
    some = min(wanted, 1)
    return some if way is Way.HPA and {some, there} == {0, 1} else None


class Cluster:
    """The pods of all images."""

    def __init__(self, api: Api, broker: Broker, plan: Plan) -> None:
        self._api = api
        self._broker = broker
        self.plan = plan
        self.outstanding: Mapping[str, Outstanding] = {}
        """As the broker told it last."""
        self._scales: dict[str, Scale] = {}
        self._unused: dict[str, float] = {}
        """Since when a Deployment has been without pods."""
        self._written: dict[tuple[str, str], tuple[Written, float]] = {}
        self._departures = Departures(api)

    async def round(self, now: float) -> None:
        """Look, and do what is missing. Where the broker does not answer, nothing is changed."""
        self.outstanding = await self._broker.outstanding()
        there = await self._there()
        for image in self._needed(there):
            try:
                await self._see_to(image, there.get(image), now)
            except ApiError as error:
                # What is wrong with one image is not in the way of others.
                log.error("%s: %s %s", image, error.message, error.advice)
        await self._see_to_pods(there)

    async def take_over(self) -> None:
        """Remove whoever else would change the number of pods, and tell agents whom to trust."""
        for way, kind in _SCALERS.items():
            if way is not self.plan.way and await self._api.serves(kind):
                await self._api.delete_all(kind, SELECTOR, self.plan.place.namespace)
        if self.plan.place.authority:
            await self._api.apply_patch(trust(self.plan.place), force=True)

    @property
    def known(self) -> Mapping[str, Outstanding]:
        """The work of all images that stand in the cluster or are needed there; most have none."""
        return {
            image: self.outstanding.get(image, Outstanding()) for image in (*self._scales, *self.outstanding)
        }

    async def _there(self) -> dict[str, Deployment]:
        found = await self._api.list(DEPLOYMENTS, self.plan.place.namespace, labels=SELECTOR)
        return {each.metadata.annotations.get(IMAGE, ""): each for each in found.items}

    def _needed(self, there: Iterable[str]) -> list[str]:
        kept = [image for image in self.plan.executors if self.plan.limits_of(image).least]
        return sorted({*self.outstanding, *kept, *there} - {""})

    async def _see_to(self, image: str, known: Deployment | None, now: float) -> None:
        limits = self.plan.limits_of(image)
        work = self.outstanding.get(image, Outstanding())
        scale = self._scales.setdefault(image, Scale(limits))
        wanted = scale.wanted(work.workable, work.busy, now)
        if wanted == 0 and (known is None or known.spec.replicas == 0):
            await self._leave(image, known, now)
            return
        self._unused.pop(image, None)
        if known is None:
            self._forget_written(image)
        made, executor = None, self.plan.executor(image, work)
        if executor is None and known is None:
            return
        if executor is not None:
            made = await self._write(image, deployment(executor, limits, self.plan.place), now)
        known = made or known or await self._api.get(DEPLOYMENTS, name_of(image), self.plan.place.namespace)
        await self._see_to_scaler(image, limits, known.metadata.uid, now)
        number = size(self.plan.way, wanted, known.spec.replicas)
        if number is not None:
            await self._resize(image, known.spec.replicas, number)

    async def _leave(self, image: str, known: Deployment | None, now: float) -> None:
        """Nobody needs it; in a while it goes, with whoever scales it."""
        if known is None:
            return
        since = self._unused.setdefault(image, now)
        if now - since >= self.plan.forget:
            await self._api.delete(DEPLOYMENTS, known.metadata.name, known.metadata.namespace)
            log.info("deleted %s: no task needs %s", known.metadata.name, image)
            self._unused.pop(image)
            self._scales.pop(image)
            self._forget_written(image)

    def _forget_written(self, image: str) -> None:
        self._written = {key: kept for key, kept in self._written.items() if key[0] != image}

    async def _see_to_scaler(self, image: str, limits: Limits, owner: str, now: float) -> None:
        place = self.plan.place
        if self.plan.way is Way.HPA:
            await self._write(image, autoscaler(image, limits, place, owner), now)
        elif self.plan.way is Way.KEDA:
            await self._write(image, scaled_object(image, limits, place, owner, self.plan.prometheus), now)

    async def _write(self, image: str, written: Written, now: float) -> Deployment | None:
        """Make it so, unless it was made so a while ago; a Deployment as it is then."""
        key = image, written["kind"]
        before = self._written.get(key)
        if before is not None and before[0] == written and now - before[1] < _ANEW:
            return None
        made = await self._api.apply_patch(written, force=True)
        self._written[key] = written, now
        if written["kind"] != "Deployment":
            return None
        return await self._api.get(DEPLOYMENTS, made.metadata.name, made.metadata.namespace)

    async def _resize(self, image: str, before: int, number: int) -> None:
        namespace = self.plan.place.namespace
        patch = {"spec": {"replicas": number}}
        await self._api.merge_patch(DEPLOYMENTS, name_of(image), patch, namespace, part="scale")
        log.info("%s: %d pods, were %d", image, number, before)

    # -- pods --------------------------------------------------------------------------------------

    async def _see_to_pods(self, there: Iterable[str]) -> None:
        pods = (await self._api.list(PODS, self.plan.place.namespace, labels=SELECTOR)).items
        if not pods:
            return
        agents = await self._broker.agents()
        for image in there:
            mine = [pod for pod in pods if pod.metadata.labels.get(IMAGE) == short(image)]
            await self._departures.price(mine, self.plan.limits_of(image).slots, agents)
