"""Cancelling: a job ends when its author says so, and its cleanup still runs."""

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine


def test_a_cancelled_job_stops_what_runs_and_starts_nothing_more(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: long, command: [sleep, "600"]}
        - {name: next, depends_on: long, command: [echo, never]}
    """)
    job.until("long.0 started")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.reason == "cancelled"
    assert outcome.outcomes["long"] == "cancelled"
    assert outcome.outcomes["next"] in ("cancelled", "skipped")
    assert outcome.tells(
        "long.0 started", "cancelling", "long.0 stopping", "long.0 cancelled", "job-cancelled"
    )
    assert outcome.conditions["Cancelled"].status


def test_a_job_that_waits_is_cancelled_at_once(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        hold: true
        tasks:
        - {name: work, command: [echo, never]}
    """)
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert "work.0 started" not in outcome.story


def test_a_cancelled_job_still_runs_what_always_runs(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: long, command: [sleep, "600"]}
        - {name: alarm, when: failure, command: [echo, alarm]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    job.until("long.0 started")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.tells(
        "cancelling", "long.0 cancelled", "tidy.0 started", "tidy.0 succeeded", "job-cancelled"
    )
    assert outcome.lines() == ["tidy"]


def test_a_cancelled_copy_may_end_in_peace(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: polite
          command: [sh, -c, "trap 'echo saved; exit 3' TERM; echo up; while :; do sleep 0.02; done"]
    """)
    job.until_line("up")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.lines("polite.0", stream="stdout") == ["up", "saved"]


def test_a_shell_that_is_stopped_does_not_go_on_with_its_next_command(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: nested
          replicas: 12
          command: [sh, -c, "sh -c 'sh -c \\"touch up-$JOBMAN_REPLICA; sleep 600\\"; echo next'; echo next"]
        - {name: ready, command: [sh, -c, "until test $(ls up-* | wc -l) = 12; do sleep 0.02; done"]}
    """)
    job.until("ready.0 succeeded")
    job.cancel()
    outcome = job.wait()
    assert outcome.lines("nested.0", stream="stdout") == []
    assert "next" not in outcome.lines()


def test_a_cancelled_copy_that_does_not_listen_is_killed_after_its_grace(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        grace: 100ms
        tasks:
        - {name: stubborn, command: [sh, -c, "trap '' TERM; echo up; while :; do sleep 0.02; done"]}
    """)
    job.until_line("up")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.attempts("stubborn.0")[0].signal == 9


def test_a_cancelled_group_stops_its_tasks_its_services_and_its_inner_groups(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        groups:
        - name: outer
          resources: {type: slot, count: 3}
          tasks:
          - {name: server, service: true, command: [sleep, "600"], resources: tiny}
          - {name: work, command: [sleep, "600"], resources: tiny}
          - {group: inner}
        - name: inner
          resources: tiny
          tasks:
          - {name: deep, command: [sleep, "600"]}
    """)
    job.until("outer.0/work.0 started")
    job.until("outer.0/inner.0/deep.0 started")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.outcomes["outer"] == "cancelled"
    assert outcome.replicas["outer.0/inner.0/deep.0"] == "cancelled"


def test_all_replicas_are_cancelled_those_that_run_and_those_that_wait(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: many, replicas: 5, parallelism: 2, command: [sleep, "600"]}
    """)
    job.until("many.0 started")
    job.until("many.1 started")
    job.cancel()
    outcome = job.wait()
    assert outcome.counts == {"cancelled": 5}


def test_what_has_succeeded_before_stays_succeeded(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: done, command: ["true"]}
        - {name: long, command: [sleep, "600"]}
    """)
    job.until("done.0 succeeded")
    job.until("long.0 started")
    job.cancel()
    outcome = job.wait()
    assert outcome.outcomes == {"done": "succeeded", "long": "cancelled"}
    assert outcome.counts == {"succeeded": 1, "cancelled": 1}


def test_a_job_that_is_over_cannot_be_cancelled(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: work, command: ["true"]}
    """)
    job.wait()
    with pytest.raises(Refused) as refused:
        job.cancel()
    assert refused.value.code == "wrong-state"
    assert job.look().state == "succeeded"
