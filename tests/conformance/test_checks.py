"""Checks: probes of the copies, and what follows from them."""

from tests.conformance.engines import Engine


def test_a_check_by_a_command_says_when_a_copy_is_ready(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          command: [sh, -c, "sleep 0.2; touch up; sleep 600"]
          checks: {ready: {exec: [test, -e, up], every: 100ms, failures: 100}}
        - {name: client, depends_on: [{name: server, when: ready}], command: [test, -e, up]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("server.0 started", "server.0 ready", "client.0 started")


def test_a_check_by_a_connection_says_when_a_copy_is_ready(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          ports: [door]
          command:
          - python3
          - -c
          - |
            import os, socket, time
            time.sleep(0.2)
            door = socket.create_server(("127.0.0.1", int(os.environ["PORT_DOOR"])))
            open("up", "w").close()
            time.sleep(600)
          checks: {ready: {tcp: door, every: 100ms}}
        - {name: client, depends_on: [{name: server, when: ready}], command: [test, -e, up]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("server.0 started", "server.0 ready", "client.0 started")


SERVER = """
    import http.server, os
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            good = self.path == "/health" and self.headers["X-Word"] == "please"
            self.send_response(204 if good else 503)
            self.end_headers()
        def log_message(self, *arguments):
            pass
    http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT_WEB"])), Handler).serve_forever()
"""


def test_a_check_by_a_request_asks_for_the_path_with_its_headers(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: server
          service: true
          ports: [web]
          command: [python3, server.py]
          checks:
            ready: {http: {port: web, path: /health, headers: {X-Word: please}}, every: 100ms, successes: 2}
        - {name: client, depends_on: [{name: server, when: ready}], command: [echo, served]}
    """,
        files={"server.py": SERVER.replace("\n    ", "\n")},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines("client.0") == ["served"]


def test_a_request_that_is_answered_with_an_error_is_no_success(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        tasks:
        - name: server
          ports: [web]
          command: [python3, server.py]
          checks: {alive: {http: {port: web, path: /nowhere}, delay: 300ms, every: 100ms, failures: 2}}
    """,
        files={"server.py": SERVER.replace("\n    ", "\n")},
    )
    outcome = job.wait()
    assert outcome.state == "failed"
    assert outcome.replicas["server.0"] == "failed"
    assert outcome.tells("server.0 started", "server.0 unhealthy", "server.0 failed")
    assert outcome.all_replicas[0].reason == "unhealthy"


def test_the_attempt_of_an_unhealthy_copy_says_so(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sick
          ports: [door]
          command: [sleep, "600"]
          checks: {alive: {tcp: door, every: 100ms, failures: 1}}
    """)
    assert outcome.reasons("sick.0") == ["unhealthy"]


def test_a_copy_that_is_not_alive_has_failed_as_unhealthy(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sick
          command: [sleep, "600"]
          checks: {alive: {exec: ["false"], every: 100ms, failures: 2}}
    """)
    assert outcome.state == "failed"
    assert outcome.tells("sick.0 started", "sick.0 unhealthy", "sick.0 stopping", "sick.0 failed")
    assert "its check failed" in outcome.reason


def test_an_unhealthy_copy_is_tried_again_if_its_retries_are_for_that(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sick
          retries: {limit: 1, on: {reasons: unhealthy}}
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || sleep 600"]
          checks: {alive: {exec: ["false"], delay: 3s, failures: 1}}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("sick.0 unhealthy", "sick.0 retrying", "sick.0 succeeded")


def test_copies_that_end_one_after_the_other_are_unhealthy_together(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: sick
          resources: {type: slot, count: 2}
          retries: {limit: 1, on: {reasons: unhealthy}}
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2 || sleep $((600 + JOBMAN_RANK))"]
          checks: {alive: {exec: ["false"], delay: 3s, failures: 1}}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("sick.0 unhealthy", "sick.0 retrying", "sick.0 succeeded")


def test_the_started_check_holds_the_others_back(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: slow
          command: [sh, -c, "sleep 0.3; touch begun; until test -e seen; do sleep 0.02; done"]
          checks:
            started: {exec: [test, -e, begun], every: 100ms, failures: 100}
            alive: {exec: [test, -e, begun], every: 100ms, failures: 1}
        - name: eager
          depends_on: [{name: slow, when: started}]
          command: [sh, -c, "test -e begun && touch seen"]
    """)
    assert outcome.state == "succeeded"
    assert "slow.0 unhealthy" not in outcome.story


def test_a_copy_that_never_starts_is_unhealthy(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: stuck
          command: [sleep, "600"]
          checks: {started: {exec: ["false"], every: 100ms, failures: 3}}
    """)
    assert outcome.state == "failed"
    assert outcome.tells("stuck.0 started", "stuck.0 unhealthy", "stuck.0 failed")


def test_a_check_that_takes_too_long_has_failed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: hung
          command: [sleep, "600"]
          checks: {alive: {exec: [sleep, "600"], timeout: 100ms, every: 100ms, failures: 1}}
    """)
    assert outcome.state == "failed"
    assert "0.1 s" in outcome.says("hung.0 unhealthy")[0]


def test_a_group_is_ready_when_all_its_tasks_with_a_check_are(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: servers
          resources: {type: slot, count: 3}
          tasks:
          - name: one
            resources: tiny
            command: [sh, -c, "touch one; until test -e done; do sleep 0.02; done"]
            checks: {ready: {exec: [test, -e, one], every: 100ms, failures: 100}}
          - name: two
            resources: tiny
            command: [sh, -c, "sleep 0.3; touch two; until test -e done; do sleep 0.02; done"]
            checks: {ready: {exec: [test, -e, two], every: 100ms, failures: 100}}
          - {name: plain, resources: tiny, command: [sh, -c, "until test -e done; do sleep 0.02; done"]}
        tasks:
        - {name: client, depends_on: [{name: servers, when: ready}], command: [touch, done]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("servers.0/one.0 ready", "client.0 started")
    assert outcome.tells("servers.0/two.0 ready", "client.0 started")


def test_a_copy_that_stops_being_ready_is_told_of(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          command: [sh, -c, "touch up; sleep 0.5; rm up; sleep 0.5"]
          checks: {ready: {exec: [test, -e, up], every: 100ms, failures: 1}}
    """)
    assert outcome.tells("server.0 ready", "server.0 not-ready", "server.0 succeeded")
