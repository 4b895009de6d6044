"""The page on Slurm agrees with the code: scripts, refusals, settings and the folder of a job."""

from __future__ import annotations

import json
import os

import pytest
from typer.testing import CliRunner

from jobman.cli.app import app
from jobman.engines.scripts.folder import FOLDERS
from jobman.engines.slurm.features import FEATURES
from jobman.settings.slurm import SlurmSite
from tests.docs.pages import code_in, fences, rows

PAGE = "slurm.md"


def named(title: str) -> set[str]:
    return {code for row in rows(PAGE, title) for code in code_in(row[0])}


def test_every_feature_that_is_refused_stands_on_the_page_and_no_other():
    assert named("## What is refused") == {name for name, each in FEATURES.items() if each.how == "refused"}


def test_every_setting_stands_on_the_page_and_no_other():
    assert named("## Settings") == set(SlurmSite.__struct_fields__)


def test_every_folder_of_a_job_stands_on_the_page():
    assert {f"{name}/" for name in FOLDERS} <= named("## The folder of a job")


def test_the_scripts_are_those_that_are_rendered(tmp_path, monkeypatch):
    (document,) = (fence for fence in fences(PAGE, "yaml") if fence.file == "pi.yaml")
    (tmp_path / "pi.yaml").write_text(document.text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JOBMAN_STATE", str(tmp_path / "state"))
    answer = CliRunner().invoke(app, ["-e", "slurm", "render", "pi.yaml", "-o", "json"])
    found = json.loads(answer.stdout)

    def plain(text: str) -> str:
        """As on the page, where paths and ids have names."""
        for value, name in ((found["folder"], "FOLDER"), (str(tmp_path), "WORK"), (found["id"], "ID")):
            text = text.replace(value, name)
        return text

    script, submit = (fence.text for fence in fences(PAGE, "bash"))
    assert plain(found["scripts"][0]["text"]).startswith(script)
    assert submit in plain(found["submit"])


# -- a real Slurm -------------------------------------------------------------------------------------------


@pytest.fixture
def slurm(monkeypatch):
    monkeypatch.setenv("SLURM_CONF", os.environ["JOBMAN_LAB_SLURM_CONF"])


@pytest.mark.slow
@pytest.mark.component("slurm")
def test_the_first_job_runs(laptop, slurm, tmp_path):
    answer = laptop.jobman("-e", "slurm", "run", "-j", "hello", "--", "sh", "-c", "echo hello", cwd=tmp_path)
    assert answer.code == 0, answer.err
    assert "hello" in answer.out


NOT_THERE = (
    ("maintenance", "list"),
    ("reserve", "list"),
    ("usage",),
    ("token", "list"),
    ("submit", "--virtual", "4x4", "--", "true"),
    ("submit", "--what-if", "--", "true"),
    ("submit", "--keep-logs", "/logs", "--", "true"),
    ("submit", "-i", "a:1", "--", "true"),
)


@pytest.mark.slow
@pytest.mark.component("slurm")
@pytest.mark.parametrize("words", NOT_THERE, ids=" ".join)
def test_what_needs_a_service_is_refused(laptop, slurm, words, tmp_path):
    answer = laptop.jobman("-e", "slurm", *words, cwd=tmp_path)
    assert (answer.code, answer.out) == (4, "")
