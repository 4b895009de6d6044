"""The page on the local engine agrees with the code, and with what a copy finds."""

from __future__ import annotations

import re

import pytest

from jobman.engines.local.features import FEATURES
from jobman.engines.local.memory import SAMPLING
from jobman.engines.local.orders import DEFAULT_GRACE
from jobman.spec.volumes import VOLUME_KINDS
from tests.docs.pages import code_in, rows, text_of

EVERYTHING = """
version: 1
name: everything
coordinator: server
resources:
  core: {type: slot, count: 1, with: [{type: core, count: 1}]}
tasks:
- name: server
  service: true
  replicas: 2
  resources: core
  ports: [web]
  command: [sleep, "600"]
- name: client
  resources: core
  depends_on: [{name: server, when: started}]
  ports: [own]
  secrets: [portal]
  command: [env]
"""


def test_every_kind_of_volume_is_on_the_page_with_what_becomes_of_it():
    shown = {kind: row[1] for row in rows("local.md", "## Volumes") for kind in code_in(row[0])}
    assert sorted(shown) == sorted(VOLUME_KINDS)
    refused = {kind for kind in shown if FEATURES[f"volumes.{kind}"].how == "refused"}
    assert {kind for kind, words in shown.items() if words == "refused"} == refused


def test_defaults_are_those_of_the_code():
    shown = {code_in(row[0])[0]: row[1] for row in rows("local.md", "## Defaults")}
    assert shown["grace"] == f"{DEFAULT_GRACE:g} s"
    assert FEATURES["replace.terminating"].how == "refused"
    assert SAMPLING == 1 / 5
    assert "looks five times a second" in text_of("local.md").replace("\n", " ")


@pytest.mark.slow
def test_every_variable_that_a_copy_finds_is_documented(laptop, tmp_path):
    laptop.keep("secrets", "portal", {"token": "s3cret"})
    (tmp_path / "job.yaml").write_text(EVERYTHING)
    answer = laptop.jobman("run", "--virtual", "1x3", "job.yaml", cwd=tmp_path)
    found = {line.partition(" │ ")[2].partition("=")[0] for line in answer.out.splitlines()}
    own = {name for name in found if name.startswith(("JOBMAN_", "PORT_", "CUDA_"))}
    assert {"JOBMAN_RANK", "PORT_OWN", "JOBMAN_PORT_SERVER_WEB_1", "JOBMAN_SECRET_PORTAL"} <= own
    known = documented()
    assert [name for name in sorted(own) if not any(pattern.fullmatch(name) for pattern in known)] == []


def documented() -> list[re.Pattern[str]]:
    """The names that the reference and the page have; a last word in capitals such as NAME stands for any."""
    names = {name for row in rows("jobspec.md", "## 8. What every copy") for name in code_in(row[0])}
    names |= {
        name for name in code_in(text_of("local.md")) if re.fullmatch(r"(JOBMAN|PORT|CUDA)_[A-Z_]+", name)
    }
    return [re.compile(re.sub(r"(?<=_)(TASK_NAME|NAME|TASK)$", r"\\w+", name)) for name in names]
