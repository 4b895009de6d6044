"""Submitting, cancelling and listing, with a stand-in for the command of Flux; the suite asks a real one."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from jobman.client import Refused, Unreachable
from jobman.client.batch import BatchClient
from jobman.control.answers import Job, Submission
from jobman.engines.flux.engine import Flux
from tests.conformance.site import TEXT
from tests.engines.flux.stand_in import StandIn

pytestmark = pytest.mark.slow

BUSY = "flux-submit: ERROR: Connection refused"


@pytest.fixture
def flux(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "flux")


@pytest.fixture
def client(flux: StandIn, tmp_path: Path) -> BatchClient:
    return BatchClient(
        Flux(flux.environment, bindings=False),
        root=tmp_path / "jobs",
        database=tmp_path / "jobs.sqlite",
        owner="ada",
    )


def submit(client: BatchClient, tasks: str, settings: str = "") -> Job:
    document = f"version: 1\nname: demo\ntasks:\n{dedent(tasks)}"
    submission = Submission(document=document, file="demo.yaml", settings=TEXT + settings, cwd="/work")
    (job,) = client.submit(submission).jobs
    return job


def test_a_task_with_one_copy_is_a_plain_job_with_the_options_of_its_script(client, flux):
    job = submit(client, "- {name: a, command: [echo, hi], attributes: {duration: 60}}")
    (call,) = flux.called("submit")
    assert call[1] == f"--job-name=demo/a jobman:{job.id}"
    assert call[2].endswith("/flux-{{id}}.out")
    assert call[3:-1] == ["--cwd=/work", "-n1", "-c1", "-t150s"]
    assert call[-1].endswith(f"{job.id}/scripts/a.sh")
    assert flux.called("batch") == []


def test_a_task_with_copies_gets_an_instance_of_its_own(client, flux):
    submit(client, "- {name: a, command: hostname, resources: {type: slot, count: 4}}")
    (call,) = flux.called("batch")
    assert len(call) == 2
    assert flux.called("submit") == []


def test_of_a_graph_all_is_held_until_the_last_of_it_is_there(client, flux):
    submit(client, "- {name: a, command: x}\n- {name: b, depends_on: [a], command: y}")
    first, second = flux.called("submit")
    assert "--urgency=0" in first
    assert "--urgency=0" in second
    assert "--dependency=afterok:f1" in second
    assert flux.urgencies == ["f1 16", "f2 16"]


def test_replicas_are_jobs_that_one_command_submits(client, flux):
    job = submit(client, "- {name: a, command: x, replicas: 3}\n- {name: b, depends_on: [a], command: y}")
    repeated, last = flux.called("submit")
    assert "--cc=0,1,2" in repeated
    assert [each["name"] for each in flux.jobs][:3] == [f"demo/a[{n}/3] jobman:{job.id}" for n in range(3)]
    assert [word for word in last if word.startswith("--dep")] == [
        f"--dependency=afterok:f{n}" for n in (1, 2, 3)
    ]


def test_with_a_parallelism_each_waits_for_the_one_so_many_before_it(client, flux):
    submit(client, "- {name: a, command: x, replicas: 4, parallelism: 2}")
    waits = [[word for word in call if "--dependency" in word] for call in flux.called("submit")]
    assert waits == [[], [], ["--dependency=afterany:f1"], ["--dependency=afterany:f2"]]


def test_a_priority_is_an_urgency_also_after_a_release(client, flux):
    settings = "flux: {priorities: {high: 24}}\n"
    submit(client, "- {name: a, command: x, priority: high, hold: true}", settings)
    (call,) = flux.called("submit")
    assert [word for word in call if word.startswith("--urgency")] == ["--urgency=24", "--urgency=0"]
    client.release("demo")
    assert flux.urgencies == ["f1 24"]


def test_a_priority_that_the_settings_do_not_know_is_refused(client, flux):
    with pytest.raises(Refused, match="which urgency it is"):
        submit(client, "- {name: a, command: x, priority: high}")
    assert flux.called("submit") == []


def test_a_submission_that_got_lost_is_tried_again(client, flux):
    flux.fails(f"lost|{BUSY}")
    submit(client, "- {name: a, command: x}")
    assert len(flux.jobs) == 1


def test_one_that_arrived_without_an_answer_is_not_submitted_twice(client, flux):
    flux.fails(f"arrived|{BUSY}")
    submit(client, "- {name: a, command: x}")
    assert len(flux.jobs) == 1


def test_replicas_of_which_some_arrived_are_completed(client, flux):
    flux.fails("", f"lost|{BUSY}")
    submit(client, "- {name: a, command: x, replicas: 3, parallelism: 1}")
    assert [each["name"].partition(" ")[0] for each in flux.jobs] == [f"demo/a[{n}/3]" for n in range(3)]


def test_of_a_graph_that_is_refused_nothing_is_left(client, flux):
    flux.fails("", "lost|flux-submit: ERROR: [Errno 22] Invalid queue 'nope' specified")
    with pytest.raises(Refused, match="Invalid queue"):
        submit(client, "- {name: a, command: x}\n- {name: b, command: y}")
    assert [each["state"] for each in flux.jobs] == ["INACTIVE"]
    assert list(client.jobs()) == []


def test_what_waits_is_cancelled_and_what_runs_is_asked_to_end(client, flux):
    job = submit(client, "- {name: a, command: x}\n- {name: b, command: y}")
    flux.change("demo/a", state="RUN")
    client.cancel(job.id)
    assert flux.called("cancel") == [["cancel", "f2"]]
    assert flux.called("job", "kill") == [["job", "kill", "--signal=URG", "f1"]]


def test_a_list_of_jobs_costs_one_question(client, flux):
    for _ in range(3):
        submit(client, "- {name: a, command: x}")
    before = len(flux.called("jobs"))
    assert len(list(client.jobs())) == 3
    assert len(flux.called("jobs")) == before + 1


def test_why_tells_held_jobs_from_those_that_wait_for_cores(client, flux):
    job = submit(client, "- {name: a, command: x}")
    assert [each.kind for each in client.why(job.id).blockers] == ["resources"]
    client.hold(job.id)
    assert [each.kind for each in client.why(job.id).blockers] == ["hold"]


def test_without_flux_its_absence_is_told(tmp_path):
    client = BatchClient(
        Flux({"PATH": str(tmp_path)}), root=tmp_path / "jobs", database=tmp_path / "jobs.sqlite", owner="ada"
    )
    with pytest.raises(Unreachable, match="there is no command flux"):
        submit(client, "- {name: a, command: x}")
