"""Instances of a real Flux inside others: jobs of all of them are seen, and acted on, from each."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client.batch import BatchClient
from jobman.control.answers import Submission
from jobman.engines.flux.engine import Flux
from tests.conformance.flux import FluxSite
from tests.conformance.handle import JobHandle
from tests.conformance.site import TEXT

pytestmark = [pytest.mark.component("flux"), pytest.mark.slow]
_SLEEPS = """
version: 1
name: sleeper
tasks:
- {name: first, command: [sleep, "600"], resources: {type: slot, count: 1}}
- {name: second, depends_on: [first], command: ["true"], resources: {type: slot, count: 1}}
"""


@pytest.fixture
def site(tmp_path: Path) -> FluxSite:
    return FluxSite(tmp_path)


def said(site: FluxSite, *words: str, **more: str) -> str:
    environment = {**site.environment, "FLUX_F58_FORCE_ASCII": "1", **more}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture
def alloc(site: FluxSite) -> Iterator[tuple[str, str]]:
    """An instance that somebody works in: the job that it is, and its address."""
    id_ = said(site, "flux", "batch", "-n2", "--output=/dev/null", "--wrap", "sleep", "600")
    deadline = time.monotonic() + 60
    while not (uri := said(site, "flux", "uri", "--local", id_)) or not said(
        site, "flux", "getattr", "size", FLUX_URI=uri
    ):
        assert time.monotonic() < deadline, "the instance does not start"
        time.sleep(0.2)
    yield id_, uri
    said(site, "flux", "cancel", id_)
    said(site, "flux", "job", "wait-event", "--timeout=50", id_, "clean")


@pytest.fixture
def inside(site: FluxSite, tmp_path: Path, alloc: tuple[str, str]) -> BatchClient:
    """The client of somebody who works there."""
    environment = {**os.environ, **site.environment, "FLUX_URI": alloc[1]}
    return BatchClient(
        Flux(environment), root=tmp_path / "jobs", database=tmp_path / "batch.sqlite", owner="root"
    )


def start(client: BatchClient, site: FluxSite, tmp_path: Path) -> JobHandle:
    submission = Submission(
        document=_SLEEPS, file="sleeper.yaml", settings=TEXT, cwd=str(tmp_path), environment=site.environment
    )
    (job,) = client.submit(submission).jobs
    handle = JobHandle(client, job.id, patience=60, pause=0.2)
    handle.until("first.0 started")
    return handle


def test_a_job_inside_is_seen_from_outside_and_can_be_held_and_cancelled_there(site, tmp_path, alloc, inside):
    job = start(inside, site, tmp_path)
    outside = site.client
    assert [(each.id, each.state) for each in outside.jobs()] == [(job.id, "running")]
    row = {each.flavor: each for each in outside.queue()}[f"main/{alloc[0]}"]
    assert (row.running, row.waiting, row.yours_running, row.yours_waiting) == (1, 1, 1, 1)
    outside.hold(job.id)
    assert {each.kind for each in inside.why(job.id).blockers} == {"hold"}
    outside.cancel(job.id)
    assert JobHandle(outside, job.id, patience=60, pause=0.2).wait().state == "cancelled"
    assert said(site, "flux", "jobs", "-n", "--filter=active", "-o{name}", FLUX_URI=alloc[1]) == ""


def test_a_job_outside_is_seen_from_inside_and_can_be_cancelled_there(site, tmp_path, inside):
    job = start(site.client, site, tmp_path)
    assert [(each.id, each.state) for each in inside.jobs()] == [(job.id, "running")]
    inside.cancel(job.id)
    assert job.wait().state == "cancelled"


def test_with_its_instance_a_job_ends(site, tmp_path, alloc, inside):
    job = start(inside, site, tmp_path)
    said(site, "flux", "cancel", alloc[0])
    said(site, "flux", "job", "wait-event", "--timeout=50", alloc[0], "clean")
    assert JobHandle(site.client, job.id, patience=60, pause=0.2).wait().state == "cancelled"
