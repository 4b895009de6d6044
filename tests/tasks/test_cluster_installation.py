"""What an installation has for short tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from jobman.cli.app import app
from jobman.engines.kubernetes.errors import ConfigError
from jobman.engines.kubernetes.installation.bundle import files, objects
from jobman.engines.kubernetes.installation.rights import EVERYWHERE_WITH_WORKERS, WITH_WORKERS
from jobman.engines.kubernetes.installation.secrets import secrets
from jobman.engines.kubernetes.installation.site import Site, Tasks
from tests.docs.pages import code_in, rows

SITE = Site(tasks=Tasks())


def found(kind: str, name: str, site: Site = SITE) -> dict[str, Any]:
    (one,) = [
        item.written
        for item in objects(site)
        if item.written["kind"] == kind and item.written["metadata"]["name"] == name
    ]
    return one


def container(name: str) -> dict[str, Any]:
    (one,) = found("Deployment", name)["spec"]["template"]["spec"]["containers"]
    container: dict[str, Any] = one
    return container


def test_short_tasks_are_left_out_unless_they_are_wanted():
    assert "tasks.yaml" not in files(Site())
    assert "tasks.yaml" in yaml.safe_load(files(SITE)["kustomization.yaml"])["resources"]


def test_an_hpa_is_led_to_whoever_keeps_workers():
    leading = found("APIService", "v1beta1.external.metrics.k8s.io")["spec"]["service"]
    service = found("Service", leading["name"])
    assert (leading["namespace"], leading["port"]) == ("jobman", service["spec"]["ports"][0]["port"])
    pods = found("Deployment", "jobman-tasks")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pods.items()
    assert "jobman/jobman-tasks-metrics" in container("jobman-tasks")["args"]


def test_where_keda_is_the_metrics_api_is_left_to_it():
    site = Site(tasks=Tasks(prometheus="http://prometheus:9090"))
    assert "APIService" not in [item.written["kind"] for item in objects(site)]
    words = found("Deployment", "jobman-tasks", site)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert words[words.index("--prometheus") + 1] == "http://prometheus:9090"


def test_secrets_are_named_and_never_in_an_argument():
    wanted = {each.name: each.namespace for each in secrets(SITE)}
    assert wanted == {
        "jobman-database": "jobman",
        "jobman-tls": "jobman",
        "jobman-tasks": "jobman",
        "jobman-tasks-tls": "jobman",
        "jobman-agent": "jobman-tasks",
    }
    assert not any("postgres" in word or "TOKEN" in word for word in container("jobman-broker")["args"])


@pytest.mark.parametrize("namespace", ["jobman", "jobman-jobs", "Not-One"])
def test_workers_have_a_namespace_to_themselves(namespace):
    with pytest.raises(ConfigError, match="namespace"):
        Site(tasks=Tasks(namespace=namespace)).check()


def test_the_rights_on_the_page_are_those_of_the_installation():
    shown = [
        (where, tuple(code_in(resource)), tuple(code_in(verbs)), purpose)
        for where, resource, verbs, purpose in rows("tasks-on-kubernetes.md", "<!-- rights -->")
    ]
    assert shown == [
        (
            where,
            (f"{right.resource}.{right.group}" if right.group else right.resource, *right.only),
            right.verbs,
            right.purpose,
        )
        for where, table in (("everywhere", EVERYWHERE_WITH_WORKERS), ("workers", WITH_WORKERS))
        for right in table
    ]


def test_a_dashboard_is_printed():
    told = CliRunner().invoke(app, ["install", "dashboard"])
    assert json.loads(told.stdout)["title"] == "jobman: short tasks"
