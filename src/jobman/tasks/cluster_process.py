"""The process that keeps workers in a cluster: asks the broker, sees to pods, serves metrics to an HPA."""

from __future__ import annotations

import asyncio
import base64
import logging
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import ConfigError, KubernetesError
from jobman.engines.kubernetes.kinds import Kind
from jobman.engines.kubernetes.objects import Kept, Object
from jobman.tasks.addresses import WrongAddress, parse
from jobman.tasks.cluster import SCALED_OBJECTS, Broker, Cluster, Outstanding, Plan, Way
from jobman.tasks.departures import Busy
from jobman.tasks.external_metrics import GROUP, VERSION, Said, Value, answer
from jobman.tasks.front_proxy import Certificate, FrontProxy, ProxiedServer, front_proxy
from jobman.tasks.pods import BUSY, OUTSTANDING, short
from jobman.tasks.settings import SiteSettings, WrongSettings, read_settings
from jobman.tasks.wire import Answer, Broken, Connection

log = logging.getLogger("jobman.tasks.cluster")
T = TypeVar("T")
API_SERVICE = f"{VERSION}.{GROUP}"
_RENEW = 60.0
"""Seconds after which it is looked at again who may ask and who scales."""


class ServiceReference(Object, kw_only=True):
    name: str = ""
    namespace: str = ""


class ApiServiceSpec(Object, kw_only=True):
    service: ServiceReference | None = None
    ca_bundle: str = ""


class ApiService(Kept, kw_only=True):
    """Who serves a group of the API."""

    spec: ApiServiceSpec = msgspec.field(default_factory=ApiServiceSpec)


API_SERVICES = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", ApiService, namespaced=False)


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """How metrics are served to an HPA."""

    listen: tuple[str, int]
    certificate: Certificate
    service: tuple[str, str]
    """Name and namespace of the Service that leads here."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All that the process is told."""

    plan: Plan
    broker: str
    token: str = ""
    ca_file: Path | None = None
    """Who signed the certificate of the broker; None for whom the machine trusts."""
    way: Way | None = None
    """None for the best that the cluster has."""
    metrics: Metrics | None = None
    period: float = 2.0


class BrokerLost(Exception):
    """The broker does not answer, or not as it should."""


# -- settings ------------------------------------------------------------------------------------------------


def settings_of(text: str | bytes) -> SiteSettings:
    """Of YAML or JSON; raises ConfigError."""
    try:
        return read_settings(text)
    except WrongSettings as error:
        raise ConfigError(f"The settings are wrong: {error}.", f"{error.advice}.") from None


# -- the broker ----------------------------------------------------------------------------------------------


def connect(address: str, token: str, ca_file: Path | None = None) -> Connection:
    """A connection to a broker; raises ConfigError."""
    try:
        found = parse(address)
    except WrongAddress as error:
        raise ConfigError(f"--broker: {error}.", error.advice) from None
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return found.connection(headers, None if ca_file is None else str(ca_file))


def questions(connection: Connection) -> Broker:
    """What this process asks a broker."""

    async def outstanding() -> Mapping[str, Outstanding]:
        return _read(await _ask(connection, "/v1/tasks/outstanding"), dict[str, Outstanding])

    async def agents() -> Mapping[str, Busy]:
        return _read(await _ask(connection, "/v1/agents"), dict[str, Busy])

    return Broker(outstanding, agents)


async def _ask(connection: Connection, path: str) -> Answer:
    try:
        return await asyncio.wait_for(connection.ask("GET", path), 30)
    except (Broken, TimeoutError) as error:
        raise BrokerLost(f"the broker does not answer: {error or 'it takes too long'}") from error


def _read(told: Answer, kind: type[T]) -> T:
    if told.status != 200:
        raise BrokerLost(f"the broker answers {told.status}: {told.body[:200]!r}")
    try:
        return msgspec.msgpack.decode(told.body, type=kind)
    except msgspec.MsgspecError as error:
        raise BrokerLost(f"the broker gives an answer that is not understood: {error}") from error


# -- the process ---------------------------------------------------------------------------------------------


class Keeper:
    """Rounds one after the other, until it is told to stop."""

    def __init__(self, api: Api, options: Options) -> None:
        self._api = api
        self._options = options
        self._connection = connect(options.broker, options.token, options.ca_file)
        self.cluster = Cluster(api, questions(self._connection), options.plan)
        self._server = ProxiedServer(self._answer)
        self._serves_as: tuple[FrontProxy, tuple[bytes, bytes]] | None = None
        self._asked_at = datetime.now(UTC)
        self._renewed = float("-inf")
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        """What goes wrong in a round is told, and tried again in the next."""
        now = asyncio.get_running_loop().time
        try:
            while not self._stopped.is_set():
                try:
                    await self._round(now())
                except KubernetesError as error:
                    log.error("%s %s", error.message, error.advice)
                except (BrokerLost, OSError) as error:
                    log.error("%s", error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), self._options.period)
        finally:
            await self._server.close()
            self._connection.close()

    async def _round(self, now: float) -> None:
        if now - self._renewed >= _RENEW:
            await self._serve()
            await self._choose(is_first=self._renewed == float("-inf"))
            self._renewed = now
        await self.cluster.round(now)
        self._asked_at = datetime.now(UTC)

    async def _serve(self) -> None:
        """Listen, anew where a certificate or who may ask has changed."""
        metrics = self._options.metrics
        if metrics is None:
            return
        serves_as = await front_proxy(self._api), metrics.certificate.content
        if serves_as != self._serves_as:
            port = await self._server.listen(metrics.listen, metrics.certificate, serves_as[0])
            self._serves_as = serves_as
            log.info("metrics are served at port %d", port)
        service = await self._registered(metrics)
        bundle = base64.b64encode(metrics.certificate.authority.read_bytes()).decode()
        if service is not None and service.spec.ca_bundle != bundle:
            patch = {"spec": {"caBundle": bundle}}
            await self._api.merge_patch(API_SERVICES, API_SERVICE, patch, "")

    async def _registered(self, metrics: Metrics) -> ApiService | None:
        """The registration of the API, where it leads here and not to somebody else."""
        found = await self._api.find(API_SERVICES, API_SERVICE, "")
        ours = ServiceReference(name=metrics.service[0], namespace=metrics.service[1])
        return found if found is not None and found.spec.service == ours else None

    async def _choose(self, *, is_first: bool) -> None:
        way = self._options.way or await self._best()
        if is_first or way is not self.cluster.plan.way:
            self.cluster.plan = msgspec.structs.replace(self.cluster.plan, way=way)
            await self.cluster.take_over()
            log.info("the number of pods is changed by: %s", way.value)

    async def _best(self) -> Way:
        metrics = self._options.metrics
        if self._options.plan.prometheus and await self._api.serves(SCALED_OBJECTS):
            return Way.KEDA
        if metrics is not None and await self._registered(metrics) is not None:
            return Way.HPA
        return Way.OWN

    def _answer(self, path: str, query: str) -> Said:
        values = (
            Value(metric=metric, labels={"image": short(image)}, value=value, at=self._asked_at)
            for image, work in self.cluster.known.items()
            for metric, value in ((OUTSTANDING, work.workable), (BUSY, float(work.busy)))
        )
        return answer(path, query, values, self._options.plan.place.namespace)


async def run(access: Access, options: Options) -> None:
    """Until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    async with Api(access) as api:
        keeper = Keeper(api, options)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, keeper.stop)
        await keeper.run()
