"""Replicas: many runs of one task, how many at once, and when enough have succeeded or failed."""

from tests.conformance.engines import Engine


def test_replicas_are_numbered_from_zero(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: sample, replicas: 4, command: [sh, -c, "echo $JOBMAN_REPLICA of $JOBMAN_REPLICAS"]}
    """)
    assert outcome.counts == {"succeeded": 4}
    assert {key: outcome.lines(key) for key in outcome.replicas} == {
        f"sample.{number}": [f"{number} of 4"] for number in range(4)
    }


def test_one_failed_replica_fails_the_task_and_the_others_run_on(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: sample, replicas: 4, command: [sh, -c, "test $JOBMAN_REPLICA != 2 || exit 11"]}
        - {name: after, depends_on: sample, command: [echo, never]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 11
    assert outcome.counts_of("sample") == {"succeeded": 3, "failed": 1}
    assert outcome.replicas["sample.2"] == "failed"
    assert outcome.outcomes["after"] == "skipped"


def test_no_more_run_at_once_than_parallelism_allows(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        tasks:
        - name: sample
          replicas: 6
          parallelism: 2
          command: [sleep, "{{beat}}"]
          resources: {type: core, count: 1}
    """,
        virtual="1x4",
        parameters={"beat": engine.beat},
    )
    assert outcome.counts == {"succeeded": 6}
    assert outcome.most_at_once("sample") == 2


def test_why_names_the_parallelism_that_holds_replicas_back(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: sample, replicas: 3, parallelism: 1, command: [sleep, "600"]}
    """)
    job.until("sample.0 started")
    assert [(blocker.kind, blocker.message) for blocker in job.why().blockers] == [
        ("parallelism", "sample: at most 1 run at once")
    ]


def test_the_documents_parallelism_counts_the_tasks_of_the_whole_job(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        parallelism: 2
        tasks:
        - {name: a, replicas: 3, command: [sleep, "0.1"]}
        - {name: b, replicas: 3, command: [sleep, "0.1"]}
    """)
    assert outcome.counts == {"succeeded": 6}
    assert outcome.most_at_once("a", "b") == 2


def test_services_do_not_count_against_the_documents_parallelism(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        parallelism: 1
        tasks:
        - {name: server, service: true, command: [sleep, "600"]}
        - {name: work, depends_on: [{name: server, when: started}], replicas: 2, command: ["true"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.most_at_once("work") == 1


def test_a_task_is_done_when_enough_replicas_have_succeeded(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 5
          completions: 2
          command: [sh, -c, "test $JOBMAN_REPLICA -lt 2 || sleep 600"]
        - {name: after, depends_on: sample, command: [echo, enough]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.outcomes["sample"] == "succeeded"
    assert outcome.counts_of("sample") == {"succeeded": 2, "cancelled": 3}
    assert outcome.lines("after.0") == ["enough"]


def test_completions_forgive_failures_as_long_as_they_can_be_reached(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 4
          completions: 2
          parallelism: 1
          command: [sh, -c, "test $JOBMAN_REPLICA -ge 2"]
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.counts_of("sample") == {"succeeded": 2, "failed": 2}


def test_completions_that_cannot_be_reached_any_more_fail_the_task_at_once(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 4
          completions: 3
          command: [sh, -c, "test $JOBMAN_REPLICA -ge 2 || exit 3; sleep 600"]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 3
    assert outcome.counts_of("sample") == {"failed": 2, "cancelled": 2}


def test_max_failed_forgives_so_many_failures_and_no_more(engine: Engine) -> None:
    document = """
        version: 1
        parameters: {most: 2}
        tasks:
        - name: sample
          replicas: 4
          max_failed: "{{most}}"
          command: [sh, -c, "test $JOBMAN_REPLICA -ge 2"]
        - {name: after, depends_on: sample, command: [echo, after]}
    """
    forgiven = engine.run(document)
    assert forgiven.state == "succeeded"
    assert forgiven.counts_of("sample") == {"succeeded": 2, "failed": 2}
    assert forgiven.lines("after.0") == ["after"]
    given_up = engine.run(document, parameters={"most": 1})
    assert given_up.state == "failed"
    assert given_up.outcomes == {"sample": "failed", "after": "skipped"}


def test_more_than_max_failed_stops_the_rest(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sample
          replicas: 4
          max_failed: 0
          command: [sh, -c, "test $JOBMAN_REPLICA = 0 && exit 8; sleep 600"]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 8
    assert outcome.counts_of("sample") == {"failed": 1, "cancelled": 3}


def test_the_documents_max_failed_counts_the_replicas_of_all_tasks(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        max_failed: 1
        tasks:
        - {name: a, command: ["false"]}
        - {name: b, depends_on: [{name: a, when: any}], command: ["false"]}
        - {name: long, command: [sleep, "600"]}
    """)
    assert outcome.state == "failed"
    assert outcome.counts == {"failed": 2, "cancelled": 1}


def test_a_task_that_failed_stays_failed_when_its_failure_decides_the_job(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        max_failed: 0
        tasks:
        - {name: bad, command: ["false"]}
        - {name: long, command: [sleep, "600"]}
    """)
    assert outcome.outcomes == {"bad": "failed", "long": "cancelled"}


def test_a_task_that_succeeded_stays_succeeded_when_its_success_decides_the_job(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        completions: 2
        tasks:
        - {name: good, replicas: 2, command: ["true"]}
        - {name: long, command: [sleep, "600"]}
    """)
    assert outcome.outcomes == {"good": "succeeded", "long": "cancelled"}


def test_the_documents_completions_count_the_replicas_of_all_tasks(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        completions: 3
        tasks:
        - {name: quick, replicas: 3, command: ["true"]}
        - {name: long, replicas: 2, command: [sleep, "600"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts == {"succeeded": 3, "cancelled": 2}
