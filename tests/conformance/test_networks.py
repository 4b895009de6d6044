"""Coordinators, and jobs that reach each other."""

from tests.conformance.engines import Engine
from tests.conformance.programs import CALL, SERVE


def test_the_copies_of_a_group_know_the_address_of_their_coordinator(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        name: team
        groups:
        - name: training
          resources: {type: slot, count: 3}
          coordinator: leader/0
          tasks:
          - name: leader
            resources: tiny
            service: true
            ports: [door]
            command: [python3, serve.py]
            checks: {ready: {tcp: door, every: 100ms, failures: 100}}
          - name: worker
            replicas: 2
            resources: tiny
            depends_on: [{name: leader, when: ready}]
            command: [python3, call.py, JOBMAN_COORDINATOR, JOBMAN_PORT_LEADER_DOOR]
    """,
        files={"serve.py": SERVE, "call.py": CALL},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines("training.0/worker.0") == ["hello from leader"]
    assert outcome.lines("training.0/worker.1") == ["hello from leader"]


def test_a_coordinator_of_the_document_is_known_to_all_its_tasks(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        coordinator: leader
        tasks:
        - {name: leader, command: [sh, -c, 'test -n "$JOBMAN_COORDINATOR" && echo known']}
        - {name: worker, command: [sh, -c, 'test -n "$JOBMAN_COORDINATOR" && echo known']}
    """)
    assert outcome.lines() == ["known", "known"]


def test_without_a_coordinator_there_is_no_address(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: [sh, -c, 'echo "${JOBMAN_COORDINATOR-none}"']}
    """)
    assert outcome.lines() == ["none"]


def test_a_connected_job_reaches_the_ports_of_the_other(engine: Engine) -> None:
    server = engine.submit(
        """
        version: 1
        name: parameter-server
        tasks:
        - name: server
          ports: [door]
          command: [python3, serve.py]
          checks: {ready: {tcp: door, every: 100ms, failures: 100}}
    """,
        files={"serve.py": SERVE},
    )
    server.until("server.0 ready")
    outcome = engine.run(
        """
        version: 1
        network: {connect: parameter-server}
        tasks:
        - {name: client, command: [python3, call.py, JOBMAN_HOST_SERVER, JOBMAN_PORT_SERVER_DOOR]}
    """,
        files={"call.py": CALL},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["hello from server"]


def test_a_job_that_is_not_connected_is_not_told_of_the_other(engine: Engine) -> None:
    other = engine.submit("""
        version: 1
        name: aloof
        tasks:
        - {name: server, ports: [door], command: [sleep, "600"]}
    """)
    other.until("server.0 started")
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: client, command: [sh, -c, 'echo "${JOBMAN_HOST_SERVER-unknown}"']}
    """)
    assert outcome.lines() == ["unknown"]
