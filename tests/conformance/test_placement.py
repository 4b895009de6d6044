"""Placement: where copies may go, and who comes first."""

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine, Handle


def test_replicas_that_must_be_apart_are_on_nodes_of_their_own(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: mirror
          replicas: 3
          resources: {type: core, count: 1}
          placement: {apart: {by: node}}
          command:
          - sh
          - -c
          - "touch m-$JOBMAN_REPLICA; until test -e m-0 -a -e m-1 -a -e m-2; do sleep 0.02; done"
    """,
        virtual="3x4",
    )
    assert outcome.state == "succeeded"
    assert len({node for number in range(3) for node in outcome.nodes(f"mirror.{number}")}) == 3


def test_a_replica_that_finds_no_node_apart_waits_for_one(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        tasks:
        - name: mirror
          replicas: 3
          resources: {type: core, count: 1}
          placement: {apart: {by: node}}
          command: [sleep, "{{beat}}"]
    """,
        virtual="2x4",
        parameters={"beat": engine.beat},
    )
    assert outcome.counts == {"succeeded": 3}
    assert outcome.most_at_once("mirror") <= 2


def test_a_task_is_near_to_another_on_the_same_node(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        resources: {one: {type: core, count: 1}}
        tasks:
        - {name: filler, service: true, resources: one, command: [sleep, "600"]}
        - name: store
          service: true
          depends_on: [{name: filler, when: started}]
          resources: one
          placement: {apart: filler}
          command: [sleep, "600"]
        - name: loader
          replicas: 2
          depends_on: [{name: store, when: started}]
          resources: one
          placement: {near: store}
          command: ["true"]
    """,
        virtual="3x4",
    )
    assert outcome.nodes("store.0") != outcome.nodes("filler.0")
    assert outcome.nodes("loader.0") == outcome.nodes("loader.1") == outcome.nodes("store.0")


def test_copies_are_spread_evenly_over_the_nodes(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: worker
          replicas: 6
          resources: {type: core, count: 1}
          placement: {spread: {by: node, skew: 1}}
          command:
          - sh
          - -c
          - "touch w-$JOBMAN_REPLICA; until test $(ls w-* | wc -l) = 6; do sleep 0.02; done"
    """,
        virtual="3x4",
    )
    nodes = [node for number in range(6) for node in outcome.nodes(f"worker.{number}")]
    assert sorted(nodes.count(node) for node in set(nodes)) == [2, 2, 2]


def test_a_preference_that_cannot_be_met_does_not_hold_anybody_back(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: mirror
          replicas: 2
          resources: {type: core, count: 1}
          placement: {apart: {by: node, required: false}, spread: {by: node, required: false}}
          command: [sh, -c, "touch m-$JOBMAN_REPLICA; until test -e m-0 -a -e m-1; do sleep 0.02; done"]
    """,
        virtual="1x4",
    )
    assert outcome.state == "succeeded"


def test_spreading_over_a_level_that_no_node_has_is_refused(engine: Engine) -> None:
    with pytest.raises(Refused) as refused:
        engine.submit(
            """
            version: 1
            tasks:
            - name: mirror
              replicas: 2
              resources: {type: core, count: 1}
              placement: {spread: {by: galaxy}}
              command: ["true"]
        """,
            virtual="2x2",
        )
    assert refused.value.code == "does-not-fit"
    assert "galaxy" in str(refused.value)


def test_being_apart_by_a_level_that_no_node_has_is_refused(engine: Engine) -> None:
    with pytest.raises(Refused) as refused:
        engine.submit(
            """
            version: 1
            tasks:
            - name: mirror
              replicas: 2
              resources: {type: core, count: 1}
              placement: {apart: {by: galaxy}}
              command: ["true"]
        """,
            virtual="2x2",
        )
    assert refused.value.code == "does-not-fit"
    assert "galaxy" in str(refused.value)


def test_nodes_must_carry_the_labels_that_are_asked_for(engine: Engine) -> None:
    document = """
        version: 1
        parameters: {os: linux}
        tasks:
        - {name: here, command: [echo, here], placement: {labels: {os.name: "{{os}}"}}}
    """.replace("os.name", engine.os_label)
    assert engine.run(document).lines() == ["here"]
    with pytest.raises(Refused) as refused:
        engine.submit(document, parameters={"os": "plan9"})
    assert refused.value.code == "does-not-fit"
    assert refused.value.exit_code == 4
    assert engine.os_label in str(refused.value)


def test_nodes_must_have_the_facts_that_are_required(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        requires: {os: {name: linux}}
        tasks:
        - {name: here, command: [echo, here]}
    """)
    assert outcome.lines() == ["here"]
    with pytest.raises(Refused) as refused:
        engine.submit("""
            version: 1
            requires: {os.name: linux}
            tasks:
            - {name: nowhere, command: [echo, never], requires: {os.name: plan9}}
        """)
    assert refused.value.code == "does-not-fit"
    assert "os.name" in str(refused.value)


def test_the_operating_system_that_is_asked_for_must_be_there(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        runtime: {os: linux}
        tasks:
        - {name: here, command: [uname, -s]}
    """)
    assert outcome.lines() == ["Linux"]


def busy(engine: Engine) -> Handle:
    """A job that has the only node until the file `go` is there."""
    engine.alone()
    job = engine.submit("""
        version: 1
        tasks:
        - name: all
          resources: {type: node, count: 1}
          command: [sh, -c, "until test -e go; do sleep 0.02; done"]
    """)
    job.until("all.0 started")
    return job


def test_a_job_of_higher_priority_goes_before_one_that_waited_longer(engine: Engine) -> None:
    document = """
        version: 1
        parameters: {priority: normal}
        priority: "{{priority}}"
        tasks:
        - {name: task, resources: {type: node, count: 1}, command: ["true"]}
    """
    first = busy(engine)
    low = engine.submit(document, parameters={"priority": "low"})
    normal = engine.submit(document)
    high = engine.submit(document, parameters={"priority": "high"})
    assert [job.why().position for job in (low, normal, high)] == [3, 2, 1]
    (engine.folder / "go").touch()
    first.wait()
    ends = [job.wait().attempts("task.0")[0].started_at for job in (high, normal, low)]
    assert ends == sorted(ends, key=lambda end: end or 0.0)


def test_jobs_of_one_priority_go_in_the_order_of_submission(engine: Engine) -> None:
    document = """
        version: 1
        tasks:
        - {name: task, resources: {type: node, count: 1}, command: ["true"]}
    """
    first = busy(engine)
    jobs = [engine.submit(document) for _ in range(3)]
    assert [job.why().position for job in jobs] == [1, 2, 3]
    assert all(job.why().blockers for job in jobs)
    (engine.folder / "go").touch()
    first.wait()
    starts = [job.wait().attempts("task.0")[0].started_at for job in jobs]
    assert starts == sorted(starts, key=lambda start: start or 0.0)


def test_a_task_of_higher_priority_goes_before_its_siblings_that_wait(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        resources: {one: {type: core, count: 1}}
        tasks:
        - {name: first, resources: one, command: [sleep, "0.2"]}
        - {name: usual, resources: one, command: ["true"]}
        - {name: urgent, resources: one, priority: high, command: ["true"]}
    """,
        virtual="1x1",
    )
    assert outcome.starts() == ["urgent.0", "first.0", "usual.0"]


def test_an_exclusive_placement_shares_no_node_with_other_jobs(engine: Engine) -> None:
    engine.alone()
    alone = engine.submit("""
        version: 1
        tasks:
        - name: alone
          placement: {exclusive: true}
          command: [sh, -c, "until test -e go; do sleep 0.02; done"]
    """)
    alone.until("alone.0 started")
    other = engine.submit("""
        version: 1
        tasks:
        - {name: other, command: ["true"]}
    """)
    assert [blocker.kind for blocker in other.why().blockers] == ["resources"]
    (engine.folder / "go").touch()
    ended = alone.wait().attempts("alone.0")[0].ended_at
    started = other.wait().attempts("other.0")[0].started_at
    assert ended is not None
    assert started is not None
    assert ended <= started
