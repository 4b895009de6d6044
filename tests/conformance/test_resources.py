"""Resources: shapes, copies and ranks, alternatives, and what does not fit."""

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine

RANKS = "$JOBMAN_RANK/$JOBMAN_SIZE on $JOBMAN_NODE_RANK/$JOBMAN_NNODES with $JOBMAN_CORES"


def test_there_is_a_copy_per_slot_and_each_knows_its_rank(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {ranks: ""}
        tasks:
        - name: mpi
          resources: {type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 2}]}]}
          command: [sh, -c, "echo {{ranks}}"]
    """,
        virtual="2x4",
        parameters={"ranks": RANKS},
    )
    assert sorted(outcome.lines()) == [
        "0/4 on 0/2 with 2",
        "1/4 on 0/2 with 2",
        "2/4 on 1/2 with 2",
        "3/4 on 1/2 with 2",
    ]
    assert outcome.lines(copy=3) == ["3/4 on 1/2 with 2"]
    first, second = outcome.nodes("mpi.0")
    assert sorted(outcome.lines(node=first)) == sorted(outcome.lines())[:2]
    assert sorted(outcome.lines(node=second)) == sorted(outcome.lines())[2:]
    assert outcome.counts == {"succeeded": 1}


def test_there_is_a_copy_per_node_where_there_are_no_slots(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {ranks: ""}
        tasks:
        - name: wide
          resources: {type: node, count: 3, with: [{type: core, count: 2}]}
          command: [sh, -c, "echo {{ranks}}"]
    """,
        virtual="3x4",
        parameters={"ranks": RANKS},
    )
    assert sorted(outcome.lines()) == ["0/3 on 0/3 with 2", "1/3 on 1/3 with 2", "2/3 on 2/3 with 2"]


def test_slots_anywhere_are_placed_wherever_there_is_room(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: scattered
          resources: {type: slot, count: 4, with: [{type: core, count: 2}]}
          command: [sh, -c, "echo $JOBMAN_RANK of $JOBMAN_SIZE"]
    """,
        virtual="2x4",
    )
    assert sorted(outcome.lines()) == ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]
    assert len(set(outcome.nodes("scattered.0"))) == 2


def test_cores_alone_are_one_copy(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: threads
          resources: {type: core, count: 4}
          command: [sh, -c, "echo $JOBMAN_SIZE $JOBMAN_CORES"]
    """,
        virtual="1x4",
    )
    assert outcome.lines() == ["1 4"]


def test_one_failing_copy_fails_its_replica(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: mpi
          resources: {type: slot, count: 3}
          command: [sh, -c, "test $JOBMAN_RANK != 1 || exit 21"]
    """
    )
    assert outcome.state == "failed"
    assert outcome.exit_code == 21
    assert outcome.counts == {"failed": 1}


def test_tasks_that_do_not_fit_beside_each_other_wait(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        resources: {two: {type: core, count: 2}}
        tasks:
        - {name: a, resources: two, command: [sleep, "{{beat}}"]}
        - {name: b, resources: two, command: [sleep, "{{beat}}"]}
        - {name: c, resources: two, command: [sleep, "{{beat}}"]}
    """,
        virtual="1x4",
        parameters={"beat": engine.beat},
    )
    assert outcome.state == "succeeded"
    assert outcome.most_at_once("a", "b", "c") == 2


def test_an_exclusive_node_is_shared_with_nobody(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        resources:
          alone: {type: node, count: 1, exclusive: true, with: [{type: core, count: 1}]}
          one: {type: core, count: 1}
        tasks:
        - {name: alone, resources: alone, command: [sleep, "0.2"]}
        - {name: other, resources: one, command: ["true"]}
    """,
        virtual="1x4",
    )
    assert outcome.tells("alone.0 succeeded", "other.0 started")


def test_a_node_asked_for_with_nothing_in_it_is_given_as_a_whole(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {beat: "1"}
        resources: {whole: {type: node, count: 1}}
        tasks:
        - {name: a, resources: whole, command: [sleep, "{{beat}}"]}
        - {name: b, resources: whole, command: [sleep, "{{beat}}"]}
    """,
        virtual="1x4",
        parameters={"beat": engine.beat},
    )
    assert outcome.most_at_once("a", "b") == 1


def test_the_leftmost_alternative_that_can_be_satisfied_is_taken(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        resources:
          huge: {type: core, count: 64}
          two: {type: core, count: 2}
          one: {type: core, count: 1}
        tasks:
        - {name: task, resources: huge|two|one, command: [sh, -c, "echo $JOBMAN_CORES"]}
    """,
        virtual="1x4",
    )
    assert outcome.lines() == ["2"]


def test_both_parts_of_a_heterogeneous_allocation_are_given_at_once(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        resources:
          head: {type: node, count: 1, with: [{type: core, count: 1}]}
          workers: {type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 2}]}]}
        tasks:
        - name: model
          resources: head&workers
          command: [sh, -c, "echo $JOBMAN_RANK/$JOBMAN_SIZE $JOBMAN_CORES"]
    """,
        virtual="3x4",
    )
    assert sorted(outcome.lines()) == ["0/5 1", "1/5 2", "2/5 2", "3/5 2", "4/5 2"]
    assert len(outcome.nodes("model.0")) == 3


def test_an_expression_may_have_parentheses(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        resources:
          head: {type: core, count: 1}
          many: {type: core, count: 64}
          few: {type: core, count: 2}
        tasks:
        - {name: model, resources: head&(many|few), command: [sh, -c, "echo $JOBMAN_CORES"]}
    """,
        virtual="1x4",
    )
    assert sorted(outcome.lines()) == ["1", "2"]


def test_a_flavor_of_the_site_is_a_shape_by_name(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: task, resources: one-core, command: [sh, -c, "echo $JOBMAN_CORES"]}
    """)
    assert outcome.lines() == ["1"]
    assert outcome.job.flavor == "one-core"


def test_sockets_memory_and_storage_are_counted(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: numa
          resources:
            type: node
            count: 1
            with:
            - type: socket
              count: 1
              with: [{type: slot, count: 1, with: [{type: core, count: 1}, {type: memory, count: 64Mi}]}]
            - {type: storage, count: 1Mi}
          command: [sh, -c, "echo $JOBMAN_SIZE"]
    """)
    assert outcome.lines() == ["1"]


def test_memory_that_is_given_twice_is_not_given_at_once(engine: Engine) -> None:
    with pytest.raises(Refused) as refused:
        engine.submit("""
            version: 1
            tasks:
            - {name: greedy, resources: {type: memory, count: 1Ei}, command: ["true"]}
        """)
    assert refused.value.code == "does-not-fit"
    assert "memory" in str(refused.value)


def test_a_copy_that_uses_more_memory_than_it_has_is_ended(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: hungry
          resources: {type: slot, count: 1, with: [{type: memory, count: 64Mi}]}
          command: [python3, -c, "import time; hoard = bytearray(400 << 20); time.sleep(600)"]
    """)
    assert outcome.state == "failed"
    assert outcome.reasons("hungry.0") == ["out-of-memory"]
    assert "64 MiB" in outcome.reason


def test_gpus_are_told_to_each_copy(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {variable: ""}
        tasks:
        - name: train
          resources: {type: slot, count: 2, with: [{type: gpu, count: 2}]}
          command: [sh, -c, 'echo "$JOBMAN_GPUS $CUDA_VISIBLE_DEVICES ${{variable}}"']
    """,
        virtual="1x4x4",
        parameters={"variable": engine.gpu_variable},
    )
    told = [line.split() for line in outcome.lines()]
    assert [(number, len(devices.split(","))) for number, devices, _ in told] == [("2", 2), ("2", 2)]
    seen = [device for _, _, devices in told for device in devices.split(",")]
    assert len(seen) == len(set(seen)) == 4


def test_what_can_never_fit_is_refused_with_what_is_missing(engine: Engine) -> None:
    with pytest.raises(Refused) as refused:
        engine.submit(
            """
            version: 1
            tasks:
            - name: wide
              resources: {type: node, count: 3, with: [{type: core, count: 2}]}
              command: ["true"]
        """,
            virtual="2x4",
        )
    assert refused.value.code == "does-not-fit"
    assert refused.value.exit_code == 4
    assert "wide" in str(refused.value)


def test_why_says_what_a_task_that_waits_for_room_lacks(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        resources: {three: {type: core, count: 3}}
        tasks:
        - {name: first, resources: three, command: [sleep, "600"]}
        - name: second
          depends_on: [{name: first, when: started}]
          resources: three
          command: ["true"]
    """,
        virtual="1x4",
    )
    job.until("first.0 started")
    blocker = job.until_blocked("resources")
    assert job.why().blockers == [blocker]
    assert blocker.replica == "second.0"
    # As those say who know what is missing: the cluster itself calls cores so.
    assert "core" in blocker.message or "cpu" in blocker.message
