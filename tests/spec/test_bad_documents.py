"""Wrong documents: each gets exactly the messages its author needs, in file order.

A document (`bad/CODE-what-it-shows.yaml`) has its problems beside it (`.json`). A problem there may leave
a field out where only the others matter.
"""

import json
import os
from pathlib import Path

import pytest
import typer

from jobman.api import load, load_all, loads
from jobman.cli.problems import MOST_SHOWN, print_problems
from jobman.cli.state import parse_parameters
from jobman.settings import load_settings
from jobman.spec.codes import CODES
from jobman.spec.load import load_jobs
from jobman.spec.problems import Problems, SpecError
from jobman.spec.site import Site
from jobman.spec.source import MAX_BYTES, Source, decode_source
from jobman.spec.yaml import MAX_NODES

BAD = Path(__file__).parents[1] / "fixtures" / "bad"
NAMES = sorted(path.stem for path in BAD.glob("*.yaml"))
FIELDS = ("code", "severity", "line", "column", "end_column", "message", "advice")

# Codes that need more than a document: a path, settings, a command line or sheer size. Each has a test below,
# those of registries (JS82…), queues and accounts (JS9…) in tests/settings.
ELSEWHERE = {
    "JS001",
    "JS002",
    "JS005",
    "JS006",
    "JS011",
    "JS115",
    "JS315",
    "JS421",
    "JS422",
    "JS423",
    "JS802",
    "JS803",
    "JS806",
    "JS807",
    "JS809",
    "JS810",
    "JS821",
    "JS822",
    "JS823",
    "JS824",
    "JS825",
    "JS901",
    "JS902",
    "JS903",
    "JS904",
    "JS905",
    "JS906",
    "JS907",
    "JS908",
    "JS909",
}

TASK = "tasks: [{name: a, command: [echo], resources: {type: node, count: 1}}]\n"
GOOD = "version: 1\n" + TASK


def problems_of(data, site=None, name="document.yaml"):
    problems = Problems()
    source = decode_source(name, data, problems)
    if source is not None:
        load_jobs(source, site or Site(), problems)
    return problems.in_order()


def codes_of(text, site=None):
    return [problem.code for problem in problems_of(text.encode(), site)]


def written(problem):
    place = problem.place
    values = (problem.code, problem.severity, place.line, place.column, place.end_column)
    return dict(zip(FIELDS, (*values, problem.message, problem.advice), strict=True))


def expected(name):
    return json.loads((BAD / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_document_gets_exactly_the_messages_its_author_needs(name):
    found = [
        written(problem) for problem in problems_of((BAD / f"{name}.yaml").read_bytes(), name=f"{name}.yaml")
    ]
    wanted = expected(name)
    asked_for = [
        {field: problem[field] for field in FIELDS if field in want}
        for problem, want in zip(found, wanted, strict=False)
    ]
    assert asked_for + found[len(wanted) :] == wanted


def test_every_document_has_its_problems_and_every_list_its_document():
    assert sorted(path.stem for path in BAD.glob("*.json")) == NAMES
    assert [name for name in NAMES if not expected(name)] == []


def test_every_code_of_the_catalogue_is_triggered_by_a_document_or_a_test():
    by_documents = {problem["code"] for name in NAMES for problem in expected(name)}
    assert sorted(set(CODES) - by_documents) == sorted(ELSEWHERE)


def test_a_document_is_named_after_a_code_it_shows():
    astray = [
        name
        for name in NAMES
        if name[:5] in CODES and name[:5] not in {each["code"] for each in expected(name)}
    ]
    assert astray == []


# -- what no document can trigger ---------------------------------------------------------------------------


def only(problems):
    (problem,) = problems
    return problem


def test_a_file_that_is_not_there_is_named(tmp_path):
    problem = only(load(tmp_path / "job.yaml").problems)
    assert (problem.code, problem.place) == ("JS001", None)
    assert str(tmp_path / "job.yaml") in problem.message


def test_a_folder_tells_which_documents_it_holds(tmp_path):
    for name in ("b.yaml", "a.yml", "notes.txt"):
        (tmp_path / name).touch()
    problem = only(load(tmp_path).problems)
    assert (problem.code, problem.advice) == ("JS002", "name a file in it: it holds a.yml, b.yaml")


def test_a_folder_without_documents_says_so(tmp_path):
    problem = only(load(tmp_path).problems)
    assert (problem.code, problem.advice) == ("JS002", "name a file in it: it holds no .yaml file")


def test_a_file_of_seventeen_mebibytes_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "large.yaml"
    path.write_bytes(b"# " + b"x" * (17 * 2**20))
    problem = only(load(path).problems)
    assert problem.code == "JS005"
    assert "16 MiB" in problem.message


def test_a_file_of_exactly_the_largest_size_is_read():
    data = GOOD.encode() + b"#" * (MAX_BYTES - len(GOOD))
    assert problems_of(data) == []


@pytest.mark.parametrize("name", ["loop.yaml", "file.yaml/job.yaml"])
def test_a_file_that_cannot_be_opened_gives_the_reason_of_the_system(tmp_path, name):
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    (tmp_path / "file.yaml").touch()
    path = tmp_path / name
    with pytest.raises(OSError) as raised:  # noqa: PT011
        os.stat(path)  # noqa: PTH116
    problem = only(load(path).problems)
    assert problem.code == "JS006"
    assert raised.value.strerror in problem.message


def test_a_path_with_a_zero_character_is_a_problem_and_no_crash():
    assert only(load("a\0b").problems).code == "JS006"


@pytest.mark.slow
def test_a_million_values_are_too_many():
    assert codes_of("[" + "1," * MAX_NODES + "1]") == ["JS011"]


def test_several_documents_where_one_is_expected(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(f"{GOOD}---\n{GOOD}")
    problem = only(load(path).problems)
    assert problem.code == "JS115"
    assert "2 documents" in problem.message
    assert [spec.ok for spec in load_all(path)] == [True, True]
    assert "JS115" in [each.code for each in loads(path.read_text()).problems]


def test_groups_that_multiply_are_refused_before_they_fill_the_memory():
    layers = "".join(
        f"- name: g{number}\n  tasks:\n"
        + "".join(f"  - {{name: r{i}, group: g{number + 1}}}\n" for i in range(10))
        for number in range(8)
    )
    leaf = "- {name: g8, tasks: [{command: [echo], resources: {type: node, count: 1}}]}\n"
    assert codes_of(f"version: 1\ngroups:\n{layers}{leaf}") == ["JS315"]


def test_a_parameter_the_document_does_not_have():
    spec = loads(
        f"version: 1\nparameters: {{nodes: 1}}\nname: x{{{{nodes}}}}\n{TASK}", parameters={"ndoes": 2}
    )
    problem = only(spec.problems)
    assert (problem.code, problem.place, problem.advice) == ("JS802", None, "did you mean `nodes`?")


def test_a_parameter_of_another_type():
    spec = loads(
        f"version: 1\nparameters: {{nodes: 1}}\nname: x{{{{nodes}}}}\n{TASK}", parameters={"nodes": "two"}
    )
    problem = only(spec.problems)
    assert problem.code == "JS803"
    assert problem.message == 'the parameter `nodes` is a whole number, and `--set` gave "two"'


@pytest.mark.parametrize("text", ["nodes", "=3", ""])
def test_a_set_without_a_name_or_an_equals_sign(text, capsys):
    with pytest.raises(typer.Exit):
        parse_parameters([text], "json")
    assert [each["code"] for each in json.loads(capsys.readouterr().out)["problems"]] == ["JS809"]


def test_a_queue_the_settings_do_not_know():
    problem = only(problems_of(f"version: 1\nqueue: bathc\n{TASK}".encode(), Site(queues=("batch", "debug"))))
    assert (problem.code, problem.severity, problem.advice) == ("JS806", "warning", "did you mean `batch`?")


def test_a_priority_class_the_settings_do_not_know():
    site = Site(priorities=("low", "urgent"))
    problem = only(problems_of(f"version: 1\npriority: urgnet\n{TASK}".encode(), site))
    assert (problem.code, problem.severity, problem.advice) == ("JS807", "warning", "did you mean `urgent`?")


def test_a_default_flavor_that_does_not_exist():
    problem = only(problems_of(GOOD.encode(), Site(default_flavor="small")))
    assert (problem.code, problem.place) == ("JS810", None)


def settings_problems(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as raised:
        load_settings(path)
    return raised.value.problems


@pytest.mark.parametrize(
    ("code", "flavor", "place"),
    [
        ("JS421", "{name: small}", (1, 11)),
        pytest.param("JS422", "{name: small, resources: {requests: {cpu: many}}}", (1, 53)),
        pytest.param("JS422", "{name: small, resources: {requests: {memory: 1GB}}}", (1, 56)),
        pytest.param(
            "JS423",
            "{name: small, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}",
            (1, 71),
        ),
    ],
)
def test_a_wrong_flavor_is_refused_where_it_is_written(tmp_path, code, flavor, place):
    problem = only(settings_problems(tmp_path, f"flavors: [{flavor}]\n"))
    assert (problem.code, (problem.place.line, problem.place.column)) == (code, place)


# -- hostile files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "], ids=["list", "mapping", "items", "keys"])
def test_a_hundred_thousand_levels_are_refused(opening):
    assert codes_of(opening * 100_000) == ["JS010"]


def test_a_chain_of_aliases_is_refused_when_it_is_too_deep():
    chain = "".join(f"a{number}: &a{number} [*a{number - 1}]\n" for number in range(1, 200))
    assert "JS010" in codes_of(f"a0: &a0 [x]\n{chain}")


def test_a_short_chain_of_aliases_is_read():
    chain = "".join(f"  a{number}: &a{number} [*a{number - 1}]\n" for number in range(1, 50))
    text = "version: 1\nattributes: {flags: {kubernetes: {\n  a0: &a0 [x],\n"
    assert codes_of(text + chain.replace("]\n", "],\n") + "}}}\n" + TASK) == []


@pytest.mark.slow
def test_merges_that_multiply_are_refused():
    large = ", ".join(f"k{number}: 1" for number in range(1500))
    merges = "- <<: *large\n" * 1500
    assert "JS009" in codes_of(f"large: &large {{{large}}}\nmany:\n{merges}")


def test_a_file_of_zero_bytes_is_binary():
    assert [problem.code for problem in problems_of(bytes(1000))] == ["JS003"]


def test_a_zero_byte_far_into_the_file_has_its_place():
    problem = only(problems_of(GOOD.encode() + b"#" * 10_000 + b"\n# \0\n"))
    assert (problem.code, problem.place.line, problem.place.column) == ("JS008", 4, 3)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused_as_a_whole(encoding):
    assert only(problems_of(GOOD.encode(encoding))).code in ("JS003", "JS004")


def test_the_first_byte_that_is_not_utf_8_has_its_place():
    problem = only(problems_of("version: 1\n# ü ".encode() + b"\xff\n"))
    assert (problem.code, problem.place.line, problem.place.column) == ("JS004", 2, 5)
    assert "0xff at byte 16" in problem.message


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"], ids=repr)
def test_every_line_break_of_yaml_counts_as_one_line(line_break):
    text = "version: 1\nname: my job\n" + TASK
    problem = only(problems_of(text.replace("\n", line_break).encode()))
    assert (problem.code, problem.place.line, problem.place.column) == ("JS201", 2, 7)
    assert problem.line_text == "name: my job"


def test_a_byte_order_mark_is_no_part_of_the_document():
    assert problems_of(b"\xef\xbb\xbf" + GOOD.encode()) == []


@pytest.mark.slow
def test_a_culprit_far_out_in_a_long_line_is_shown_with_its_surroundings(capsys):
    text = f"version: 1\ntasks: [{{command: [{'x, ' * 100_000}x], resources: {{type: node, count: no}}}}]\n"
    problem = only(problems_of(text.encode()))
    assert problem.line_text[problem.place.column - 1 : problem.place.end_column - 1] == "no"
    print_problems([problem])
    assert max(map(len, capsys.readouterr().out.splitlines())) < 200


@pytest.mark.slow
def test_all_problems_of_a_file_are_kept_and_the_first_are_printed(capsys):
    tasks = "".join("- {command: [echo], resources: {type: node, count: 0}}\n" for _ in range(5000))
    problems = problems_of(f"version: 1\ntasks:\n{tasks}".encode())
    assert [(each.code, each.place.line) for each in problems] == [("JS406", line) for line in range(3, 5003)]
    print_problems(problems)
    shown = capsys.readouterr().out.splitlines()
    assert sum("JS406" in line for line in shown) == MOST_SHOWN
    assert shown[-1] == "… and 4900 more; `-o json` lists them all"


def test_text_given_as_a_string_may_hold_half_a_character():
    problems = Problems()
    load_jobs(Source("text", "name: '\ud800'\n"), Site(), problems)
    problem = only(problems)
    assert (problem.code, problem.place.line, problem.place.column) == ("JS008", 1, 8)
    assert problem.message == "the character U+D800 is not allowed in YAML"
