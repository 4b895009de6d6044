"""`jobman install kubernetes`, and a server that waits for a Lease."""

from __future__ import annotations

import secrets
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.engines.kubernetes.cluster import kubeconfig, kubectl, on_a_real_cluster

CHECKOUT = Path(__file__).parents[2]


def test_it_prints_every_object_as_yaml_and_says_on_the_side_what_is_left_to_do(jobman):
    answer = jobman("install", "kubernetes")
    assert answer.code == 0
    kinds = [one["kind"] for one in yaml.safe_load_all(answer.out)]
    assert {"Namespace", "ServiceAccount", "Deployment", "Service", "PodDisruptionBudget"} <= set(kinds)
    assert {"NetworkPolicy", "Role", "ClusterRole", "RoleBinding", "ConfigMap"} <= set(kinds)
    assert "create secret generic jobman-database" in answer.err
    assert "create secret tls jobman-tls" in answer.err
    assert "--storage" in answer.err


def test_json_is_one_list(jobman):
    answer = jobman("install", "kubernetes", "-o", "json")
    assert answer.data["kind"] == "List"
    assert answer.data["items"][0]["kind"] == "Namespace"


def test_options_are_where_they_belong(jobman):
    words = ["--namespace", "hpc", "--jobs-namespace", "hpc-jobs", "--image", "site/jobman:7"]
    words += ["--replicas", "3", "--database-secret", "db", "--insecure", "--storage", "nfs/100Gi"]
    text = jobman("install", "kubernetes", *words).out
    found = {one["kind"]: one for one in yaml.safe_load_all(text)}
    deployment = found["Deployment"]["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert (deployment["replicas"], container["image"]) == (3, "site/jobman:7")
    assert "hpc/jobman" in container["args"]
    assert "hpc-jobs" in container["args"]
    assert found["PersistentVolumeClaim"]["spec"]["storageClassName"] == "nfs"
    assert "jobman-tls" not in text


def test_a_folder_is_for_kustomize_and_has_the_containerfile(jobman, tmp_path):
    folder = tmp_path / "site"
    answer = jobman("install", "kubernetes", "--to", folder)
    assert answer.code == 0
    assert answer.out.splitlines() == [str(folder / name) for name in names_of(answer)]
    assert {"kustomization.yaml", "Containerfile", "deployment.yaml"} <= {p.name for p in folder.iterdir()}
    assert f"kubectl apply -k {folder}" in answer.err
    assert jobman("install", "kubernetes", "--to", folder).code == 0, "its own files it may write again"
    (folder / "mine.yaml").touch()
    refused = jobman("install", "kubernetes", "--to", folder)
    assert refused.code == 1
    assert "mine.yaml" in refused.err


def names_of(answer) -> list[str]:
    return [line.rpartition("/")[2] for line in answer.out.splitlines()]


def test_the_containerfile_alone_can_be_had(jobman):
    answer = jobman("install", "kubernetes", "--containerfile")
    assert answer.out.splitlines()[2].startswith("FROM ")
    assert answer.err == ""


def test_the_image_is_made_of_a_checkout_and_of_all_that_its_package_needs(jobman):
    lines = jobman("install", "kubernetes", "--containerfile").out.splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert copied == needed | {package.partition("/")[0] for package in packages}
    (installed,) = [line for line in lines if "pip install" in line]
    assert '"/source[postgres,kubernetes]"' in installed
    assert "jobman==" not in "".join(lines), "an index may have somebody else's under that name"


def test_settings_go_into_the_cluster_and_wrong_ones_do_not(jobman, write):
    text = "queues:\n- {name: long}\n"
    answer = jobman("-s", write(text, "site.yaml"), "install", "kubernetes")
    (config,) = [one for one in yaml.safe_load_all(answer.out) if one["kind"] == "ConfigMap"]
    assert config["data"] == {"settings.yaml": text}
    assert jobman("-s", write("queus: []\n", "bad.yaml"), "install", "kubernetes").code == 3


@pytest.mark.parametrize(
    "words",
    [
        ("--apply", "--to", "folder"),
        ("--containerfile", "--apply"),
        ("--force",),
        ("--namespace", "UPPER"),
        ("--namespace", "same", "--jobs-namespace", "same"),
        ("--storage", "much"),
        ("--replicas", "0"),
        ("--image", "no image"),
    ],
)
def test_what_makes_no_sense_ends_with_2_and_prints_nothing(jobman, words):
    answer = jobman("install", "kubernetes", *words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err


def test_a_cluster_that_is_not_there_ends_with_5_or_2(real_jobman, write):
    assert real_jobman("install", "kubernetes", "--apply", KUBECONFIG="/nowhere").code == 2
    nobody = """\
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"""
    assert real_jobman("install", "kubernetes", "--apply", KUBECONFIG=write(nobody, "config")).code == 5


@on_a_real_cluster
@pytest.mark.lab("it makes roles of the cluster as a whole")
@pytest.mark.slow
def test_it_is_applied_and_applied_again_to_a_real_cluster(real_jobman):
    name = f"test-{secrets.token_hex(4)}"
    words = ("--namespace", name, "--jobs-namespace", f"{name}-jobs", "--replicas", "1", "--apply")
    config = str(kubeconfig())
    try:
        first = real_jobman("install", "kubernetes", *words, KUBECONFIG=config)
        assert first.code == 0, first.err
        assert "deployment/jobman created" in first.out
        assert "create secret generic jobman-database" in first.err
        again = real_jobman("install", "kubernetes", *words, KUBECONFIG=config)
        assert again.code == 0, again.err
        assert "created" not in again.out
        assert "role/jobman unchanged" in again.out
        ada = real_jobman("install", "kubernetes", *words, KUBECONFIG=str(kubeconfig().with_name("ada.conf")))
        assert ada.code == 6
        assert "may not" in ada.err
    finally:
        kubectl("delete", "clusterrole", f"jobman-{name}", "--ignore-not-found")
        kubectl("delete", "clusterrolebinding", f"jobman-{name}", "--ignore-not-found")
        kubectl("delete", "namespace", name, f"{name}-jobs", "--wait=false", "--ignore-not-found")


@on_a_real_cluster
@pytest.mark.lab("it makes roles of the cluster as a whole")
@pytest.mark.slow
def test_what_kubectl_applied_is_taken_over_but_for_what_somebody_changed(real_jobman, tmp_path):
    name = f"test-{secrets.token_hex(4)}"
    words = ("install", "kubernetes", "--namespace", name, "--jobs-namespace", f"{name}-jobs")
    folder, config = str(tmp_path / "site"), str(kubeconfig())
    try:
        assert real_jobman(*words, "--to", folder).code == 0
        kubectl("apply", "-k", folder)
        taken = real_jobman(*words, "--apply", KUBECONFIG=config)
        assert taken.code == 0, taken.err
        kubectl("scale", "deployment/jobman", "-n", name, "--replicas=1")
        refused = real_jobman(*words, "--apply", KUBECONFIG=config)
        assert (refused.code, refused.out) == (4, "")
        assert ".spec.replicas" in refused.err
        assert "--force" in refused.err
        assert real_jobman(*words, "--apply", "--force", KUBECONFIG=config).code == 0
    finally:
        kubectl("delete", "clusterrole", f"jobman-{name}", "--ignore-not-found")
        kubectl("delete", "clusterrolebinding", f"jobman-{name}", "--ignore-not-found")
        kubectl("delete", "namespace", name, f"{name}-jobs", "--wait=false", "--ignore-not-found")


# -- a server that waits for a Lease -------------------------------------------------------------------------

CLUSTER = ("--engine", "kubernetes")
DATABASE = (*CLUSTER, "--database", "postgresql://jobman@127.0.0.1:1/none")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--lease", "jobman"), "--engine kubernetes"),
        (("--lease", "jobman", *CLUSTER), "PostgreSQL"),
        (("--lease", "jobman", *CLUSTER, "--database", "sqlite:////tmp/none.db"), "PostgreSQL"),
        (("--lease", "Not A Name", *DATABASE), "no name of a Lease"),
        (("--lease", "jobman", "--lease-seconds", "1", *DATABASE), "3 seconds at least"),
        (("--advertise", "jobman", *DATABASE), "--lease"),
        (("--lease", "jobman", "--advertise", "jobman", *DATABASE), "POD_IP"),
    ],
)
def test_a_lease_that_makes_no_sense_ends_with_2(jobman, words, said):
    answer = jobman("server", "--listen", "127.0.0.1:0", *words)
    assert answer.code == 2
    assert said in " ".join(answer.err.replace("│", " ").split())


def test_a_lease_needs_a_cluster(real_jobman):
    answer = real_jobman(
        "server", "--listen", "127.0.0.1:0", "--lease", "jobman", *DATABASE, KUBECONFIG="/nowhere"
    )
    assert answer.code == 2
    assert "kubeconfig" in answer.err
    assert "Traceback" not in answer.err
