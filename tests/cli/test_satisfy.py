"""`jobman satisfy`: which nodes could take each task, in words and as data."""

# ruff: noqa: E501 - a document stands in one line

import pytest
import yaml

NODES = """\
- {name: "n[1-4]", cores: 8, memory: 16Gi, labels: {disk: nvme}}
- {name: "g[01-02]", cores: 64, gpus: 4, facts: {fabric: infiniband}}
"""
JOB = """\
version: 1
resources:
  gpus: {type: node, count: 2, with: [{type: gpu, count: 4}]}
  cores: {type: node, count: 4, with: [{type: core, count: 8}]}
tasks:
- {name: either, command: ./run, resources: gpus|cores}
- {name: both, command: ./run, resources: gpus&cores}
"""
TOO_LARGE = "version: 1\ntasks: [{name: huge, command: ./run, resources: {type: node, count: 7}}]\n"


@pytest.fixture
def nodes(write):
    return write(NODES, "nodes.yaml")


def test_what_can_run_is_said_with_its_nodes(jobman, write, nodes):
    answer = jobman("satisfy", write(JOB), "--nodes", nodes)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[:7] == [
        "either task  can run",
        "├── alternative 1 ← chosen",
        "│   └── 2 nodes, each 4 gpus: 2 of 6 nodes qualify",
        "│       ├── g01, g02",
        "│       └── n1, n2, n3, n4: gpu: 4 needed, none there",
        "└── alternative 2",
        "    └── 4 nodes, each 8 cores: 6 of 6 nodes qualify",
    ]
    assert "both task  can run" in answer.out


def test_what_cannot_run_ends_with_the_code_of_an_engine_that_cannot(jobman, write, nodes):
    answer = jobman("satisfy", write(TOO_LARGE), "--nodes", nodes)
    assert (answer.code, answer.err) == (4, "")
    assert answer.out.startswith("huge task  cannot run")


def test_one_task_that_cannot_run_is_enough(jobman, write, nodes):
    text = f"{JOB}- {{name: huge, command: ./run, resources: {{type: node, count: 7}}}}\n"
    assert jobman("satisfy", write(text), "--nodes", nodes).code == 4


def test_parts_that_compete_are_said_to_compete(jobman, write, nodes):
    answer = jobman(
        "satisfy",
        write(JOB.replace("count: 4, with: [{type: core", "count: 5, with: [{type: core")),
        "--nodes",
        nodes,
    )
    assert answer.code == 4
    assert "the parts compete for the same nodes" in answer.out


def test_the_documented_keys_of_the_data(jobman, write, nodes):
    answer = jobman("satisfy", write(JOB), "--nodes", nodes, "-o", "json")
    assert answer.code == 0
    either, both = answer.data
    assert list(either) == ["unit", "kind", "alternatives", "chosen"]
    assert (either["unit"], either["kind"], either["chosen"]) == ("either", "task", 0)
    assert list(either["alternatives"][0]) == ["parts", "satisfied"]
    assert either["alternatives"][0]["parts"][0] == {
        "wanted": "2 nodes, each 4 gpus",
        "nodes": ["g01", "g02"],
        "obstacles": [
            {"kind": "resource", "key": "gpu", "wanted": "4", "found": "", "nodes": ["n1", "n2", "n3", "n4"]}
        ],
        "room": 2,
        "enough": True,
    }
    assert len(both["alternatives"][0]["parts"]) == 2


def test_what_cannot_run_has_no_choice_in_the_data(jobman, write, nodes):
    answer = jobman("satisfy", write(TOO_LARGE), "--nodes", nodes, "-o", "json")
    assert answer.code == 4
    assert answer.data[0]["chosen"] is None


def test_json_and_yaml_say_the_same(jobman, write, nodes):
    name = write(JOB)
    text = jobman("-o", "yaml", "satisfy", name, "--nodes", nodes).out
    assert yaml.safe_load(text) == jobman("satisfy", name, "--nodes", nodes, "-o", "json").data


def test_many_names_are_cut_and_whole_in_the_data(jobman, write):
    write("- {name: 'n[1-1000]', cores: 4}\n", "nodes.yaml")
    name = write("version: 1\ntasks: [{command: ./run, resources: {type: node, count: 1}}]\n")
    assert "n8 and 992 more" in jobman("satisfy", name, "--nodes", "nodes.yaml").out
    data = jobman("satisfy", name, "--nodes", "nodes.yaml", "-o", "json").data
    assert len(data[0]["alternatives"][0]["parts"][0]["nodes"]) == 1000


@pytest.mark.parametrize("fact", ["[bold]x", "[/x]", ":smile:"])
def test_the_text_of_a_fact_is_printed_as_it_is(jobman, write, nodes, fact):
    name = write(
        f"version: 1\ntasks: [{{command: ./run, resources: {{type: node, count: 1}}, requires: {{fabric: '{fact}'}}}}]\n"
    )
    assert fact in jobman("satisfy", name, "--nodes", nodes).out


def test_a_file_of_nodes_that_is_wrong_is_told_on_stderr(jobman, write):
    write("- {name: n1, coers: 4}\n", "nodes.yaml")
    answer = jobman("satisfy", write(JOB), "--nodes", "nodes.yaml")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("nodes.yaml:1:14: error JS101: a node has no key `coers`")


def test_a_file_of_nodes_that_is_missing_is_told_as_data_where_data_is_asked_for(jobman, write):
    answer = jobman("satisfy", write(JOB), "--nodes", "nodes.yaml", "-o", "json")
    assert (answer.code, answer.err, answer.codes) == (3, "", ["JS001"])


def test_a_wrong_document_is_told_on_stderr(jobman, write, nodes):
    answer = jobman("satisfy", write(JOB.replace("gpus|cores", "gups|cores")), "--nodes", nodes)
    assert (answer.code, answer.out) == (3, "")
    assert "error JS408" in answer.err


def test_without_nodes_a_document_is_matched_against_this_machine(jobman, write):
    name = write("version: 1\ntasks: [{command: ./run, resources: {type: core, count: 1}}]\n")
    data = jobman("satisfy", name, "-o", "json").data
    assert data[0]["chosen"] == 0
    assert len(data[0]["alternatives"][0]["parts"][0]["nodes"]) == 1


def test_what_this_machine_lacks_is_said(jobman, write):
    name = write(TOO_LARGE.replace("}}]", "}, requires: {os.name: plan9}}]"))
    answer = jobman("satisfy", name)
    assert answer.code == 4
    assert "os.name is linux, not plan9" in answer.out


def test_virtual_nodes_are_matched_without_a_file(jobman, write):
    assert "node-0, node-1, node-2, node-3" in jobman("satisfy", write(TOO_LARGE), "--virtual", "4x4").out
    assert jobman("satisfy", write(TOO_LARGE), "--virtual", "4x4").code == 4
    assert jobman("satisfy", write(TOO_LARGE), "--virtual", "7x1").code == 0


def test_virtual_nodes_that_make_no_sense_get_an_example(jobman, write):
    answer = jobman("satisfy", write(JOB), "--virtual", "4by4")
    assert (answer.code, answer.out) == (2, "")
    assert "such as 4x4 or 4x4x2" in " ".join(answer.err.split())


def test_nodes_are_either_described_or_virtual(jobman, write, nodes):
    answer = jobman("satisfy", write(JOB), "--nodes", nodes, "--virtual", "4x4")
    assert (answer.code, answer.out) == (2, "")
    assert "either --nodes or --virtual" in answer.err


def test_a_document_may_come_from_standard_input(jobman, nodes):
    assert jobman("satisfy", "-", "--nodes", nodes, stdin=JOB).code == 0


def test_nodes_may_come_from_standard_input(jobman, write):
    assert jobman("satisfy", write(JOB), "--nodes", "-", stdin=NODES).code == 0


def test_set_changes_what_is_asked_for(jobman, write, nodes):
    name = write(
        'version: 1\nparameters: {n: 1}\ntasks: [{command: a, resources: {type: node, count: "{{n}}"}}]\n'
    )
    assert jobman("satisfy", name, "--nodes", nodes, "--set", "n=6").code == 0
    assert jobman("satisfy", name, "--nodes", nodes, "--set", "n=7").code == 4
