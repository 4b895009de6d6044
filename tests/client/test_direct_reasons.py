"""`jobman why` on a real cluster: what is in the way, and what to type or to change."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.client.commanding import Jobman, command, document, submitted, until
from tests.engines.kubernetes.cluster import (
    kubectl,
    kubectl_json,
    on_a_real_cluster,
)

pytestmark = on_a_real_cluster
SMALL = {"type": "slot", "count": 1, "with": [{"type": "memory", "count": "16Mi"}]}


def is_told(jobman: Jobman, job: str, words: str, advice: str) -> None:
    """Until the reason has these words in it, and what helps has those."""

    def told() -> bool:
        answers.append(jobman("why", job, "-o", "json").data)
        found = [blocker["message"] for blocker in answers[-1]["blockers"]]
        return any(words in message for message in found) and advice in answers[-1]["suggestion"]

    answers: list[Any] = []
    try:
        until(told, 30)
    except AssertionError:
        raise AssertionError(answers[-1]) from None
    printed = jobman("why", job).out
    assert (words in " ".join(printed.split()), "try " in printed) == (True, True), printed


def test_an_image_that_does_not_come_is_named(jobman: Jobman) -> None:
    job = submitted(jobman, "-i", "localhost/nobody:1", "--", "true")
    is_told(jobman, job, "the image localhost/nobody:1 cannot be pulled", "")


def test_a_claim_without_a_volume_is_named(jobman: Jobman, tmp_path: Path, namespace: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "results"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "not-there",
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(claim))
    volume = {"name": "results", "kind": "claim", "claim": "results", "to": "/results"}
    job = submitted(jobman, document(tmp_path, volumes=[volume], resources=SMALL))
    is_told(jobman, job, "there is no volume of class not-there for its claim results yet", "")


def test_a_quota_that_is_used_up_is_told_with_its_numbers(
    jobman: Jobman, tmp_path: Path, namespace: str
) -> None:
    kubectl("create", "quota", "share", "-n", namespace, "--hard=requests.cpu=1")
    until(lambda: "hard" in kubectl_json("get", "quota", "share", "-n", namespace).get("status", {}))
    two = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 2}]}
    job = submitted(jobman, document(tmp_path, resources=two))
    words = "the quota share is too small for it: it asks for 2 cores, and 0 of 1 are in use"
    is_told(jobman, job, words, "ask for at most 1 core")


@pytest.mark.lab("one of its nodes has a taint that is known")
def test_a_taint_that_is_not_tolerated_is_named(jobman: Jobman, tmp_path: Path) -> None:
    there = {"labels": {"jobman.io/lab": "faults"}}
    job = submitted(jobman, document(tmp_path, placement=there, resources=SMALL))
    words = "a taint that it does not tolerate: jobman.io/lab=faults:NoSchedule"
    is_told(jobman, job, words, "toleration under `flags: {kubernetes: …}`")


def test_what_is_advised_can_be_typed(jobman: Jobman) -> None:
    job = command(jobman, "echo released", "--hold")
    (advised,) = [line for line in jobman("why", job).out.splitlines() if line.startswith("try ")]
    words = shlex.split(advised.removeprefix("try "))
    assert words[:3] == ["jobman", "-e", "kubernetes"]
    assert jobman(*words[3:]).code == 0
    assert jobman("logs", "-f", job).out == "released\n"
    missing = jobman("details", "nowhere")
    assert "jobman -e kubernetes list" in missing.err
