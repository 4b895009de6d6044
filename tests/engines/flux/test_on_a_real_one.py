"""What only a real Flux can show: its own cancel, its own braces, and scripts that are submitted by hand."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.api import loads
from jobman.client import Refused
from jobman.control.answers import Submission
from jobman.engines.flux.compile import plain_ids
from jobman.engines.flux.engine import Flux
from jobman.engines.scripts.site import Job
from jobman.settings.flux import FluxSite as Settings
from tests.conformance.flux import FluxEngine, FluxSite

pytestmark = [pytest.mark.component("flux"), pytest.mark.slow]
DEAF = "trap '' TERM; echo deaf; while :; do sleep 0.2; done"


@pytest.fixture
def site(tmp_path: Path) -> FluxSite:
    return FluxSite(tmp_path)


@pytest.fixture
def engine(site: FluxSite, tmp_path: Path) -> Iterator[FluxEngine]:
    folder = tmp_path / "work"
    folder.mkdir()
    bound = site.bind(folder)
    yield bound
    assert bound.leave() == []


def flux(site: FluxSite, *words: str) -> str:
    done = subprocess.run(
        ["flux", *words], env=site.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_braces_reach_copies_and_tasks_of_groups_as_they_are(engine):
    outcome = engine.run(
        """
        version: 1
        parameters: {open: "{", close: "}"}
        tasks:
        - name: many
          resources: {type: slot, count: 2}
          command: [echo, "{{open}}{{open}}id{{close}}{{close}} {{open}}cc{{close}} $HOME"]
        """
    )
    assert outcome.lines() == ["{{id}} {cc} $HOME"] * 2


def test_what_flux_itself_cancels_leaves_no_process_behind(engine, site):
    job = engine.submit(
        """
        version: 1
        parameters: {deaf: none}
        tasks:
        - {name: alone, command: [bash, -c, "{{deaf}}"]}
        groups:
        - name: group
          resources: {type: slot, count: 3}
          tasks:
          - {name: copies, resources: {type: slot, count: 2}, command: [bash, -c, "{{deaf}}"]}
          - {name: single, resources: tiny, command: [bash, -c, "{{deaf}}"]}
        """,
        parameters={"deaf": DEAF},
    )
    job.until("alone.0 started")
    job.until("group.0/copies.0 started")
    job.until("group.0/single.0 started")
    native: dict[str, str] = job.details().options["native"]
    flux(site, "cancel", *(id_ for ids in native.values() for id_ in plain_ids(ids)))
    # That nothing is left is looked at by whoever takes leave of the engine.
    assert job.wait().state == "cancelled"


def test_what_reaches_a_limit_of_flux_has_failed_for_that_and_leaves_nothing_behind(engine):
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: alone
          command: [sleep, "600"]
          attributes: {flags: {flux: [-t3s]}}
        - name: copies
          resources: {type: slot, count: 2}
          command: [sleep, "600"]
          attributes: {flags: {flux: [-t9s]}}
        """
    )
    assert outcome.state == "failed"
    assert outcome.outcomes == {"alone": "failed", "copies": "failed"}
    assert [outcome.attempts(f"{name}.0")[-1].reason for name in ("alone", "copies")] == ["timeout"] * 2


def test_what_is_rendered_and_submitted_by_hand_does_the_same(site, tmp_path):
    text = """
version: 1
name: hand
tasks:
- {name: one, replicas: 3, parallelism: 2, command: [echo, one], resources: {type: slot, count: 1}}
- {name: two, depends_on: [one], command: [echo, two], resources: {type: slot, count: 2}}
"""
    manager, plan = Flux(site.environment), loads(text).plan()
    job = Job(id="ab12", name="hand", folder=str(tmp_path / "jobs" / "ab12"), cwd=str(tmp_path))
    scripts = manager.compile(plan, job, Settings())
    (tmp_path / "by_hand" / "scripts").mkdir(parents=True)
    for script in scripts:
        (tmp_path / "by_hand" / "scripts" / f"{script.name}.sh").write_text(script.text)
    submit = tmp_path / "by_hand" / "submit.sh"
    submit.write_text(manager.by_hand(job, scripts))
    done = subprocess.run(
        ["bash", submit], env=site.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    ids = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert len(plain_ids(ids["one"])) == 3
    flux(site, "job", "wait-event", "--timeout=60", plain_ids(ids["two"])[0], "clean")
    written = sorted((tmp_path / "jobs" / "ab12" / "out").glob("*/1/*.out"))
    assert [path.read_text() for path in written] == ["one\n"] * 3 + ["two\n"] * 2


def test_a_plan_that_no_node_could_ever_take_is_refused_with_what_flux_says(site):
    document = "version: 1\ntasks: [{command: x, resources: {type: node, count: 99}}]\n"
    submission = Submission(document=document, file="big.yaml")
    with pytest.raises(Refused, match="unsatisfiable request") as refused:
        site.client.submit(submission)
    assert refused.value.code == "does-not-fit"


@pytest.mark.parametrize("status", [0, 1])
def test_the_files_of_all_nodes_come_through_an_archive_of_flux_or_the_step(
    engine, tmp_path, monkeypatch, status
):
    """Archives of Flux are there, or its command for them fails."""
    noted = f"flux() {{ [ $1 != archive ] || {{ echo $2 >>{tmp_path}/called; test {status} = 0 || return; }}"
    site = engine._settings_of_site().rstrip()
    prologue = json.dumps(f'{noted}; command flux "$@"; }}')
    monkeypatch.setattr(engine, "_settings_of_site", lambda: f"{site[:-1]}, prologue: [{prologue}]}}\n")
    data = random.Random(7).randbytes(5_000_000)
    (tmp_path / "work" / "data").write_bytes(data)
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: sum
          resources: {type: node, count: 3, with: [{type: core, count: 1}]}
          command: [sh, -c, "sha256sum <there/data"]
          steps: [{name: stage, path: data, to: there/data}]
        """
    )
    assert outcome.lines() == [f"{hashlib.sha256(data).hexdigest()}  -"] * 3
    called = ["create"] if status else ["create", *["extract"] * 3, "remove"]
    assert (tmp_path / "called").read_text().split() == called
