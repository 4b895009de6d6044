"""What follows a failure: rules by exit code, reason and replica, from the inside out."""

import pytest

from tests.conformance.engines import Engine


def test_a_failure_that_is_ignored_counts_as_success(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shaky
          command: [sh, -c, "exit 3"]
          on_failure: [{exit_codes: [1-5], action: ignore}]
        - {name: after, depends_on: shaky, command: [echo, after]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.outcomes == {"shaky": "succeeded", "after": "succeeded"}
    assert "a rule ignores it" in outcome.says("shaky.0 succeeded")[0]
    assert outcome.exit_codes("shaky.0") == [3]


def test_a_rule_that_does_not_match_changes_nothing(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shaky
          command: [sh, -c, "exit 6"]
          on_failure: [{exit_codes: [1-5], action: ignore}, {reasons: timeout, action: ignore}]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 6


def test_the_first_rule_that_matches_wins(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shaky
          command: [sh, -c, "exit 3"]
          on_failure: [{exit_codes: 3, action: ignore}, {reasons: exit, action: fail-job}]
        - {name: long, command: [sleep, "0.3"]}
    """)
    assert outcome.state == "succeeded"


def test_all_selectors_of_a_rule_must_match(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shaky
          replicas: 3
          command: [sh, -c, "exit 3"]
          on_failure: [{exit_codes: 3, replicas: [0, 2], action: ignore}]
    """)
    assert outcome.state == "failed"
    assert outcome.replicas == {"shaky.0": "succeeded", "shaky.1": "failed", "shaky.2": "succeeded"}


def test_a_rule_may_retry_three_times_where_no_limit_is_given(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shaky
          command: [sh, -c, "exit 3"]
          on_failure: [{exit_codes: 3, action: retry}]
    """)
    assert outcome.exit_codes("shaky.0") == [3, 3, 3, 3]
    assert outcome.state == "failed"


def test_a_rule_retries_within_the_limit_of_the_retries(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shaky
          command: [sh, -c, "exit 3"]
          retries: {limit: 1, on: {reasons: timeout}}
          on_failure: [{exit_codes: 3, action: retry}]
    """)
    assert outcome.exit_codes("shaky.0") == [3, 3]


def test_fail_task_ends_the_task_and_what_is_left_of_it(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: many
          replicas: 3
          retries: 5
          command: [sh, -c, "test $JOBMAN_REPLICA = 1 && exit 9; sleep 600"]
          on_failure: [{exit_codes: 9, action: fail-task}]
        - {name: beside, command: [sh, -c, "sleep 0.3; echo beside"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 9
    assert outcome.counts_of("many") == {"failed": 1, "cancelled": 2}
    assert outcome.outcomes == {"many": "failed", "beside": "succeeded"}
    assert outcome.exit_codes("many.1") == [9]


def test_fail_job_ends_the_job_at_once(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: fatal
          depends_on: {name: long, when: started}
          command: [sh, -c, "exit 42"]
          on_failure: [{exit_codes: 42, action: fail-job}]
        - {name: long, command: [sleep, "600"]}
        - {name: later, depends_on: long, command: [echo, never]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 42
    assert outcome.outcomes["long"] == "cancelled"
    assert outcome.outcomes["later"] in ("cancelled", "skipped")
    assert outcome.tells("fatal.0 failed", "long.0 stopping", "long.0 cancelled", "job-failed")


def test_restart_group_starts_the_group_again_from_its_beginning(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          resources: {type: slot, count: 2}
          tasks:
          - name: left
            resources: tiny
            depends_on: {name: right, when: started}
            command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exit 3"]
            on_failure: [{exit_codes: 3, action: restart-group}]
          - {name: right, resources: tiny, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || sleep 600"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_codes("pair.0/left.0") == [3, 0]
    assert len(outcome.attempts("pair.0/right.0")) == 2
    assert outcome.tells(
        "pair.0/left.0 failed",
        "pair.0/right.0 stopping",
        "pair.0 retrying",
        "pair.0 started",
        "pair.0/left.0 succeeded",
        "pair.0 succeeded",
    )


def test_rules_are_asked_from_the_inside_out(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        on_failure: [{exit_codes: [1-9], action: fail-job}]
        groups:
        - name: lenient
          resources: {type: slot, count: 2}
          on_failure: [{exit_codes: 3, action: ignore}]
          tasks:
          - {name: by-group, resources: tiny, command: [sh, -c, "exit 3"]}
          - name: by-task
            resources: tiny
            command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exit 3"]
            on_failure: [{exit_codes: 3, action: retry}]
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_codes("lenient.0/by-group.0") == [3]
    assert outcome.exit_codes("lenient.0/by-task.0") == [3, 0]


def test_a_rule_of_the_document_reaches_every_task(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        on_failure: [{reasons: signal, action: ignore}]
        tasks:
        - {name: shot, command: [sh, -c, "kill -KILL $$"]}
        - {name: bad, command: [sh, -c, "exit 2"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 2
    assert outcome.outcomes == {"shot": "succeeded", "bad": "failed"}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            """
            version: 1
            tasks:
            - name: shaky
              replicas: 2
              max_failed: 1
              command: [sh, -c, "test $JOBMAN_REPLICA = 1 || exit 3"]
            - {name: bad, depends_on: shaky, command: [sh, -c, "exit 5"]}
            """,
            id="by max_failed",
        ),
        pytest.param(
            """
            version: 1
            tasks:
            - {name: bad, depends_on: group, command: [sh, -c, "exit 5"]}
            groups:
            - name: group
              retries: 1
              resources: tiny
              tasks:
              - {name: shaky, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exit 3"]}
            """,
            id="by a retry of its group",
        ),
        pytest.param(
            """
            version: 1
            retries: 1
            tasks:
            - {name: shaky, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exit 3"]}
            - {name: bad, depends_on: shaky, command: [sh, -c, "exit 5"]}
            """,
            id="by a retry of the job",
        ),
    ],
)
def test_a_failure_that_was_made_good_is_not_the_end_of_the_job(engine: Engine, document: str) -> None:
    outcome = engine.run(document)
    assert outcome.state == "failed"
    assert outcome.exit_code == 5
    assert outcome.reason == "bad.0: exit code 5"
