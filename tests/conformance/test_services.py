"""Services: beside the others, never waited for, stopped when their scope is over."""

from tests.conformance.engines import Engine


def test_a_service_is_stopped_when_the_job_is_over_and_the_job_succeeds(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: server, service: true, command: [sleep, "600"]}
        - {name: work, depends_on: [{name: server, when: started}], command: [echo, done]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.outcomes == {"server": "succeeded", "work": "succeeded"}
    assert outcome.tells("server.0 started", "work.0 succeeded", "server.0 stopping", "server.0 succeeded")
    assert "served" in outcome.says("server.0 stopping")[0]


def test_a_service_of_a_group_ends_with_its_group(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: scope
          resources: {type: slot, count: 2}
          tasks:
          - {name: server, service: true, command: [sleep, "600"], resources: tiny}
          - {name: work, command: ["true"], resources: tiny}
        tasks:
        - {name: after, depends_on: scope, command: [echo, after]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells(
        "scope.0/work.0 succeeded",
        "scope.0/server.0 stopping",
        "scope.0/server.0 succeeded",
        "scope.0 succeeded",
        "after.0 started",
    )


def test_a_service_can_end_in_peace(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          command: [sh, -c, "trap 'echo saved; exit 0' TERM; touch up; while :; do sleep 0.02; done"]
        - {name: work, command: [sh, -c, "until test -e up; do sleep 0.02; done"]}
    """)
    assert outcome.lines("server.0", stream="stdout") == ["saved"]
    assert outcome.outcomes["server"] == "succeeded"


def test_a_service_that_ignores_the_request_is_ended_by_force_after_its_grace(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: stubborn
          service: true
          grace: 200ms
          command: [sh, -c, "trap '' TERM; touch up; while :; do sleep 0.02; done"]
        - {name: work, command: [sh, -c, "until test -e up; do sleep 0.02; done"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.attempts("stubborn.0")[0].signal == 9


def test_a_failed_service_does_not_fail_a_job_whose_work_succeeds(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: server, service: true, command: [sh, -c, "exit 6"]}
        - {name: work, depends_on: [{name: server, when: started}], command: [sh, -c, "sleep 0.2; echo done"]}
    """)
    assert outcome.outcomes["server"] == "failed"
    assert outcome.exit_codes("server.0") == [6]
    assert outcome.outcomes["work"] == "succeeded"
    assert outcome.state == "succeeded"


def test_a_service_that_restarts_always_is_started_again_when_it_ends(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          restart: always
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 1 && exit 0; touch again; sleep 600"]
        - {name: work, command: [sh, -c, "until test -e again; do sleep 0.02; done"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("server.0 started", "server.0 retrying", "server.0 started", "server.0 succeeded")
    assert len(outcome.attempts("server.0")) == 2


def test_services_of_two_scopes_end_from_the_inside_out(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: outer, service: true, command: [sleep, "600"]}
        groups:
        - name: scope
          resources: {type: slot, count: 2}
          tasks:
          - {name: inner, service: true, command: [sleep, "600"], resources: tiny}
          - {name: work, command: [sleep, "0.1"], resources: tiny}
    """)
    assert outcome.tells(
        "scope.0/inner.0 succeeded", "scope.0 succeeded", "outer.0 stopping", "outer.0 succeeded"
    )


def test_a_service_may_have_replicas_and_all_of_them_are_stopped(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: pool, service: true, replicas: 3, command: [sleep, "600"]}
        - {name: work, depends_on: [{name: pool, when: started}], command: ["true"]}
    """)
    assert outcome.counts_of("pool") == {"succeeded": 3}
    for number in range(3):
        assert outcome.tells("work.0 succeeded", f"pool.{number} stopping")


def test_a_job_whose_work_was_skipped_because_its_service_failed_has_failed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          command: [sh, -c, "exit 6"]
          checks: {ready: {exec: ["true"], delay: 10s}}
        - {name: work, depends_on: [{name: server, when: ready}], command: [echo, never]}
    """)
    assert outcome.outcomes == {"server": "failed", "work": "skipped"}
    assert outcome.state == "failed"
    assert outcome.exit_code == 6
