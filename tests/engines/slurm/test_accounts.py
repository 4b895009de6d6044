"""A real Slurm that keeps accounts: what it remembers of jobs that left the queue, and what it allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client.failures import Refused
from tests.conformance.site import TEXT
from tests.engines.slurm.ground import Ground, a_slurm, eventually, on_a_real_slurm

pytestmark = on_a_real_slurm


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with a_slurm("accounting", tmp_path) as made:
        yield made


def test_how_a_forgotten_job_ended_is_in_the_accounts(ground: Ground) -> None:
    job = ground.submit("""
        - {name: work, command: [sh, -c, "echo began >>ledger; sleep 1000"]}
        - {name: many, replicas: 2, command: [sh, -c, "sleep $((JOBMAN_REPLICA * 1000))"]}
    """)
    job.until("work.0 started")
    job.until("many.1 started")
    for piece in ("work", "many"):
        ground.slurm("scancel", "--batch", "--signal=KILL", ground.id_of(job, piece))
    eventually(lambda: not ground.natives("PENDING", "RUNNING", "COMPLETING"), "their end")
    before = job.look()
    ground.forget_finished()
    after = job.look()
    assert after.state == before.state == "failed"
    assert (
        after.replicas == before.replicas == {"work.0": "failed", "many.0": "succeeded", "many.1": "failed"}
    )
    assert after.reasons("work.0") == before.reasons("work.0")


def test_components_that_are_forgotten_are_one_job_in_the_accounts(ground: Ground) -> None:
    job = ground.submit("""
        - {name: work, resources: head&rest, command: [sh, -c, "echo up; sleep 1000"]}
        resources:
          head: {type: node, count: 1, with: [{type: core, count: 1}]}
          rest: {type: node, count: 2, with: [{type: core, count: 2}]}
    """)
    job.until("work.0 started")
    ground.slurm("scancel", "--batch", "--signal=KILL", ground.id_of(job, "work"))
    eventually(lambda: not ground.natives("PENDING", "RUNNING", "COMPLETING"), "its end")
    before = job.look()
    ground.forget_finished()
    after = job.look()
    assert after.state == before.state == "failed"
    assert after.replicas == before.replicas == {"work.0": "failed"}
    assert after.reasons("work.0") == before.reasons("work.0")


def test_an_account_that_nobody_has_is_refused(ground: Ground) -> None:
    with pytest.raises(Refused) as told:
        ground.submit('- {name: work, command: ["true"], attributes: {flags: {slurm: ["--account=nobody"]}}}')
    assert (told.value.code, told.value.exit_code) == ("forbidden", 6)
    assert "Invalid account" in str(told.value)
    assert list(ground.client.jobs()) == []


def test_a_limit_of_ones_quality_of_service_is_said(ground: Ground) -> None:
    ground.slurm("sacctmgr", "-i", "modify", "qos", "urgent", "set", "MaxJobsPerUser=1")
    settings = TEXT + "slurm: {account: guests, qos: urgent}\n"
    wait = '- {name: work, command: [sh, -c, "until test -e go; do sleep 0.1; done"]}'
    first = ground.submit(wait, settings=settings)
    first.until("work.0 started")
    second = ground.submit(wait, settings=settings)
    assert "QOSMaxJobsPerUserLimit" in second.until_blocked("limit").message
    ground.let_go()
    assert [job.wait().state for job in (first, second)] == ["succeeded", "succeeded"]
