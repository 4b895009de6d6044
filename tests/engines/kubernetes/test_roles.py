"""Which right a refusal says is missing, and the Role for it."""

import yaml

from jobman.engines.kubernetes.roles import Need, direct_needs, needed, role_yaml

PODS_OF_ADA = (
    'pods is forbidden: User "ada" cannot list resource "pods" in API group "" in the namespace "physics"'
)


def test_a_refusal_names_what_is_missing():
    assert needed(PODS_OF_ADA) == Need(verb="list", resource="pods", namespace="physics", user="ada")


def test_a_refusal_may_be_about_the_whole_cluster():
    message = (
        'nodes is forbidden: User "ada" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    assert needed(message) == Need(verb="list", resource="nodes", user="ada")


def test_a_refusal_may_be_about_a_path():
    assert needed('forbidden: User "ada" cannot get path "/metrics"') == Need(
        verb="get", path="/metrics", user="ada"
    )


def test_a_reason_behind_it_does_not_matter():
    assert needed(f'{PODS_OF_ADA}: RBAC: role.rbac.authorization.k8s.io "x" not found') == needed(PODS_OF_ADA)


def test_a_quota_is_not_a_right():
    assert needed('pods "x" is forbidden: exceeded quota: q, requested: pods=1') is None


def test_the_role_grants_exactly_what_is_missing():
    need = Need(verb="list", resource="pods", namespace="physics", user="ada")
    role, binding = yaml.safe_load_all(role_yaml([need]))
    assert role["kind"] == "Role"
    assert role["metadata"] == {"name": "jobman-list-pods", "namespace": "physics"}
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    assert binding["kind"] == "RoleBinding"
    assert binding["metadata"]["name"] == "jobman-list-pods-ada"
    assert binding["roleRef"]["name"] == "jobman-list-pods"
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}]


def test_what_is_of_the_whole_cluster_needs_a_cluster_role():
    role, binding = yaml.safe_load_all(role_yaml([Need(verb="list", resource="nodes", user="ada")]))
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert "namespace" not in role["metadata"]


def test_a_service_account_is_bound_as_one():
    need = Need(verb="get", resource="pods", namespace="a", user="system:serviceaccount:b:robot")
    _, binding = yaml.safe_load_all(role_yaml([need]))
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "robot", "namespace": "b"}]


def test_many_rights_on_one_resource_are_one_rule():
    (role,) = yaml.safe_load_all(role_yaml(direct_needs("physics")))
    (jobs,) = [rule for rule in role["rules"] if rule["resources"] == ["jobs"]]
    assert jobs["apiGroups"] == ["batch"]
    assert jobs["verbs"] == ["get", "list", "watch", "create", "patch", "delete"]


def test_what_a_document_may_ask_for_is_in_the_role():
    (role,) = yaml.safe_load_all(role_yaml(direct_needs("physics")))
    writable = {name for rule in role["rules"] if "create" in rule["verbs"] for name in rule["resources"]}
    assert {"jobs", "services", "configmaps", "networkpolicies", "resourceclaims"} <= writable
    assert "resourceclaimtemplates" in writable
