"""`jobman explain`: what a document means, for people and for programs."""

from pathlib import Path

import pytest
import yaml

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
JOB = """\
version: 1
name: study
attributes: {duration: 2h}
groups:
- name: wide
  resources: {type: node, count: 2, with: [{type: slot, count: 4, with: [{type: core, count: 2}]}]}
  tasks:
  - name: mesh
    command: [./mesh, --title, my mesh]
  - {name: solve, command: ./solve, replicas: 3, depends_on: mesh, image: "example.org/solve:1"}
  - {name: tidy, command: ./tidy, when: always}
"""
WARNED = "tasks: [{command: [echo], resources: {type: node, count: 1}}]\n"


def test_the_tree_shows_units_copies_totals_and_origins(jobman, write):
    answer = jobman("explain", write(JOB))
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "study  2 nodes, 16 cores if all of it ran at once"
    assert "└── wide group, line 5  2 nodes, 16 cores" in lines
    shown = [line.lstrip(" │├└─") for line in lines]
    assert "mesh task, line 8  8 copies on 2 nodes, 16 cores" in shown
    assert "$ ./mesh --title 'my mesh'" in shown
    assert "solve task, line 10  3 replicas × 8 copies on 2 nodes, 16 cores  after wide/mesh" in shown
    assert "image = example.org/solve:1  ← task solve, line 10" in shown
    assert "duration = 2h  ← document, line 3" in shown
    assert any(
        line.startswith("tidy task, line 11  8 copies on 2 nodes, 16 cores  always, after") for line in shown
    )


def test_the_tree_ends_with_the_digest_and_the_features(jobman, write):
    name = write(JOB)
    *_, plan, features = jobman("explain", name).out.splitlines()
    digest = jobman("explain", name, "-o", "json").data["digest"]
    assert plan == f"plan {digest[:19]}…"
    assert features.startswith("features used (")
    assert "when.always" in features


def test_the_documented_keys_of_the_data(jobman, write):
    data = jobman("explain", write(JOB), "-o", "json").data
    assert list(data) == ["name", "digest", "at_once", "values", "units", "features"]
    assert data["at_once"] == {"nodes": 2, "amounts": {"core": 16}}
    solve = next(unit for unit in data["units"] if unit["id"] == "wide/solve")
    assert {key: solve[key] for key in ("kind", "parent", "line", "replicas", "copies", "waits_for")} == {
        "kind": "task",
        "parent": "wide",
        "line": 10,
        "replicas": 3,
        "copies": [8],
        "waits_for": ["wide/mesh"],
    }
    assert {"key": "duration", "value": 7200.0, "level": "document", "line": 3} in solve["values"]
    assert all(set(feature) == {"id", "title", "section"} for feature in data["features"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_be_explained_in_every_form(jobman, path):
    table, data, text = (jobman("explain", path, "-o", form) for form in ("table", "json", "yaml"))
    assert (table.code, data.code, text.code) == (0, 0, 0)
    assert yaml.load(text.out, Loader=yaml.CSafeLoader) == data.data
    jobs = data.data if isinstance(data.data, list) else [data.data]
    for unit in (unit for job in jobs for unit in job["units"]):
        assert f"line {unit['line']}" in table.out


def test_the_form_may_be_asked_for_before_the_command(jobman, good):
    assert jobman("-o", "json", "explain", good) == jobman("explain", good, "-o", "json")


def test_several_documents_are_a_list(jobman, write):
    name = write(f"{JOB}---\n{JOB.replace('study', 'other')}")
    assert [job["name"] for job in jobman("explain", name, "-o", "json").data] == ["study", "other"]
    assert "\nother  " in jobman("explain", name).out


def test_standard_input_can_be_explained(jobman):
    assert jobman("explain", "-", stdin=JOB).out.startswith("study")


def test_set_changes_the_explanation(jobman, write):
    name = write(
        'version: 1\nparameters: {n: 1}\ntasks: [{command: a, resources: {type: node, count: "{{n}}"}}]\n'
    )
    assert jobman("explain", name, "--set", "n=7", "-o", "json").data["at_once"]["nodes"] == 7


def test_a_wrong_document_is_told_on_stderr(jobman, write):
    answer = jobman("explain", write(JOB.replace("count: 2,", "count: 0,")))
    assert (answer.code, answer.out) == (3, "")
    assert "error JS406" in answer.err


def test_a_wrong_document_is_told_as_data_where_data_is_asked_for(jobman, write):
    answer = jobman("explain", write(JOB.replace("count: 2,", "count: 0,")), "-o", "json")
    assert (answer.code, answer.err) == (3, "")
    assert "JS406" in answer.codes


def test_a_warning_stands_on_stderr_beside_the_answer(jobman, write):
    answer = jobman("explain", write(WARNED))
    assert answer.code == 0
    assert answer.out.startswith("job  ")
    assert "warning JS110" in answer.err


def test_a_warning_stands_on_stderr_also_beside_data(jobman, write):
    assert "JS110" in jobman("explain", write(WARNED), "-o", "json").err


@pytest.mark.parametrize("text", ["[bold]loud[/bold]", "[/x]", ":smile:", "a\\", "漢字"])
def test_a_command_is_shown_as_it_is(jobman, write, text):
    name = write(f"version: 1\ntasks: [{{command: [echo, '{text}'], resources: {{type: node, count: 1}}}}]\n")
    assert text in jobman("explain", name).out


def test_a_long_command_is_cut_and_whole_in_the_data(jobman, write):
    name = write(
        f"version: 1\ntasks: [{{command: [echo, {'x' * 5000}], resources: {{type: node, count: 1}}}}]\n"
    )
    assert max(map(len, jobman("explain", name).out.splitlines())) <= 160
    assert jobman("explain", name, "-o", "json").data["units"][0]["command"] == ["echo", "x" * 5000]


def test_many_values_are_cut_and_whole_in_the_data(jobman, write):
    variables = ", ".join(f"V{number}: x" for number in range(30))
    name = write(
        f"version: 1\nattributes: {{environment: {{{variables}}}}}\n"
        "tasks: [{command: [echo], resources: {type: node, count: 1}}]\n"
    )
    assert "… and 19 more values; -o json shows all" in jobman("explain", name).out
    assert len(jobman("explain", name, "-o", "json").data["units"][0]["values"]) == 31


# -- the graph ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("file", "start"), [("out.svg", "<svg"), ("out.mmd", "flowchart")])
def test_the_graph_is_drawn_into_a_file(jobman, write, file, start):
    answer = jobman("explain", write(JOB), "--graph", file)
    assert (answer.code, answer.err) == (0, f"graph: {file}\n")
    assert start in Path(file).read_text(encoding="utf-8")
    assert answer.out.startswith("study")


def test_each_document_gets_a_graph_of_its_own(jobman, write):
    jobman("explain", write(f"{JOB}---\n{JOB}"), "--graph", "out.svg")
    assert sorted(path.name for path in Path().glob("*.svg")) == ["out-1.svg", "out-2.svg"]


def test_another_kind_of_graph_is_a_wrong_use(jobman, write):
    answer = jobman("explain", write(JOB), "--graph", "out.png")
    assert (answer.code, answer.out) == (2, "")
    assert ".svg or .mmd" in answer.err


def test_a_graph_that_cannot_be_written_gives_a_clear_error(jobman, write):
    answer = jobman("explain", write(JOB), "--graph", "no/such/folder/out.svg")
    assert answer.code == 1
    assert "jobman: cannot write no/such/folder/out.svg: No such file or directory\n" in answer.err
