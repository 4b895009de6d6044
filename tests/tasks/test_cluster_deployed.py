"""An installation as its page tells to make it: a broker and a keeper in pods, and somebody outside."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobman.tasks.grid import Grid
from tests.control.api.world import until
from tests.control.conftest import new_postgres
from tests.docs.pages import code_in, rows
from tests.engines.kubernetes.cluster import kubeconfig, kubectl, kubectl_json
from tests.tasks.cluster_world import lab, the_metrics_api

pytestmark = [
    pytest.mark.slow,
    pytest.mark.lab("it makes rules for the cluster as a whole"),
    *(pytest.mark.component(name) for name in ("kubernetes", "postgres", "services")),
]
PATIENCE = 240
METRICS = "v1beta1.external.metrics.k8s.io"
SIZE = 200


class Installation:
    """Short tasks in namespaces of their own; the parts that serve jobs are left without their Secrets."""

    def __init__(self, folder: Path, database: str) -> None:
        name = f"test-{secrets.token_hex(4)}"
        self.name, self.jobs, self.tasks = name, f"{name}-jobs", f"{name}-tasks"
        self._folder, self._database = folder, database
        self.token = secrets.token_hex(16)
        self.worker = lab("worker")

    def install(self) -> None:
        """The steps of docs/tasks-on-kubernetes.md; the certificate has also the address of the Service."""
        for name in (self.name, self.tasks):
            kubectl("create", "namespace", name)
        operator = secrets.token_hex(16)
        self._secret(self.name, "jobman-database", url=self._database)
        self._secret(
            self.name, "jobman-tasks", **{"settings.yaml": self._settings(operator), "token": operator}
        )
        self._secret(self.tasks, "jobman-agent", token=operator)
        self.apply()
        self._secret(self.name, "jobman-tasks-tls", **self._certificate())
        for part in ("jobman-broker", "jobman-tasks"):
            words = ("rollout", "status", f"deployment/{part}", f"--timeout={PATIENCE}s")
            kubectl("-n", self.name, *words)

    def apply(self) -> str:
        names = ("--namespace", self.name, "--jobs-namespace", self.jobs, "--tasks-namespace", self.tasks)
        words = (
            "install",
            "kubernetes",
            "--tasks",
            *names,
            "--image",
            lab("image"),
            "--replicas",
            "1",
            "--apply",
        )
        return run(sys.executable, "-m", "jobman.cli.main", *words, KUBECONFIG=str(kubeconfig()))

    def remove(self) -> None:
        kubectl("delete", "namespace", self.name, self.jobs, self.tasks, "--wait=false", "--ignore-not-found")
        # The keeper is gone, who would not wait for a worker that does not hear the signal.
        kubectl("delete", "pods", "--all", "-n", self.tasks, "--grace-period=1", "--wait=false")
        for kind in ("clusterrole", "clusterrolebinding"):
            names = (f"jobman-{self.name}", f"jobman-{self.name}-tasks")
            kubectl("delete", kind, *names, "--ignore-not-found")
        kubectl(
            "delete", "rolebinding", f"jobman-{self.name}-tasks", "-n", "kube-system", "--ignore-not-found"
        )

    def _settings(self, operator: str) -> str:
        kind = {"type": "sleep", "image": self.worker, "resources": {"cpu": "10m", "memory": "32Mi"}}
        scaling = {"*": {"most": 2, "slots": 4, "target": 5, "calm": 5}}
        tokens = {self.token: "desk", operator: "operator"}
        return yaml.safe_dump({"types": [kind], "scaling": scaling, "tokens": tokens})

    def _secret(self, namespace: str, name: str, **texts: str) -> None:
        files = []
        for key, text in texts.items():
            file = self._folder / f"{name}-{key}"
            file.write_text(text)
            files.append(f"--from-file={key}={file}")
        kubectl("-n", namespace, "create", "secret", "generic", name, *files)

    def _certificate(self) -> dict[str, str]:
        hosts = [f"DNS:{name}.{self.name}.svc" for name in ("jobman-broker", "jobman-tasks-metrics")]
        names = ",".join((*hosts, f"IP:{self.address}"))
        files = self.authority, self._folder / "tls.key"
        words = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
        )
        said = ("-addext", f"subjectAltName={names}", "-out", str(files[0]), "-keyout", str(files[1]))
        run(*words.split(), *said)
        chain, key = (file.read_text() for file in files)
        return {"tls.crt": chain, "tls.key": key, "ca.crt": chain}

    @property
    def authority(self) -> Path:
        return self._folder / "tls.crt"

    @property
    def address(self) -> str:
        """Of the Service of the broker; this machine reaches it as pods do."""
        found = kubectl_json("get", "service", "jobman-broker", "-n", self.name)
        return str(found["spec"]["clusterIP"])

    def grid(self) -> Grid:
        url = f"https://{self.address}:7080"
        return Grid(url, token=self.token, ca_file=str(self.authority))

    def said(self, part: str) -> str:
        return kubectl("-n", self.name, "logs", f"deployment/{part}", "--tail=-1")

    def autoscalers(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = kubectl_json("get", "hpa", "-n", self.tasks)["items"]
        return items

    def rules(self, kind: str, name: str, *place: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = kubectl_json("get", kind, name, *place)["rules"]
        return found


def run(*command: str, **environment: str) -> str:
    given = {**os.environ, **environment}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with new_postgres() as url, the_metrics_api():
        inside = f"{os.environ['JOBMAN_LAB_POSTGRES_INSIDE'].rpartition('/')[0]}/{url.rpartition('/')[2]}"
        found = Installation(tmp_path, inside.replace("+psycopg", ""))
        try:
            yield found
        finally:
            found.remove()


def test_somebody_outside_has_tasks_executed_by_an_installation_whose_broker_restarts(
    installation: Installation,
):
    installation.install()
    with installation.grid() as grid:
        batch = grid.submit_many("sleep", [b"0.2"] * SIZE, estimate=0.2)
        results = grid.results(batch=batch, follow=True)
        found = [next(results) for _ in range(10)]
        kubectl("-n", installation.name, "delete", "pod", "-l", "app.kubernetes.io/component=task-broker")
        found += [next(results) for _ in range(SIZE - 10)]
    assert sorted(each.index for each in found) == list(range(SIZE))
    assert {(each.status, each.result) for each in found} == {("completed", b"slept 0.2")}
    kubectl("wait", "--for=condition=Available", f"apiservice/{METRICS}", f"--timeout={PATIENCE}s")
    assert until(lambda: current_metrics(installation), PATIENCE) == [
        "jobman_outstanding_seconds",
        "jobman_slots_busy",
    ]
    assert "created" not in installation.apply(), "it may be repeated"
    for part in ("jobman-broker", "jobman-tasks"):
        assert not re.search(r"orbidden|may not|Traceback", installation.said(part))
    assert rights_of(installation) == rights_on_the_page()


def current_metrics(installation: Installation) -> list[str]:
    """What an HPA has read."""
    return [
        each["external"]["metric"]["name"]
        for scaler in installation.autoscalers()
        for each in scaler["status"].get("currentMetrics") or ()
        if "external" in each
    ]


def rights_of(installation: Installation) -> list[tuple[str, ...]]:
    places = (("clusterrole", f"jobman-{installation.name}-tasks"),)
    rules = [rule for place in places for rule in installation.rules(*place)]
    rules += installation.rules("role", "jobman-tasks", "-n", installation.tasks)
    return [
        (
            ".".join(filter(None, (*rule["resources"], *rule["apiGroups"]))),
            *rule.get("resourceNames", ()),
            json.dumps(rule["verbs"]),
        )
        for rule in rules
    ]


def rights_on_the_page() -> list[tuple[str, ...]]:
    return [
        (*code_in(resource), json.dumps(list(code_in(verbs))))
        for _, resource, verbs, _ in rows("tasks-on-kubernetes.md", "<!-- rights -->")
    ]
