"""Graphs on a real cluster without a service: driven, left alone, killed, taken over and taken up again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from jobman.client.driving.tenure import Tenure
from jobman.control.refusals import Refusal
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.course import Course, Driver, course_of, driver_of, new_course
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from tests.client.commanding import Answer, Jobman, until
from tests.client.graphs import document, task
from tests.engines.kubernetes.cluster import (
    kubectl,
    kubectl_json,
    on_a_real_cluster,
    talk,
)

pytestmark = [on_a_real_cluster, pytest.mark.slow]


@pytest.fixture(autouse=True)
def without_sets(tmp_path: Path) -> None:
    """Where the cluster makes JobSets, it would need no driver."""
    for home in (tmp_path, tmp_path / "home"):
        (home / ".jobman").mkdir(parents=True)
        (home / ".jobman" / "settings.yaml").write_text("kubernetes: {job_sets: false}\n")


class Driving:
    """A `jobman run` that goes on in the background."""

    def __init__(self, config: Path, folder: Path, *words: str) -> None:
        environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(folder)}
        command = [sys.executable, "-m", "jobman.cli.main", "-e", "kubernetes", "run", *words]
        self._process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> Answer:
        out, err = self._process.communicate(timeout=150)
        return Answer(self._process.returncode, out, err)


@pytest.fixture
def drive(config: Path, tmp_path: Path) -> Iterator[Callable[..., Driving]]:
    started: list[Driving] = []

    def begin(*words: str) -> Driving:
        started.append(Driving(config, tmp_path, *words))
        return started[-1]

    yield begin
    for each in started:
        if each._process.poll() is None:
            each._process.kill()
            each._process.communicate()


def only_job(jobman: Jobman) -> Any:
    """The one job there is, once it is there."""
    found: list[Any] = []

    def look() -> bool:
        found[:] = jobman("list", "-o", "json").data["items"]
        return bool(found)

    until(look)
    return found[0]


def states(jobman: Jobman, job: str) -> dict[str, Any]:
    return {each["name"]: each for each in jobman("details", job, "-o", "json").data["tasks"]}


def jobs_in(namespace: str) -> list[str]:
    found = kubectl_json("get", "jobs", "-n", namespace)["items"]
    return sorted(each["metadata"]["name"].split("-", 2)[1] for each in found)


def test_a_graph_is_driven_to_its_end(jobman: Jobman, tmp_path: Path, namespace: str) -> None:
    serve = "echo open; mkdir /tmp/w; echo served > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"
    fetch = "wget -q -O - http://$JOBMAN_HOST_STORE:$JOBMAN_PORT_STORE_WEB/"
    path = document(
        tmp_path,
        task(
            "store",
            serve,
            service=True,
            ports=[{"name": "web", "port": 8080}],
            checks={"ready": {"tcp": {"port": "web"}, "every": "1s"}},
        ),
        task("shaky", '[ "$JOBMAN_ATTEMPT" = 2 ] && echo steady', retries=1),
        task("use", fetch, depends_on=["shaky", {"name": "store", "when": "ready"}]),
        task("bad", "exit 3", depends_on=["use"]),
        task("never", "echo never", depends_on=["bad"]),
        task("mend", "echo mended", depends_on=[{"name": "bad", "when": "failure"}]),
        task("tidy", "echo tidied", when="always"),
    )
    answer = jobman("run", path)
    assert answer.code == 3, answer.err
    lines = {line.split("│")[-1].strip() for line in answer.out.splitlines()}
    assert lines == {"open", "steady", "served", "mended", "tidied"}
    job = only_job(jobman)
    assert (job["state"], job["exit_code"], job["reason"]) == ("failed", 3, "bad.0: exit code 3")
    outcome = {name: each["outcome"] for name, each in states(jobman, job["id"]).items()}
    assert outcome == {
        "store": "succeeded",
        "shaky": "succeeded",
        "use": "succeeded",
        "bad": "failed",
        "never": "skipped",
        "mend": "succeeded",
        "tidy": "succeeded",
    }
    assert jobs_in(namespace) == sorted(["store", "shaky", "shaky", "use", "bad", "mend", "tidy"])
    attempts = jobman("logs", job["id"], "--replica", "shaky.0", "--attempt", "2")
    assert "steady" in attempts.out
    assert "open" in jobman("logs", job["id"], "--task", "store").out
    events = jobman("events", job["id"], "-o", "json").data
    moments = [(each["replica"], each["kind"]) for each in events]
    ours = [each for each in moments if each[1] in ("started", "ready", "retrying", "skipped", "stopping")]
    assert ours.index(("store.0", "ready")) < ours.index(("use.0", "started"))
    assert ("shaky.0", "retrying") in ours
    assert ours[-1] == ("store.0", "stopping")
    assert jobman("wait", job["id"]).code == 3
    assert jobman("delete", job["id"]).code == 0
    until(lambda: not jobs_in(namespace))


def test_a_killed_driver_is_followed_by_another_that_goes_on(
    jobman: Jobman, drive: Callable[..., Driving], tmp_path: Path, namespace: str
) -> None:
    path = document(
        tmp_path,
        task("first", "sleep 4; echo first"),
        task("second", "sleep 3; echo second", depends_on=["first"], replicas=2),
        task("third", "echo third", depends_on=["second"]),
    )
    killed = drive("-q", path)
    until(lambda: jobs_in(namespace) == ["first"])
    job = only_job(jobman)["id"]
    killed.send(signal.SIGKILL)
    killed.end()
    time.sleep(0.1)
    assert jobman("details", job, "-o", "json").data["state"] in ("waiting", "running")
    resumed = drive("-q", "--resume", job)
    until(lambda: jobs_in(namespace) == ["first", "second", "second"])
    resumed.send(signal.SIGKILL)
    resumed.end()
    answer = jobman("run", "-q", "--resume", job)
    assert answer.code == 0, answer.err
    assert "third" in answer.out
    assert jobs_in(namespace) == ["first", "second", "second", "third"]
    pods = kubectl_json("get", "pods", "-n", namespace)["items"]
    assert len(pods) == 4


def test_of_two_who_drive_one_is_told_of_the_other(
    jobman: Jobman, drive: Callable[..., Driving], tmp_path: Path, namespace: str
) -> None:
    path = document(tmp_path, task("a", "sleep 12"), task("b", "echo b", depends_on=["a"]))
    first = drive("-q", path)
    job = only_job(jobman)["id"]
    until(lambda: jobs_in(namespace) == ["a"])
    second = jobman("run", "--resume", job)
    assert second.code == 1
    assert "is driven by" in second.err
    assert f"jobman -e kubernetes logs -f {job}" in second.err
    assert first.end().code == 0
    assert jobs_in(namespace) == ["a", "b"]


def test_who_leaves_a_graph_is_told_how_to_go_on_and_others_why_it_stands(
    jobman: Jobman, drive: Callable[..., Driving], tmp_path: Path, namespace: str
) -> None:
    path = document(
        tmp_path,
        task("a", "sleep 600"),
        task("b", "echo b", depends_on=["a"]),
        task("tidy", "echo tidied", when="always"),
    )
    driving = drive("-q", path)
    until(lambda: jobs_in(namespace) == ["a"])
    job = only_job(jobman)["id"]
    until(lambda: only_job(jobman)["state"] == "running")
    driving.send(signal.SIGINT)
    answer = driving.end()
    assert answer.code == 130
    assert f"jobman -e kubernetes run --resume {job}" in answer.err
    why = jobman("why", job)
    assert "nobody drives it now" in why.out
    assert f"run --resume {job}" in why.out
    waited = jobman("wait", job)
    assert waited.code == 4
    assert "Nobody drives" in waited.err
    assert jobman("cancel", job).code == 0
    ended = only_job(jobman)
    assert ended["state"] == "cancelled"
    assert states(jobman, job)["tidy"]["outcome"] == "succeeded"
    assert "tidied" in jobman("logs", job).out
    again = jobman("rerun", job)
    assert again.code == 0
    assert f"run --resume {again.out.split()[0]}" in again.err


def test_a_job_that_somebody_deletes_is_tried_again_and_a_held_graph_waits(
    jobman: Jobman, drive: Callable[..., Driving], tmp_path: Path, namespace: str
) -> None:
    script = 'if [ "$JOBMAN_ATTEMPT" = 1 ]; then sleep 600; else echo again; fi'
    path = document(tmp_path, task("a", script), task("b", "echo b", depends_on=["a"]))
    driving = drive("-q", path)
    job = only_job(jobman)["id"]
    until(lambda: only_job(jobman)["state"] == "running")
    assert jobman("hold", job).code == 0
    (name,) = [each["metadata"]["name"] for each in kubectl_json("get", "jobs", "-n", namespace)["items"]]
    kubectl("delete", "job", name, "-n", namespace)
    until(lambda: states(jobman, job)["a"]["counts"].get("waiting") == 1)
    assert jobs_in(namespace) == []
    assert "the job is held" in jobman("why", job).out
    assert jobman("release", job).code == 0
    answer = driving.end()
    assert answer.code == 0, answer.err
    assert "again" in answer.out
    (left, _) = sorted(
        each["metadata"]["name"] for each in kubectl_json("get", "jobs", "-n", namespace)["items"]
    )
    assert left.endswith("-a2")


def test_what_a_job_alone_cannot_do_is_refused_by_submit_and_driven_by_run(
    jobman: Jobman, tmp_path: Path
) -> None:
    pair = {"type": "slot", "count": 2, "with": [{"type": "memory", "count": "16Mi"}]}
    script = '[ "$JOBMAN_ATTEMPT" = 2 ] && echo $JOBMAN_RANK of $JOBMAN_SIZE'
    path = document(tmp_path, {**task("pair", script, retries=1), "resources": pair})
    refused = jobman("submit", path)
    assert refused.code == 4
    assert "retries" in refused.err
    assert "jobman -e kubernetes run" in refused.err
    answer = jobman("run", "-q", path)
    assert answer.code == 0, answer.err
    assert sorted(line.split("│")[-1].strip() for line in answer.out.splitlines()) == ["0 of 2", "1 of 2"]


def a_course(namespace: str) -> str:
    """A course that nobody drives yet."""
    metadata = {"name": "x", "namespace": namespace, "labels": {names.JOB: "0123456789ab"}}
    written = new_course({"metadata": metadata})
    kubectl("create", "-f", "-", stdin=yaml.safe_dump(written))
    return str(written["metadata"]["name"])


def test_a_driver_elsewhere_that_says_nothing_any_more_is_replaced_and_cannot_write(namespace: str) -> None:
    name = a_course(namespace)

    async def scenario(api: Api) -> tuple[str, str]:
        api.namespace = namespace
        old, new = (Tenure(api, name, "job", lease=1.5) for _ in range(2))
        await old.take()
        config = await new.take()
        await new.write(Course(state="running"))
        with pytest.raises(Refusal) as refusal:
            await old.write(Course(state="failed"))
        kept = await api.get(CONFIG_MAPS, name)
        driver = driver_of(config)
        assert driver is not None
        return course_of(kept).state, str(refusal.value)

    state, words = talk(scenario)
    assert state == "running"
    assert "is driven by" in words


def test_a_driver_elsewhere_that_still_speaks_is_believed(namespace: str) -> None:
    name = a_course(namespace)

    async def scenario(api: Api) -> str:
        api.namespace = namespace
        other = Driver(who="ada on login9", token="t", place="elsewhere", pid=1)

        async def speak(moment: float) -> None:
            said = msgspec.json.encode(msgspec.structs.replace(other, renewed=moment)).decode()
            patch = {"metadata": {"annotations": {names.DRIVER: said}}}
            await api.merge_patch(CONFIG_MAPS, name, patch)

        await speak(1.0)
        told: list[str] = []
        tenure = Tenure(api, name, "job", lease=20.0, waiting=told.append)
        trial = asyncio.ensure_future(tenure.take())
        while not told:
            await asyncio.sleep(0.05)
        await speak(2.0)
        with pytest.raises(Refusal) as refusal:
            await trial
        return str(refusal.value)

    assert "driven by ada on login9" in talk(scenario)
