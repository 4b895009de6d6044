"""What people and scalers are told of the tasks there are; numbers of one moment."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jobman.tasks.batches import Batch, Status
from jobman.tasks.broker import Broker
from jobman.tasks.estimates import History, Kind
from jobman.tasks.quotas import Quota
from jobman.tasks.scaling import Limits, Scale

_MOST_SHOWN = 200
"""Bytes of a payload."""


class ImageStats(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a tenant on one image, and who executes them."""

    image: str
    queued: int
    running: int
    completed: int
    failed: int
    killed: int
    expired: int
    outstanding_seconds: float
    oldest_seconds: float
    """Since the oldest of those that wait was submitted."""
    agents: int
    slots: int
    seconds_used: float
    rate: float
    """Tasks a second that end, lately."""
    estimate_error: float
    """How far estimates are off in the mean, as a part of what tasks take."""
    estimate_bias: float
    """What tasks take beside their estimate: above 1 they take longer."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """All that a tenant has."""

    tenant: str
    images: list[ImageStats]
    open: int
    queued_bytes: int
    batches: int


class TypeEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of how long tasks take, in seconds."""

    version: str | None
    p50: float
    p90: float
    mean: float
    count: int
    error: float
    bias: float


class TypeStats(msgspec.Struct, frozen=True, kw_only=True):
    """A type of tasks: who executes which versions, and how long they take."""

    type: str
    versions: str
    image: str
    resources: dict[str, str] = {}
    """Of a worker."""
    estimate: TypeEstimate | None = None
    """Of the version that is executed most; nothing where none was yet."""


class Outstanding(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one image, of all tenants."""

    seconds: float
    workable: float
    """Of them those that quotas let workers have in the time that is aimed at: more workers would be idle."""
    queued: int
    running: int
    busy: int
    """Slots of agents that have something to do; what only waits at an agent keeps none busy."""
    agents: int
    slots: int
    wanted: int
    resources: dict[str, str] = {}
    """Of a worker, and its environment, as mappers said last."""
    environment: dict[str, str] = {}


class AgentStats(msgspec.Struct, frozen=True, kw_only=True):
    """An agent, and what it has."""

    image: str
    slots: int
    held: int
    credit: float
    """Seconds of work that it wanted when it asked last."""
    silent: float
    """Seconds since it was heard of."""


class BatchStats(msgspec.Struct, frozen=True, kw_only=True):
    """A batch, and how far it is."""

    batch: int
    key: str
    name: str
    type: str
    version: str | None
    image: str
    size: int
    left: int
    running: int
    failed: int
    at: float
    """When it was submitted, on the clock of the wall."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A task that failed for good."""

    batch: int
    index: int
    type: str
    version: str | None
    attempts: int
    deaths: int
    """Workers that it took with it."""
    reason: str
    payload: bytes
    """The beginning of it."""


def stats_of(broker: Broker, tenant: str, now: float) -> Stats:
    """What a tenant has on each image."""
    images = sorted({image for owner, image in broker.tallies.all if owner == tenant})
    usage = broker.usage.get(tenant)
    return Stats(
        tenant=tenant,
        images=[_image(broker, tenant, image, now) for image in images],
        open=0 if usage is None else usage.tasks,
        queued_bytes=0 if usage is None else usage.bytes,
        batches=sum(batch.tenant == tenant for batch in broker.batches.values()),
    )


def _image(broker: Broker, tenant: str, image: str, now: float) -> ImageStats:
    own = [batch for batch in open_batches(broker, image) if batch.tenant == tenant]
    tally = broker.tallies.of(tenant, image)
    agents = [agent for agent in broker.leases.agents.values() if agent.image == image]
    errors = [history.errors for kind, history in histories(broker) if kind[2] == image and history.count]
    return ImageStats(
        image=image,
        queued=sum(map(waiting, own)),
        running=sum(batch.count(Status.GIVEN) for batch in own),
        completed=tally.ended[Status.COMPLETED],
        failed=tally.ended[Status.FAILED],
        killed=tally.ended[Status.KILLED],
        expired=tally.ended[Status.EXPIRED],
        outstanding_seconds=sum(map(seconds_of, own)),
        oldest_seconds=oldest(own, now),
        agents=len(agents),
        slots=sum(agent.slots for agent in agents),
        seconds_used=tally.seconds,
        rate=tally.rate,
        estimate_error=max((each.relative for each in errors), default=0.0),
        estimate_bias=max((each.bias for each in errors), key=lambda bias: abs(bias - 1), default=1.0),
    )


def open_batches(broker: Broker, image: str) -> list[Batch]:
    """Those of an image that have tasks which have not ended."""
    return [batch for batch in broker.batches.values() if batch.left and batch.image == image]


def waiting(batch: Batch) -> int:
    """Tasks that are in no agent's hands: a pause between attempts counts as well."""
    return batch.count(Status.QUEUED) + batch.count(Status.RESTING)


def seconds_of(batch: Batch) -> float:
    """Estimated seconds of those that have not ended."""
    if isinstance(batch.estimates, float):
        return batch.estimates * batch.left
    return batch.seconds_of(batch.where(Status.QUEUED, Status.GIVEN, Status.RESTING))


def oldest(batches: list[Batch], now: float) -> float:
    """Seconds since the oldest of those that wait was submitted."""
    return max((now - batch.since for batch in batches if waiting(batch)), default=0.0)


def histories(broker: Broker) -> Iterator[tuple[Kind, History]]:
    """What tasks took, by type, version and image."""
    yield from broker.estimator.histories.items()


def types_of(broker: Broker) -> list[TypeStats]:
    """The types that are known here."""
    return [
        TypeStats(
            type=name,
            versions=entry.versions,
            image=entry.image,
            resources=entry.resources,
            estimate=_estimate(broker, name, entry.image),
        )
        for name, entries in broker.table.types.items()
        for entry in entries
    ]


def _estimate(broker: Broker, type_: str, image: str) -> TypeEstimate | None:
    known = [
        (version, history)
        for (name, version, where), history in histories(broker)
        if (name, where) == (type_, image)
    ]
    if not known:
        return None
    version, history = max(known, key=lambda each: each[1].count)
    return TypeEstimate(
        version=version,
        p50=history.quantile(0.5),
        p90=history.quantile(0.9),
        mean=history.mean,
        count=history.count,
        error=history.errors.relative,
        bias=history.errors.bias,
    )


def outstanding(broker: Broker, image: str, scale: Scale, now: float) -> Outstanding:
    """The work of an image, and the workers that it wants."""
    batches = open_batches(broker, image)
    useful = workable(broker, batches, scale.limits)
    agents = [agent for agent in broker.leases.agents.values() if agent.image == image]
    busy = sum(min(agent.count, agent.slots) for agent in agents)
    known = broker.executors.get(image)
    return Outstanding(
        seconds=sum(map(seconds_of, batches)),
        workable=useful,
        queued=sum(map(waiting, batches)),
        running=sum(batch.count(Status.GIVEN) for batch in batches),
        busy=busy,
        agents=len(agents),
        slots=sum(agent.slots for agent in agents),
        wanted=scale.wanted(useful, busy, now),
        resources={} if known is None else known.resources,
        environment={} if known is None else known.environment,
    )


def agents_of(broker: Broker, now: float) -> dict[str, AgentStats]:
    """All agents, by their ids."""
    return {
        agent.id: AgentStats(
            image=agent.image,
            slots=agent.slots,
            held=agent.count,
            credit=agent.credit,
            silent=max(0.0, now - agent.heard),
        )
        for agent in broker.leases.agents.values()
    }


def batch_stats(broker: Broker, batch: Batch, now: float, wall: float) -> BatchStats:
    """How far a batch is."""
    head = broker.heads[batch.id]
    return BatchStats(
        batch=batch.id,
        key=broker.key_of(batch.id),
        name=head.name,
        type=head.type,
        version=head.version,
        image=batch.image,
        size=len(batch),
        left=batch.left,
        running=batch.count(Status.GIVEN),
        failed=batch.count(Status.FAILED),
        at=wall - (now - batch.since),
    )


def workable(broker: Broker, batches: list[Batch], limits: Limits) -> float:
    """Estimated seconds, of each tenant at most those that its quota lets workers have at once."""
    seconds: dict[str, float] = {}
    for batch in batches:
        seconds[batch.tenant] = seconds.get(batch.tenant, 0.0) + seconds_of(batch)
    quotas = {tenant: broker.quotas.get(tenant, Quota()) for tenant in seconds}
    return sum(
        min(each, limits.seconds_for(quotas[tenant].workers, quotas[tenant].slots))
        for tenant, each in seconds.items()
    )


def shown(payload: bytes) -> bytes:
    """As much of a payload as people want to see."""
    return payload[:_MOST_SHOWN]
