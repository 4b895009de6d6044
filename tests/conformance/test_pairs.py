"""Features in pairs: where one meets another."""

import pytest

from tests.conformance.engines import Engine

SHARED = pytest.mark.xfail(strict=True, reason="the whole of a shared file is shown for each who shares it")


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


def test_combinations_of_a_matrix_are_tried_again_by_exit_code(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: scan
          matrix: {code: [0, 4, 5]}
          retries: {limit: 2, on: {exit_codes: 4}}
          command: [sh, -c, "exit {{code}}"]
    """)
    assert [outcome.exit_codes(f"scan.{number}") for number in range(3)] == [[0], [4, 4, 4], [5]]
    assert outcome.counts == {"succeeded": 1, "failed": 2, "retried": 2}


def test_completions_parallelism_and_max_failed_hold_together(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 10
          parallelism: 2
          completions: 4
          max_failed: 2
          command: [sh, -c, "test $JOBMAN_REPLICA != 1 -a $JOBMAN_REPLICA != 3"]
    """)
    assert outcome.state == "succeeded"
    assert outcome.most_at_once("sample") <= 2
    counts = outcome.counts_of("sample")
    assert counts["failed"] == 2
    assert counts["succeeded"] in (4, 5)
    assert sum(counts.values()) == 10


def test_max_failed_ends_a_task_before_its_completions_are_out_of_reach(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 20
          parallelism: 1
          completions: 1
          max_failed: 2
          command: [sh, -c, "exit 6"]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 6
    assert outcome.counts_of("sample") == {"failed": 3, "cancelled": 17}


def test_a_success_policy_of_the_document_stops_services_too(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        success: {count: 1}
        tasks:
        - {name: server, service: true, command: [sleep, "600"]}
        - {name: slow, command: [sleep, "600"]}
        - {name: quick, command: ["true"]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["tidy"]
    assert outcome.tells("quick.0 succeeded", "slow.0 stopping", "tidy.0 succeeded", "server.0 stopping")


def test_a_timeout_is_followed_by_the_cleanup(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: long, command: [sleep, "600"], attributes: {duration: 300ms}}
        - {name: alarm, when: failure, command: [echo, alarm]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "failed"
    assert sorted(outcome.lines()) == ["alarm", "tidy"]
    assert outcome.tells("long.0 failed", "tidy.0 started")


def test_the_time_limit_of_a_group_leaves_time_for_its_cleanup(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          attributes: {duration: 500ms}
          tasks:
          - {name: long, command: [sleep, "600"]}
          - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "failed"
    assert outcome.lines() == ["tidy"]
    assert outcome.tells("batch.0/long.0 stopping", "batch.0/tidy.0 succeeded", "batch.0 failed")


def test_a_job_can_be_cancelled_while_a_retry_is_waited_for(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: flaky, retries: {limit: 5, delay: 10m}, command: ["false"]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    job.until("flaky.0 retrying")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.replicas["flaky.0"] == "cancelled"
    assert outcome.exit_codes("flaky.0") == [1]
    assert outcome.lines() == ["tidy"]


@pytest.mark.xfail(strict=True, reason="it stays as it is for ever")
def test_a_job_can_be_cancelled_while_it_waits_to_start_over(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        retries: {limit: 1, delay: 5s}
        tasks:
        - {name: bad, command: ["false"]}
    """)
    job.until("bad.0 failed")
    assert job.look().state == "running"
    job.cancel()
    assert job.wait(timeout=3).state == "cancelled"


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
    assert outcome.tells("batch.0/first.0 succeeded", "released", "batch.0/second.0 started", "batch.0 succeeded")


def test_a_hold_keeps_a_retry_from_starting(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: flaky
          retries: {limit: 1, delay: 200ms}
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || { until test -e go; do sleep 0.02; done; exit 1; }"]
    """)
    job.until("flaky.0 started")
    job.hold()
    (engine.folder / "go").touch()
    job.until("flaky.0 retrying")
    other = engine.run("""
        version: 1
        tasks:
        - {name: clock, command: [sleep, "0.4"]}
    """)
    assert other.state == "succeeded"
    assert len(job.look().attempts("flaky.0")) == 1
    job.release()
    assert job.wait().exit_codes("flaky.0") == [1, 0]


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


def test_what_stands_below_a_watched_task_starts_after_its_failure_too(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: watched, command: ["false"], attributes: {watch: true}}
        - {name: below, command: [echo, below]}
        - {name: dependent, depends_on: watched, command: [echo, never]}
    """)
    assert outcome.state == "failed"
    assert outcome.tells("watched.0 failed", "below.0 started")
    assert outcome.outcomes["dependent"] == "skipped"


def test_what_stands_below_a_watched_task_waits_for_its_retries(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: watched
          retries: {limit: 1, delay: 200ms}
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]
          attributes: {watch: true}
        - {name: below, command: ["true"]}
    """)
    assert outcome.tells("watched.0 retrying", "watched.0 succeeded", "below.0 started")


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


def test_each_attempt_keeps_its_own_result(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: fit
          retries: 1
          result_file: result
          command: [sh, -c, "echo from $JOBMAN_ATTEMPT > result; test $JOBMAN_ATTEMPT = 2"]
    """)
    assert [attempt.result for attempt in outcome.attempts("fit.0")] == ["from 1\n", "from 2\n"]


@pytest.mark.xfail(strict=True, reason="a file that is there is taken for the attempt's own")
def test_an_attempt_that_writes_no_result_does_not_have_the_one_before(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: fit
          retries: 1
          result_file: result
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || { echo old > result; exit 1; }"]
    """)
    assert [attempt.result for attempt in outcome.attempts("fit.0")] == ["old\n", None]


def test_the_after_hook_may_write_the_result(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: fit, command: ["true"], hooks: {after: [sh, -c, "echo after > result"]}, result_file: result}
    """)
    assert outcome.attempts("fit.0")[0].result == "after\n"


def test_replicas_with_ports_are_found_one_by_one(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: shard
          service: true
          replicas: 2
          ports: [rpc]
          command: [sh, -c, "echo $PORT_RPC; sleep 600"]
        - name: client
          depends_on: [{name: shard, when: started}]
          command: [sh, -c, "echo $JOBMAN_PORT_SHARD_RPC $JOBMAN_PORT_SHARD_RPC_0 $JOBMAN_PORT_SHARD_RPC_1"]
    """)
    first, second = outcome.lines("shard.0"), outcome.lines("shard.1")
    assert outcome.lines("client.0") == [f"{first[0]} {first[0]} {second[0]}"]


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


def test_a_replica_that_rests_leaves_its_place_to_the_next(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: many
          replicas: 2
          parallelism: 1
          retries: {limit: 1, delay: 300ms}
          command: [sh, -c, "test $JOBMAN_REPLICA = 1 -o $JOBMAN_ATTEMPT = 2"]
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("many.0 retrying", "many.1 started", "many.1 succeeded", "many.0 started")


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


def test_an_ignored_failure_counts_for_completions_and_success(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: vote
          replicas: 3
          success: {count: 3}
          command: [sh, -c, "exit $JOBMAN_REPLICA"]
          on_failure: [{exit_codes: [1-9], action: ignore}]
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts_of("vote") == {"succeeded": 3}


def test_a_rule_for_replicas_counts_the_combinations_of_a_matrix(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: scan
          matrix: {model: [a, b]}
          command: [sh, -c, "exit 3"]
          on_failure: [{replicas: 1, action: ignore}]
    """)
    assert outcome.replicas == {"scan.0": "failed", "scan.1": "succeeded"}


def test_a_timeout_may_restart_the_group(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          tasks:
          - name: stuck
            attributes: {duration: 500ms}
            command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || sleep 600"]
            on_failure: [{reasons: timeout, action: restart-group}]
    """)
    assert outcome.state == "succeeded"
    assert outcome.reasons("batch.0/stuck.0") == ["timeout", ""]
    assert outcome.tells("batch.0/stuck.0 failed", "batch.0 retrying", "batch.0 succeeded")


def test_the_job_ends_with_the_exit_code_of_the_first_failure_for_good(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: forgiven, command: [sh, -c, "exit 3"], on_failure: [{exit_codes: 3, action: ignore}]}
        - {name: first, depends_on: forgiven, command: [sh, -c, "exit 4"]}
        - {name: second, depends_on: [{name: first, when: any}], command: [sh, -c, "exit 5"]}
    """)
    assert outcome.exit_code == 4
    assert "first.0" in outcome.reason


def test_output_files_keep_what_earlier_attempts_wrote_and_logs_tell_them_apart(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: flaky
          retries: 1
          command: [sh, -c, "echo try $JOBMAN_ATTEMPT; test $JOBMAN_ATTEMPT = 2"]
          attributes: {stdout: out.log}
        - {name: look, depends_on: flaky, command: [cat, out.log]}
    """)
    assert outcome.lines("look.0") == ["try 1", "try 2"]
    assert outcome.lines("flaky.0", attempt=1) == ["try 1"]
    assert outcome.lines("flaky.0", attempt=2) == ["try 2"]
    assert outcome.lines("flaky.0") == ["try 1", "try 2"]


@SHARED
def test_copies_may_share_an_output_file(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: mpi
          resources: {type: slot, count: 3}
          command: [sh, -c, "echo rank $JOBMAN_RANK"]
          attributes: {stdout: out.log}
        - {name: look, depends_on: mpi, command: [sort, out.log]}
    """)
    assert outcome.lines("look.0") == ["rank 0", "rank 1", "rank 2"]
    assert sorted(outcome.lines("mpi.0")) == ["rank 0", "rank 1", "rank 2"]


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


def test_retries_come_before_completions_are_judged(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 2
          completions: 2
          retries: 1
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts == {"succeeded": 2, "retried": 2}


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


def test_an_unhealthy_service_is_started_again_where_it_restarts_always(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: server
          service: true
          restart: always
          ports: [door]
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 1 && sleep 600 || exec python3 serve.py"]
          checks: {alive: {tcp: door, delay: 500ms, every: 100ms, failures: 1}}
        - {name: work, command: [sh, -c, "until test -e served; do sleep 0.02; done"]}
    """,
        files={
            "serve.py": """
import os, socket, time
door = socket.create_server(("127.0.0.1", int(os.environ["PORT_DOOR"])))
open("served", "w").close()
time.sleep(600)
"""
        },
    )
    assert outcome.state == "succeeded"
    assert outcome.tells("server.0 unhealthy", "server.0 stopping", "server.0 retrying", "server.0 started")
    assert outcome.outcomes["server"] == "succeeded"


def test_the_time_limit_starts_anew_after_a_requeue(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        suspend: requeue
        tasks:
        - name: work
          attributes: {duration: 1500ms}
          command: [sh, -c, "echo try $JOBMAN_ATTEMPT; test $JOBMAN_ATTEMPT = 2 || sleep 600; sleep 0.8; echo done"]
    """)
    job.until_line("try 1")
    job.hold()
    job.until("work.0 retrying")
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["try 1", "try 2", "done"]


def test_more_time_for_a_task_is_also_more_time_for_its_group(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          attributes: {duration: 2s}
          tasks:
          - {name: long, command: [sh, -c, "until test -e go; do sleep 0.02; done; sleep 2; echo in time"]}
    """)
    job.until("batch.0/long.0 started")
    job.extend(600, task="batch/long")
    (engine.folder / "go").touch()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["in time"]
