"""What an installation is made of: nothing more than it needs, and every field known to a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import ConfigError
from jobman.engines.kubernetes.installation.bundle import files, objects
from jobman.engines.kubernetes.installation.rights import AT_HOME, EVERYWHERE, WITH_JOBS, Right
from jobman.engines.kubernetes.installation.site import LABELS, Site, Storage, parse_storage
from tests.engines.kubernetes.cluster import kubectl, kubectl_json, on_a_real_cluster, talk
from tests.engines.kubernetes.installed import a_site

SITES = {
    "usual": Site(),
    "other names": Site(namespace="batch", jobs_namespace="work", database_secret="db", tls_secret="cert"),
    "without TLS": Site(tls_secret=None),
    "with a volume": Site(storage=Storage("50Gi", "shared")),
    "alone": Site(replicas=1),
}


def found(site: Site, kind: str, name: str = "jobman") -> dict[str, Any]:
    (one,) = [
        item.written
        for item in objects(site)
        if item.written["kind"] == kind and item.written["metadata"]["name"] == name
    ]
    return one


def container_of(site: Site) -> dict[str, Any]:
    (one,) = found(site, "Deployment")["spec"]["template"]["spec"]["containers"]
    container: dict[str, Any] = one
    return container


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_everything_is_in_one_of_two_namespaces_but_what_belongs_to_the_cluster(site):
    site.check()
    for item in objects(site):
        place = item.written["metadata"].get("namespace")
        if item.written["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding"):
            assert place is None
        else:
            assert place in (site.namespace, site.jobs_namespace)


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_a_folder_has_every_object_once_and_kustomize_finds_all_files(site):
    texts = files(site)
    listed = yaml.safe_load(texts["kustomization.yaml"])["resources"]
    assert sorted(listed) == sorted(set(texts) - {"kustomization.yaml", "Containerfile"})
    written = [one for name in listed for one in yaml.safe_load_all(texts[name])]
    assert sorted(map(repr, written)) == sorted(repr(item.written) for item in objects(site))


def test_two_servers_are_started_and_end_in_peace_and_one_at_a_time():
    deployment = found(Site(), "Deployment")
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert found(Site(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert found(Site(), "PodDisruptionBudget")["spec"]["selector"] == {"matchLabels": LABELS}


def test_the_server_has_no_rights_on_its_node():
    pod = found(Site(), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container_of(Site())["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_database_is_named_by_a_secret_and_never_in_an_argument():
    (given,) = [each for each in container_of(Site())["env"] if each["name"] == "JOBMAN_DATABASE"]
    assert given == {
        "name": "JOBMAN_DATABASE",
        "valueFrom": {"secretKeyRef": {"name": "jobman-database", "key": "url"}},
    }
    assert not any("--database" in text for text in container_of(Site())["args"])
    assert not any("postgres" in text for item in objects(Site()) for text in texts_in(item.written))


def test_the_service_selects_nobody_since_the_leader_writes_itself_down():
    assert "selector" not in found(Site(), "Service")["spec"]
    assert "--advertise" in container_of(Site())["args"]


def test_without_tls_it_says_that_it_insists():
    assert "--insecure" in container_of(Site(tls_secret=None))["args"]
    assert "--insecure" not in container_of(Site())["args"]
    assert container_of(Site())["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_a_volume_is_one_that_several_nodes_can_mount():
    claim = found(SITES["with a volume"], "PersistentVolumeClaim", "jobman-output")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["storageClassName"] == "shared"
    assert not [item for item in objects(Site()) if item.written["kind"] == "PersistentVolumeClaim"]


def test_two_installations_do_not_share_a_cluster_role():
    names = {
        item.written["metadata"]["name"]
        for site in (Site(), Site(namespace="other"))
        for item in objects(site)
        if item.written["kind"].startswith("ClusterRole")
    }
    assert names == {"jobman", "jobman-other"}


def test_the_image_runs_as_the_user_of_the_deployment():
    text = files(Site())["Containerfile"]
    pod = found(Site(), "Deployment")["spec"]["template"]["spec"]
    assert f"USER {pod['securityContext']['runAsUser']}:" in text
    assert 'ENTRYPOINT ["jobman"]' in text
    assert "/source[postgres,kubernetes]" in text


@pytest.mark.parametrize(
    ("site", "words"),
    [
        (Site(namespace="Big"), "--namespace: 'Big'"),
        (Site(jobs_namespace="a.b"), "--jobs-namespace: 'a.b'"),
        (Site(namespace="one", jobs_namespace="one"), "cannot share a namespace"),
        (Site(database_secret="-"), "--database-secret: '-'"),
        (Site(tls_secret="/"), "--tls-secret: '/'"),
        (Site(image="a b"), "--image: 'a b'"),
        (Site(replicas=0), "1 to 9"),
    ],
)
def test_what_cannot_be_installed_is_told(site, words):
    with pytest.raises(ConfigError, match=words):
        site.check()


def test_a_volume_is_written_as_a_size_or_with_its_class():
    assert parse_storage("50Gi") == Storage("50Gi")
    assert parse_storage("fast/1Ti") == Storage("1Ti", "fast")
    for wrong in ("", "much", "0", "fast/", "A B/1Gi"):
        with pytest.raises(ConfigError, match="--storage"):
            parse_storage(wrong)


# -- on a cluster --------------------------------------------------------------------------------------------

for_all = pytest.mark.lab("it makes roles of the cluster as a whole")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with a_site() as found:
        yield found


@on_a_real_cluster
@for_all
@pytest.mark.slow
@pytest.mark.parametrize("variant", SITES.values(), ids=SITES)
def test_every_object_passes_strict_validation_and_the_walls_of_its_namespace(site, variant):
    there = msgspec.structs.replace(variant, namespace=site.namespace, jobs_namespace=site.jobs_namespace)

    async def try_all(api: Api) -> None:
        for item in objects(there):
            await api.apply_patch(item.written, dry_run=True, force=True)

    talk(try_all)
    words = kubectl("apply", "--dry-run=server", "-f", "-", stdin=files(there)["deployment.yaml"])
    assert "deployment.apps/jobman created" in words


@on_a_real_cluster
@for_all
@pytest.mark.slow
def test_applying_it_again_changes_nothing(site):
    async def apply(api: Api) -> list[str]:
        kept = [item for item in objects(site) if item.written["kind"] not in ("Deployment", "Namespace")]
        return [(await api.apply_patch(item.written)).metadata.resource_version for item in kept]

    assert talk(apply) == talk(apply)


def granted(user: str, namespace: str) -> set[tuple[str, str, str, str]]:
    """All that somebody may do in a namespace, as group, resource, verb and name."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    words = ("create", "--validate=false", "-o", "json", "-f", "-", "--as", user)
    text = kubectl(*words, stdin=yaml.safe_dump(review))
    return {
        (group, resource, verb, name)
        for rule in yaml.safe_load(text)["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


def expected(*tables: tuple[Right, ...]) -> set[tuple[str, str, str, str]]:
    return {
        (right.group, right.resource, verb, name)
        for table in tables
        for right in table
        for verb in right.verbs
        for name in right.only or ("",)
    }


@on_a_real_cluster
@for_all
@pytest.mark.slow
def test_the_server_may_do_what_the_table_says_and_nothing_else(site):
    user = f"system:serviceaccount:{site.namespace}:jobman"
    usual = granted(f"system:serviceaccount:{site.namespace}:nobody", "default")
    assert granted(user, site.jobs_namespace) - usual == expected(EVERYWHERE, WITH_JOBS)
    assert granted(user, site.namespace) - usual == expected(EVERYWHERE, AT_HOME)
    assert granted(user, "kube-system") - usual == expected(EVERYWHERE)


FORBIDDEN = (
    ("get", "secrets", "jobs"),
    ("list", "secrets", "jobs"),
    ("get", "secrets", "server"),
    ("create", "pods/exec", "server"),
    ("get", "pods/exec", "kube-system"),
    ("create", "pods", "server"),
    ("create", "pods", "kube-system"),
    ("delete", "pods", "kube-system"),
    ("delete", "nodes", "jobs"),
    ("create", "serviceaccounts/token", "server"),
    ("create", "clusterrolebindings.rbac.authorization.k8s.io", "server"),
    ("patch", "deployments.apps", "server"),
    ("patch", "leases.coordination.k8s.io/another", "server"),
    ("update", "roles.rbac.authorization.k8s.io", "jobs"),
    ("impersonate", "users", "jobs"),
)


@on_a_real_cluster
@for_all
@pytest.mark.slow
@pytest.mark.parametrize(("verb", "resource", "place"), FORBIDDEN)
def test_the_server_cannot(site, verb, resource, place):
    group = resource.partition("/")[0].partition(".")[2]
    plural, _, part = resource.replace(f".{group}", "").partition("/") if group else resource.partition("/")
    places = {"jobs": site.jobs_namespace, "server": site.namespace}
    is_name = group == "coordination.k8s.io"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{site.namespace}:jobman",
            "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": plural,
                "name" if is_name else "subresource": part,
                "namespace": places.get(place, place),
            },
        },
    }
    text = kubectl("create", "-o", "json", "-f", "-", stdin=yaml.safe_dump(review))
    assert not yaml.safe_load(text)["status"]["allowed"]


@on_a_real_cluster
@for_all
@pytest.mark.slow
def test_the_walls_of_a_jobs_namespace_are_there(site):
    (policy,) = kubectl_json("get", "networkpolicy", "-n", site.jobs_namespace)["items"]
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
