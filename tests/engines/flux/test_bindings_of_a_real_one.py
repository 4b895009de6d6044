"""The bindings of a real Flux, in this Python, tell the same of it as its command does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.flux import FluxSite

pytestmark = [pytest.mark.component("flux"), pytest.mark.slow]
_WHERE = """
import importlib.util, json, sys
specs = map(importlib.util.find_spec, ("flux", "_flux", "_cffi_backend", "ply", "yaml"))
found = [(spec.submodule_search_locations or [spec.origin])[0] for spec in specs]
print(json.dumps([found, sys.version_info[:2]]))
"""
_BOTH = """
import os, msgspec
from jobman.engines.flux.api import Bindings
from jobman.engines.flux.engine import Flux
from jobman.engines.flux.queue import EVERY
command, bindings = Flux(bindings=False), Bindings(os.environ)
told = {
    "jobs": [command.jobs(), bindings.jobs(EVERY)],
    "nodes": [command.nodes(), Flux().nodes()],
    "asked": bindings.resources() is not None,
}
print(msgspec.json.encode(told).decode())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> FluxSite:
    return FluxSite(tmp_path_factory.mktemp("site"))


def said(site: FluxSite, *words: str, **more: str) -> str:
    environment = {**site.environment, **more}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def bindings(site: FluxSite, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with those that come with this Flux, and what they need."""
    places, version = json.loads(said(site, "flux", "python", "-c", _WHERE))
    if tuple(version) != sys.version_info[:2]:
        pytest.skip(f"the bindings of this Flux are for Python {'.'.join(map(str, version))}")
    folder = tmp_path_factory.mktemp("bindings")
    for place in map(Path, places):
        (folder / place.name).symlink_to(place)
    return str(folder)


@pytest.fixture(scope="module")
def jobs(site: FluxSite) -> Iterator[dict[str, str]]:
    """Jobs in every state that lasts, and with every result."""

    def submit(*words: str) -> str:
        return said(site, "flux", "submit", "-n1", *words, FLUX_F58_FORCE_ASCII="1").strip()

    runs, fails = submit("sleep", "600"), submit("--urgency=0", "false")
    found = {
        "runs": runs,
        "held": submit("--urgency=0", "true"),
        "waits for another": submit(f"--dependency=afterok:{runs}", "true"),
        "waits for a moment": submit("--begin-time=+1d", "true"),
        "fails": fails,
        "never can": submit(f"--dependency=afterok:{fails}", "true"),
        "is too big": submit("-N999", "-n999", "true"),
        "succeeds": submit("true"),
        "has a title": submit("--job-name=d\u00e9mo/a[3/10] jobman:ab12", "true"),
        "takes too long": submit("-t1s", "sleep", "600"),
        "is cancelled": submit("--urgency=0", "true"),
        "is an instance": said(
            site, "flux", "batch", "-n1", "--output=/dev/null", "--wrap", "true", FLUX_F58_FORCE_ASCII="1"
        ).strip(),
    }
    said(site, "flux", "job", "urgency", fails, "default")
    said(site, "flux", "cancel", found["is cancelled"])
    for name in list(found)[4:]:
        said(site, "flux", "job", "wait-event", "--timeout=50", found[name], "clean")
    said(site, "flux", "job", "wait-event", "--timeout=50", runs, "start")
    yield found
    said(site, "flux", "cancel", *list(found.values())[:4])


def test_jobs_of_every_state_and_nodes_are_the_same_either_way(site, jobs, bindings):
    package = str(Path(__file__).parents[3] / "src")
    told = json.loads(said(site, sys.executable, "-c", _BOTH, PYTHONPATH=f"{bindings}:{package}"))
    assert told["asked"]
    by_command, by_bindings = (_by_id(each, set(jobs.values())) for each in told["jobs"])
    assert by_bindings == by_command
    states = {name: by_command[id_]["state"] for name, id_ in jobs.items()}
    assert set(states.values()) == {"RUN", "SCHED", "DEPEND", "INACTIVE"}
    results = {by_command[id_]["result"] for id_ in jobs.values()}
    assert results == {"", "COMPLETED", "FAILED", "CANCELED", "TIMEOUT"}
    by_command, by_bindings = ({node["name"]: node["amounts"] for node in each} for each in told["nodes"])
    assert by_bindings == by_command


def _by_id(jobs: list[dict[str, object]], wanted: set[str]) -> dict[object, dict[str, object]]:
    """Those of this test; a moment that one waits for is written in two ways."""
    return {
        job["jobid"]: {**job, "dependencies": [each[:5] for each in job["dependencies"]]}  # type: ignore[attr-defined]
        for job in jobs
        if job["jobid"] in wanted
    }
