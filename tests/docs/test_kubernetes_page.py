"""The page on Kubernetes agrees with the code: rights, refusals, labels and limits."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.engines.kubernetes import copies, found, names, volumes
from jobman.engines.kubernetes.features import FEATURES
from jobman.engines.kubernetes.roles import direct_needs, role_yaml
from tests.client.commanding import config_for
from tests.docs.pages import code_in, fences, rows, text_of
from tests.engines.kubernetes.cluster import (
    a_namespace,
    image,
    kubeconfig,
    kubectl,
    kubectl_json,
    on_a_real_cluster,
)

PAGE = "kubernetes.md"
GRAPH = "graph.yaml"
LABELS = {
    names.JOB,
    names.NAME,
    names.OWNER,
    names.TASK,
    names.FLAVOR,
    names.REPLICA,
    names.NODE,
    names.ALLOCATION,
    names.FIRST,
    names.KEY,
    names.ATTEMPT,
    names.PART,
}
NO_KEYS = {names.PREFIX, names.GATE}


def named(title: str) -> set[str]:
    return {code for row in rows(PAGE, title) for code in code_in(row[0])}


def test_the_role_is_the_one_that_is_needed():
    (role,) = fences(PAGE, "yaml")
    assert role.text == role_yaml(direct_needs("lab"))


def test_every_feature_that_is_refused_stands_on_the_page_and_no_other():
    assert named("## What is refused") == {name for name, each in FEATURES.items() if each.how == "refused"}


def test_every_label_and_annotation_stands_on_the_page_and_no_other():
    keys = {
        value
        for module in (names, copies, found)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and value.startswith(names.PREFIX)
    }
    assert named("| label |") == LABELS
    assert named("| annotation |") == keys - LABELS - NO_KEYS


def test_places_and_sizes_are_those_of_the_code():
    words = text_of(PAGE).replace("\n", " ")
    assert all(f"`{place}`" in words for place in (volumes.WORK, volumes.SCRATCH, volumes.SECRETS))
    assert f"up to {volumes.MOST_BYTES // 1000} kB" in words


# -- a real cluster -----------------------------------------------------------------------------------------


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Somebody who has the rights of the page in a namespace, and no others."""
    with a_namespace() as namespace:
        own = config_for(namespace, tmp_path, kubeconfig(), user=f"ada-{namespace}")
        who = kubectl_json("auth", "whoami", KUBECONFIG=str(own))["status"]["userInfo"]["username"]
        kubectl("create", "-f", "-", stdin=role_yaml(direct_needs(namespace, who)))
        monkeypatch.setenv("KUBECONFIG", str(own))
        yield namespace


def session(title: str) -> list[list[str]]:
    """The commands of the first session behind a heading."""
    place = text_of(PAGE)[: text_of(PAGE).index(title)].count("\n")
    shown = next(fence.text for fence in fences(PAGE, "console") if fence.line > place)
    return [shlex.split(line.removeprefix("$ jobman ")) for line in shown.splitlines()]


@pytest.mark.slow
@on_a_real_cluster
def test_the_first_job_runs_with_the_rights_of_the_page(laptop, ada, tmp_path):
    said = {}
    for words in session("## A first job"):
        words = [image() if word.startswith("busybox") else word for word in words]
        answer = laptop.jobman(*words, cwd=tmp_path)
        assert answer.code == 0, (words, answer.err)
        said[words[2]] = answer.out
    assert said["logs"] == "hello from a pod\n"
    assert kubectl("get", "jobs", "-n", ada, "-l", "jobman.io/name=hello", "-o", "name") == ""


@pytest.mark.slow
@on_a_real_cluster
def test_what_was_rendered_and_created_by_hand_is_found_again(laptop, ada, tmp_path):
    (tmp_path / "job.yaml").write_text(
        f"version: 1\nname: byhand\nimage: '{image()}'\n"
        "tasks: [{command: [echo, hello], replicas: 2, resources: {type: slot, count: 1}}]\n"
    )
    laptop.jobman("render", "-e", "kubernetes", "job.yaml", "--to", "manifests", cwd=tmp_path)
    kubectl("create", "-n", ada, "-f", str(tmp_path / "manifests"))
    assert laptop.jobman("-e", "kubernetes", "wait", "byhand", cwd=tmp_path).code == 0
    listed = ("-e", "kubernetes", "list", "-o", "json")
    assert json.loads(laptop.jobman(*listed, cwd=tmp_path).out)["items"] == []
    (job,) = json.loads(laptop.jobman(*listed, "--all-users", cwd=tmp_path).out)["items"]
    assert (job["name"], job["state"], job["counts"]) == ("byhand", "succeeded", {"succeeded": 2})


NOT_THERE = (
    ("extend", "hello", "+5m"),
    ("maintenance", "list"),
    ("reserve", "list"),
    ("usage",),
    ("token", "list"),
    ("nodes", "drain", "lab-1"),
    ("queue", "close", "batch"),
    ("submit", "--virtual", "4x4", "-i", "a:1", "--", "true"),
    ("submit", "--no-container", "-i", "a:1", "--", "true"),
    ("submit", "--reservation", "r", "-i", "a:1", "--", "true"),
    ("submit", "--what-if", "-i", "a:1", "--", "true"),
    ("submit", GRAPH),
)


@pytest.mark.slow
@on_a_real_cluster
@pytest.mark.parametrize("words", NOT_THERE, ids=" ".join)
def test_what_needs_a_service_is_refused(laptop, words, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig()))
    (tmp_path / GRAPH).write_text(
        "version: 1\nimage: 'a:1'\ntasks:\n- {name: a, command: [echo], resources: {type: slot, count: 1}}\n"
        "- {name: b, depends_on: a, when: failure, command: [echo], resources: {type: slot, count: 1}}\n"
    )
    answer = laptop.jobman("-e", "kubernetes", *words, cwd=tmp_path)
    assert (answer.code, answer.out) == (4, "")
