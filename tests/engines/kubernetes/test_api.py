"""Lists, watches and changes, on a server that pretends: what a real one does too seldom to be waited for."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from jobman.engines.kubernetes.api import EVERYWHERE
from jobman.engines.kubernetes.errors import (
    AlreadyExists,
    Expired,
    Forbidden,
    NotFound,
    Unreachable,
    WrongName,
)
from jobman.engines.kubernetes.kinds import JOB_SETS, JOBS, NODES, OWNERS, PODS
from tests.engines.kubernetes.pretender import Pretender, changes, ended, page, refused, said

EXPIRED = refused(410, "Expired", "too old")


# -- lists ---------------------------------------------------------------------------------------------------


def names(server: Pretender, **given) -> list[str]:
    listed = asyncio.run(server.api.list(PODS, **given))
    return [pod.metadata.name for pod in listed.items]


def test_a_list_is_put_together_from_its_pages():
    server = Pretender(page(["a", "b"], go_on="next"), page(["c"]))
    assert names(server) == ["a", "b", "c"]
    assert server.queries("limit") == ["500", "500"]
    assert server.queries("continue") == [None, "next"]


def test_a_list_that_expires_on_the_way_begins_anew_in_one_piece():
    server = Pretender(page(["a"], go_on="next"), EXPIRED, page(["b", "c"], version="9"))
    listed = asyncio.run(server.api.list(PODS))
    assert [pod.metadata.name for pod in listed.items] == ["b", "c"]
    assert listed.resource_version == "9"
    assert server.queries("limit") == ["500", "500", None]
    assert server.queries("continue") == [None, "next", None]


def test_a_list_of_nothing_may_be_written_as_null():
    server = Pretender(said({"metadata": {"resourceVersion": "7"}, "items": None}))
    assert names(server) == []


def test_of_what_only_has_to_be_there_only_metadata_is_asked_for():
    server = Pretender(page(["a"]), changes(("ADDED", "b", "8")))

    async def scenario() -> list[str]:
        listed = await server.api.list(OWNERS)
        async for change in server.api.watch(OWNERS, listed.resource_version):
            return [listed.items[0].metadata.name, change.object.metadata.name]
        return []

    assert asyncio.run(scenario()) == ["a", "b"]
    wanted = [request.headers["Accept"].split(";")[1] for request in server.asked]
    assert wanted == ["as=PartialObjectMetadataList", "as=PartialObjectMetadata"]


def test_pages_that_expire_say_so():
    server = Pretender(page(["a"], go_on="next"), EXPIRED)

    async def scenario() -> None:
        async for _ in server.api.pages(PODS):
            pass

    with pytest.raises(Expired):
        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        (PODS, None, "/api/v1/namespaces/default/pods"),
        (PODS, "mine", "/api/v1/namespaces/mine/pods"),
        (PODS, EVERYWHERE, "/api/v1/pods"),
        (NODES, None, "/api/v1/nodes"),
        (JOBS, "mine", "/apis/batch/v1/namespaces/mine/jobs"),
    ],
)
def test_every_kind_has_its_path(kind, namespace, path):
    server = Pretender(page([]))
    asyncio.run(server.api.list(kind, namespace))
    assert server.asked[0].url.path == path


def test_a_name_cannot_lead_elsewhere():
    server = Pretender(said({}))
    asyncio.run(server.api.get(PODS, "../secrets/x"))
    assert server.asked[0].url.raw_path == b"/api/v1/namespaces/default/pods/..%2Fsecrets%2Fx"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_is_none_never_reaches_the_cluster(name):
    server = Pretender(said({}))
    for call in (
        server.api.delete(PODS, name),
        server.api.get(PODS, name),
        server.api.delete(PODS, "x", ".."),
    ):
        with pytest.raises(WrongName, match="not a name that an object can have"):
            asyncio.run(call)
    assert server.asked == []


def test_labels_and_fields_choose():
    server = Pretender(page([]))
    names(server, labels="a=b,c", fields="spec.nodeName=n1")
    assert server.queries("labelSelector") == ["a=b,c"]
    assert server.queries("fieldSelector") == ["spec.nodeName=n1"]


def test_what_is_not_there_is_not_found():
    server = Pretender(refused(404, "NotFound"))
    assert asyncio.run(server.api.find(PODS, "x")) is None


def test_an_answer_of_something_else_is_not_taken_for_an_object():
    with pytest.raises(Unreachable, match="not understood"):
        names(Pretender(httpx.Response(200, content=b"<html>log in</html>")))


# -- watches -------------------------------------------------------------------------------------------------


def watch(server: Pretender, count: int | None = None) -> list[tuple[str, str]]:
    """So many changes, or all until it gives up."""

    async def scenario() -> list[tuple[str, str]]:
        seen: list[tuple[str, str]] = []
        watching = server.api.watch(PODS, "7")
        try:
            async for change in watching:
                seen.append((change.type, change.object.metadata.name))
                if len(seen) == count:
                    return seen
        finally:
            await watching.aclose()
        return seen

    return asyncio.run(scenario())


def test_a_watch_goes_on_behind_the_last_change():
    server = Pretender(
        changes(("ADDED", "a", "8")), changes(("MODIFIED", "a", "9")), changes(("DELETED", "a", "10"))
    )
    assert watch(server, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert server.queries("resourceVersion") == ["7", "8", "9"]
    assert server.queries("allowWatchBookmarks") == ["true"] * 3


def test_a_bookmark_moves_on_without_a_word():
    server = Pretender(changes(("BOOKMARK", "", "80")), changes(("ADDED", "a", "81")))
    assert watch(server, 1) == [("ADDED", "a")]
    assert server.queries("resourceVersion") == ["7", "80"]


def test_a_watch_outlives_a_server_that_is_gone_for_a_moment():
    server = Pretender(
        changes(("ADDED", "a", "8")),
        httpx.ConnectError("refused"),
        refused(503),
        refused(429, Retry_After="0"),
        changes(("ADDED", "b", "9")),
    )
    assert watch(server, 2) == [("ADDED", "a"), ("ADDED", "b")]
    assert server.queries("resourceVersion") == ["7", "8", "8", "8", "8"]


@pytest.mark.parametrize(
    "last", [EXPIRED, httpx.Response(200, content=ended(410, "Expired")), refused(410, "Gone")]
)
def test_a_version_that_is_forgotten_ends_a_watch(last):
    server = Pretender(changes(("ADDED", "a", "8")), last)
    with pytest.raises(Expired):
        watch(server)
    assert len(server.asked) == 2


def test_a_server_that_gives_up_a_watch_for_another_reason_is_asked_again():
    server = Pretender(httpx.Response(200, content=ended(500, "InternalError")), changes(("ADDED", "a", "8")))
    assert watch(server, 1) == [("ADDED", "a")]


def test_a_watch_ends_when_patience_does():
    server = Pretender(changes(("ADDED", "a", "8")), httpx.ConnectError("refused"), patience=0.3)
    with pytest.raises(Unreachable):
        watch(server)


def test_a_watch_that_is_not_allowed_says_so():
    with pytest.raises(Forbidden):
        watch(Pretender(refused(403, "Forbidden")))


# -- changes -------------------------------------------------------------------------------------------------

JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "mine"}}


def body_of(request: httpx.Request) -> object:
    return msgspec.json.decode(request.content)


def test_a_change_is_checked_strictly_and_signed():
    server = Pretender(said(JOB))
    asyncio.run(server.api.create(JOB))
    (request,) = server.asked
    assert (request.method, request.url.path) == ("POST", "/apis/batch/v1/namespaces/mine/jobs")
    assert server.queries("fieldValidation") == ["Strict"]
    assert server.queries("fieldManager") == ["jobman"]
    assert server.queries("dryRun") == [None]
    assert body_of(request) == JOB


LABELLED: dict[str, Any] = {
    **JOB,
    "metadata": {"name": "x", "namespace": "mine", "labels": {"jobman.io/job": "abc"}},
}


def test_what_is_to_be_there_is_made_once_although_the_first_answer_was_lost():
    lost = httpx.RemoteProtocolError("broke")
    server = Pretender(lost, refused(409, "AlreadyExists"), said(LABELLED))
    made = asyncio.run(server.api.ensure(LABELLED))
    assert made.metadata.labels == {"jobman.io/job": "abc"}
    assert [request.method for request in server.asked] == ["POST", "POST", "GET"]


@pytest.mark.parametrize(
    "there",
    [
        {"name": "x", "labels": {"jobman.io/job": "other"}},
        {"name": "x"},
        {**LABELLED["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_what_another_made_or_is_being_deleted_is_not_taken_for_ours(there):
    server = Pretender(refused(409, "AlreadyExists", "taken"), said({**JOB, "metadata": there}))
    with pytest.raises(AlreadyExists, match="taken"):
        asyncio.run(server.api.ensure(LABELLED))


def test_a_rehearsal_changes_nothing_and_may_be_repeated():
    server = Pretender(httpx.RemoteProtocolError("broke"), said(JOB))
    assert asyncio.run(server.api.dry_run(JOB)) == JOB
    assert server.queries("dryRun") == ["All", "All"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_a_deletion_says_what_becomes_of_what_it_owns(propagation):
    server = Pretender(said({}))
    deletion = server.api.delete(JOBS, "x", propagation=propagation, grace=3, uid="u")
    assert asyncio.run(deletion) is True
    assert body_of(server.asked[0]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
        "gracePeriodSeconds": 3,
        "preconditions": {"uid": "u"},
    }


def test_to_delete_what_is_gone_is_no_error():
    assert asyncio.run(Pretender(refused(404, "NotFound")).api.delete(JOBS, "x")) is False


@pytest.mark.parametrize(("labels", "namespace"), [("", "mine"), ("a=b", EVERYWHERE)])
def test_many_are_only_deleted_by_label_and_in_one_namespace(labels, namespace):
    server = Pretender(said({}))
    with pytest.raises(ValueError, match="labels and a namespace"):
        asyncio.run(server.api.delete_all(JOBS, labels, namespace))
    assert server.asked == []


def test_a_kind_that_is_not_known_here_is_asked_of_the_cluster_once():
    resources = {
        "resources": [
            {"name": "gadgets/status", "kind": "Gadget"},
            {"name": "gadgets", "kind": "Gadget", "namespaced": False},
        ]
    }
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    server = Pretender(said(resources), said(gadget), said(gadget))

    async def twice() -> None:
        await server.api.create(gadget)
        await server.api.create(gadget)

    asyncio.run(twice())
    assert [request.url.path for request in server.asked] == [
        "/apis/example.com/v1",
        "/apis/example.com/v1/gadgets",
        "/apis/example.com/v1/gadgets",
    ]


def test_a_kind_that_the_cluster_does_not_know_is_named():
    server = Pretender(refused(404))
    with pytest.raises(NotFound, match=r"does not know Gadget of example\.com/v1"):
        asyncio.run(server.api.create({"apiVersion": "example.com/v1", "kind": "Gadget"}))


def test_whether_a_kind_is_installed_can_be_asked():
    assert not asyncio.run(Pretender(refused(404)).api.serves(JOB_SETS))
    there = said({"resources": [{"name": "jobsets", "kind": "JobSet"}]})
    assert asyncio.run(Pretender(there).api.serves(JOB_SETS))
