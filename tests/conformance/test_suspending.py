"""Suspending: what a hold does to work that runs."""

from pathlib import Path

import pytest

from tests.conformance.engines import Engine


def test_work_without_a_suspend_policy_runs_on_while_its_job_is_held(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: first, command: [sh, -c, "until test -e go; do sleep 0.02; done; echo first"]}
        - {name: second, depends_on: first, command: [echo, second]}
    """)
    job.until("first.0 started")
    job.hold()
    (engine.folder / "go").touch()
    assert job.until("first.0 succeeded").lines() == ["first"]
    job.release()
    assert job.wait().lines() == ["first", "second"]


def test_a_frozen_copy_stands_still_and_goes_on_where_it_was(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: freeze
        tasks:
        - name: work
          command: [sh, -c, "until test -e go; do echo . >> beats; sleep 0.02; done; echo gone on"]
    """)
    job.until("work.0 started")
    job.hold()
    until_it_stands_still(engine, engine.folder / "beats")
    (engine.folder / "go").touch()
    let_time_pass(engine, "0.3")
    held = job.look()
    assert held.state == "running"
    assert held.replicas["work.0"] == "frozen"
    assert held.lines() == []
    assert [blocker.message for blocker in job.why().blockers] == ["the job is held", "work.0 is frozen"]
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["gone on"]
    assert len(outcome.attempts("work.0")) == 1


def test_a_job_with_frozen_copies_is_suspended(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: freeze
        tasks:
        - {name: work, command: [sleep, "600"]}
    """)
    job.until("work.0 started")
    assert not job.look().conditions["Suspended"].status
    job.hold()
    held = job.look()
    assert held.conditions["Suspended"].status
    assert held.tells("held", "work.0 frozen")


@pytest.mark.slow
def test_time_stands_still_for_a_frozen_copy(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: freeze
        tasks:
        - name: work
          attributes: {duration: 2s}
          command: [sh, -c, "until test -e go; do sleep 0.02; done; echo done"]
    """)
    job.until("work.0 started")
    job.hold()
    let_time_pass(engine, "2.5")
    (engine.folder / "go").touch()
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["done"]


def until_it_stands_still(engine: Engine, beats: Path) -> None:
    """A hold is kept when it is answered and reaches the processes a moment later."""
    before = None
    for _ in range(40):
        let_time_pass(engine, "0.3")
        now = beats.read_text() if beats.exists() else ""
        if now == before:
            return
        before = now
    raise AssertionError("the copy goes on although its job is held")


def let_time_pass(engine: Engine, seconds: str) -> None:
    """Another job runs meanwhile."""
    outcome = engine.run(
        """
        version: 1
        parameters: {seconds: "0"}
        tasks:
        - {name: clock, command: [sleep, "{{seconds}}"]}
    """,
        parameters={"seconds": seconds},
    )
    assert outcome.state == "succeeded"


def test_a_requeued_task_is_stopped_and_starts_again_after_the_release(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: requeue
        tasks:
        - {name: work, command: [sh, -c, "echo try $JOBMAN_ATTEMPT; test $JOBMAN_ATTEMPT = 2 || sleep 600"]}
    """)
    job.until_line("try 1")
    job.hold()
    held = job.until("work.0 stopping", "work.0 retrying")
    assert held.job.held
    assert "the job is held" in held.says("work.0 stopping")[0]
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["try 1", "try 2"]
    assert outcome.tells("held", "work.0 stopping", "released", "work.0 started", "work.0 succeeded")


def test_a_requeue_does_not_count_as_a_retry(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: requeue
        tasks:
        - name: work
          retries: 1
          command:
          - sh
          - -c
          - "echo try $JOBMAN_ATTEMPT; test $JOBMAN_ATTEMPT != 1 || exec sleep 600; test $JOBMAN_ATTEMPT = 3"
    """)
    job.until_line("try 1")
    job.hold()
    job.until("work.0 retrying")
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["try 1", "try 2", "try 3"]


def test_a_requeued_group_goes_back_as_a_whole(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        groups:
        - name: batch
          suspend: requeue
          resources: {type: slot, count: 2}
          tasks:
          - {name: done, resources: tiny, command: [echo, done]}
          - {name: long, resources: tiny, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || sleep 600"]}
    """)
    job.until("batch.0/done.0 succeeded")
    job.until("batch.0/long.0 started")
    job.hold()
    job.until("batch.0 retrying")
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["done", "done"]
    assert outcome.tells("held", "batch.0 retrying", "released", "batch.0 started", "batch.0 succeeded")


def test_a_frozen_copy_can_be_cancelled(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: freeze
        tasks:
        - {name: work, command: [sleep, "600"]}
    """)
    job.until("work.0 started")
    job.hold()
    assert job.look().replicas["work.0"] == "frozen"
    job.cancel()
    assert job.wait().state == "cancelled"
