"""What a group or a task lost through no fault of its own costs nothing, and is taken back once."""

from datetime import UTC, datetime
from math import fsum

import pytest

from jobman.control import resuming
from jobman.control.administration import NewEntry
from jobman.engines.memory import Play
from tests.control.audit import disagreements
from tests.control.stage import Theatre

CORE = "resources: {type: slot, count: 1, with: [{type: core, count: 1}]}"
GROUP = """
version: 1
name: pair
grace: 0s
%s
groups:
- name: pair
  resources: {type: slot, count: 2, with: [{type: core, count: 1}]}
  %s
  tasks:
  - {name: left, command: x, RESOURCES}
  - {name: right, command: x, RESOURCES}
tasks: [{group: pair}]
""".replace("RESOURCES", CORE)
RESTART = "on_failure: [{reasons: [node-lost], action: restart-group}]"


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path)


def refunds(stage, job):
    return [(one.kind, one.attempt, one.reason) for one in stage.store.slices(job) if one.kind == "refund"]


def charged(stage, job, attempt=None):
    """Hours of the job's allocations that are paid for."""
    mine = (one for one in stage.store.slices(job) if attempt in (None, one.attempt))
    return fsum(one.seconds for one in mine) / 3600


async def lose(stage, job, name, reason="node-lost"):
    """Let an attempt of a task in the group end for a reason."""
    (address,) = [each for each in stage.engine.now_playing if f"/{name}." in each[1] and each[0] == job]
    stage.engine.end(address, reason, 1)
    await stage.settle()


def test_a_group_that_starts_over_because_its_node_was_lost_has_that_attempt_back(theatre):
    async def scene(stage):
        job = await stage.submit(GROUP % ("", RESTART))
        await stage.pass_time(3600)
        await lose(stage, job, "left")
        await stage.pass_time(1800)
        await stage.end(job)
        assert stage.state(job) == "succeeded"
        assert refunds(stage, job) == [("refund", 1, "node-lost")]
        assert charged(stage, job, attempt=1) == 0.0
        assert charged(stage, job) == pytest.approx(0.5, abs=0.01)
        assert stage.floor.book.spending.used("default", "ada") == pytest.approx(1.0, abs=0.02)

    theatre.play(scene, cores=2)


@pytest.mark.parametrize("reason", ["launch-failed", "stage-failed"])
def test_a_group_that_fails_because_something_in_it_could_not_be_started_costs_nothing(theatre, reason):
    async def scene(stage):
        job = await stage.submit(GROUP % ("", ""))
        await stage.pass_time(600)
        await lose(stage, job, "left", reason)
        await stage.end(job)
        assert stage.state(job) == "failed"
        assert (refunds(stage, job), charged(stage, job)) == ([("refund", 1, reason)], 0.0)

    theatre.play(scene, cores=2)


def test_a_group_whose_loss_fails_the_whole_job_costs_nothing(theatre):
    rule = "on_failure: [{reasons: [node-lost], action: fail-job}]"

    async def scene(stage):
        job = await stage.submit(GROUP % (rule, ""))
        await stage.pass_time(600)
        await lose(stage, job, "left")
        assert stage.state(job) == "failed"
        assert (refunds(stage, job), charged(stage, job)) == ([("refund", 1, "node-lost")], 0.0)

    theatre.play(scene, cores=2)


@pytest.mark.parametrize("rule", ["", RESTART])
def test_a_group_that_fails_by_itself_or_is_cancelled_is_paid_for(theatre, rule):
    async def scene(stage):
        failed = await stage.submit(GROUP % ("", rule))
        cancelled = await stage.submit(GROUP % ("", rule))
        await stage.pass_time(600)
        await lose(stage, failed, "left", "exit")
        await stage.end(failed)
        await stage.director.cancel(cancelled, "ada")
        await stage.settle()
        for job, state in ((failed, "failed"), (cancelled, "cancelled")):
            assert (stage.state(job), refunds(stage, job)) == (state, [])
            assert charged(stage, job) == pytest.approx(600 / 3600, abs=0.01)

    theatre.play(scene, cores=4)


def test_what_is_lost_and_tried_again_inside_a_group_is_paid_for_with_the_group(theatre):
    async def scene(stage):
        job = await stage.submit(GROUP % ("", ""))
        await stage.pass_time(600)
        await lose(stage, job, "left")
        await stage.pass_time(600)
        await stage.end(job)
        assert (stage.state(job), refunds(stage, job)) == ("succeeded", [])
        assert charged(stage, job) == pytest.approx(1200 / 3600, abs=0.01)

    theatre.play(scene, cores=2)


def test_the_reason_is_known_after_a_restart_between_the_loss_and_the_end_of_the_group(theatre):
    jobs = []

    async def loss(stage):
        stage.engine.lasting = 30.0
        jobs.append(await stage.submit(GROUP % ("", RESTART)))
        await stage.pass_time(600)
        await lose(stage, jobs[0], "left")
        assert refunds(stage, jobs[0]) == []  # the other one still comes to its end

    async def afterwards(stage):
        (job,) = jobs
        await stage.pass_time(60)
        assert refunds(stage, job) == [("refund", 1, "node-lost")]
        assert charged(stage, job, attempt=1) == 0.0
        await stage.end(job)
        assert stage.state(job) == "succeeded"

    theatre.play(loss, cores=2)
    theatre.play(afterwards, cores=2)
    theatre.play(lambda stage: _same_again(stage, jobs[0]), cores=2)


async def _same_again(stage, job):
    """Nothing is taken back a second time by a service that starts after it."""
    assert refunds(stage, job) == [("refund", 1, "node-lost")]
    balances = {one.owner: one.seconds for one in stage.store.balances()}
    assert balances == {"ada": charged(stage, job) * 3600}


def test_what_maintenance_drives_from_its_node_has_that_attempt_back(theatre):
    task = f"version: 1\ngrace: 0s\ntasks:\n- {{name: work, command: x, {CORE}}}\n"

    async def scene(stage):
        alone = await stage.submit(task)
        pair = await stage.submit(GROUP % ("", ""))
        await stage.pass_time(600)
        start = datetime.fromtimestamp(stage.now, UTC)
        window = NewEntry(name="disks", kind="maintenance", start=start, duration=60.0)
        await stage.director.add_calendar(window, "root")
        await stage.pass_time(120)
        for job in (alone, pair):
            assert refunds(stage, job) == [("refund", 1, "preempted")]
            assert charged(stage, job, attempt=1) == 0.0
        first = stage.store.attempts(alone).items[0]
        assert first.reason == "preempted"
        assert "it has to make room" in stage.told(alone, "stopping")
        await stage.end(alone)
        await stage.end(pair)
        assert {stage.state(alone), stage.state(pair)} == {"succeeded"}

    theatre.play(scene, cores=4)


def test_what_is_held_by_its_owner_and_requeued_is_paid_for(theatre):
    task = f"version: 1\ngrace: 0s\nsuspend: requeue\ntasks:\n- {{name: work, command: x, {CORE}}}\n"

    async def scene(stage):
        job = await stage.submit(task)
        await stage.pass_time(600)
        await stage.director.hold(job, "ada")
        await stage.settle()
        assert (stage.running(), refunds(stage, job)) == ([], [])
        assert charged(stage, job) == pytest.approx(600 / 3600, abs=0.01)

    theatre.play(scene, lambda _: Play(seconds=None))


def test_a_job_that_cannot_be_taken_up_after_a_restart_holds_nothing_and_costs_nothing_more(
    theatre, monkeypatch
):
    jobs = []

    async def before(stage):
        jobs.append(await stage.submit(GROUP % ("", "")))
        await stage.pass_time(600)

    def broken(*arguments):
        hold_again(*arguments)
        raise KeyError("something else is missing")

    async def after(stage):
        assert stage.state(jobs[0]) == "failed"
        charged_before = charged(stage, jobs[0])
        await stage.pass_time(3600)
        assert charged(stage, jobs[0]) == charged_before
        assert len(stage.floor.book.meter) == 0
        assert disagreements(stage) == []
        assert stage.planning.pool.free()["node-0"]["core"] == 2

    theatre.play(before, cores=2)
    hold_again = resuming._hold_again
    monkeypatch.setattr(resuming, "_hold_again", broken)
    theatre.play(after, cores=2)
