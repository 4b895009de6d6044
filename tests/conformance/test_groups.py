"""Groups: tasks under one allocation, local tasks, groups in groups, groups many times."""

from tests.conformance.engines import Engine


def test_a_group_succeeds_when_all_its_tasks_have(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          resources: {type: slot, count: 2}
          tasks:
          - {name: left, command: [echo, left], resources: tiny}
          - {name: right, command: [echo, right], resources: tiny}
    """)
    assert outcome.state == "succeeded"
    assert outcome.outcomes == {"pair": "succeeded", "pair.0/left": "succeeded", "pair.0/right": "succeeded"}
    assert sorted(outcome.lines()) == ["left", "right"]
    for task in ("left", "right"):
        assert outcome.tells("pair.0 started", f"pair.0/{task}.0 started", "pair.0 succeeded")


def test_a_group_fails_when_a_task_in_it_did_and_the_rest_runs_on(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: pair
          resources: {type: slot, count: 2}
          tasks:
          - {name: bad, command: [sh, -c, "exit 9"], resources: tiny}
          - {name: good, command: [sh, -c, "sleep 0.2; echo done"], resources: tiny}
        - {name: next, depends_on: pair, resources: tiny, tasks: [{name: never, command: [echo, never]}]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 9
    assert outcome.outcomes["pair"] == "failed"
    assert outcome.outcomes["pair.0/good"] == "succeeded"
    assert outcome.outcomes["next"] == "skipped"
    assert outcome.lines() == ["done"]


def test_tasks_of_a_group_share_its_nodes_and_wait_for_their_turn(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        groups:
        - name: narrow
          resources: {type: node, count: 1, with: [{type: core, count: 2}]}
          tasks:
          - name: work
            replicas: 4
            command: [sleep, "{{beat}}"]
            resources: {type: core, count: 1}
    """,
        virtual="3x4",
        parameters={"beat": engine.beat},
    )
    assert outcome.state == "succeeded"
    assert outcome.most_at_once("narrow.0/work") == 2
    assert len({node for number in range(4) for node in outcome.nodes(f"narrow.0/work.{number}")}) == 1


def test_a_task_without_resources_gets_all_of_its_group(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        groups:
        - name: whole
          resources: {type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 1}]}]}
          tasks:
          - {name: first, command: [sh, -c, "echo $JOBMAN_RANK of $JOBMAN_SIZE"]}
          - {name: second, command: [sh, -c, "echo $JOBMAN_RANK of $JOBMAN_SIZE"]}
    """,
        virtual="2x4",
    )
    for task in ("first", "second"):
        assert sorted(outcome.lines(f"whole.0/{task}.0")) == ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]
    assert outcome.tells("whole.0/first.0 succeeded", "whole.0/second.0 started")


def test_a_group_without_resources_gets_the_sum_over_its_tasks(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        groups:
        - name: pair
          tasks:
          - name: left
            command: [sleep, "{{beat}}"]
            resources: {type: node, count: 1, with: [{type: core, count: 2}]}
          - name: right
            command: [sleep, "{{beat}}"]
            resources: {type: node, count: 1, with: [{type: core, count: 2}]}
    """,
        virtual="2x4",
        parameters={"beat": engine.beat},
    )
    assert outcome.state == "succeeded"
    assert outcome.most_at_once("pair.0/left", "pair.0/right") == 2
    assert outcome.nodes("pair.0/left.0") != outcome.nodes("pair.0/right.0")


def test_a_task_of_a_group_is_told_all_nodes_of_the_group(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        groups:
        - name: pair
          tasks:
          - name: left
            command: [sh, -c, "echo $JOBMAN_NNODES"]
            resources: {type: node, count: 1, with: [{type: core, count: 2}]}
          - name: right
            command: [sh, -c, "echo $JOBMAN_NNODES"]
            resources: {type: node, count: 1, with: [{type: core, count: 2}]}
    """,
        virtual="2x4",
    )
    assert outcome.lines() == ["2", "2"]


def test_a_local_task_runs_once_in_order_and_what_is_below_waits(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        groups:
        - name: batch
          resources: {type: node, count: 2, with: [{type: core, count: 1}]}
          tasks:
          - {name: prepare, local: true, command: [sh, -c, "sleep 0.2; echo $JOBMAN_SIZE"]}
          - {name: work, command: [echo, copy]}
          - {name: collect, local: true, depends_on: work, command: [echo, collected]}
    """,
        virtual="2x4",
    )
    assert outcome.lines("batch.0/prepare.0") == ["1"]
    assert outcome.lines("batch.0/work.0") == ["copy", "copy"]
    assert outcome.tells(
        "batch.0/prepare.0 succeeded",
        "batch.0/work.0 started",
        "batch.0/work.0 succeeded",
        "batch.0/collect.0 started",
    )


def test_a_local_task_needs_nothing_of_the_allocation(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        groups:
        - name: batch
          resources: {type: node, count: 1, with: [{type: core, count: 1}]}
          tasks:
          - {name: work, command: [sh, -c, "until test -e go; do sleep 0.02; done"]}
          - {name: driver, local: true, command: [touch, go]}
    """,
        virtual="1x1",
    )
    assert outcome.outcomes["batch.0/work"] == "succeeded"
    assert outcome.outcomes["batch.0/driver"] == "succeeded"


def test_a_failed_local_task_fails_its_group_and_does_not_block_for_ever(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: batch
          resources: tiny
          tasks:
          - {name: prepare, local: true, command: [sh, -c, "exit 5"]}
          - {name: below, command: [echo, after it]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 5
    assert outcome.outcomes["batch"] == "failed"
    assert outcome.tells("batch.0/prepare.0 failed", "batch.0/below.0 started")


def test_a_group_in_a_group_runs_where_it_is_referenced_and_nowhere_else(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: inner
          resources: tiny
          tasks:
          - {name: task, command: [echo, inside]}
        - name: outer
          resources: {type: slot, count: 2}
          tasks:
          - {name: before, command: [echo, before], resources: tiny}
          - {group: inner, depends_on: before}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["before", "inside"]
    assert set(outcome.outcomes) == {
        "outer",
        "outer.0/before",
        "outer.0/inner",
        "outer.0/inner.0/task",
    }
    assert outcome.tells(
        "outer.0 started",
        "outer.0/before.0 succeeded",
        "outer.0/inner.0 started",
        "outer.0/inner.0/task.0 started",
        "outer.0/inner.0 succeeded",
        "outer.0 succeeded",
    )


def test_each_reference_to_a_group_is_a_run_of_its_own(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: coarse, group: simulate}
        - {name: fine, group: simulate, depends_on: coarse}
        groups:
        - name: simulate
          resources: tiny
          tasks:
          - {name: step, command: [echo, step]}
    """)
    assert outcome.lines("coarse.0/step.0") == ["step"]
    assert outcome.lines("fine.0/step.0") == ["step"]
    assert outcome.tells("coarse.0 succeeded", "fine.0 started")


def test_a_group_runs_as_often_as_it_has_replicas(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: study
          replicas: 3
          resources: tiny
          tasks:
          - {name: first, command: [echo, one]}
          - {name: second, depends_on: first, command: [echo, two]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts_of("study") == {"succeeded": 3}
    for number in range(3):
        assert outcome.lines(f"study.{number}/first.0") == ["one"]
        assert outcome.tells(f"study.{number}/first.0 succeeded", f"study.{number}/second.0 started")


def test_groups_at_the_top_start_after_the_tasks_in_the_order_of_the_file(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - {name: second, resources: tiny, tasks: [{name: task, command: [sleep, "0.1"]}]}
        - {name: third, resources: tiny, tasks: [{name: task, command: [sleep, "0.1"]}]}
        tasks:
        - {name: first, command: [sleep, "0.1"]}
    """)
    tops = [key for key in outcome.starts() if "/" not in key]
    # A group has started as soon as it has its allocation, a task only when its copies run.
    assert tops.index("second.0") < tops.index("third.0")
    assert outcome.state == "succeeded"


def test_a_task_larger_than_its_group_needs_an_engine_that_can_grow(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        groups:
        - name: narrow
          resources: {type: node, count: 1, with: [{type: core, count: 1}]}
          tasks:
          - name: wide
            command: [echo, copy]
            resources: {type: node, count: 2, with: [{type: core, count: 1}]}
    """,
        virtual="2x4",
    )
    assert outcome.lines() == ["copy", "copy"]
