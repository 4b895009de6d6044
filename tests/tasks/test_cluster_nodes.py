"""A node that is lost takes no task with it: its pods are replaced on another."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jobman.tasks.batches import Status
from jobman.tasks.pods import Toleration
from jobman.tasks.scaling import Limits
from tests.engines.kubernetes.cluster import a_namespace, kubectl, two_nodes
from tests.engines.kubernetes.managed.frail import stop_node, the_frail_node
from tests.tasks.cluster_world import Site, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.lab("it breaks a node"),
    *(pytest.mark.component(name) for name in ("kubernetes", "services")),
]
SECONDS, SIZE = 0.5, 80
FAULTS = Toleration(key="jobman.io/lab", value="faults")


def test_the_tasks_of_a_lost_node_are_executed_elsewhere_and_recorded_once(tmp_path):
    limits = Limits(least=2, most=2, slots=2, target=2.0)

    async def scenario(site: Site, frail: str, label: str) -> None:
        async with site.broker(), site.keeper():
            await until(lambda: are_ready_on(site, frail, 2))
            batch = await site.submit(*[SECONDS] * SIZE)
            lost = await until(lambda: site.busy())
            await asyncio.to_thread(kubectl, "label", "node", two_nodes()[0], label)
            await asyncio.to_thread(stop_node)
            for pod in await site.ready():
                await site.strike(pod)
            found = await site.results(batch, SIZE)
            assert sorted(found) == list(range(SIZE))
            whole = {(status, result) for status, result, _ in found.values()}
            assert whole == {(Status.COMPLETED, f"slept {SECONDS:g}".encode())}
            again = [index for index, (_, _, attempt) in found.items() if attempt > 1]
            assert lost
            assert 0 < len(again) < SIZE

    with the_frail_node() as frail, a_namespace() as namespace, labelled(frail) as label:
        key, _, value = label.partition("=")
        site = Site(
            namespace,
            tmp_path,
            limits,
            nodes=(frail,),
            node_labels={key: value},
            tolerations=(FAULTS,),
            lost=3,
        )
        asyncio.run(asyncio.wait_for(scenario(site, frail, label), 540))


@contextmanager
def labelled(node: str) -> Iterator[str]:
    """A label that at first only this node has; nobody has it afterwards."""
    key = f"jobman.io/test-{secrets.token_hex(4)}"
    kubectl("label", "node", node, f"{key}=here")
    try:
        yield f"{key}=here"
    finally:
        kubectl("label", "nodes", "-l", key, f"{key}-")


async def are_ready_on(site: Site, node: str, number: int) -> bool:
    ready = set(await site.ready())
    places = [each["spec"].get("nodeName") for each in await site.pods() if each["metadata"]["name"] in ready]
    return places == [node] * number
