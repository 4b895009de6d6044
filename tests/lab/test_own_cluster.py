"""Which cluster the tests are run on, as the scripts decide it; no cluster is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from lab.components import FOLDER, MISSING

MINE, NAMED, USUAL = "/somewhere/mine.conf", "/somewhere/named.conf", ".kube/config"
OF_THE_LAB = "cache/kubernetes/pki/admin.conf"


class Answer(NamedTuple):
    """What a script says."""

    code: int
    words: str
    settings: dict[str, str]
    complaint: str


class Desk:
    """Asks the scripts, with a cache and a home where nothing is and a kubectl that always gets an answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "kubectl").write_text("#!/bin/sh\n")
        (folder / "kubectl").chmod(0o755)

    def ask(self, script: str, *words: str, **variables: str) -> Answer:
        given = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "JOBMAN_LAB_CACHE": str(self.folder / "cache"),
            "JOBMAN_TEST_KUBECTL": str(self.folder / "kubectl"),
        }
        done = subprocess.run(
            [FOLDER / script, *words], env={**given, **variables}, capture_output=True, text=True, timeout=60
        )
        lines = done.stdout.splitlines()
        settings = dict(line.split("=", 1) for line in lines) if done.returncode == 0 else {}
        return Answer(done.returncode, lines[-1] if lines else "", settings, done.stderr)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


OWN: dict[str, tuple[dict[str, str], str, str]] = {
    "KUBECONFIG": ({"KUBECONFIG": MINE}, "KUBECONFIG", MINE),
    "own and KUBECONFIG": ({"JOBMAN_TEST_CLUSTER": "own", "KUBECONFIG": MINE}, "KUBECONFIG", MINE),
    "own alone": ({"JOBMAN_TEST_CLUSTER": "own"}, "", USUAL),
    "own and an empty KUBECONFIG": ({"JOBMAN_TEST_CLUSTER": "own", "KUBECONFIG": ""}, "", USUAL),
    "own, though the lab wrote it": (
        {"JOBMAN_TEST_CLUSTER": "own", "KUBECONFIG": OF_THE_LAB},
        "KUBECONFIG",
        OF_THE_LAB,
    ),
    "a file for tests": ({"JOBMAN_TEST_KUBECONFIG": NAMED}, "JOBMAN_TEST_KUBECONFIG", NAMED),
    "a file for tests before KUBECONFIG": (
        {"JOBMAN_TEST_KUBECONFIG": NAMED, "KUBECONFIG": MINE},
        "JOBMAN_TEST_KUBECONFIG",
        NAMED,
    ),
}
LAB: dict[str, dict[str, str]] = {
    "nothing": {},
    "an empty KUBECONFIG": {"KUBECONFIG": ""},
    "the KUBECONFIG that the lab wrote": {"KUBECONFIG": OF_THE_LAB},
    "lab and KUBECONFIG": {"JOBMAN_TEST_CLUSTER": "lab", "KUBECONFIG": MINE},
    "lab and a file for tests": {"JOBMAN_TEST_CLUSTER": "lab", "JOBMAN_TEST_KUBECONFIG": NAMED},
    "another cluster of the lab": {"JOBMAN_LAB_CLUSTER": "bench", "KUBECONFIG": MINE},
}


def placed(desk: Desk, variables: dict[str, str]) -> dict[str, str]:
    """The same, with what is below the cache where this test has it."""
    return {
        name: str(desk.folder / value) if value == OF_THE_LAB else value for name, value in variables.items()
    }


@pytest.mark.parametrize(("variables", "named_by", "file"), OWN.values(), ids=OWN)
def test_these_mean_a_cluster_of_ones_own(
    desk: Desk, variables: dict[str, str], named_by: str, file: str
) -> None:
    answer = desk.ask("kubernetes", "status", **placed(desk, variables))
    there = str(desk.folder / file)
    whose = f"the cluster of {named_by} ({there})" if named_by else f"the cluster of {there}"
    assert answer.settings == {
        "JOBMAN_LAB_KUBECONFIG": there,
        "JOBMAN_LAB_KUBECTL": str(desk.folder / "kubectl"),
        "JOBMAN_LAB_KUBE_IMAGE": "busybox:1.36",
        "JOBMAN_LAB_OWN_CLUSTER": whose,
    }
    services = desk.ask("services", "status", **placed(desk, variables))
    assert services.code == MISSING
    assert services.words == f"it belongs to the cluster of the lab, and not to {whose}"


@pytest.mark.parametrize("variables", LAB.values(), ids=LAB)
def test_these_mean_the_cluster_of_the_lab(desk: Desk, variables: dict[str, str]) -> None:
    answer = desk.ask("kubernetes", "status", **placed(desk, variables))
    assert answer.code == MISSING
    assert "the cluster of" not in answer.words
    if "JOBMAN_LAB_CLUSTER" not in variables:  # Services are never those of another.
        assert "belongs" not in desk.ask("services", "status", **placed(desk, variables)).words


def test_a_word_that_means_no_cluster_is_told(desk: Desk) -> None:
    answer = desk.ask("kubernetes", "status", JOBMAN_TEST_CLUSTER="mine")
    assert (answer.code, answer.words) == (MISSING, "JOBMAN_TEST_CLUSTER is lab or own, and not mine")


def test_of_several_files_none_is_picked(desk: Desk) -> None:
    answer = desk.ask("kubernetes", "status", KUBECONFIG=f"{MINE}:{NAMED}")
    assert answer.code == MISSING
    assert answer.words.endswith("are several files: JOBMAN_TEST_KUBECONFIG names the one to use")


def test_a_cluster_that_does_not_answer_is_named(desk: Desk) -> None:
    answer = desk.ask("kubernetes", "status", KUBECONFIG=MINE, JOBMAN_TEST_KUBECTL="false")
    assert (answer.code, answer.words) == (MISSING, f"the cluster of KUBECONFIG ({MINE}) does not answer")


def test_nothing_of_ones_own_is_started_stopped_or_broken(desk: Desk) -> None:
    up = desk.ask("kubernetes", "up", KUBECONFIG=MINE)
    assert up.settings == desk.ask("kubernetes", "status", KUBECONFIG=MINE).settings
    down = desk.ask("kubernetes", "down", KUBECONFIG=MINE)
    assert (down.code, down.settings) == (0, {})
    assert "JOBMAN_TEST_CLUSTER=lab" in down.complaint
    for words in (("frail", "stop"), ("kwok", "9"), ("api", "stop"), ("compact",)):
        answer = desk.ask("kubernetes", *words, KUBECONFIG=MINE)
        assert (answer.code, "for the cluster of the lab" in answer.words) == (MISSING, True)
    assert not (desk.folder / "cache").exists()


# -- the report ----------------------------------------------------------------------------------------------

SCRIPT = """#!/bin/sh
# component kubernetes: A cluster
echo "JOBMAN_LAB_OWN_CLUSTER=the cluster of KUBECONFIG (mine.conf)"
"""
TESTS = """
import pytest

@pytest.mark.component("kubernetes")
def test_anywhere():
    pass

@pytest.mark.component("kubernetes")
@pytest.mark.lab("it breaks a node")
def test_in_the_lab():
    raise AssertionError("must not run")
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_the_report_names_the_cluster_and_why_a_test_was_not_run_there(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    script = pytester.mkdir("lab") / "kubernetes"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "tests.components", "--strict-markers", *workers)
    result.assert_outcomes(passed=1, skipped=1)
    assert result.outlines[-1] == (
        "  kubernetes  ran (1 test) on the cluster of KUBECONFIG (mine.conf), "
        "and 1 test not run: for the lab's cluster alone: it breaks a node"
    )
