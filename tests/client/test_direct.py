"""Every command of the command line, on a real cluster with nothing but a kubeconfig."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobman.client import Refused
from jobman.client.direct import DirectClient
from jobman.control.answers import Submission
from tests.client.commanding import (
    Jobman,
    command,
    command_with,
    config_for,
    document,
    state_of,
    submitted,
    until,
)
from tests.engines.kubernetes.cluster import (
    image,
    kubeconfig,
    kubectl,
    kubectl_json,
    need_shared_files,
    on_a_real_cluster,
)

pytestmark = on_a_real_cluster


# -- from submission to end ----------------------------------------------------------------------------------


def test_a_command_is_submitted_listed_followed_and_waited_for(jobman: Jobman) -> None:
    job = submitted(jobman, "-i", image(), "-j", "greeting", "--", "echo", "hello there")
    assert re.fullmatch(r"[0-9a-f]{12}", job)
    assert jobman("logs", "-f", job).out == "hello there\n"
    waited = jobman("wait", job)
    assert (waited.code, "succeeded" in waited.out) == (0, True)
    assert [one["id"] for one in jobman("list", "-o", "json").data["items"]] == [job]
    details = jobman("details", "greeting", "--replicas", "--attempts", "-o", "json").data
    assert (details["id"], details["state"], details["exit_code"]) == (job, "succeeded", 0)
    assert [one["state"] for one in details["replicas"]] == ["succeeded"]
    assert [one["exit_code"] for one in details["attempts"]] == [0]
    assert jobman("logs", job[:5]).out == "hello there\n"
    kinds = [event["kind"] for event in jobman("events", job, "-o", "json").data]
    assert kinds[0] == "submitted"
    assert {"Scheduled", "started", "succeeded"} <= set(kinds)
    assert "it succeeded" in jobman("why", job).out


def test_waiting_ends_with_the_exit_code_of_the_job(jobman: Jobman) -> None:
    job = command(jobman, "echo oh no; exit 3")
    assert jobman("wait", job).code == 3
    details = jobman("details", job, "-o", "json").data
    assert (details["state"], details["exit_code"]) == ("failed", 3)
    assert "exit code 3" in jobman("why", job).out
    assert jobman("run", "-i", image(), "--", "sh", "-c", "exit 5").code == 5


def test_asked_for_one_stream_a_cluster_gives_both_and_says_so(jobman: Jobman) -> None:
    job = command(jobman, "echo out; sleep 0.1; echo err >&2")
    assert jobman("wait", job).code == 0
    answer = jobman("logs", "--stderr", job)
    assert (answer.code, answer.out) == (0, "out\nerr\n")
    assert "as one" in answer.err


def test_events_of_a_job_are_followed_to_its_end(jobman: Jobman) -> None:
    job = command(jobman, "sleep 2")
    followed = [json.loads(line) for line in jobman("events", "-f", job, "-o", "json").out.splitlines()]
    assert (followed[0]["kind"], followed[0]["number"]) == ("submitted", 1)
    assert "succeeded" in [event["kind"] for event in followed]


def test_every_replica_of_a_task_is_told_apart(jobman: Jobman, tmp_path: Path) -> None:
    script = "echo I am $JOBMAN_REPLICA"
    job = submitted(jobman, document(tmp_path, command=["sh", "-c", script], replicas=3))
    assert jobman("wait", job).code == 0
    lines = sorted(jobman("logs", job).out.splitlines())
    assert [line.split(" │ ")[0].strip() for line in lines] == ["work.0", "work.1", "work.2"]
    one = jobman("logs", job, "--replica", "1").out.splitlines()
    assert one == ["I am 1"]
    details = jobman("details", job, "--replicas", "-o", "json").data
    assert details["counts"] == {"succeeded": 3}
    assert [one["key"] for one in details["replicas"]] == ["work.0", "work.1", "work.2"]


def test_a_job_of_several_jobs_is_one_that_is_deleted_as_a_whole(
    jobman: Jobman, tmp_path: Path, namespace: str
) -> None:
    script = "echo {{letter}}"
    path = document(tmp_path, command=["sh", "-c", script], matrix={"letter": ["a", "b"]})
    job = submitted(jobman, path)
    assert jobman("wait", job).code == 0
    assert len(kubectl_json("get", "jobs", "-n", namespace)["items"]) == 2
    assert jobman("details", job, "-o", "json").data["counts"] == {"succeeded": 2}
    assert jobman("delete", job).code == 0
    until(lambda: kubectl_json("get", "jobs,pods", "-n", namespace)["items"] == [])
    assert jobman("details", job).code == 1


def test_files_of_the_submitter_travel_with_the_job(jobman: Jobman, tmp_path: Path, namespace: str) -> None:
    (tmp_path / "words.txt").write_text("from here\n")
    steps = [{"name": "stage", "path": "words.txt", "to": "/data/words.txt"}]
    job = submitted(jobman, document(tmp_path, command=["cat", "/data/words.txt"], steps=steps))
    assert jobman("logs", "-f", job).out == "from here\n"
    owned = kubectl_json("get", "configmaps", "-n", namespace, "-l", f"jobman.io/job={job}")["items"]
    assert [one["metadata"]["ownerReferences"][0]["kind"] for one in owned] == ["Job"]


def test_a_job_in_which_as_many_failed_as_may_has_succeeded(jobman: Jobman, tmp_path: Path) -> None:
    script = ["sh", "-c", "exit $JOBMAN_REPLICA"]
    job = submitted(jobman, document(tmp_path, command=script, replicas=2, max_failed=1))
    assert jobman("wait", job).code == 0
    assert jobman("details", job, "-o", "json").data["counts"] == {"succeeded": 1, "failed": 1}


def test_a_rerun_has_the_document_of_the_first(jobman: Jobman) -> None:
    first = submitted(jobman, "-i", image(), "-j", "once", "--", "echo", "again")
    assert jobman("wait", first).code == 0
    answer = jobman("rerun", first)
    second = answer.out.split()[0]
    assert second != first
    assert jobman("logs", "-f", second).out == "again\n"
    documents = [jobman("details", job, "--document").out for job in (first, second)]
    assert documents[0] == documents[1]


# -- acts ----------------------------------------------------------------------------------------------------


def test_a_cancelled_job_stops_and_says_so(jobman: Jobman, namespace: str) -> None:
    job = command(jobman, "trap 'exit 0' TERM; while true; do sleep 0.1; done")
    until(lambda: state_of(jobman, job) == "running")
    assert jobman("cancel", job).out.split()[0] == job
    assert jobman("wait", job).code == 1
    details = jobman("details", job, "-o", "json").data
    assert (details["state"], details["ended_at"] is not None) == ("cancelled", True)
    assert "it was cancelled" in jobman("why", job).out
    assert kubectl_json("get", "pods", "-n", namespace)["items"] == []
    assert jobman("cancel", job).code == 1
    assert jobman("logs", "-f", job).code == 0


def test_a_held_job_starts_when_it_is_released(jobman: Jobman, namespace: str) -> None:
    job = command(jobman, "echo at last", "--hold")
    details = jobman("details", job, "-o", "json").data
    assert (details["state"], details["held"]) == ("waiting", True)
    assert "held" in jobman("why", job).out
    assert kubectl_json("get", "pods", "-n", namespace)["items"] == []
    assert jobman("release", job).code == 0
    assert jobman("logs", "-f", job).out == "at last\n"
    assert jobman("wait", job).code == 0
    assert jobman("hold", job).code == 1


def test_a_running_job_that_is_held_goes_back_to_waiting(jobman: Jobman, namespace: str) -> None:
    job = command(jobman, "trap 'exit 1' TERM; while true; do sleep 0.1; done")
    until(lambda: state_of(jobman, job) == "running")
    assert jobman("hold", job).code == 0
    until(lambda: kubectl_json("get", "pods", "-n", namespace)["items"] == [])
    details = jobman("details", job, "-o", "json").data
    assert (details["state"], details["held"]) == ("waiting", True)
    assert jobman("release", job).code == 0
    until(lambda: state_of(jobman, job) == "running")
    assert jobman("delete", job).code == 1
    assert jobman("delete", "--force", job).code == 0
    until(lambda: kubectl_json("get", "pods", "-n", namespace)["items"] == [])


def test_a_job_waits_at_its_gates_until_they_are_open(jobman: Jobman, tmp_path: Path) -> None:
    path = document(tmp_path, command=["echo", "through"], gates=["data", "review"])
    job = submitted(jobman, path)
    told = jobman("why", job).out
    assert ("the gate data is closed" in told, "the gate review is closed" in told) == (True, True)
    assert jobman("gate", "open", job, "data").code == 0
    details = jobman("details", job, "-o", "json").data
    assert (details["gates"], details["held"]) == ({"data": True, "review": False}, False)
    assert jobman("gate", "open", job, "none").code == 1
    assert jobman("gate", "open", job, "review").code == 0
    assert jobman("logs", "-f", job).out == "through\n"


def test_all_jobs_that_are_over_are_deleted_at_once(jobman: Jobman) -> None:
    over = [command(jobman, "true") for _ in range(2)]
    live = command(jobman, "true", "--hold")
    assert jobman("wait", *over).code == 0
    assert jobman("delete", "--all").out == "deleted 2 jobs\n"
    assert [one["id"] for one in jobman("list", "-o", "json").data["items"]] == [live]
    assert jobman("delete", "--all", "--force").out == "deleted 1 job\n"


# -- the cluster ---------------------------------------------------------------------------------------------


def test_a_job_that_does_not_fit_is_told_why(jobman: Jobman, tmp_path: Path) -> None:
    shape = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1000}]}
    job = submitted(jobman, document(tmp_path, resources=shape))

    def is_told() -> bool:
        return "cores" in jobman("why", job).out

    until(is_told)
    answer = jobman("why", job, "-o", "json").data
    assert (answer["state"], answer["blockers"][0]["replica"]) == ("waiting", "work.0")
    rows = jobman("queue", "-o", "json").data["items"]
    assert [row["yours_waiting"] for row in rows if row["resources"].get("core") == 1000] == [1]
    assert jobman("cancel", job).code == 0
    until(lambda: state_of(jobman, job) == "cancelled")


def test_nodes_say_how_much_of_them_is_in_use(jobman: Jobman) -> None:
    there = {node["metadata"]["name"]: node for node in kubectl_json("get", "nodes")["items"]}
    found = jobman("nodes", "-o", "json").data["items"]
    assert [node["name"] for node in found] == sorted(there)
    free = [node for node in found if not there[node["name"]]["spec"].get("taints")]
    assert {node["state"] for node in free} == {"up"}
    assert all(node["amounts"]["core"] > 0 for node in found)


# -- refusals ------------------------------------------------------------------------------------------------


def test_who_may_not_is_told_which_role_is_missing(tmp_path: Path, namespace: str) -> None:
    bob = config_for(namespace, tmp_path, kubeconfig(), user=f"bob-{namespace}")
    jobman = command_with(bob, tmp_path)
    answer = jobman("submit", "-i", image(), "--", "true")
    assert (answer.code, answer.out) == (6, "")
    assert f"in the namespace {namespace}" in answer.err
    assert "kind: Role" in answer.err
    assert jobman("list").code == 6
    assert jobman("nodes").code == 6


def test_the_role_that_is_printed_is_all_that_is_needed(tmp_path: Path, namespace: str) -> None:
    bob = config_for(namespace, tmp_path, kubeconfig(), user=f"bob-{namespace}")
    jobman = command_with(bob, tmp_path)
    told = jobman("list").err
    role = "\n".join(line.removeprefix("        ") for line in told.splitlines()[2:])
    kubectl("apply", "-f", "-", stdin=role)
    job = submitted(jobman, "-i", image(), "--", "echo", "allowed")
    assert jobman("logs", "-f", job).out == "allowed\n"
    assert jobman("wait", job).code == 0
    for words in (("list",), ("details", job), ("events", job), ("why", job), ("queue",)):
        assert jobman(*words).code == 0, words
    held = command(jobman, "sleep 600", "--hold")
    for verb in ("release", "hold", "cancel"):
        assert jobman(verb, held).code == 0, verb
    assert jobman("delete", job).code == 0


def test_a_server_that_does_not_answer_ends_with_5(tmp_path: Path) -> None:
    nobody = config_for("default", tmp_path, kubeconfig(), "https://127.0.0.1:9")
    answer = command_with(nobody, tmp_path)("list")
    assert answer.code == 5
    assert "127.0.0.1:9" in answer.err


def test_a_kubeconfig_that_is_not_there_is_a_wrong_use(tmp_path: Path) -> None:
    answer = command_with(tmp_path / "none.conf", tmp_path)("list")
    assert answer.code == 2
    assert "Traceback" not in answer.err


def test_what_needs_a_service_is_not_here(jobman: Jobman) -> None:
    for words in (("usage",), ("token", "list"), ("queue", "list"), ("maintenance", "list")):
        answer = jobman(*words)
        assert (answer.code, answer.out) == (4, ""), words
        assert "not on a plain cluster" in answer.err


@pytest.mark.parametrize("when", ["success", "failure"])
def test_a_job_that_somebody_must_drive_is_refused(jobman: Jobman, tmp_path: Path, when: str) -> None:
    path = Path(document(tmp_path))
    whole = yaml.safe_load(path.read_text())
    edge = {"name": "work", "when": when}
    whole["tasks"].append({**whole["tasks"][0], "name": "after", "depends_on": [edge]})
    path.write_text(yaml.safe_dump(whole))
    settings = tmp_path / "settings.yaml"
    settings.write_text("kubernetes: {job_sets: false}\n")
    answer = jobman("-s", str(settings), "submit", str(path))
    assert answer.code == 4
    assert f"depends_on.{when}" in answer.err
    assert "a jobman service" in answer.err
    assert ("with JobSet installed" in answer.err) == (when == "success")


def test_a_wrong_document_ends_with_3_and_makes_nothing(
    jobman: Jobman, tmp_path: Path, namespace: str
) -> None:
    answer = jobman("submit", document(tmp_path, colour="red"))
    assert answer.code == 3
    assert kubectl_json("get", "jobs", "-n", namespace)["items"] == []


def test_a_dry_run_is_checked_by_the_cluster_and_makes_nothing(jobman: Jobman, namespace: str) -> None:
    answer = jobman("submit", "--dry-run", "-i", image(), "--", "true")
    assert answer.code == 0
    assert "nothing was" in answer.err
    assert kubectl_json("get", "jobs", "-n", namespace)["items"] == []


# -- all or none, and once -----------------------------------------------------------------------------------


def submission(*names: str) -> Submission:
    shape = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
    task = {"name": "work", "image": image(), "command": ["true"], "resources": shape}
    texts = [yaml.safe_dump({"version": 1, "name": name, "tasks": [task]}) for name in names]
    return Submission(document="---\n".join(texts))


def test_a_submission_that_is_repeated_with_its_key_makes_nothing_new(config: Path) -> None:
    with DirectClient(str(config)) as client:
        first = client.submit(submission("one"), key="k1")
        second = client.submit(submission("one"), key="k1")
        assert [job.id for job in first.jobs] == [job.id for job in second.jobs]
        assert (first.replayed, second.replayed) == (False, True)
        with pytest.raises(Refused) as refused:
            client.submit(submission("two"), key="k1")
        assert refused.value.failure.code == "key-reused"
        assert len(list(client.jobs())) == 1


def test_of_several_documents_all_are_made_or_none(config: Path, namespace: str) -> None:
    kubectl("create", "quota", "few", "-n", namespace, "--hard=count/jobs.batch=1")
    until(lambda: "hard" in kubectl_json("get", "quota", "few", "-n", namespace).get("status", {}))
    with DirectClient(str(config)) as client:
        with pytest.raises(Refused) as refused:
            client.submit(submission("first", "second"))
        assert refused.value.failure.exit == 6
        assert refused.value.failure.code == "quota"
        until(lambda: list(client.jobs()) == [])
        assert [job.name for job in client.submit(submission("alone")).jobs] == ["alone"]


def test_a_submission_that_is_interrupted_leaves_nothing_behind(
    config: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes when the anchor is there and its files are not yet."""
    shape = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
    steps = [{"name": "write", "path": "/data/f", "content": "x"}]
    task = {"name": "work", "image": image(), "command": ["true"], "resources": shape, "steps": steps}
    text = yaml.safe_dump({"version": 1, "name": "cut", "tasks": [task]})
    asked: list[str] = []
    with DirectClient(str(config)) as client:
        api = client._direct.api
        ensure = api.ensure

        async def slow(written: dict[str, Any], *more: Any) -> Any:
            asked.append(written["kind"])
            if written["kind"] != "Job":
                await asyncio.sleep(60)
            return await ensure(written, *more)

        monkeypatch.setattr(api, "ensure", slow)
        with pytest.raises(TimeoutError):
            client._loop.run(client._submit(Submission(document=text), None), 2.0)
        assert asked == ["Job", "ConfigMap"]
        assert kubectl_json("get", "jobs", "-n", namespace)["items"] == []


def test_a_job_that_is_being_cancelled_is_not_released(jobman: Jobman, config: Path) -> None:
    job = command(jobman, "trap 'sleep 4; exit 0' TERM; while true; do sleep 0.1; done")
    until(lambda: state_of(jobman, job) == "running")
    with DirectClient(str(config)) as client:
        client.cancel(job)
        client.release(job)
        assert client.wait(job, 60).state == "cancelled"


# -- settings ------------------------------------------------------------------------------------------------


def test_the_settings_say_which_cluster_and_which_namespace(tmp_path: Path, namespace: str) -> None:
    elsewhere = config_for("default", tmp_path, kubeconfig())
    section = {"kubeconfig": str(elsewhere), "namespace": namespace}
    settings = tmp_path / "settings.yaml"
    settings.write_text(yaml.safe_dump({"default_image": image(), "kubernetes": section}))
    jobman = command_with(tmp_path / "none.conf", tmp_path)
    answer = jobman("-s", str(settings), "submit", "--", "true")
    assert answer.code == 0, answer.err
    job = answer.out.split()[0]
    assert job in kubectl("get", "jobs", "-n", namespace, "-o", "jsonpath={..labels}")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("kubernetes: {namespace: No Such}\n")
    assert jobman("-s", str(wrong), "list").code == 3


# -- output that is kept -------------------------------------------------------------------------------------


def test_what_a_cancelled_job_wrote_is_kept_on_a_volume(jobman: Jobman, tmp_path: Path) -> None:
    need_shared_files()
    kept = tmp_path / "kept"
    script = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    job = command(jobman, script, "--keep-logs", str(kept))
    until(lambda: jobman("logs", job).out == "up\n")
    assert jobman("cancel", job).code == 0
    assert jobman("wait", job).code == 1
    (file,) = (kept / job).iterdir()
    assert (file.name.endswith(".0-0-1.log"), file.read_text()) == (True, "up\nsaved\n")
    told = jobman("logs", job)
    assert f"what they wrote is in {kept}/{job} on its nodes" in told.out + told.err


@pytest.mark.lab("it makes a volume of a node")
def test_what_a_job_wrote_is_kept_on_a_claim(jobman: Jobman, tmp_path: Path, namespace: str) -> None:
    place = tmp_path / "volume"
    place.mkdir()
    with a_claim("kept", namespace, place):
        job = command(jobman, "echo well", "--keep-logs", "claim:kept/output")
        assert jobman("wait", job).code == 0
        (file,) = (place / "output" / job).iterdir()
        assert (file.name.endswith(".0-0-1.log"), file.read_text()) == (True, "well\n")
        assert jobman("delete", job).code == 0
    assert file.read_text() == "well\n"


@contextmanager
def a_claim(name: str, namespace: str, folder: Path) -> Iterator[None]:
    """A claim whose volume is a folder of the nodes."""
    size, modes = {"storage": "1Mi"}, ["ReadWriteMany"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": size,
            "accessModes": modes,
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": namespace, "name": name},
            "storageClassName": "",
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": modes,
            "resources": {"requests": size},
            "volumeName": namespace,
            "storageClassName": "",
        },
    }
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all([volume, claim]))
    try:
        yield
    finally:
        kubectl("delete", "pv", namespace, "--wait=false")


def test_output_is_not_kept_where_pods_have_no_way_to(jobman: Jobman) -> None:
    answer = jobman("submit", "-i", image(), "--keep-logs", "gs://bucket/logs", "--", "true")
    assert answer.code == 2
    assert "claim:NAME" in answer.err


# -- what happens, as it happens -----------------------------------------------------------------------------


def test_events_are_followed_until_the_job_is_over(jobman: Jobman) -> None:
    job = command(jobman, "sleep 1; exit 3")
    kinds = [json.loads(line)["kind"] for line in jobman("events", "-f", job, "-o", "json").out.splitlines()]
    own = [kind for kind in kinds if kind in ("submitted", "started", "failed", "job-failed")]
    assert own == ["submitted", "started", "failed", "job-failed"]


def test_acts_are_among_the_events(jobman: Jobman) -> None:
    job = command(jobman, "true", "--hold")
    assert jobman("hold", job).code == 0
    assert jobman("release", job).code == 0
    assert jobman("wait", job).code == 0
    kinds = [event["kind"] for event in jobman("events", job, "-o", "json").data]
    own = [kind for kind in kinds if kind in ("held", "released", "started", "succeeded", "job-succeeded")]
    # What happens within a second a cluster does not tell apart.
    assert sorted(own[:2]) == ["held", "released"]
    assert own[2:] == ["started", "succeeded", "job-succeeded"]


def test_what_is_held_waits_in_the_queue(jobman: Jobman, tmp_path: Path) -> None:
    shape = {"type": "slot", "count": 1, "with": [{"type": "memory", "count": "37Mi"}]}
    job = submitted(jobman, document(tmp_path, resources=shape, hold=True, replicas=3))
    rows = jobman("queue", "-o", "json").data["items"]
    assert [row["yours_waiting"] for row in rows if row["resources"].get("memory") == 37 << 20] == [3]
    assert jobman("delete", "--force", job).code == 0
