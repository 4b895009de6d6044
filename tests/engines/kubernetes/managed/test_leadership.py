"""The Lease of a real cluster, with a way to it that can be closed; and the guard that stops every act."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.link import Link
from jobman.engines.kubernetes.managed.leadership import Leadership, NotLeading
from jobman.engines.kubernetes.managed.lease import Terms
from tests.engines.kubernetes.cluster import (
    Relay,
    a_config_map,
    a_namespace,
    kubeconfig,
    kubectl_json,
    on_a_real_cluster,
)

TERMS = Terms.lasting(6)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


# -- on a cluster --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    with a_namespace() as name:
        yield name


def spec_of(name: str, namespace: str) -> dict[str, object]:
    found: dict[str, object] = kubectl_json("get", "lease", name, "-n", namespace)["spec"]
    return found


@on_a_real_cluster
@pytest.mark.slow
def test_a_leader_survives_a_cluster_that_is_away_for_less_than_the_time_to_renew(namespace):
    async def scenario() -> None:
        relay = Relay(load(kubeconfig()))
        await relay.listen()
        leader = Leadership(relay.access, "brief", namespace=namespace, terms=TERMS)
        leader.start()
        await until(lambda: leader.leads)
        await relay.close()
        await until(lambda: bool(leader.trouble))
        leader.check()
        await relay.listen()
        await until(lambda: not leader.trouble)
        leader.check()
        await asyncio.to_thread(leader.leave)
        await relay.close()

    asyncio.run(scenario())
    assert "holderIdentity" not in spec_of("brief", namespace)


@on_a_real_cluster
@pytest.mark.slow
def test_a_leader_that_cannot_renew_stops_before_another_may_begin(namespace):
    async def scenario() -> None:
        relay = Relay(load(kubeconfig()))
        await relay.listen()
        first = Leadership(relay.access, "long", namespace=namespace, terms=TERMS)
        other = Leadership(load(kubeconfig()), "long", namespace=namespace, terms=TERMS)
        told, left, overlaps = threading.Event(), [], []
        first.on_change = lambda: (told.set(), left.append(first.time_left)) if first.is_lost else None  # type: ignore[assignment,func-returns-value]
        first.start()
        await until(lambda: first.leads)
        other.on_change = lambda: overlaps.append(first.leads) if other.has_won else None
        other.start()
        await relay.close()
        await until(lambda: first.is_lost)
        with pytest.raises(NotLeading):
            first.check()
        assert await asyncio.to_thread(told.wait, 30)
        assert left[0] > 0, "there is time to end in"
        await until(lambda: other.leads)
        assert overlaps == [False]
        with pytest.raises(NotLeading):
            first.check()
        for each in (first, other):
            await asyncio.to_thread(each.leave)

    asyncio.run(scenario())


@on_a_real_cluster
@pytest.mark.slow
def test_nothing_is_changed_in_a_cluster_by_one_that_leads_no_more(namespace):
    async def scenario() -> None:
        leader = Leadership(load(kubeconfig()), "guarded", namespace=namespace, terms=TERMS)
        leader.start()
        await until(lambda: leader.leads)
        async with Api(load(kubeconfig()), guard=leader.check) as api:
            await api.create(a_config_map("before", namespace))
            await asyncio.to_thread(leader.leave)
            with pytest.raises(NotLeading):
                await api.create(a_config_map("after", namespace))
            with pytest.raises(NotLeading):
                await api.delete(CONFIG_MAPS, "before", namespace)
            assert await api.find(CONFIG_MAPS, "before", namespace), "reading is allowed"
            assert not await api.find(CONFIG_MAPS, "after", namespace)

    asyncio.run(scenario())


# -- the guard -----------------------------------------------------------------------------------------------


class Guard:
    """Lets pass so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotLeading


def test_a_guard_is_asked_before_each_change_and_each_repetition_of_it():
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return httpx.Response(503, headers={"Retry-After": "0"})

    async def scenario() -> None:
        access = Access(server="https://one.example")
        link = Link(access, environment={}, transport=httpx.MockTransport(answer), guard=Guard(2))
        with pytest.raises(NotLeading):
            await link.ask("PATCH", "/", body=b"{}", safe=True)
        await link.close()

    asyncio.run(scenario())
    assert asked == ["PATCH", "PATCH"]


def test_what_waited_for_a_connection_does_not_leave_when_the_lead_is_lost_meanwhile():
    async def scenario() -> None:
        received = b""

        async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal received
            received += await reader.read()
            writer.close()

        server = await asyncio.start_server(hear, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        link = Link(Access(server=f"http://127.0.0.1:{port}"), environment={}, guard=Guard(1))
        with pytest.raises(NotLeading):
            await link.ask("POST", "/", body=b"{}", safe=False)
        await link.close()
        server.close()
        await server.wait_closed()
        assert received == b""

    asyncio.run(scenario())
