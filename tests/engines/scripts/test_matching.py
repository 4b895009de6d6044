"""Which nodes of a manager could take each task, and what rules the others out."""

from __future__ import annotations

from jobman.engines.scripts.delegate import NodeAt
from jobman.engines.scripts.matching import matches
from jobman.plan.satisfy import Match
from tests.engines.scripts.running import plan_of

NODES = [
    NodeAt(name="n1", amounts={"core": 8.0}, facts=("ib", "eth"), partitions=("main",)),
    NodeAt(name="n2", amounts={"core": 8.0}, facts=("eth",), partitions=("main",)),
    NodeAt(name="n3", state="draining", amounts={"core": 8.0}, facts=("ib",), partitions=("main",)),
    NodeAt(name="n4", amounts={"core": 8.0}, facts=("ib",), partitions=("long", "wide")),
    NodeAt(name="n5", amounts={"core": 1.0}, uncounted={"storage": 1.0}, facts=("ib",), partitions=("main",)),
]
SHAPE = "resources: {type: node, count: 1, with: [{type: core, count: 4}]}"


def match(more: str = "", queue: str | None = "main", shape: str = SHAPE) -> Match:
    plan = plan_of(f"- {{name: t, command: ['true'], {more}{shape}}}")
    (found,) = matches(plan, NODES, queue, lambda key, value: f"nv-{value}" if key == "gpu" else value)
    return found


def told(found: Match) -> dict[str, str]:
    part = found.alternatives[0].parts[0]
    return {node: obstacle.words for obstacle in part.obstacles for node in obstacle.nodes}


def test_nodes_that_are_up_in_the_queue_and_large_enough_qualify() -> None:
    found = match()
    assert found.alternatives[0].parts[0].nodes == ("n1", "n2")
    assert told(found) == {
        "n3": "state is draining, not up",
        "n4": "queue is long, wide, not main",
        "n5": "core: 4 needed, 1 there",
    }


def test_without_a_queue_all_nodes_are_looked_at() -> None:
    assert match(queue=None).alternatives[0].parts[0].nodes == ("n1", "n2", "n4")


def test_a_node_may_have_several_words_for_one_key() -> None:
    for value in ("ib", "eth"):
        found = match(f"requires: {{fabric: {value}}}, ")
        assert "n1" in found.alternatives[0].parts[0].nodes
    assert told(match("requires: {fabric: ib}, "))["n2"] == "fabric is not known (ib is required)"


def test_labels_are_asked_for_like_facts() -> None:
    found = match("placement: {labels: {fabric: ib}}, ")
    assert found.alternatives[0].parts[0].nodes == ("n1",)


def test_a_word_of_the_site_is_told() -> None:
    assert told(match("requires: {gpu: a100}, "))["n1"] == (
        "gpu is not known (a100, called nv-a100 there, is required)"
    )


def test_what_nobody_counts_is_there_all_the_same() -> None:
    shape = "resources: {type: node, count: 1, with: [{type: core, count: 1}, {type: storage, count: 1}]}"
    assert match(shape=shape).alternatives[0].parts[0].nodes == ("n5",)
