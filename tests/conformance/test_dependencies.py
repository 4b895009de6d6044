"""What waits for what: order, conditions of dependencies, and what is skipped."""

import pytest

from tests.conformance.engines import Engine


def test_tasks_start_in_the_order_written_without_waiting(engine: Engine) -> None:
    document = """
        version: 1
        parameters: {command: ""}
        resources: {one: {type: core, count: 1}}
        tasks:
        - {name: c, command: [sh, -c, "{{command}}"], resources: one}
        - {name: a, command: [sh, -c, "{{command}}"], resources: one}
        - {name: b, command: [sh, -c, "{{command}}"], resources: one}
    """
    in_turn = engine.run(document, virtual="1x1", parameters={"command": "true"})
    assert in_turn.starts() == ["c.0", "a.0", "b.0"]
    assert in_turn.most_at_once("a", "b", "c") == 1
    meet = "touch at-$JOBMAN_TASK; until test -e at-a -a -e at-b -a -e at-c; do sleep 0.02; done"
    meeting = engine.run(document, virtual="1x4", parameters={"command": f"{meet}; sleep {engine.beat}"})
    assert meeting.most_at_once("a", "b", "c") == 3


def test_a_dependency_waits_for_the_success_of_all_replicas(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: last, depends_on: first, command: ["true"]}
        - {name: first, replicas: 3, command: [sh, -c, "sleep 0.$JOBMAN_REPLICA"]}
    """)
    for replica in range(3):
        assert outcome.tells(f"first.{replica} succeeded", "last.0 started")


def test_a_diamond_joins_after_both_sides(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: top, command: ["true"]}
        - {name: left, depends_on: top, command: [sh, -c, "touch l; until [ -e r ]; do sleep 0.02; done"]}
        - {name: right, depends_on: [top], command: [sh, -c, "touch r; until [ -e l ]; do sleep 0.02; done"]}
        - {name: bottom, depends_on: [left, right], command: ["true"]}
    """)
    assert outcome.tells("top.0 succeeded", "left.0 started", "left.0 succeeded", "bottom.0 started")
    assert outcome.tells("top.0 succeeded", "right.0 started", "right.0 succeeded", "bottom.0 started")


def test_what_waits_for_the_success_of_a_failure_is_skipped_and_so_on(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: first, command: [sh, -c, "exit 7"]}
        - {name: second, depends_on: first, command: [echo, never]}
        - {name: third, depends_on: second, command: [echo, never]}
        - {name: beside, command: [echo, still]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 7
    assert outcome.outcomes == {
        "first": "failed",
        "second": "skipped",
        "third": "skipped",
        "beside": "succeeded",
    }
    assert outcome.counts == {"failed": 1, "skipped": 2, "succeeded": 1}
    assert outcome.lines() == ["still"]


def test_failure_waits_for_a_failure_and_is_skipped_without_one(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: good, command: ["true"]}
        - {name: bad, command: ["false"]}
        - {name: after-good, depends_on: [{name: good, when: failure}], command: [echo, never]}
        - {name: after-bad, depends_on: [{name: bad, when: failure}], command: [echo, comfort]}
    """)
    assert outcome.state == "failed"
    assert outcome.outcomes["after-good"] == "skipped"
    assert outcome.outcomes["after-bad"] == "succeeded"
    assert outcome.tells("bad.0 failed", "after-bad.0 started")
    assert outcome.lines() == ["comfort"]


def test_any_waits_for_the_end_whatever_it_is(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: good, command: ["true"]}
        - {name: bad, command: ["false"]}
        - {name: skipped, depends_on: bad, command: [echo, never]}
        - name: last
          depends_on: [{name: good, when: any}, {name: bad, when: any}, {name: skipped, when: any}]
          command: [echo, all over]
    """)
    assert outcome.outcomes["last"] == "succeeded"
    assert outcome.tells("bad.0 failed", "last.0 started")
    assert outcome.tells("good.0 succeeded", "last.0 started")
    assert outcome.lines() == ["all over"]


def test_started_waits_for_the_start_only(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: long, command: [sh, -c, "until test -e seen; do sleep 0.02; done"]}
        - {name: eager, depends_on: [{name: long, when: started}], command: [touch, seen]}
    """)
    assert outcome.tells("long.0 started", "eager.0 started")  # and long ended, so it did not wait for that


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            """
            version: 1
            tasks:
            - {name: broken, command: [no-such-program]}
            - {name: eager, depends_on: [{name: broken, when: started}], command: [echo, never]}
            """,
            id="no program",
        ),
        pytest.param(
            """
            version: 1
            tasks:
            - {name: broken, command: [echo, never], steps: [{name: stage, path: missing}]}
            - {name: eager, depends_on: [{name: broken, when: started}], command: [echo, never]}
            """,
            id="no file",
        ),
    ],
)
def test_what_could_not_be_started_has_not_started(engine: Engine, document: str) -> None:
    outcome = engine.run(document)
    assert outcome.state == "failed"
    assert outcome.outcomes == {"broken": "failed", "eager": "skipped"}
    assert "broken.0 started" not in outcome.story


def test_ready_waits_for_the_ready_check(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          command: [sh, -c, "sleep 0.3; touch up; sleep 600"]
          checks: {ready: {exec: [test, -e, up], every: 100ms, failures: 100}}
        - {name: client, depends_on: [{name: server, when: ready}], command: [test, -e, up]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("server.0 started", "server.0 ready", "client.0 started")


def test_what_waits_for_a_readiness_that_never_comes_is_skipped(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          command: [sh, -c, "exit 4"]
          checks: {ready: {exec: ["false"], every: 100ms}}
        - {name: client, depends_on: [{name: server, when: ready}], command: [echo, never]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 4
    assert outcome.outcomes["client"] == "skipped"


def test_a_group_waits_for_a_task_and_a_task_for_a_group(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: before, command: [sleep, "0.1"]}
        - {name: after, depends_on: middle, command: ["true"]}
        groups:
        - name: middle
          depends_on: before
          resources: tiny
          tasks:
          - {name: inside, command: ["true"]}
    """)
    assert outcome.tells(
        "before.0 succeeded",
        "middle.0 started",
        "middle.0/inside.0 started",
        "middle.0 succeeded",
        "after.0 started",
    )


def test_a_task_in_a_group_may_wait_for_one_outside(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: data, command: [sleep, "0.2"]}
        groups:
        - name: work
          resources: {type: slot, count: 2}
          tasks:
          - {name: prepare, command: ["true"], resources: tiny}
          - {name: use, depends_on: [prepare, data], command: ["true"], resources: tiny}
    """)
    assert outcome.state == "succeeded"
    assert outcome.tells("work.0/prepare.0 succeeded", "work.0/use.0 started")
    assert outcome.tells("data.0 succeeded", "work.0/use.0 started")


def test_a_group_in_which_everything_was_skipped_is_skipped_and_so_on(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: bad, command: ["false"]}
        - {name: after, depends_on: group, command: [echo, never]}
        groups:
        - name: group
          resources: tiny
          tasks:
          - {name: inside, depends_on: bad, command: [echo, never]}
    """)
    assert outcome.state == "failed"
    assert outcome.outcomes == {
        "bad": "failed",
        "group": "skipped",
        "group.0/inside": "skipped",
        "after": "skipped",
    }
    assert outcome.lines() == []


def test_the_story_says_what_was_skipped(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: bad, command: ["false"]}
        - {name: after, depends_on: bad, command: [echo, never]}
    """)
    assert outcome.tells("bad.0 failed", "after.0 skipped", "job-failed")


def test_why_names_what_is_waited_for(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: long, command: [sleep, "600"]}
        - {name: next, depends_on: long, command: ["true"]}
    """)
    job.until("long.0 started")
    blockers = job.why().blockers
    assert [blocker.kind for blocker in blockers] == ["dependency"]
    assert "next waits for long to succeed" in blockers[0].message
