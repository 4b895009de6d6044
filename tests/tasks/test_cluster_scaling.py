"""Short tasks in pods of a real cluster: as many pods as the work asks for, and no task is lost."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobman.tasks.batches import Status
from jobman.tasks.external_metrics import GROUP, VERSION
from jobman.tasks.quotas import Quota
from jobman.tasks.scaling import Limits
from tests.engines.kubernetes.cluster import a_namespace, kubeconfig, kubectl
from tests.tasks.cluster_world import Site, registered, until

pytestmark = [
    pytest.mark.slow,
    *(pytest.mark.component(name) for name in ("kubernetes", "services")),
]
Results = dict[int, tuple[Status, bytes, int]]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 540))


def all_slept(found: Results, seconds: float, size: int) -> bool:
    whole = {(status, result) for status, result, _ in found.values()}
    return sorted(found) == list(range(size)) and whole == {(Status.COMPLETED, f"slept {seconds:g}".encode())}


# -- a real HPA ----------------------------------------------------------------------------------------------


def test_an_hpa_scales_workers_from_none_up_under_load_and_back_to_none(tmp_path):
    limits = Limits(least=0, most=3, slots=2, target=4.0, calm=5.0)

    async def scenario(site: Site) -> None:
        async with site.broker(), site.keeper(metrics):
            batch = await site.submit(*[0.5] * 240)
            await until(lambda: is_served(namespace))
            assert await answers_to(*metrics.listen) == {"front-proxy": 200, "kubelet-client": 403, "": 403}
            await until(lambda: has(site, 3))
            assert all_slept(await site.results(batch, 240), 0.5, 240)
            await until(lambda: has(site, 0))
            sizes = await site.sizes_by_hpa()
            assert (sizes[0], sizes[-1]) == (3, 1), "from none to one and back is not for an HPA"

    with a_namespace() as namespace:
        site = Site(namespace, tmp_path, limits)
        with registered(namespace, tmp_path) as metrics:
            run(lambda: scenario(site))


async def has(site: Site, number: int) -> bool:
    return await site.replicas() == number


async def is_served(namespace: str) -> bool:
    """Whether the API server of the cluster leads to the metrics."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/jobman_outstanding_seconds"
    try:
        return bool(json.loads(await asyncio.to_thread(kubectl, "get", "--raw", path))["items"])
    except AssertionError:
        return False


async def answers_to(host: str, port: int) -> dict[str, int]:
    """What those are answered who show a certificate of this name; all are of the cluster's authority."""
    folder = kubeconfig().parent
    url = f"https://{host}:{port}/apis/{GROUP}/{VERSION}"
    shown = {
        name: (folder / f"{name}.crt", folder / f"{name}.key") for name in ("front-proxy", "kubelet-client")
    }
    found = {name: await asyncio.to_thread(status, url, files) for name, files in shown.items()}
    return {**found, "": await asyncio.to_thread(status, url, None)}


def status(url: str, shown: tuple[Path, Path] | None) -> int:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(*shown)
    try:
        with urllib.request.urlopen(url, context=context, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


# -- neither an HPA nor KEDA ---------------------------------------------------------------------------------


def test_no_task_is_lost_when_pods_die_the_broker_restarts_and_workers_are_scaled_down(tmp_path):
    limits = Limits(least=0, most=3, slots=2, target=2.0, calm=2.0)

    async def scenario(site: Site) -> None:
        async with site.broker() as broker, site.keeper(forget=2.0):
            first = await site.submit(*[0.4] * 120)
            await until(lambda: is_working(site, 3))
            (victim, *_) = await site.ready()
            await site.destroy(victim)
            second = await site.submit(*[0.6] * 40)
            await broker.kill()
            await broker.start()
            assert all_slept(await site.results(first, 120), 0.4, 120)
            assert all_slept(await site.results(second, 40), 0.6, 40)
            await until(lambda: has(site, 0))
            await until(lambda: is_gone(site))

    with a_namespace() as namespace:
        run(lambda: scenario(Site(namespace, tmp_path, limits)))


def test_scaling_down_takes_idle_pods_and_a_pod_that_is_deleted_finishes_its_task(tmp_path):
    limits = Limits(least=0, most=3, slots=1, target=1.0, calm=2.0)

    async def scenario(site: Site) -> None:
        async with site.broker(), site.keeper():
            short_ones = await site.submit(*[0.2] * 100, estimate=5.0)
            await until(lambda: is_working(site, 3))
            long = await site.submit(30.0, estimate=0.1)
            assert all_slept(await site.results(short_ones, 100), 0.2, 100)
            (busy,) = await site.busy()
            await until(lambda: is_working(site, 1))
            assert await site.ready() == [busy]
            words = ("delete", "pod", busy, "-n", namespace, "--wait=false")
            await asyncio.to_thread(kubectl, *words)
            assert await site.results(long, 1) == {0: (Status.COMPLETED, b"slept 30", 1)}
            await until(lambda: is_gone_from(site, busy))

    with a_namespace() as namespace:
        run(lambda: scenario(Site(namespace, tmp_path, limits)))


def test_neither_a_tenant_nor_an_image_has_more_workers_than_it_may(tmp_path):
    limits = Limits(least=0, most=2, slots=1, target=1.0, calm=60.0)

    async def scenario(site: Site) -> None:
        async with site.broker(), site.keeper():
            poor = await site.submit(*[0.25] * 40, tenant="poor")
            seen = asyncio.create_task(most_at_once(site))
            assert all_slept(await site.results(poor, 40, "poor"), 0.25, 40)
            assert await site.replicas() == 1
            rich = await site.submit(*[0.25] * 40, tenant="rich")
            more = await site.submit(*[0.25] * 40, tenant="poor")
            assert all_slept(await site.results(rich, 40, "rich"), 0.25, 40)
            assert all_slept(await site.results(more, 40, "poor"), 0.25, 40)
            seen.cancel()
            assert await seen == 2

    with a_namespace() as namespace:
        run(lambda: scenario(Site(namespace, tmp_path, limits, {"poor": Quota(workers=1)})))


async def most_at_once(site: Site) -> int:
    """The most pods that there were until it is cancelled."""
    most = 0
    try:
        while True:
            most = max(most, len(await site.pods()))
            await asyncio.sleep(0.5)
    except asyncio.CancelledError:
        return most


async def is_working(site: Site, number: int) -> bool:
    return len(await site.ready()) == number


async def is_gone(site: Site) -> bool:
    return not await site.deployments() and not await site.pods()


async def is_gone_from(site: Site, name: str) -> bool:
    return name not in [each["metadata"]["name"] for each in await site.pods()]
