"""Jobs that are connected while they run, where the cluster is only pretended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

import msgspec

from jobman.engines import base
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.attempt import Attempt
from jobman.engines.kubernetes.managed.connecting import Connector
from jobman.engines.kubernetes.managed.releasing import Releaser
from jobman.engines.kubernetes.managed.runner import Runner
from jobman.engines.kubernetes.objects import Pod
from tests.engines.kubernetes.managed.orders_of import ID, order
from tests.engines.kubernetes.managed.pods_of import a_pod
from tests.engines.kubernetes.objects_of import plan_of, task


class Cluster:
    """One job with one pod, whose labels a watch shows late, if ever; changes are applied at once."""

    def __init__(self) -> None:
        self.attempt = Attempt(order(plan_of(task())), "a", 0.0, is_new=True)
        self.attempt.pods[0] = a_pod(started=0)
        self.labels: dict[str, str] = {}
        self.changes = 0
        self.shared = 0
        self.answers: list[asyncio.Event] = []
        """Changes that take until these are set."""
        self.connector = Connector(cast(Runner, self), cast(Releaser, self))

    def of_job(self, job: str) -> list[Attempt]:
        return [self.attempt] if job == ID else []

    async def ensure_shared(self, _order: base.Order, *, connected: bool) -> None:
        self.shared += connected

    async def relabel(self, _pod: Pod, changes: Mapping[str, str | None]) -> None:
        self.changes += 1
        if self.answers:
            await self.answers.pop(0).wait()
        merged = {**self.labels, **changes}
        self.labels = {key: value for key, value in merged.items() if value is not None}

    def show(self) -> None:
        """A watch tells what the labels are."""
        pod = self.attempt.pods[0]
        metadata = msgspec.structs.replace(pod.metadata, labels=self.labels)
        self.attempt.pods[0] = msgspec.structs.replace(pod, metadata=metadata)

    @property
    def partners(self) -> list[str]:
        return sorted(key.removeprefix(names.CONNECT) for key in self.labels)


def test_for_a_job_that_is_and_was_alone_there_is_nothing_to_do() -> None:
    cluster = Cluster()
    assert not cluster.connector.want(ID, ())
    assert not cluster.connector.is_connected(ID)


def test_who_was_connected_before_a_restart_and_is_alone_now_is_let_go() -> None:
    cluster = Cluster()
    cluster.labels = names.connections(["one"])
    cluster.show()
    assert cluster.connector.want(ID, ())
    asyncio.run(cluster.connector.relabel(ID))
    assert cluster.partners == []


def test_a_partner_that_ends_before_any_watch_has_shown_it_is_let_go() -> None:
    async def scene() -> None:
        cluster = Cluster()
        assert cluster.connector.want(ID, ["one"])
        await cluster.connector.relabel(ID)
        assert (cluster.partners, cluster.shared) == (["one"], 1)
        assert cluster.connector.want(ID, ())
        await cluster.connector.relabel(ID)
        assert cluster.partners == []

    asyncio.run(scene())


def test_of_two_wishes_the_last_one_counts_however_slow_the_first_is() -> None:
    async def scene() -> None:
        cluster = Cluster()
        slow = asyncio.Event()
        cluster.answers = [slow]
        cluster.connector.want(ID, ["one"])
        first = asyncio.create_task(cluster.connector.relabel(ID))
        await asyncio.sleep(0.01)
        cluster.connector.want(ID, ["two"])
        second = asyncio.create_task(cluster.connector.relabel(ID))
        await asyncio.sleep(0.01)
        slow.set()
        await asyncio.gather(first, second)
        assert cluster.partners == ["two"]

    asyncio.run(scene())


def test_a_pod_that_appears_after_a_wish_is_seen_not_to_suit_it() -> None:
    cluster = Cluster()
    pod = cluster.attempt.pods[0]
    assert cluster.connector.suits(ID, pod)
    cluster.connector.want(ID, ["one"])
    assert not cluster.connector.suits(ID, pod)
    asyncio.run(cluster.connector.relabel(ID))
    cluster.show()
    assert cluster.connector.suits(ID, cluster.attempt.pods[0])


def test_of_a_job_that_is_over_nothing_is_kept() -> None:
    cluster = Cluster()
    cluster.connector.want(ID, ["one"])
    cluster.connector.forget(ID)
    assert not cluster.connector.is_connected(ID)
    asyncio.run(cluster.connector.relabel(ID))
    assert cluster.changes == 0
