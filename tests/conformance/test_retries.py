"""Trying again: how often, after which failures, and in place."""

from tests.conformance.engines import Engine


def test_a_failure_is_tried_again_up_to_the_limit(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: flaky, retries: 2, command: [sh, -c, "exit $JOBMAN_ATTEMPT"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_codes("flaky.0") == [1, 2, 3]
    assert outcome.exit_code == 3
    assert outcome.counts == {"failed": 1, "retried": 2}


def test_a_retry_that_succeeds_makes_the_task_succeed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: flaky, retries: 3, command: [sh, -c, "echo try $JOBMAN_ATTEMPT; test $JOBMAN_ATTEMPT = 2"]}
        - {name: after, depends_on: flaky, command: ["true"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.exit_codes("flaky.0") == [1, 0]
    assert outcome.lines("flaky.0") == ["try 1", "try 2"]
    assert outcome.lines("flaky.0", attempt=2) == ["try 2"]
    assert outcome.tells(
        "flaky.0 started", "flaky.0 retrying", "flaky.0 started", "flaky.0 succeeded", "after.0 started"
    )


def test_each_replica_has_its_own_retries(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: flaky, replicas: 3, retries: 1, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts == {"succeeded": 3, "retried": 3}


def test_zero_retries_are_no_retries(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: once, retries: 0, command: ["false"]}
    """)
    assert outcome.exit_codes("once.0") == [1]


def test_a_delay_is_waited_for_and_why_says_so(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: flaky, retries: {limit: 1, delay: 10m}, command: ["false"]}
    """)
    outcome = job.until("flaky.0 retrying")
    assert outcome.state == "running"
    assert outcome.replicas["flaky.0"] == "resting"
    assert "in 600 s" in outcome.says("flaky.0 retrying")[0]
    assert [blocker.kind for blocker in job.why().blockers] == ["retry"]


def test_each_wait_is_a_factor_longer_than_the_one_before(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: flaky, retries: {limit: 2, delay: 100ms, factor: 12}, command: ["false"]}
    """)
    first, second = outcome.says("flaky.0 retrying")
    assert "in " not in first
    assert "in 1 s" in second


def test_only_the_failures_that_are_meant_are_tried_again(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: meant
          retries: {limit: 5, on: {exit_codes: [4, 10-12]}}
          command: [sh, -c, "exit $((9 + JOBMAN_ATTEMPT))"]
        - name: other
          retries: {limit: 5, on: {exit_codes: 4, reasons: [timeout, signal]}}
          command: [sh, -c, "exit 5"]
        - name: shot
          retries: {limit: 1, on: {reasons: signal}}
          command: [sh, -c, "kill -TERM $$"]
    """)
    assert outcome.exit_codes("meant.0") == [10, 11, 12, 13]
    assert outcome.exit_codes("other.0") == [5]
    assert outcome.reasons("shot.0") == ["signal", "signal"]


def test_a_program_that_cannot_be_started_is_tried_again_too(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: late
          retries: {limit: 1, on: {reasons: launch-failed}}
          command: [./not-there]
    """)
    assert outcome.reasons("late.0") == ["launch-failed", "launch-failed"]


def test_a_group_that_fails_is_run_again_as_a_whole(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          retries: 1
          resources: tiny
          tasks:
          - {name: first, command: [echo, first]}
          - {name: second, depends_on: first, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("pair.0/first.0") == ["first", "first"]
    assert outcome.exit_codes("pair.0/second.0") == [1, 0]
    assert outcome.tells("pair.0 started", "pair.0 retrying", "pair.0 started", "pair.0 succeeded")


def test_the_documents_retries_run_the_whole_job_again(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        retries: 1
        tasks:
        - {name: good, command: [echo, good]}
        - {name: bad, depends_on: good, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.lines("good.0") == ["good", "good"]
    assert outcome.exit_codes("bad.0") == [1, 0]
    assert outcome.outcomes == {"good": "succeeded", "bad": "succeeded"}


def test_the_documents_retries_are_for_the_failures_that_are_meant(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        retries: {limit: 1, on: {exit_codes: 9}}
        tasks:
        - {name: bad, command: [sh, -c, "exit 3"]}
    """)
    assert outcome.exit_codes("bad.0") == [3]


def test_every_group_is_tried_again_by_its_own_exit_code(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: first
          retries: {limit: 1, on: {exit_codes: 3}}
          resources: tiny
          tasks:
          - {name: bad, command: [sh, -c, "exit 3"]}
        - name: second
          retries: {limit: 1, on: {exit_codes: 4}}
          depends_on: [{name: first, when: any}]
          resources: tiny
          tasks:
          - {name: bad, command: [sh, -c, "exit 4"]}
        - name: third
          retries: {limit: 1, on: {exit_codes: 4}}
          depends_on: [{name: second, when: any}]
          resources: tiny
          tasks:
          - {name: bad, command: [sh, -c, "exit 5"]}
    """)
    assert outcome.exit_codes("first.0/bad.0") == [3, 3]
    assert outcome.exit_codes("second.0/bad.0") == [4, 4]
    assert outcome.exit_codes("third.0/bad.0") == [5]


def test_restart_on_failure_starts_a_copy_again_in_place(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: stubborn, restart: on-failure, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_codes("stubborn.0") == [1, 0]


def test_retries_come_before_restarts(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: both, retries: 1, restart: on-failure, command: [sh, -c, "test $JOBMAN_ATTEMPT = 3"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_codes("both.0") == [1, 1, 0]


def test_a_replacement_is_made_once_the_old_copy_has_failed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: flaky, replace: failed, retries: 1, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("flaky.0 started", "flaky.0 retrying", "flaky.0 started", "flaky.0 succeeded")


def test_a_replacement_is_made_already_while_the_old_copy_ends(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: slow-to-end
          replace: terminating
          retries: {limit: 1, on: {reasons: timeout}}
          grace: 3s
          attributes: {duration: 500ms}
          command:
          - sh
          - -c
          - |
            test $JOBMAN_ATTEMPT = 1 || { touch second; exit 0; }
            trap 'until test -e second; do sleep 0.02; done; echo relieved; exit 1' TERM
            while :; do sleep 0.02; done
    """)
    assert outcome.state == "succeeded"
    assert "relieved" in outcome.lines("slow-to-end.0")
