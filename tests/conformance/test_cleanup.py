"""Cleanup: tasks for the case of failure, and tasks that always run."""

from tests.conformance.engines import Engine


def test_always_runs_last_wherever_it_is_written(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: tidy, when: always, command: [echo, tidy]}
        - {name: first, command: [echo, first]}
        - {name: second, depends_on: first, command: [echo, second]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["first", "second", "tidy"]
    assert outcome.tells("second.0 succeeded", "tidy.0 started")


def test_always_runs_after_a_failure_and_does_not_hide_it(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: bad, command: [sh, -c, "exit 13"]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 13
    assert outcome.lines() == ["tidy"]


def test_failure_runs_only_if_something_failed(engine: Engine) -> None:
    document = """
        version: 1
        parameters: {code: 0}
        tasks:
        - {name: work, command: [sh, -c, "exit {{code}}"]}
        - {name: alarm, when: failure, command: [echo, alarm]}
    """
    calm = engine.run(document)
    assert calm.state == "succeeded"
    assert calm.outcomes == {"work": "succeeded", "alarm": "skipped"}
    alarmed = engine.run(document, parameters={"code": 4})
    assert alarmed.exit_code == 4
    assert alarmed.outcomes == {"work": "failed", "alarm": "succeeded"}
    assert alarmed.lines() == ["alarm"]


def test_a_cleanup_with_dependencies_waits_for_them_only(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: bad, command: ["false"]}
        - {name: long, command: [sh, -c, "until test -e alarmed -a -e closed; do sleep 0.02; done"]}
        - {name: alarm, when: failure, depends_on: bad, command: [touch, alarmed]}
        - {name: close, when: always, depends_on: bad, command: [touch, closed]}
    """)
    assert outcome.tells("bad.0 failed", "alarm.0 started")
    assert outcome.tells("bad.0 failed", "close.0 started")


def test_of_several_failures_one_is_enough(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: good, command: [sleep, "0.1"]}
        - {name: bad, command: ["false"]}
        - {name: alarm, when: failure, depends_on: [good, bad], command: [echo, alarm]}
        - {name: calm, when: failure, depends_on: good, command: [echo, never]}
    """)
    assert outcome.tells("good.0 succeeded", "alarm.0 started")
    assert outcome.outcomes["alarm"] == "succeeded"
    assert outcome.outcomes["calm"] == "skipped"


def test_a_failed_cleanup_fails_the_job(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: ["true"]}
        - {name: tidy, when: always, command: [sh, -c, "exit 17"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 17


def test_services_are_there_for_the_cleanup(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: server, service: true, command: [sleep, "600"]}
        - {name: work, command: ["true"]}
        - {name: tidy, when: always, command: ["true"]}
    """)
    assert outcome.tells("work.0 succeeded", "tidy.0 succeeded", "server.0 stopping")


def test_cleanup_in_a_group_runs_inside_its_allocation(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          tasks:
          - {name: work, command: ["false"]}
          - {name: report, when: failure, command: [echo, report]}
          - {name: tidy, when: always, command: [echo, tidy]}
        tasks:
        - {name: after, depends_on: [{name: batch, when: any}], command: [echo, after]}
    """)
    assert sorted(outcome.lines()) == ["after", "report", "tidy"]
    assert outcome.tells(
        "batch.0/work.0 failed", "batch.0/tidy.0 succeeded", "batch.0 failed", "after.0 started"
    )


def test_a_group_may_be_a_cleanup(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: ["false"]}
        groups:
        - {name: notify, when: always, resources: tiny, tasks: [{name: mail, command: [echo, mail]}]}
    """)
    assert outcome.tells("work.0 failed", "notify.0 started")
    assert outcome.lines() == ["mail"]


def test_a_cleanup_may_be_tried_again(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: ["true"]}
        - {name: tidy, when: always, retries: 1, command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_codes("tidy.0") == [1, 0]
