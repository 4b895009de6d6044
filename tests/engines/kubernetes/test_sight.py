"""What may be listed of a cluster by those who may not list everything."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast

import msgspec
import pytest

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import EVERYWHERE, Api
from jobman.engines.kubernetes.errors import Forbidden
from jobman.engines.kubernetes.kinds import JOBS, NAMESPACES, PODS, Kind
from jobman.engines.kubernetes.objects import Kept, Meta, Status
from jobman.engines.kubernetes.sight import Seen, Sight, View


class Listed(msgspec.Struct):
    items: list[Kept]


class Cluster:
    """Namespaces that hold one object each, named like them; `open_to_us` may be listed."""

    def __init__(self, *there: str, open_to_us: Collection[str], tells: bool = True, named: str = "") -> None:
        self.access = Access(server="https://x", namespace="own", namespaces=tuple(named.split()))
        self.namespace = self.access.namespace
        self.asked: list[str] = []
        self.most_at_once = 0
        self._there, self._open, self._tells = there, set(open_to_us), tells
        self._at_once = 0

    async def list(self, kind: Kind[Any], namespace: str | None = None) -> Listed:
        place = kind.plural if kind is NAMESPACES else namespace or "everywhere"
        self.asked.append(place)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0)
        self._at_once -= 1
        names = self._there if kind is NAMESPACES or namespace == EVERYWHERE else (place,)
        if not (self._tells if kind is NAMESPACES else place in self._open):
            raise Forbidden(403, Status(message=f"not {place}"))
        return Listed([Kept(metadata=Meta(name=name)) for name in names])

    def seen(self) -> Seen[Any]:
        return asyncio.run(View(cast(Api, self)).of(PODS))


def names(seen: Seen[Any]) -> list[str]:
    return sorted(each.metadata.name for each in seen.items)


def test_who_may_list_everything_is_asked_once() -> None:
    cluster = Cluster("own", "a", open_to_us=["everywhere"])
    seen = cluster.seen()
    assert (names(seen), seen.sight) == (["a", "own"], None)
    assert cluster.asked == ["everywhere"]


def test_of_the_namespaces_there_are_those_count_that_are_open() -> None:
    seen = Cluster("own", "a", "b", "c", open_to_us=["own", "b"], named="c").seen()
    assert names(seen) == ["b", "own"]
    assert seen.sight == Sight(namespaces=("b", "own"), of=4)


def test_all_one_by_one_is_all() -> None:
    seen = Cluster("own", "a", open_to_us=["own", "a"]).seen()
    assert (names(seen), seen.sight) == (["a", "own"], None)


def test_where_namespaces_are_not_told_those_of_the_kubeconfig_are_tried() -> None:
    seen = Cluster("own", "a", "b", open_to_us=["own", "a", "b"], tells=False, named="own a").seen()
    assert names(seen) == ["a", "own"]
    assert seen.sight == Sight(namespaces=("a", "own"), of=None)


@pytest.mark.parametrize("tells", [True, False])
def test_who_sees_nothing_hears_of_the_own_namespace(tells: bool) -> None:
    with pytest.raises(Forbidden, match="not own"):
        Cluster("a", "b", open_to_us=[], tells=tells, named="a").seen()


def test_an_own_namespace_that_is_not_there_is_not_counted() -> None:
    assert Cluster("a", "b", open_to_us=["b"]).seen().sight == Sight(namespaces=("b",), of=2)


def test_few_are_asked_at_a_time_and_the_namespaces_once() -> None:
    there = [f"n{number}" for number in range(50)]
    cluster = Cluster("own", *there, open_to_us=["own"])

    async def both() -> None:
        view = View(cast(Api, cluster))
        await asyncio.gather(view.of(PODS), view.of(JOBS))

    asyncio.run(both())
    assert cluster.asked.count("namespaces") == 1
    assert cluster.most_at_once == 8
