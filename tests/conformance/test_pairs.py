"""Features in pairs: where one meets another."""

from tests.conformance.engines import Engine, beats
from tests.conformance.programs import SERVE


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
    assert job.wait().state == "cancelled"


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
        - {name: work, command: [sh, -c, "until test -e listening; do sleep 0.02; done"]}
    """,
        files={"serve.py": SERVE},
    )
    assert outcome.state == "succeeded"
    assert outcome.tells("server.0 unhealthy", "server.0 stopping", "server.0 retrying", "server.0 started")
    assert outcome.outcomes["server"] == "succeeded"


def test_the_time_limit_starts_anew_after_a_requeue(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        parameters: {limit: 1s, half: 1s}
        suspend: requeue
        tasks:
        - name: work
          attributes: {duration: "{{limit}}"}
          command:
          - sh
          - -c
          - "echo try $JOBMAN_ATTEMPT; test $JOBMAN_ATTEMPT = 2 || exec sleep 600; sleep {{half}}; echo done"
    """,
        parameters={"limit": beats(engine, 7.5), "half": beats(engine, 4)},
    )
    job.until_line("try 1")
    job.hold()
    job.until("work.0 retrying")
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["try 1", "try 2", "done"]
