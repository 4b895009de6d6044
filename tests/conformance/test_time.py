"""Time limits: their end, the warning before it, and more time."""

import pytest

from tests.conformance.engines import Engine, beats


def test_a_task_that_runs_past_its_limit_has_failed_with_a_timeout(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: long, command: [sleep, "600"], attributes: {duration: 300ms}}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code not in (0, None)
    assert outcome.reasons("long.0") == ["timeout"]
    assert outcome.tells("long.0 started", "long.0 failed")
    assert "time was up" in outcome.reason


def test_a_task_that_ends_in_time_is_not_touched(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        attributes: {duration: 10m}
        tasks:
        - {name: quick, command: [echo, done]}
    """)
    assert outcome.state == "succeeded"


def test_each_attempt_has_the_whole_limit(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {limit: 1s, part: 1s}
        tasks:
        - name: long
          retries: {limit: 1, on: {reasons: timeout}}
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exec sleep 600; sleep {{part}}"]
          attributes: {duration: "{{limit}}"}
    """,
        parameters={"limit": beats(engine, 8), "part": beats(engine, 1.5)},
    )
    assert outcome.state == "succeeded"
    assert outcome.reasons("long.0") == ["timeout", ""]


def test_a_limit_on_a_group_is_the_limit_of_the_group(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {limit: 1s}
        groups:
        - name: batch
          resources: tiny
          attributes: {duration: "{{limit}}"}
          tasks:
          - {name: first, command: [sleep, "0.1"]}
          - {name: second, depends_on: first, command: [sleep, "600"]}
          - {name: third, depends_on: second, command: [echo, never]}
    """,
        parameters={"limit": beats(engine, 6)},
    )
    assert outcome.state == "failed"
    assert outcome.outcomes["batch"] == "failed"
    assert outcome.replicas["batch.0/first.0"] == "succeeded"
    assert outcome.replicas["batch.0/second.0"] in ("cancelled", "failed")
    assert outcome.lines() == []


def test_a_job_whose_group_ran_past_its_limit_says_so(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          attributes: {duration: 300ms}
          tasks:
          - {name: long, command: [sleep, "600"]}
    """)
    assert outcome.state == "failed"
    assert "batch.0" in outcome.reason
    assert "time was up" in outcome.reason


@pytest.mark.slow
def test_a_limit_on_the_document_is_the_default_of_each_task(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {limit: 1s, half: 1s}
        attributes: {duration: "{{limit}}"}
        tasks:
        - {name: first, command: [sleep, "{{half}}"]}
        - {name: second, depends_on: first, command: [sleep, "{{half}}"]}
    """,
        parameters={"limit": beats(engine, 8), "half": beats(engine, 4.5)},
    )
    assert outcome.state == "succeeded"


def test_a_signal_warns_before_the_limit(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: careful
          command: [sh, -c, "trap 'echo warned; exit 0' USR1; while :; do sleep 0.02; done"]
          attributes: {duration: 10m}
          signal: {name: USR1, before: 599500ms}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("careful.0", stream="stdout") == ["warned"]


def test_a_copy_has_its_grace_to_end_in_peace(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: polite
          grace: 30s
          attributes: {duration: 300ms}
          command: [sh, -c, "trap 'sleep 0.2; echo saved; exit 0' TERM; while :; do sleep 0.02; done"]
    """)
    assert outcome.lines("polite.0", stream="stdout") == ["saved"]
    assert outcome.state == "failed"
    assert outcome.reasons("polite.0") == ["timeout"]


def test_a_copy_that_does_not_end_in_its_grace_is_killed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: stubborn
          grace: 100ms
          attributes: {duration: 300ms}
          command: [sh, -c, "trap 'echo no' TERM; while :; do sleep 0.02; done"]
    """)
    assert outcome.reasons("stubborn.0") == ["timeout"]
    assert outcome.attempts("stubborn.0")[0].signal == 9
    assert outcome.lines("stubborn.0", stream="stdout") == ["no"]


@pytest.mark.slow
def test_more_time_can_be_given_to_what_runs(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: long
          attributes: {duration: 3s}
          command: [sh, -c, "until test -e extended; do sleep 0.02; done; sleep 3; echo in time"]
    """)
    job.until("long.0 started")
    job.extend(600)
    (engine.folder / "extended").touch()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["in time"]
    assert outcome.tells("long.0 started", "extended", "long.0 succeeded")


@pytest.mark.slow
def test_more_time_can_be_given_to_one_task(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        attributes: {duration: 3s}
        tasks:
        - {name: favoured, command: [sh, -c, "sleep 4; echo in time"]}
        - {name: other, command: [sleep, "600"]}
    """)
    job.until("favoured.0 started")
    job.extend(600, task="favoured")
    outcome = job.wait()
    assert outcome.outcomes == {"favoured": "succeeded", "other": "failed"}
    assert outcome.reasons("other.0") == ["timeout"]
