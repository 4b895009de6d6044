"""Matching plans against nodes: which qualify, what rules the others out, and how nodes are described."""

# ruff: noqa: E501 - a document stands in one line

import pytest

from jobman.api import loads
from jobman.plan.nodes import ClusterNode, expand_names, read_nodes
from jobman.plan.satisfy import Obstacle, satisfy
from jobman.spec.problems import SpecError


def node(name, facts=None, labels=None, **amounts):
    return ClusterNode(name=name, amounts=amounts, facts=facts or {}, labels=labels or {})


def nodes(count, **what):
    return [node(f"n{number}", **what) for number in range(1, count + 1)]


def match(resources, cluster, task="", top=""):
    text = f"version: 1\n{top}\ntasks: [{{name: a, command: a, resources: {resources}{', ' if task else ''}{task}}}]\n"
    spec = loads(text)
    assert [problem for problem in spec.problems if problem.severity == "error"] == []
    (found,) = satisfy(spec.plan(), cluster)
    return found


def part(found, alternative=0, number=0):
    return found.alternatives[alternative].parts[number]


NODE = "{type: node, count: 1}"


# -- what a node must have ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "enough"), [(3, True), (4, True), (5, False)])
def test_nodes_are_counted(count, enough):
    found = match(f"{{type: node, count: {count}}}", nodes(4))
    assert (found.satisfied, part(found).enough, len(part(found).nodes)) == (enough, enough, 4)


@pytest.mark.parametrize(
    ("inside", "has", "obstacle"),
    [
        ("{type: core, count: 8}", {"core": 8}, None),
        ("{type: core, count: 8}", {"core": 4}, "core: 8 needed, 4 there"),
        ("{type: core, count: 8}", {}, "core: 8 needed, none there"),
        ("{type: gpu, count: 2}", {"gpu": 0}, "gpu: 2 needed, none there"),
        ("{type: memory, count: 4Gi}", {"memory": 2**31}, "memory: 4Gi needed, 2Gi there"),
        ("{type: storage, count: 1T}", {"storage": 10**12}, None),
        ("{type: slot, count: 4, with: [{type: core, count: 2}]}", {"core": 8}, None),
        ("{type: slot, count: 4, with: [{type: core, count: 2}]}", {"core": 7}, "core: 8 needed, 7 there"),
        ("{type: socket, count: 2}", {"core": 1}, None),
        ("{type: socket, count: 2}", {"socket": 1}, "socket: 2 needed, 1 there"),
    ],
)
def test_resources_are_compared(inside, has, obstacle):
    found = part(match(f"{{type: node, count: 1, with: [{inside}]}}", [node("n1", **has)]))
    assert [each.words for each in found.obstacles] == ([obstacle] if obstacle else [])
    assert found.enough is (obstacle is None)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"fabric": "infiniband"}, None),
        ({"fabric": "ethernet"}, "fabric is ethernet, not infiniband"),
        ({}, "fabric is not known (infiniband is required)"),
    ],
)
def test_facts_are_compared(facts, words):
    found = part(match(NODE, [node("n1", facts=facts)], "requires: {fabric: infiniband}"))
    assert [each.words for each in found.obstacles] == ([words] if words else [])


def test_a_label_may_stand_for_a_fact():
    assert match(
        NODE, [node("n1", labels={"fabric": "infiniband"})], "requires: {fabric: infiniband}"
    ).satisfied


def test_a_label_that_stands_for_a_fact_is_shown_in_the_obstacle():
    found = part(match(NODE, [node("n1", labels={"fabric": "ethernet"})], "requires: {fabric: infiniband}"))
    assert [each.words for each in found.obstacles] == ["fabric is ethernet, not infiniband"]


@pytest.mark.parametrize(
    "written", ["{gpu.available: true}", "{gpu: {available: true}}", "{gpu.available: yes}"]
)
def test_facts_may_be_nested_dotted_or_truth_values(written):
    assert match(NODE, [node("n1", facts={"gpu.available": "yes"})], f"requires: {written}").satisfied


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"disk": "nvme"}, None),
        ({"disk": "ssd"}, "disk is ssd, not nvme"),
        ({}, "disk is not known (nvme is required)"),
    ],
)
def test_labels_of_a_placement_are_compared(labels, words):
    found = part(match(NODE, [node("n1", labels=labels)], "placement: {labels: {disk: nvme}}"))
    assert [(each.kind, each.words) for each in found.obstacles] == ([("label", words)] if words else [])


def test_nodes_with_the_same_obstacle_are_told_together():
    cluster = [*nodes(2, core=2), node("m1", core=4), node("m2", gpu=1, core=2)]
    found = part(match("{type: node, count: 1, with: [{type: core, count: 4}]}", cluster))
    assert found.nodes == ("m1",)
    assert found.obstacles == (Obstacle("resource", "core", "4", "2", ("n1", "n2", "m2")),)


def test_without_nodes_nothing_can_run():
    assert not match(NODE, []).satisfied


# -- alternatives and parts ---------------------------------------------------------------------------------

TWO = "resources: {gpus: {type: node, count: 2, with: [{type: gpu, count: 4}]}, cores: {type: node, count: 4, with: [{type: core, count: 8}]}}"
GPU_NODES = [node(f"g{number}", core=64, gpu=4) for number in (1, 2)]


@pytest.mark.parametrize(
    ("expression", "cluster", "chosen"),
    [
        ("gpus|cores", [*GPU_NODES, *nodes(4, core=8)], 0),
        ("cores|gpus", [*GPU_NODES, *nodes(4, core=8)], 0),
        ("gpus|cores", nodes(4, core=8), 1),
        ("gpus|cores", nodes(3, core=8), None),
    ],
)
def test_the_first_alternative_that_can_be_had_is_chosen(expression, cluster, chosen):
    found = match(expression, cluster, top=TWO)
    assert (found.chosen, found.satisfied) == (chosen, chosen is not None)


@pytest.mark.parametrize(("others", "satisfied"), [(4, True), (3, False)])
def test_parts_compete_for_nodes(others, satisfied):
    found = match("gpus&cores", [*GPU_NODES, *nodes(others, core=8)], top=TWO)
    assert [each.enough for each in found.alternatives[0].parts] == [True, True]
    assert found.satisfied is satisfied


def test_one_part_without_nodes_is_enough_to_fail():
    found = match("gpus&cores", nodes(8, core=8), top=TWO)
    assert [each.enough for each in found.alternatives[0].parts] == [False, True]
    assert not found.satisfied


@pytest.mark.parametrize(("slots", "satisfied"), [(12, True), (13, False)])
def test_slots_go_wherever_there_is_room(slots, satisfied):
    cluster = [node("n1", core=9), node("n2", core=16), node("n3", core=1)]
    found = match(f"{{type: slot, count: {slots}, with: [{{type: core, count: 2}}]}}", cluster)
    assert found.satisfied is satisfied
    assert part(found).nodes == ("n1", "n2")


def test_slots_that_need_nothing_fit_on_one_node():
    assert match("{type: slot, count: 1000}", nodes(1)).satisfied


def test_slots_do_not_go_where_other_parts_have_whole_nodes():
    top = "resources: {whole: {type: node, count: 1}, some: {type: slot, count: 2, with: [{type: core, count: 4}]}}"
    assert not match("whole&some", nodes(1, core=8), top=top).satisfied


def test_every_unit_that_needs_nodes_is_matched_in_order():
    text = (
        "version: 1\ngroups: [{name: g, resources: {type: node, count: 1}, "
        "tasks: [{name: l, command: a, local: true}, {name: t, command: b}]}]\n"
    )
    found = satisfy(loads(text).plan(), nodes(1))
    assert [(each.unit, each.kind) for each in found] == [("g", "group"), ("g/t", "task")]


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        (NODE, "1 node (whole)"),
        (
            "{type: node, count: 4, with: [{type: slot, count: 2, with: [{type: core, count: 4}]}]}",
            "4 nodes, each 2 slots of 4 cores",
        ),
        (
            "{type: node, count: 1, with: [{type: slot, count: 1}, {type: memory, count: 2Gi}]}",
            "1 node, each 1 slot and 2Gi memory",
        ),
        ("{type: slot, count: 3, with: [{type: gpu, count: 1}]}", "3 slots of 1 gpu"),
        (
            "{type: node, count: 1, exclusive: true, with: [{type: core, count: 2}]}",
            "1 node (whole), each 2 cores",
        ),
        ("{type: core, count: 4}", "4 cores"),
    ],
)
def test_a_part_is_described_as_a_person_would(resources, words):
    assert part(match(resources, [])).wanted == words


# -- files of nodes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[01-03]", ("n01", "n02", "n03")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("n[1,3,7-8]", ("n1", "n3", "n7", "n8")),
        ("rack1-n[1-2].example.org", ("rack1-n1.example.org", "rack1-n2.example.org")),
        ("[1-2]", ("1", "2")),
        ("n[5]", ("n5",)),
        ("n[3-1]", None),
        ("n[]", None),
        ("n[1-]", None),
        ("n[-1]", None),
        ("n[1", None),
        ("n1]", None),
        ("n[1,,2]", None),
        ("n[1-2-3]", None),
        ("n[1-9999999]", None),
        ("n[1-2][1-2]", None),
    ],
)
def test_a_range_of_names_is_expanded_or_refused(text, names):
    assert expand_names(text) == names


def read(tmp_path, text):
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    return read_nodes(path)


@pytest.mark.parametrize(
    "text",
    [
        "- {name: 'n[1-2]', cores: 4}\n",
        "nodes: [{name: 'n[1-2]', cores: 4}]\n",
        "[{name: n1, cores: 4}, {name: n2, cores: 4}]",
    ],
)
def test_nodes_may_be_a_list_or_stand_under_a_key(tmp_path, text):
    assert read(tmp_path, text) == [node("n1", core=4), node("n2", core=4)]


def test_everything_a_node_may_have(tmp_path):
    (found,) = read(
        tmp_path,
        "- {name: n1, cores: 8, sockets: 2, gpus: 4, memory: 16Gi, storage: 1T, resources: {fpga: 2}, labels: {disk: nvme},\n"
        "   facts: {io.archspec: {cpu.target: zen3}, gpu: true, old: false, year: 2024}}\n",
    )
    assert found.amounts == {
        "core": 8,
        "socket": 2,
        "gpu": 4,
        "memory": 16 * 2**30,
        "storage": 10**12,
        "fpga": 2,
    }
    assert found.facts == {"io.archspec.cpu.target": "zen3", "gpu": "yes", "old": "no", "year": "2024"}
    assert found.labels == {"disk": "nvme"}


@pytest.mark.parametrize(
    ("code", "text", "place"),
    [
        ("JS101", "- {name: n1, coers: 4}\n", (1, 14)),
        ("JS105", "- {cores: 4}\n", (1, 3)),
        ("JS103", "just a text\n", (1, 1)),
        ("JS103", "nodes: 4\n", (1, 8)),
        ("JS105", "{}\n", (1, 1)),
        ("JS204", "- {name: n1, cores: 0}\n", (1, 21)),
        ("JS209", "- {name: n1, memory: 4GB}\n", (1, 22)),
        ("JS201", "- {name: 'n[3-1]'}\n", (1, 10)),
        ("JS201", "- {name: 'a b'}\n", (1, 10)),
        ("JS720", "- {name: n1}\n- {name: 'n[1-2]'}\n", (2, 3)),
        ("JS601", "- {name: n1, facts: {a: [1, 2]}}\n", (1, 25)),
        ("JS213", "[]\n", (1, 1)),
        ("JS012", "- {name: n1, name: n2}\n", (1, 14)),
    ],
)
def test_a_broken_file_of_nodes_says_where(tmp_path, code, text, place):
    with pytest.raises(SpecError) as raised:
        read(tmp_path, text)
    found = [
        (problem.code, (problem.place.line, problem.place.column))
        for problem in raised.value.problems
        if problem.place
    ]
    assert (code, place) in found
    assert all(problem.advice for problem in raised.value.problems)


def test_a_missing_file_of_nodes_is_refused(tmp_path):
    with pytest.raises(SpecError, match="JS001"):
        read_nodes(tmp_path / "nowhere.yaml")


def test_an_empty_file_of_nodes_is_refused(tmp_path):
    with pytest.raises(SpecError):
        read(tmp_path, "# nothing\n")


def test_every_problem_of_a_file_of_nodes_is_reported(tmp_path):
    with pytest.raises(SpecError) as raised:
        read(tmp_path, "- {name: n1, cores: 0}\n- {cores: 1}\n- {name: n3, colour: blue}\n")
    assert [problem.place and problem.place.line for problem in raised.value.problems] == [1, 2, 3]
