"""A real Flux as a site sets it up for its users: with limits, queues that are closed, and guests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Refused
from jobman.client.batch import BatchClient
from jobman.control.answers import Job, Submission
from jobman.engines.flux.choosing import PROGRAM
from jobman.engines.flux.engine import Flux
from tests.conformance.site import TEXT

pytestmark = [pytest.mark.component("flux"), pytest.mark.slow]
_CONFIGURATION = """
access.allow-guest-user = true
resource.noverify = true
policy.jobspec.defaults.system.queue = "batch"
policy.limits.duration = "1h"
policy.limits.job-size.max.ncores = 6
[[resource.config]]
hosts = "g1"
cores = "0-7"
properties = ["batch"]
[[resource.config]]
hosts = "g2"
cores = "0-7"
properties = ["debug"]
[queues.batch]
requires = ["batch"]
[queues.debug]
requires = ["debug"]
policy.limits.duration = "2m"
[queues.night]
requires = ["batch"]
[queues.old]
requires = ["batch"]
"""
_PROGRAM = """
flux queue start batch && flux queue start debug && flux queue stop -m "only at night" night &&
    flux queue disable -m "use batch" old && echo ready && exec cat
"""
_NOBODY = 65534


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """An instance of its own; with the one that reads its input it ends, too."""
    folder = Path(tempfile.mkdtemp(prefix="flux-"))
    folder.chmod(0o755)
    (folder / "flux.toml").write_text(_CONFIGURATION)
    own = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FLUX_")},
        "PATH": f"{os.environ['JOBMAN_LAB_FLUX_BIN']}:{os.environ['PATH']}",
        "FLUX_SHELL_RC_PATH": os.environ["JOBMAN_LAB_FLUX_SHELL_RC"],
        "LANG": "C.UTF-8",
    }
    words = ["--test-size=2", "--test-hosts=g[1-2]", "--config-path", str(folder / "flux.toml")]
    words += ["--test-rundir", str(folder), "--test-exit-timeout=5s", "sh", "-c", _PROGRAM]
    with (folder / "log").open("w") as log:
        instance = subprocess.Popen(
            ["flux", "start", *words],
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert instance.stdin is not None
    assert instance.stdout is not None
    with instance.stdin, instance.stdout:
        assert "ready\n" in iter(instance.stdout.readline, ""), (folder / "log").read_text()
        yield {**own, "FLUX_URI": f"local://{folder}/local-0"}
        instance.stdin.close()
        instance.stdout.read()
    instance.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def client(environment: dict[str, str], tmp_path: Path) -> BatchClient:
    return BatchClient(
        Flux(environment), root=tmp_path / "jobs", database=tmp_path / "batch.sqlite", owner="root"
    )


def said(environment: dict[str, str], *words: str, **more: str) -> str:
    done = subprocess.run(
        words, env={**environment, **more}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def submit(client: BatchClient, environment: dict[str, str], duration: str, **more: object) -> Job:
    task = {
        "name": "a",
        "command": ["sleep", "600"],
        "resources": {"type": "slot", "count": more.pop("slots", 1)},
        "attributes": {"duration": duration},
    }
    document = json.dumps({"version": 1, "name": "demo", "tasks": [task], **more})
    submission = Submission(
        document=document, file="demo.yaml", settings=TEXT, cwd="/tmp", environment=environment
    )
    (job,) = client.submit(submission).jobs
    return job


@pytest.mark.parametrize(
    ("duration", "more", "words"),
    [
        ("2h", {}, r"flux: requested duration \(2h\) exceeds policy limit of 1h for queue batch"),
        ("5m", {"queue": "debug"}, r"exceeds policy limit of 2m for queue debug"),
        ("1m", {"slots": 7}, r"flux: requested ncores \(7\) exceeds policy limit of 6"),
        ("1m", {"queue": "old"}, r"flux: job submission to old is disabled: use batch"),
        ("1m", {"queue": "nope"}, r"Invalid queue 'nope'"),
    ],
)
def test_what_is_beyond_a_limit_is_refused_in_the_words_of_flux_and_nothing_is_left(
    client, environment, duration, more, words
):
    with pytest.raises(Refused, match=words):
        submit(client, environment, duration, **more)
    assert list(client.jobs()) == []


@pytest.mark.parametrize(("more", "duration", "seconds"), [({}, "1h", 3600), ({"queue": "debug"}, "2m", 120)])
def test_all_the_time_that_a_queue_allows_can_be_asked_for(client, environment, more, duration, seconds):
    job = submit(client, environment, duration, **more)
    (native,) = client.details(job.id).options["native"].values()
    assert float(said(environment, "flux", "jobs", "-no", "{duration}", native)) == seconds
    client.cancel(job.id)
    client.wait(job.id, 60)


def test_what_waits_for_a_queue_that_is_stopped_says_so_and_why(client, environment):
    job = submit(client, environment, "1m", queue="night")
    assert [(each.kind, each.message) for each in client.why(job.id).blockers] == [
        ("queue", "its queue starts nothing: only at night")
    ]
    client.cancel(job.id)


def test_the_queue_of_who_names_none_may_be_stopped_as_well(client, environment):
    said(environment, "flux", "queue", "stop", "batch")
    try:
        job = submit(client, environment, "1m")
        assert [each.kind for each in client.why(job.id).blockers] == ["queue"]
        client.cancel(job.id)
    finally:
        said(environment, "flux", "queue", "start", "batch")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_that_only_owners_may_ask_what_fits_is_not_held_against_guests(environment):
    spec = said(environment, "flux", "submit", "--dry-run", "--env-remove=*", "-n1", "true")
    done = subprocess.run(
        ["flux", "python", "-c", PROGRAM],
        env={**environment, "HOME": "/"},
        cwd="/",
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
        input=spec,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
