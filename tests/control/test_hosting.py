"""The engine of a service: which one it is, and where it may go on."""

import asyncio

import pytest

from jobman.control.admission import SettingsShelf
from jobman.control.hosting import LOCAL, open_host
from jobman.control.places import Places
from jobman.control.refusals import Refusal
from jobman.control.serving import ServeOptions
from jobman.control.store.store import Store
from jobman.engines.kubernetes.managed.engine import ManagedEngine
from jobman.engines.local.engine import LocalEngine
from tests.control.stage import Theatre, document

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: jobs}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
"""
SETTINGS = """
default_image: tools:1
kubernetes:
  namespace: lab
  gpu_resource: amd.com/gpu
  topology: {rack: site/rack}
  nodes: {pool: jobman}
  tolerates: [site/jobs-only]
"""


@pytest.fixture
def cluster(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    return file


@pytest.fixture(autouse=True)
def cluster_host(monkeypatch):
    """A cluster is not asked: its host is what it would have been opened with."""

    async def open_it(api, target, state, survey):
        await api.close()
        return target, survey

    monkeypatch.setattr(ManagedEngine, "open", open_it)


def host_on(url, tmp_path, **options):
    """The host of a service over a store."""
    settings = tmp_path / "settings.yaml"
    settings.touch()
    store = Store.open(url)
    store.claim("test")
    try:
        given = ServeOptions(Places(tmp_path / "state"), **options)
        return asyncio.run(open_host(given, store, SettingsShelf(str(settings))))
    finally:
        store.close()


def ground_of(url):
    store = Store.open(url)
    try:
        return store.ground()
    finally:
        store.close()


def leave_something_running(url, tmp_path):
    async def scene(stage):
        await stage.submit(document(1, 60))
        assert stage.running()

    Theatre(url, tmp_path).play(scene)


def test_the_engine_of_this_machine_is_the_usual_one(sqlite_url, tmp_path):
    assert isinstance(host_on(sqlite_url, tmp_path), LocalEngine)
    assert ground_of(sqlite_url) == LOCAL


def test_a_cluster_is_used_as_options_settings_and_kubeconfig_say(sqlite_url, tmp_path, cluster):
    target, _ = host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster)
    assert target.namespace == "jobs"
    assert ground_of(sqlite_url) == "the namespace jobs of a cluster"
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    again, _ = host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster)
    assert again.service == target.service
    assert (again.namespace, again.default_image, again.gpu_resource) == ("lab", "tools:1", "amd.com/gpu")
    assert again.tolerations == ({"key": "site/jobs-only", "operator": "Exists"},)
    assert again.topology["rack"] == "site/rack"
    third, _ = host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster, namespace="third")
    assert third.namespace == "third"


def test_attempts_under_way_are_not_left_behind_for_a_cluster(sqlite_url, tmp_path, cluster):
    host_on(sqlite_url, tmp_path)
    leave_something_running(sqlite_url, tmp_path)
    with pytest.raises(Refusal) as refused:
        host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster)
    assert refused.value.message == (
        "attempts of this database run on this machine, and not on the namespace jobs of a cluster"
    )
    assert ground_of(sqlite_url) == LOCAL


def test_nor_for_another_namespace(sqlite_url, tmp_path, cluster):
    host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster)
    leave_something_running(sqlite_url, tmp_path)
    with pytest.raises(Refusal, match="run on the namespace jobs of a cluster"):
        host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster, namespace="other")
    host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster)


def test_a_service_without_attempts_may_go_elsewhere(sqlite_url, tmp_path, cluster):
    host_on(sqlite_url, tmp_path)
    host_on(sqlite_url, tmp_path, engine="kubernetes", kubeconfig=cluster)
    assert ground_of(sqlite_url) == "the namespace jobs of a cluster"


def test_the_settings_say_which_nodes_and_whose_taints(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("kubernetes: {namespace: jobs, nodes: {pool: jobman}, tolerates: [site/jobs-only]}\n")
    found = SettingsShelf(str(file)).cluster()
    assert (found.namespace, found.nodes, found.tolerates) == (
        "jobs",
        {"pool": "jobman"},
        ("site/jobs-only",),
    )


def test_a_service_is_called_the_same_over_restarts_and_another_is_not(url, tmp_path, opened):
    first = opened(url)
    first.claim("one")
    name = first.identity()
    second = opened(url)
    second.claim("two")
    other = opened(f"sqlite:///{tmp_path}/other.db")
    other.claim("three")
    assert second.identity() == name != other.identity()
