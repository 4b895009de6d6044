"""JobSets in the cluster of the lab: their Jobs run in the order they ask for, and a wrong set is refused."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.slow,
    pytest.mark.lab("it is about the lab itself"),
]
PATIENCE = 60


class Namespace:
    """A namespace of its own, by the eyes of kubectl."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *words: str, given: Any = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [os.environ["JOBMAN_LAB_KUBECTL"], "--namespace", self.name, *words],
            env={**os.environ, "KUBECONFIG": os.environ["JOBMAN_LAB_KUBECONFIG"]},
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
        )

    def create(self, thing: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
        return self.kubectl("create", "-f", "-", *words, given=thing)

    def ends(self) -> dict[str, dict[str, Any]]:
        """How the container of each member of a set ended."""
        pods = json.loads(self.kubectl("get", "pods", "-o", "json").stdout)["items"]
        return {
            pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"]: status["state"]["terminated"]
            for pod in pods
            for status in pod["status"]["containerStatuses"]
        }


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(f"lab-{uuid4().hex[:8]}")
    made.kubectl("create", "namespace", made.name).check_returncode()
    yield made
    made.kubectl("delete", "namespace", made.name, "--wait=false")


def member(name: str, command: str, after: str | None = None) -> dict[str, Any]:
    """A Job of a set, which may wait until another is complete."""
    container = {
        "name": "main",
        "image": os.environ["JOBMAN_LAB_KUBE_IMAGE"],
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
    }
    pod = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 0}
    order = {} if after is None else {"dependsOn": [{"name": after, "status": "Complete"}]}
    return {"name": name, "template": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}, **order}


def job_set(*members: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "steps"},
        "spec": {"replicatedJobs": members},
    }


def test_a_member_starts_when_the_one_it_depends_on_is_complete(namespace: Namespace) -> None:
    made = namespace.create(job_set(member("first", "sleep 2"), member("second", "true", after="first")))
    assert made.returncode == 0, made.stderr
    done = namespace.kubectl("wait", "jobset/steps", "--for=condition=Completed", f"--timeout={PATIENCE}s")
    assert done.returncode == 0, namespace.kubectl("describe", "jobsets,jobs,pods").stdout
    ends = namespace.ends()
    assert {name: end["exitCode"] for name, end in ends.items()} == {"first": 0, "second": 0}
    assert ends["first"]["finishedAt"] <= ends["second"]["startedAt"]


def test_what_a_set_leaves_open_is_filled_in(namespace: Namespace) -> None:
    made = namespace.create(job_set(member("first", "true")), "--dry-run=server", "-o", "json")
    assert made.returncode == 0, made.stderr
    (first,) = json.loads(made.stdout)["spec"]["replicatedJobs"]
    assert first["template"]["spec"]["completionMode"] == "Indexed"


def test_a_member_that_depends_on_a_stranger_is_refused(namespace: Namespace) -> None:
    made = namespace.create(job_set(member("first", "true"), member("second", "true", after="other")))
    assert made.returncode != 0
    assert 'admission webhook "vjobset.kb.io" denied the request' in made.stderr
    assert "second cannot depend on replicatedJob: other" in made.stderr
