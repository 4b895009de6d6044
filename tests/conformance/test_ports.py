"""Ports: numbers, free ones by name, and how copies find each other."""

import socket

from tests.conformance.engines import Engine
from tests.conformance.programs import CALL, SERVE


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        number: int = probe.getsockname()[1]
        return number


def test_a_port_by_name_is_a_free_one_for_each_copy(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: servers
          replicas: 3
          ports: [web, admin-ui]
          command: [sh, -c, "echo $PORT_WEB; echo $PORT_ADMIN_UI; touch up-$JOBMAN_REPLICA;
            until test -e up-0 -a -e up-1 -a -e up-2; do sleep 0.02; done"]
    """)
    numbers = [int(line) for line in outcome.lines()]
    assert len(numbers) == len(set(numbers)) == 6
    assert all(1 <= number <= 65535 for number in numbers)


def test_a_port_by_number_is_that_number(engine: Engine) -> None:
    number = free_port()
    outcome = engine.run(
        """
        version: 1
        parameters: {number: 8080}
        tasks:
        - {name: server, ports: [{name: web, port: "{{number}}"}], command: [sh, -c, "echo $PORT_WEB"]}
        - {name: plain, ports: "{{number}}", command: [echo, plain]}
    """,
        parameters={"number": number},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines("server.0") == [str(number)]


def test_a_task_finds_the_ports_of_another_that_runs(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: server
          service: true
          ports: [door, {name: ready}]
          command: [python3, serve.py]
        - name: client
          depends_on: [{name: server, when: started}]
          retries: {limit: 100, delay: 100ms}
          command: [python3, call.py, JOBMAN_HOST_SERVER, JOBMAN_PORT_SERVER_DOOR]
    """,
        files={"serve.py": SERVE, "call.py": CALL},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines("client.0", stream="stdout") == ["hello from server"]


def test_an_exposed_port_is_reached_from_outside_the_job(engine: Engine) -> None:
    number = free_port()
    job = engine.submit(
        """
        version: 1
        parameters: {number: 8080}
        tasks:
        - name: server
          ports: [{name: door, port: "{{number}}", expose: true}]
          command: [python3, serve.py]
          checks: {started: {tcp: door, every: 100ms, failures: 100}}
    """,
        parameters={"number": number},
        files={"serve.py": SERVE},
    )
    job.until("server.0 started")
    outcome = engine.run(
        """
        version: 1
        parameters: {number: 8080}
        tasks:
        - name: outsider
          retries: {limit: 100, delay: 100ms}
          command: [python3, call.py, HOST, PORT]
          attributes: {environment: {HOST: localhost, PORT: "{{number}}"}}
    """,
        parameters={"number": number},
        files={"call.py": CALL},
    )
    assert outcome.lines(stream="stdout") == ["hello from server"]
