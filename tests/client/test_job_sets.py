"""Graphs that the cluster itself drives, as JobSets: every command of the command line on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.client.commanding import Jobman, state_of, submitted, until
from tests.client.graphs import SMALL, document, task
from tests.engines.kubernetes.cluster import (
    kubectl_json,
    need_job_sets,
    on_a_real_cluster,
)

pytestmark = [on_a_real_cluster, pytest.mark.slow, pytest.mark.usefixtures("job_sets")]


@pytest.fixture(scope="module")
def job_sets() -> None:
    need_job_sets()


FAIL_ALL = [{"exit_codes": ["1-255"], "action": "fail-job"}]


def outcomes(jobman: Jobman, job: str) -> dict[str, dict[str, int]]:
    details = jobman("details", job, "-o", "json").data
    return {one["unit"]: one["counts"] for one in details["tasks"]}


def test_tasks_run_in_turn_with_nobody_there(jobman: Jobman, namespace: str, tmp_path: Path) -> None:
    path = document(
        tmp_path,
        task("last", "cat /etc/word; echo last", depends_on=["middle"]),
        task("first", "echo first"),
        task("middle", "echo middle $JOBMAN_REPLICA", replicas=2, depends_on=["first"]),
    )
    whole = yaml.safe_load(Path(path).read_text())
    whole["tasks"][0]["steps"] = [{"name": "write", "path": "/etc/word", "content": "the "}]
    Path(path).write_text(yaml.safe_dump(whole))
    job = submitted(jobman, path)
    (made,) = kubectl_json("get", "jobsets", "-n", namespace)["items"]
    assert made["metadata"]["labels"]["jobman.io/job"] == job
    followed = jobman("logs", "-f", job).out
    assert jobman("wait", job).code == 0
    said = [line.split("│")[-1].strip() for line in followed.splitlines()]
    assert said[0] == "first"
    assert sorted(said[1:3]) == ["middle 0", "middle 1"]
    assert said[3:] == ["the last"]
    assert outcomes(jobman, job) == {
        "last": {"succeeded": 1},
        "first": {"succeeded": 1},
        "middle": {"succeeded": 2},
    }
    details = jobman("details", job, "-o", "json").data
    assert (details["state"], details["exit_code"]) == ("succeeded", 0)
    kinds = [event["kind"] for event in jobman("events", job, "-o", "json").data]
    assert (kinds[0], "job-succeeded" in kinds) == ("submitted", True)
    assert jobman("delete", job).code == 0
    until(lambda: left_in(namespace) == [])


def left_in(namespace: str) -> list[str]:
    found = kubectl_json("get", "jobsets,jobs,pods,services,configmaps", "-n", namespace)["items"]
    names = [f"{one['kind']}/{one['metadata']['name']}" for one in found]
    return [name for name in names if name not in ("ConfigMap/kube-root-ca.crt", "Service/kubernetes")]


def test_what_waits_for_a_failure_is_skipped_and_the_job_has_its_code(jobman: Jobman, tmp_path: Path) -> None:
    path = document(
        tmp_path,
        task("first", "exit 7"),
        task("second", "true", depends_on=["first"]),
        task("third", "true", depends_on=["second"]),
    )
    job = submitted(jobman, path)
    assert jobman("wait", job).code == 7
    assert outcomes(jobman, job) == {
        "first": {"failed": 1},
        "second": {"skipped": 1},
        "third": {"skipped": 1},
    }
    assert "exit code 7" in jobman("why", job).out
    again = jobman("rerun", job)
    assert again.code == 0, again.err
    assert jobman("wait", again.out.split()[0]).code == 7


def test_a_failure_that_ends_the_job_stops_those_beside_it(jobman: Jobman, tmp_path: Path) -> None:
    path = document(
        tmp_path,
        task("begin", "true"),
        task("bad", "sleep 2; exit 4", depends_on=["begin"]),
        task("long", "sleep 600", depends_on=["begin"]),
        on_failure=FAIL_ALL,
    )
    job = submitted(jobman, path)
    assert jobman("wait", job).code == 4
    until(lambda: outcomes(jobman, job)["long"] == {"cancelled": 1})
    assert outcomes(jobman, job)["bad"] == {"failed": 1}


def test_a_graph_is_held_released_and_cancelled_as_a_whole(jobman: Jobman, tmp_path: Path) -> None:
    path = document(tmp_path, task("first", "sleep 600"), task("second", "true", depends_on=["first"]))
    job = submitted(jobman, "--hold", path)
    assert "the job is held" in jobman("why", job).out
    assert jobman("details", job, "-o", "json").data["held"] is True
    assert jobman("release", job).code == 0
    until(lambda: outcomes(jobman, job)["first"] == {"running": 1})
    assert "second waits for first to succeed" in jobman("why", job).out
    assert jobman("hold", job).code == 0
    until(lambda: outcomes(jobman, job)["first"] == {"waiting": 1})
    assert jobman("release", job).code == 0
    until(lambda: outcomes(jobman, job)["first"] == {"running": 1})
    assert jobman("cancel", job).code == 0
    assert jobman("wait", job).code != 0
    assert state_of(jobman, job) == "cancelled"
    assert outcomes(jobman, job) == {"first": {"cancelled": 1}, "second": {"cancelled": 1}}
    kinds = [event["kind"] for event in jobman("events", job, "-o", "json").data]
    assert [kind for kind in kinds if kind in ("held", "released", "cancelling")] == [
        "released",
        "held",
        "released",
        "cancelling",
    ]


def test_two_that_run_together_find_each_other(jobman: Jobman, tmp_path: Path) -> None:
    serve = task("serve", "echo hello | nc -l -p 8080", ports=[8080])
    use = task(
        "use",
        "until nc $JOBMAN_HOST_SERVE 8080 </dev/null 2>/dev/null; do sleep 0.3; done; "
        "echo $JOBMAN_COORDINATOR",
        depends_on=[{"name": "serve", "when": "started"}],
    )
    job = submitted(jobman, document(tmp_path, serve, use, on_failure=FAIL_ALL, coordinator="serve"))
    assert jobman("wait", job).code == 0
    said = jobman("logs", job).out
    assert "hello" in said
    assert f"-serve-0-0.graph-{job[:6]}" in said


def test_run_needs_no_driver_where_the_cluster_is_one(jobman: Jobman, namespace: str, tmp_path: Path) -> None:
    path = document(tmp_path, task("one", "echo 1"), task("two", "echo 2; exit 5", depends_on=["one"]))
    answer = jobman("run", "-q", path)
    assert answer.code == 5
    assert [line.split("│")[-1].strip() for line in answer.out.splitlines()] == ["1", "2"]
    assert len(kubectl_json("get", "jobsets", "-n", namespace)["items"]) == 1


def test_parts_of_a_replica_are_stopped_together(jobman: Jobman, tmp_path: Path) -> None:
    shapes = {name: {**SMALL, "count": count} for name, count in (("one", 1), ("two", 2))}
    script = "test $JOBMAN_RANK = 0 && { sleep 2; exit 9; }; sleep 600"
    team = {**task("team", script), "resources": "one&two"}
    job = submitted(jobman, document(tmp_path, team, resources=shapes))
    assert jobman("wait", job).code == 9
    assert state_of(jobman, job) == "failed"


def test_what_a_set_would_do_in_another_way_is_told(jobman: Jobman, tmp_path: Path) -> None:
    tasks = [task("left", "true"), task("right", "true"), task("both", "true", depends_on=["left", "right"])]
    refused = jobman("submit", document(tmp_path, *tasks))
    assert refused.code == 4
    assert "left, right run side by side" in refused.err
    assert "jobman -e kubernetes run" in refused.err
    assert jobman("submit", "--dry-run", document(tmp_path, *tasks, on_failure=FAIL_ALL)).code == 0


def test_a_wrong_job_inside_is_refused_before_anything_is_made(
    jobman: Jobman, namespace: str, tmp_path: Path
) -> None:
    bad = {"kubernetes": {"hostAliases": [{"ip": "nowhere", "hostnames": ["x"]}]}}
    tasks = [task("one", "true"), task("two", "true", depends_on=["one"], attributes={"flags": bad})]
    answer = jobman("submit", document(tmp_path, *tasks))
    assert answer.code != 0
    assert "hostAliases" in answer.err
    assert left_in(namespace) == []


def test_everything_of_a_graph_is_listed_once(jobman: Jobman, tmp_path: Path) -> None:
    job = submitted(jobman, document(tmp_path, task("one", "true"), task("two", "true", depends_on=["one"])))
    assert jobman("wait", job).code == 0
    (row,) = jobman("list", "-o", "json").data["items"]
    assert (row["id"], row["name"], row["counts"]) == (job, "graph", {"succeeded": 2})
    assert json.loads(jobman("details", job, "-o", "json").out)["tasks"][0]["unit"] == "one"
