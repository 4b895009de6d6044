"""Every job comes to its end, whatever it waits for when it is cancelled or has failed."""

import pytest

from tests.conformance.engines import Engine


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            """
            version: 1
            hold: true
            tasks:
            - {name: work, command: ["true"]}
            - {name: tidy, when: always, command: ["true"]}
            """,
            id="a job that is held",
        ),
        pytest.param(
            """
            version: 1
            gates: closed
            tasks:
            - {name: work, command: ["true"]}
            - {name: tidy, when: always, command: ["true"]}
            """,
            id="a job before a gate",
        ),
        pytest.param(
            """
            version: 1
            start: {earliest: +1h}
            tasks:
            - {name: work, command: ["true"]}
            - {name: tidy, when: always, command: ["true"]}
            """,
            id="a job before its window",
        ),
        pytest.param(
            """
            version: 1
            tasks:
            - {name: work, gates: closed, command: ["true"]}
            - {name: tidy, when: always, hold: true, command: ["true"]}
            """,
            id="a cleanup that is held",
        ),
        pytest.param(
            """
            version: 1
            tasks:
            - {name: work, gates: closed, command: ["true"]}
            - {name: tidy, when: always, gates: closed, command: ["true"]}
            """,
            id="a cleanup before a gate",
        ),
    ],
)
def test_a_job_that_waits_and_has_a_cleanup_can_be_cancelled(engine: Engine, document: str) -> None:
    job = engine.submit(document)
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.starts() == []


@pytest.mark.parametrize("suspend", ["freeze", "requeue"])
def test_a_held_group_with_a_cleanup_can_be_cancelled(engine: Engine, suspend: str) -> None:
    job = engine.submit(
        """
        version: 1
        parameters: {suspend: freeze}
        suspend: "{{suspend}}"
        groups:
        - name: batch
          resources: tiny
          tasks:
          - {name: long, command: [sleep, "600"]}
          - {name: tidy, when: always, command: ["true"]}
    """,
        parameters={"suspend": suspend},
    )
    job.until("batch.0/long.0 started")
    job.hold()
    job.cancel()
    assert job.wait().state == "cancelled"


def test_a_group_that_waits_for_its_next_try_can_be_cancelled(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: tidy, when: always, command: [echo, tidy]}
        groups:
        - name: batch
          retries: {limit: 1, delay: 10m}
          resources: tiny
          tasks:
          - {name: bad, command: ["false"]}
    """)
    job.until("batch.0 retrying")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.lines() == ["tidy"]
    assert None not in outcome.outcomes.values()
    assert outcome.replicas["batch.0/bad.0"] != "waiting"


def test_a_task_before_a_gate_does_not_keep_a_failed_job_from_ending(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: gated, gates: closed, command: [echo, never]}
        - {name: held, hold: true, command: [echo, never]}
        - {name: fatal, command: [sh, -c, "exit 4"], on_failure: [{exit_codes: 4, action: fail-job}]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 4
    assert outcome.lines() == ["tidy"]


def test_a_success_policy_ends_a_job_with_tasks_before_a_gate(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        success: {count: 1}
        tasks:
        - {name: gated, gates: closed, command: [echo, never]}
        - {name: after, depends_on: gated, command: [echo, never]}
        - {name: quick, command: ["true"]}
    """)
    assert outcome.state == "succeeded"


def test_what_stands_below_a_watched_task_before_a_gate_can_be_cancelled(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: watched, gates: closed, attributes: {watch: true}, command: [echo, never]}
        - {name: below, command: [echo, never]}
        - {name: tidy, when: always, command: [echo, tidy]}
    """)
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.starts() == []


def test_a_job_that_waits_for_resources_can_be_cancelled(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        resources: {one: {type: core, count: 1}}
        tasks:
        - {name: first, resources: one, command: [sleep, "600"]}
        - name: second
          depends_on: [{name: first, when: started}]
          resources: one
          command: [echo, never]
        - {name: tidy, when: always, resources: one, command: [echo, tidy]}
    """,
        virtual="1x1",
    )
    job.until_blocked("resources")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.lines() == ["tidy"]


def test_a_service_that_never_found_room_does_not_keep_its_job_from_ending(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        resources: {one: {type: core, count: 1}}
        tasks:
        - {name: work, resources: one, command: [sleep, "{{beat}}"]}
        - name: server
          service: true
          depends_on: [{name: work, when: started}]
          resources: one
          command: [sleep, "600"]
    """,
        virtual="1x1",
        parameters={"beat": engine.beat},
    )
    assert outcome.state == "succeeded"


def test_a_job_may_be_cancelled_twice(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        grace: 3s
        tasks:
        - {name: stubborn, command: [sh, -c, "trap '' TERM; echo up; while :; do sleep 0.02; done"]}
    """)
    job.until_line("up")
    job.cancel()
    job.cancel()
    assert job.wait().state == "cancelled"


def test_a_copy_that_is_ending_for_another_reason_is_not_tried_again_after_a_cancel(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: late
          retries: 5
          restart: on-failure
          grace: 10s
          attributes: {duration: 2s}
          command:
          - sh
          - -c
          - |
            trap 'touch ending; until test -e cancelled; do sleep 0.02; done; exit 1' TERM
            while :; do sleep 0.02; done
    """)
    job.until("late.0 started", "late.0 stopping")
    job.cancel()
    (engine.folder / "cancelled").touch()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert outcome.tells_once("late.0 started")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            """
            version: 1
            tasks:
            - name: server
              service: true
              restart: always
              ports: [door]
              command:
              - sh
              - -c
              - |
                trap 'touch ending; until test -e worked; do sleep 0.02; done; sleep 0.3; exit 1' TERM
                while :; do sleep 0.02; done
              checks: {alive: {tcp: door, delay: 2s, every: 100ms, failures: 1}}
            - {name: work, command: [sh, -c, "until test -e ending; do sleep 0.02; done; touch worked"]}
            """,
            id="unhealthy",
        ),
        pytest.param(
            """
            version: 1
            tasks:
            - name: server
              service: true
              restart: on-failure
              attributes: {duration: 2s}
              command:
              - sh
              - -c
              - |
                trap 'touch ending; until test -e worked; do sleep 0.02; done; sleep 0.3; exit 1' TERM
                while :; do sleep 0.02; done
            - {name: work, command: [sh, -c, "until test -e ending; do sleep 0.02; done; touch worked"]}
            """,
            id="past its time",
        ),
    ],
)
def test_a_service_that_is_ending_when_its_scope_is_over_is_not_started_again(
    engine: Engine, document: str
) -> None:
    outcome = engine.run(document)
    assert outcome.state == "succeeded"
    assert outcome.tells_once("server.0 started")
