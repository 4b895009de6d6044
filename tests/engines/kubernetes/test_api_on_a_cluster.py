"""Lists, watches, changes and refusals, on a real cluster."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from jobman.engines.kubernetes.access import Access, Login, Material
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooEarly,
    Unauthorized,
    Unreachable,
)
from jobman.engines.kubernetes.kinds import CONFIG_MAPS, JOB_SETS, JOBS, OWNERS, PODS, Kind
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.objects import Job, Kept
from tests.engines.kubernetes.cluster import (
    Relay,
    a_config_map,
    a_job,
    a_namespace,
    kubeconfig,
    kubectl,
    kubectl_json,
    on_a_real_cluster,
    talk,
)
from tests.engines.kubernetes.test_exec_plugin import plugin, printing
from tests.engines.kubernetes.test_tls import Keys

pytestmark = [on_a_real_cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    with a_namespace() as name:
        yield name


def acting_as(user: str) -> Access:
    access = load(kubeconfig())
    login = msgspec.structs.replace(access.login, headers=(("Impersonate-User", user),))
    return msgspec.structs.replace(access, login=login)


def coming_as(login: Login) -> Access:
    return msgspec.structs.replace(load(kubeconfig()), login=login)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.1)


def refusal(kind: type[ApiError], work: Callable[[Api], Awaitable[object]], access: Access | None = None):
    with pytest.raises(kind) as raised:
        talk(work, access)
    return raised.value


# -- lists and watches ---------------------------------------------------------------------------------------


def test_a_list_of_many_pages_is_whole(namespace):
    names = [f"page-{number}" for number in range(5)]

    async def work(api: Api) -> tuple[list[str], list[int]]:
        for name in names:
            await api.create(a_config_map(name, namespace, of="pages"))
        listed = await api.list(CONFIG_MAPS, namespace, labels="of=pages", limit=2)
        pages = [
            len(page.items) async for page in api.pages(CONFIG_MAPS, namespace, labels="of=pages", limit=2)
        ]
        return [item.metadata.name for item in listed.items], pages

    assert talk(work) == (names, [2, 2, 1])


def test_jobs_are_listed_and_followed_by_their_metadata_alone(namespace):
    async def work(api: Api) -> tuple[list[str], str]:
        assert not (await api.list(OWNERS, namespace, labels="jobman.io/job=owner")).items
        made = await api.create(a_job("owner", namespace, "true", suspend=True))
        listed = await api.list(OWNERS, namespace, labels="jobman.io/job=owner")
        await api.merge_patch(JOBS, "owner", {"metadata": {"labels": {"new": "yes"}}}, namespace)
        watching = api.watch(OWNERS, listed.resource_version, namespace, labels="jobman.io/job=owner")
        async for change in watching:
            if change.object.metadata.labels.get("new"):
                await watching.aclose()
                return [item.metadata.uid for item in listed.items], made.metadata.uid
        return [], ""

    found, made = talk(work)
    assert found == [made]


def test_a_watch_tells_what_happens_after_a_list(namespace):
    async def work(api: Api) -> list[tuple[str, dict[str, str]]]:
        listed = await api.list(CONFIG_MAPS, namespace, labels="of=watch")
        assert not listed.items
        await api.create(a_config_map("seen", namespace, of="watch"))
        await api.merge_patch(CONFIG_MAPS, "seen", {"metadata": {"labels": {"new": "yes"}}}, namespace)
        await api.delete(CONFIG_MAPS, "seen", namespace)
        seen: list[tuple[str, dict[str, str]]] = []
        watching = api.watch(CONFIG_MAPS, listed.resource_version, namespace, labels="of=watch")
        async for change in watching:
            seen.append((change.type, change.object.metadata.labels))
            if change.type == "DELETED":
                await watching.aclose()
        return seen

    assert talk(work) == [
        ("ADDED", {"of": "watch"}),
        ("MODIFIED", {"of": "watch", "new": "yes"}),
        ("DELETED", {"of": "watch", "new": "yes"}),
    ]


def test_a_watch_misses_nothing_and_repeats_nothing_when_its_connections_are_cut(namespace):
    names = [f"cut-{number:02}" for number in range(12)]

    async def work(api: Api) -> list[str]:
        relay = Relay(api.access)
        await relay.listen()
        seen: list[str] = []
        async with Api(relay.access) as cut_off:
            listed = await cut_off.list(CONFIG_MAPS, namespace, labels="of=cuts")
            watching = asyncio.create_task(follow(cut_off, listed.resource_version, seen))
            for number, name in enumerate(names):
                # While a change is made, the watch is open, cut, or finds nobody there.
                await [relay.listen, relay.cut, relay.close][number % 3]()
                if number % 3 == 0:
                    await caught_up(seen, number)
                await api.create(a_config_map(name, namespace, of="cuts"))
            await relay.listen()
            await watching
        await relay.close()
        assert relay.passed > 4
        return seen

    async def caught_up(seen: list[str], count: int) -> None:
        async with asyncio.timeout(60):
            while len(seen) < count:
                await asyncio.sleep(0.01)

    async def follow(api: Api, since: str, seen: list[str]) -> None:
        async with aclosing(api.watch(CONFIG_MAPS, since, namespace, labels="of=cuts")) as changes:
            async for change in changes:
                seen.append(change.object.metadata.name)
                if len(seen) == len(names):
                    return

    assert talk(work) == names


def a_definition(group: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.mark.lab("it makes another kind known to the cluster")
def test_a_version_from_before_a_kind_was_known_is_too_old_to_be_watched(namespace):
    group = f"{namespace}.jobman.io"
    gadgets = Kind(f"{group}/v1", "Gadget", "gadgets", Kept)

    async def work(api: Api) -> None:
        definition = a_definition(group)
        assert not await api.serves(gadgets)
        await api.create(definition)
        try:
            await until(lambda: api.serves(gadgets))
            await until(lambda: has_answered(api))
            async for _ in api.watch(gadgets, "1", namespace):
                pass
        finally:
            await api.delete(await api.kind_of(definition), definition["metadata"]["name"])

    async def has_answered(api: Api) -> bool:
        try:
            await api.list(gadgets, namespace)
        except NotFound:
            return False
        return True

    assert refusal(Expired, work).code == 410


# -- changes -------------------------------------------------------------------------------------------------


def test_what_is_made_is_found_and_its_name_is_taken(namespace):
    async def work(api: Api) -> None:
        made = await api.create(a_job("twice", namespace, "true", suspend=True))
        assert isinstance(made, Job)
        assert (await api.get(JOBS, "twice", namespace)).metadata.uid == made.metadata.uid
        await api.create(a_job("twice", namespace, "true"))

    assert "already exists" in refusal(AlreadyExists, work).message


def test_what_is_to_be_there_may_be_made_twice(namespace):
    async def work(api: Api) -> None:
        first = await api.ensure(a_config_map("ensured", namespace, job="abc"))
        again = await api.ensure(a_config_map("ensured", namespace, job="abc"))
        assert first.metadata.uid == again.metadata.uid
        await api.ensure(a_config_map("ensured", namespace, job="other"))

    refusal(AlreadyExists, work)


def test_two_who_change_the_same_version_are_in_conflict(namespace):
    async def work(api: Api) -> None:
        made = await api.create(a_config_map("contested", namespace))
        patch = {"metadata": {"resourceVersion": made.metadata.resource_version, "labels": {"by": "me"}}}
        await api.merge_patch(CONFIG_MAPS, "contested", patch, namespace)
        patch["metadata"]["labels"] = {"by": "another"}
        await api.merge_patch(CONFIG_MAPS, "contested", patch, namespace)

    refusal(Conflict, work)
    assert kubectl_json("get", "configmap", "contested", "-n", namespace)["metadata"]["labels"] == {
        "by": "me"
    }


def test_a_whole_object_is_replaced_only_in_the_version_it_was_read(namespace):
    async def work(api: Api) -> None:
        await api.create(a_config_map("replaced", namespace))
        whole = await api.get_whole(CONFIG_MAPS, "replaced", namespace)
        await api.replace({**whole, "data": {"key": "new"}})
        assert (await api.get_whole(CONFIG_MAPS, "replaced", namespace))["data"] == {"key": "new"}
        await api.replace({**whole, "data": {"key": "late"}})

    refusal(Conflict, work)


def test_fields_that_another_applied_are_only_taken_by_force(namespace):
    theirs = {**a_config_map("applied", namespace), "data": {"key": "theirs"}}
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(theirs))
    ours = a_config_map("applied", namespace)

    assert "key" in refusal(Conflict, lambda api: api.apply_patch(ours)).message
    talk(lambda api: api.apply_patch(ours, force=True))

    assert kubectl_json("get", "configmap", "applied", "-n", namespace)["data"] == {"key": "value"}


def test_steps_are_taken_all_or_none(namespace):
    async def work(api: Api) -> None:
        await api.create(a_config_map("steps", namespace))
        await api.json_patch(
            CONFIG_MAPS, "steps", [{"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}], namespace
        )
        steps = [
            {"op": "remove", "path": "/metadata/labels/a"},
            {"op": "test", "path": "/data/key", "value": "other"},
        ]
        with pytest.raises(Invalid):
            await api.json_patch(CONFIG_MAPS, "steps", steps, namespace)
        assert (await api.get(CONFIG_MAPS, "steps", namespace)).metadata.labels == {"a": "1"}

    talk(work)


@pytest.mark.parametrize(("propagation", "stays"), [("Background", False), ("Orphan", True)])
def test_what_is_owned_goes_with_its_owner_unless_it_is_to_stay(namespace, propagation, stays):
    owner, owned = f"owner-{propagation.lower()}", f"owned-{propagation.lower()}"

    async def work(api: Api) -> bool:
        made = await api.create(a_config_map(owner, namespace))
        child = a_config_map(owned, namespace)
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": made.metadata.uid}
        child["metadata"]["ownerReferences"] = [reference]
        await api.create(child)

        assert await api.delete(CONFIG_MAPS, owner, namespace, propagation=propagation)

        async def settled() -> bool:
            left = await api.find(CONFIG_MAPS, owned, namespace)
            return left is None or not left.metadata.owner_references

        await until(settled)
        return await api.find(CONFIG_MAPS, owned, namespace) is not None

    assert talk(work) is stays


def test_another_object_of_the_same_name_is_not_deleted(namespace):
    async def work(api: Api) -> None:
        await api.create(a_config_map("other", namespace))
        with pytest.raises(Conflict):
            await api.delete(CONFIG_MAPS, "other", namespace, uid="00000000-0000-0000-0000-000000000000")
        assert await api.delete(CONFIG_MAPS, "other", namespace)
        assert not await api.delete(CONFIG_MAPS, "other", namespace)

    talk(work)


def test_many_are_deleted_by_their_labels(namespace):
    async def work(api: Api) -> list[str]:
        for name, label in (("many-1", "go"), ("many-2", "go"), ("many-3", "stay")):
            await api.create(a_config_map(name, namespace, many=label))
        await api.delete_all(CONFIG_MAPS, "many=go", namespace)
        listed = await api.list(CONFIG_MAPS, namespace, labels="many")
        return [item.metadata.name for item in listed.items]

    assert talk(work) == ["many-3"]


# -- checks --------------------------------------------------------------------------------------------------


def wrong_job(namespace: str) -> dict[str, Any]:
    job = a_job("wrong", namespace, "true", completionz=3)
    job["spec"]["template"]["spec"]["containers"][0]["comand"] = ["x"]
    return job


@pytest.mark.parametrize("verb", ["create", "dry_run"])
def test_fields_that_nobody_knows_are_named_with_their_paths(namespace, verb):
    error = refusal(BadRequest, lambda api: getattr(api, verb)(wrong_job(namespace)))
    assert set(error.fields) == {"spec.completionz", "spec.template.spec.containers[0].comand"}


def test_a_field_that_nobody_knows_is_named_where_it_is_applied(namespace):
    error = refusal(BadRequest, lambda api: api.apply_patch(wrong_job(namespace)))
    # The server stops at the first that it meets, in no certain order.
    assert error.fields
    assert set(error.fields) <= {"spec.completionz", 'spec.template.spec.containers[name="main"].comand'}


def test_a_field_that_nobody_knows_is_named_shortly_where_it_is_patched(namespace):
    async def work(api: Api) -> None:
        await api.create(a_job("patched", namespace, "true", suspend=True))
        await api.merge_patch(JOBS, "patched", {"spec": {"completionz": 3}}, namespace)

    error = refusal(Invalid, work)
    assert error.message == 'strict decoding error: unknown field "spec.completionz"'


def test_fields_that_break_rules_are_named_with_their_paths(namespace):
    job = a_job("wrong", namespace, "true", completions=-1, parallelism=-2)
    error = refusal(Invalid, lambda api: api.create(job))
    assert set(error.fields) == {"spec.completions", "spec.parallelism"}
    assert all("greater than or equal to 0" in cause.message for cause in error.causes)


def test_a_rehearsal_shows_what_would_be_made_and_makes_nothing(namespace):
    async def work(api: Api) -> dict[str, Any]:
        shown = await api.dry_run(a_job("rehearsed", namespace, "true"))
        assert await api.find(JOBS, "rehearsed", namespace) is None
        return shown

    assert talk(work)["spec"]["completionMode"] == "NonIndexed"


# -- rights --------------------------------------------------------------------------------------------------


def test_who_may_not_is_told_the_role_and_may_when_it_is_granted(namespace):
    async def list_pods(api: Api) -> int:
        return len((await api.list(PODS, namespace)).items)

    ada = acting_as("ada")
    error = refusal(Forbidden, list_pods, ada)
    assert error.message == f"User ada may not list pods in the namespace {namespace}."
    assert error.role in error.advice

    kubectl("apply", "-f", "-", stdin=error.role)

    async def granted(api: Api) -> None:
        async def allowed() -> bool:
            return await api.may("list", PODS, namespace)

        await until(allowed)
        await list_pods(api)
        assert not await api.may("delete", PODS, namespace)

    talk(granted, ada)


def test_who_may_not_read_logs_or_create_is_told_so_too(namespace):
    async def logs(api: Api) -> None:
        async for _ in api.logs("any", namespace):
            pass

    bob = acting_as("bob")
    assert refusal(Forbidden, logs, bob).need.resource == "pods/log"
    job = a_job("refused", namespace, "true")
    assert refusal(Forbidden, lambda api: api.create(job), bob).need.what == "create jobs.batch"


def test_a_quota_is_not_taken_for_a_missing_right():
    with a_namespace() as namespace:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": namespace},
            "spec": {"hard": {"count/jobs.batch": "0"}},
        }

        async def work(api: Api) -> None:
            await api.create(quota)

            async def counted() -> bool:
                seen = await api.get_whole(await api.kind_of(quota), "none", namespace)
                return "used" in seen.get("status", {})

            await until(counted)
            await api.create(a_job("too-many", namespace, "true"))

        error = refusal(Forbidden, work)
    assert error.role == ""
    assert "quota" in error.advice


# -- who we are ----------------------------------------------------------------------------------------------


def test_a_token_that_nobody_knows_is_refused():
    error = refusal(Unauthorized, lambda api: api.list(PODS), coming_as(Login(token="nonsense")))
    assert "log in" in error.advice


def test_a_token_file_and_a_plugin_lead_to_the_same_account_that_kubectl_sees(namespace, tmp_path):
    token = kubectl("create", "token", "default", "-n", namespace).strip()
    (tmp_path / "token").write_text(token)
    login = plugin(tmp_path, printing({"token": token}))
    config = kubectl_json("config", "view", "--raw", "--minify", "--flatten")
    exec_ = {"command": login.command, "apiVersion": login.api_version, "interactiveMode": "Never"}
    config["users"][0]["user"] = {"exec": exec_}
    (tmp_path / "config").write_text(json.dumps(config))

    by_file = talk(lambda api: api.whoami(), coming_as(Login(token_file=str(tmp_path / "token"))))
    by_plugin = talk(lambda api: api.whoami(), load(tmp_path / "config"))
    by_kubectl = kubectl_json("auth", "whoami", KUBECONFIG=str(tmp_path / "config"))

    account = f"system:serviceaccount:{namespace}:default"
    assert by_file == by_plugin == by_kubectl["status"]["userInfo"]["username"] == account


def test_a_cluster_that_another_authority_signed_is_not_spoken_to(tmp_path):
    keys = Keys(tmp_path)
    keys.authority("stranger")
    access = msgspec.structs.replace(load(kubeconfig()), authority=Material(file=keys.file("stranger.crt")))
    with pytest.raises(Unreachable, match="not signed by an authority that is trusted") as raised:
        talk(lambda api: api.version(), access)
    assert "stranger.crt" in raised.value.advice


# -- the cluster itself --------------------------------------------------------------------------------------


def test_a_cluster_says_what_it_is_and_has():
    async def work(api: Api) -> tuple[str, bool, bool]:
        version = (await api.version()).git_version
        return version, await api.serves(JOBS), await api.serves(PODS)

    version, jobs, pods = talk(work)
    assert version == kubectl_json("version")["serverVersion"]["gitVersion"]
    assert jobs
    assert pods


def test_a_kind_that_is_not_installed_is_not_there(namespace):
    if talk(lambda api: api.serves(JOB_SETS)):
        pytest.skip("JobSets are installed")
    error = refusal(NotFound, lambda api: api.list(JOB_SETS, namespace))
    assert "installed" in error.advice


# -- logs ----------------------------------------------------------------------------------------------------


def test_logs_are_followed_from_the_first_line_to_the_last(namespace):
    script = "for number in 1 2 3; do echo line $number; sleep 0.5; done; printf end"

    async def work(api: Api) -> tuple[bytes, bytes]:
        job = f"talking-{secrets.token_hex(4)}"
        await api.create(a_job(job, namespace, script))

        async def made() -> bool:
            return bool((await api.list(PODS, namespace, labels=f"job-name={job}")).items)

        await until(made)
        (pod,) = (await api.list(PODS, namespace, labels=f"job-name={job}")).items
        name = pod.metadata.name
        followed = await read(api, name, follow=True)
        return followed, await read(api, name, tail=2)

    async def read(api: Api, pod: str, **given) -> bytes:
        async with asyncio.timeout(60):
            while True:
                try:
                    return b"".join([part async for part in api.logs(pod, namespace, **given)])
                except TooEarly:
                    await asyncio.sleep(0.1)

    assert talk(work) == (b"line 1\nline 2\nline 3\nend", b"line 3\nend")
