"""The window in which a job may start."""

import pytest

from tests.conformance.engines import Engine, beats


def test_a_job_does_not_start_before_its_earliest_moment(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        start: {earliest: +1h}
        tasks:
        - {name: work, command: [echo, never]}
    """)
    assert job.look().state == "waiting"
    assert [blocker.kind for blocker in job.why().blockers] == ["start"]
    job.cancel()
    assert job.wait().state == "cancelled"


def test_a_job_starts_by_itself_when_its_earliest_moment_has_come(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        start: {earliest: +500ms, latest: +1h}
        tasks:
        - {name: work, command: [echo, done]}
    """)
    assert outcome.state == "succeeded"
    started = outcome.attempts("work.0")[0].started_at
    assert started is not None
    assert started >= outcome.job.submitted_at + 0.5


def test_a_moment_in_the_past_does_not_hold_a_job_back(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        start: {earliest: "2001-01-01T00:00:00+01:00"}
        tasks:
        - {name: work, command: [echo, done]}
    """)
    assert outcome.state == "succeeded"


def test_a_job_that_has_not_started_by_its_latest_moment_has_failed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        start: {latest: +300ms}
        hold: true
        tasks:
        - {name: work, command: [echo, never]}
    """)
    assert outcome.state == "failed"
    assert "window" in outcome.reason
    assert outcome.exit_code == 1
    assert "work.0 started" not in outcome.story


def test_a_held_job_with_a_cleanup_is_over_too_when_its_window_is(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        start: {latest: +300ms}
        hold: true
        tasks:
        - {name: work, command: [echo, never]}
        - {name: tidy, when: always, command: ["true"]}
    """
    )
    assert outcome.state == "failed"


@pytest.mark.slow
def test_a_job_that_has_begun_is_not_ended_by_its_latest_moment(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {latest: 1s, longer: 1s}
        start: {latest: "+{{latest}}"}
        tasks:
        - {name: first, command: [sleep, "{{longer}}"]}
        - {name: second, depends_on: first, command: [echo, done]}
    """,
        parameters={"latest": beats(engine, 5), "longer": beats(engine, 6)},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["done"]
