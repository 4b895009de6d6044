"""Features in pairs, inside groups: where one meets another."""

from tests.conformance.engines import Engine, beats


def test_a_retry_in_a_group_leaves_its_service_alone(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: lab
          resources: {type: slot, count: 2}
          tasks:
          - {name: server, service: true, resources: tiny, command: [sh, -c, "echo up; sleep 600"]}
          - name: flaky
            resources: tiny
            retries: 2
            depends_on: [{name: server, when: started}]
            command: [sh, -c, "test $JOBMAN_ATTEMPT = 3"]
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_codes("lab.0/flaky.0") == [1, 1, 0]
    assert outcome.tells_once("lab.0 started")
    assert outcome.tells_once("lab.0/server.0 started")
    assert outcome.tells("lab.0/flaky.0 retrying", "lab.0/flaky.0 succeeded", "lab.0/server.0 stopping")


def test_a_restarted_group_starts_its_service_again(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: lab
          resources: {type: slot, count: 2}
          tasks:
          - {name: server, service: true, resources: tiny, command: [sleep, "600"]}
          - name: work
            resources: tiny
            depends_on: [{name: server, when: started}]
            command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exit 3"]
            on_failure: [{exit_codes: 3, action: restart-group}]
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells(
        "lab.0/server.0 started",
        "lab.0/work.0 failed",
        "lab.0/server.0 stopping",
        "lab.0 retrying",
        "lab.0 started",
        "lab.0/server.0 started",
        "lab.0/work.0 succeeded",
        "lab.0/server.0 stopping",
        "lab.0 succeeded",
    )


def test_a_group_is_restarted_within_its_retries_and_then_fails(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          retries: 1
          resources: tiny
          tasks:
          - name: work
            command: [sh, -c, "exit 3"]
            on_failure: [{exit_codes: 3, action: restart-group}]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 3
    assert outcome.outcomes["pair"] == "failed"
    assert outcome.exit_codes("pair.0/work.0") == [3, 3]


def test_a_group_without_retries_is_restarted_three_times(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          resources: tiny
          on_failure: [{reasons: exit, action: restart-group}]
          tasks:
          - {name: work, command: [sh, -c, "exit 3"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_codes("pair.0/work.0") == [3, 3, 3, 3]


def test_a_group_that_was_restarted_and_succeeds_leaves_no_failure_behind(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          retries: 1
          resources: tiny
          tasks:
          - {name: work, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || exit 3"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.reason == ""
    assert outcome.counts == {"succeeded": 1, "retried": 1}


def test_the_time_limit_of_a_group_leaves_time_for_its_cleanup(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {limit: 1s}
        groups:
        - name: batch
          resources: tiny
          attributes: {duration: "{{limit}}"}
          tasks:
          - {name: long, command: [sleep, "600"]}
          - {name: tidy, when: always, command: [echo, tidy]}
    """,
        parameters={"limit": beats(engine, 4)},
    )
    assert outcome.state == "failed"
    assert outcome.lines() == ["tidy"]
    assert outcome.tells("batch.0/long.0 stopping", "batch.0/tidy.0 succeeded", "batch.0 failed")


def test_a_cancelled_group_is_not_tried_again(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        retries: 3
        groups:
        - name: batch
          retries: 3
          resources: tiny
          tasks:
          - {name: long, retries: 3, restart: on-failure, command: [sleep, "600"]}
    """)
    job.until("batch.0/long.0 started")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.tells_once("batch.0/long.0 started")


def test_a_hold_during_a_group_keeps_its_next_task_from_starting(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          tasks:
          - {name: first, command: [sh, -c, "until test -e go; do sleep 0.02; done"]}
          - {name: second, depends_on: first, command: [echo, second]}
    """)
    job.until("batch.0/first.0 started")
    job.hold()
    (engine.folder / "go").touch()
    held = job.until("batch.0/first.0 succeeded")
    assert "batch.0/second.0 started" not in held.story
    assert held.replicas["batch.0"] == "running"
    job.release()
    outcome = job.wait()
    assert outcome.tells(
        "batch.0/first.0 succeeded", "released", "batch.0/second.0 started", "batch.0 succeeded"
    )


def test_a_gate_may_stand_on_a_task_inside_a_group(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        groups:
        - name: batch
          resources: {type: slot, count: 2}
          tasks:
          - {name: free, resources: tiny, command: [echo, free]}
          - {name: gated, resources: tiny, gates: approval, command: [echo, gated]}
    """)
    before = job.until("batch.0/free.0 succeeded")
    assert before.lines() == ["free"]
    assert before.replicas["batch.0"] == "running"
    assert job.details().gates == {"approval": False}
    job.open_gate("approval")
    assert job.wait().tells("gate-opened", "batch.0/gated.0 started", "batch.0 succeeded")


def test_groups_in_replicas_of_groups_have_runs_of_their_own(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: outer
          replicas: 2
          resources: {type: slot, count: 2}
          tasks:
          - {group: inner}
          - {name: after, depends_on: inner, command: [echo, after], resources: tiny}
        - name: inner
          replicas: 2
          resources: tiny
          tasks:
          - {name: leaf, replicas: 2, command: [sh, -c, "echo $JOBMAN_REPLICA of $JOBMAN_REPLICAS"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts == {"succeeded": 10}
    for outer in range(2):
        for inner in range(2):
            assert outcome.lines(f"outer.{outer}/inner.{inner}/leaf.1") == ["1 of 2"]
        assert outcome.tells(f"outer.{outer}/inner.1 succeeded", f"outer.{outer}/after.0 started")


def test_one_failed_replica_of_a_group_leaves_the_others_alone(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: study
          replicas: 3
          max_failed: 1
          resources: tiny
          tasks:
          - {name: pick, command: [sh, -c, "mkdir taken 2>/dev/null && exit 9 || exit 0"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts_of("study") == {"succeeded": 2, "failed": 1}


def test_a_group_obeys_parallelism_with_its_replicas(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: study
          replicas: 4
          parallelism: 1
          resources: tiny
          tasks:
          - {name: work, command: [sleep, "0.05"]}
    """)
    assert outcome.most_at_once("study") == 1
    assert outcome.starts("study") == ["study.0", "study.1", "study.2", "study.3"]


def test_the_documents_parallelism_counts_what_runs_in_groups(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        parallelism: 1
        tasks:
        - {name: outside, replicas: 2, command: [sleep, "0.05"]}
        groups:
        - name: batch
          resources: {type: slot, count: 2}
          tasks:
          - {name: inside, replicas: 2, command: [sleep, "0.05"], resources: tiny}
          - {name: last, depends_on: inside, command: ["true"], resources: tiny}
    """)
    assert outcome.state == "succeeded"
    assert outcome.most_at_once("outside", "batch.0/inside", "batch.0/last") == 1


def test_fail_job_deep_inside_ends_everything_but_what_always_runs(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: outer
          resources: {type: slot, count: 2}
          tasks:
          - {group: inner}
          - {name: beside, command: [sleep, "600"], resources: tiny}
          - {name: sweep, when: always, command: [echo, sweep], resources: tiny}
        - name: inner
          resources: tiny
          tasks:
          - {name: fatal, command: [sh, -c, "exit 42"], on_failure: [{exit_codes: 42, action: fail-job}]}
        tasks:
        - {name: top, command: [sleep, "600"]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 42
    assert sorted(outcome.lines()) == ["sweep", "tidy"]
    assert outcome.replicas["top.0"] == "cancelled"
    assert outcome.replicas["outer.0/beside.0"] == "cancelled"


def test_a_timeout_may_restart_the_group(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {limit: 1s}
        groups:
        - name: batch
          resources: tiny
          tasks:
          - name: stuck
            attributes: {duration: "{{limit}}"}
            command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || sleep 600"]
            on_failure: [{reasons: timeout, action: restart-group}]
    """,
        parameters={"limit": beats(engine, 6)},
    )
    assert outcome.state == "succeeded"
    assert outcome.reasons("batch.0/stuck.0") == ["timeout", ""]
    assert outcome.tells("batch.0/stuck.0 failed", "batch.0 retrying", "batch.0 succeeded")


def test_a_local_task_may_be_tried_again(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          tasks:
          - {name: driver, local: true, retries: 1, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
          - {name: below, command: ["true"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("batch.0/driver.0 retrying", "batch.0/driver.0 succeeded", "batch.0/below.0 started")


def test_the_cleanup_of_a_group_runs_each_time_the_group_does(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          retries: 1
          resources: tiny
          tasks:
          - {name: work, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
          - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("batch.0/tidy.0") == ["tidy", "tidy"]
    assert outcome.tells("batch.0/tidy.0 succeeded", "batch.0 retrying", "batch.0/work.0 succeeded")


def test_a_service_of_an_outer_group_serves_the_inner_ones(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: outer
          resources: {type: slot, count: 2}
          tasks:
          - {name: server, service: true, command: [sleep, "600"], resources: tiny}
          - {name: one, group: inner, depends_on: [{name: server, when: started}]}
          - {name: two, group: inner, depends_on: one}
        - name: inner
          resources: tiny
          tasks:
          - {name: work, command: ["true"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("outer.0/server.0 started", "outer.0/one.0 started", "outer.0/two.0 succeeded")
    assert outcome.tells("outer.0/two.0 succeeded", "outer.0/server.0 stopping", "outer.0 succeeded")


def test_more_time_for_a_task_is_also_more_time_for_its_group(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        parameters: {limit: 1s}
        groups:
        - name: batch
          resources: tiny
          attributes: {duration: "{{limit}}"}
          tasks:
          - name: long
            command: [sh, -c, "until test -e go; do sleep 0.02; done; sleep {{limit}}; echo in time"]
    """,
        parameters={"limit": beats(engine, 8)},
    )
    job.until("batch.0/long.0 started")
    job.extend(600, task="batch/long")
    (engine.folder / "go").touch()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["in time"]
