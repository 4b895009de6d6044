"""Mechanical repairs: what they change, what they leave alone, and that they come to an end."""

# ruff: noqa: E501 - a document stands in one line

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.spec.fix import apply_edits, fix_source
from jobman.spec.load import load_jobs
from jobman.spec.problems import Edit, Problems
from jobman.spec.site import Site
from jobman.spec.source import Source, decode_source

FIXTURES = Path(__file__).parents[1] / "fixtures"
DOCUMENTS = sorted([*FIXTURES.glob("bad/*.yaml"), *FIXTURES.glob("seeds/*.yaml")])


def fixed(text):
    return fix_source(Source("job.yaml", text), Site()).text


def codes(text):
    problems = Problems()
    load_jobs(Source("job.yaml", text), Site(), problems)
    return [problem.code for problem in problems.in_order()]


REPAIRS = {
    "missing version": (
        "# what it does\ntasks:\n- command: [echo]\n  resources: {type: node, count: 1}\n",
        "# what it does\nversion: 1\ntasks:\n- command: [echo]\n  resources: {type: node, count: 1}\n",
    ),
    "missing version behind a document start": (
        "---\ntasks:\n- command: [echo]\n  resources: {type: node, count: 1}\n",
        "---\nversion: 1\ntasks:\n- command: [echo]\n  resources: {type: node, count: 1}\n",
    ),
    "plural in a block": (
        "version: 1\ntasks:\n- command: [echo]\n  resources:\n    type: nodes # two\n    count: 2\n",
        "version: 1\ntasks:\n- command: [echo]\n  resources:\n    type: node # two\n    count: 2\n",
    ),
    "plurals in a flow, quoted and not": (
        "version: 1\ntasks:\n- command: [echo]\n  resources: {type: 'nodes', count: 2, with: [{type: cores, count: 4}]}\n",
        "version: 1\ntasks:\n- command: [echo]\n  resources: {type: node, count: 2, with: [{type: core, count: 4}]}\n",
    ),
    "command at the end of resources": (
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n    command: [echo]\n",
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n  command: [echo]\n",
    ),
    "command in the middle of resources": (
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    command: [echo]  # hi\n    count: 1\n  replicas: 2\n",
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n  command: [echo]  # hi\n  replicas: 2\n",
    ),
    "command of several lines in the middle of resources": (
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    command:\n    - bash\n    - -c\n    - |\n"
        "      date\n\n      hostname\n    count: 1\n",
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n  command:\n  - bash\n  - -c\n  - |\n"
        "    date\n\n    hostname\n",
    ),
    "command in resources at the end of a file without a line break": (
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n    command: [echo]",
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n  command: [echo]\n",
    ),
    "command in the middle, and a file without a line break": (
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    command: [echo]\n    count: 1",
        "version: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n  command: [echo]\n",
    ),
    "depends_on in attributes": (
        "version: 1\nresources: {one: {type: node, count: 1}}\ntasks:\n- {name: a, command: [echo], resources: one}\n"
        "- command: [echo]\n  resources: one\n  attributes:\n    cwd: /tmp\n    depends_on: [a]\n",
        "version: 1\nresources: {one: {type: node, count: 1}}\ntasks:\n- {name: a, command: [echo], resources: one}\n"
        "- command: [echo]\n  resources: one\n  attributes:\n    cwd: /tmp\n  depends_on: [a]\n",
    ),
    "misspelt keys": (
        "version: 1\ntsaks:\n- comand:   [echo]   # spaces stay\n  resorces: {typ: node, count: 1}\n",
        "version: 1\ntasks:\n- command:   [echo]   # spaces stay\n  resources: {type: node, count: 1}\n",
    ),
    "habits of other tools": (
        "version: 1\ntasks:\n- {name: a, cmd: [echo], resources: &one {type: node, count: 1}}\n"
        "- {command: [echo], resources: *one, needs: a}\n",
        "version: 1\ntasks:\n- {name: a, command: [echo], resources: &one {type: node, count: 1}}\n"
        "- {command: [echo], resources: *one, depends_on: a}\n",
    ),
    "yes and no": (
        "version: 1\ntasks:\n- {command: [echo], resources: {type: node, count: 1, exclusive: yes}}\n"
        "- {command: [echo], resources: {type: node, count: 1}, service: off}\n",
        "version: 1\ntasks:\n- {command: [echo], resources: {type: node, count: 1, exclusive: true}}\n"
        "- {command: [echo], resources: {type: node, count: 1}, service: false}\n",
    ),
    "parameter without quotes": (
        "version: 1\nparameters: {n: 2}\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: {{n}} # n\n",
        'version: 1\nparameters: {n: 2}\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: "{{n}}" # n\n',
    ),
    "parameter with spaces in the braces": (
        "version: 1\nparameters: {n: 2}\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: {{ n }}\n",
        'version: 1\nparameters: {n: 2}\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: "{{ n }}"\n',
    ),
    "tabs": (
        "version: 1\ntasks:\n- command: [echo]\n\tresources:\n\t\ttype: node\n\t\tcount: 1\n",
        "version: 1\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: 1\n",
    ),
    "a list of tasks": (
        "# mine\n- command: [echo]\n  resources: {type: node, count: 1}\n",
        "# mine\nversion: 1\ntasks:\n- command: [echo]\n  resources: {type: node, count: 1}\n",
    ),
    "a list of groups": (
        "- name: g\n  resources: {type: node, count: 1}\n  tasks:\n  - command: [echo]\n",
        "version: 1\ngroups:\n- name: g\n  resources: {type: node, count: 1}\n  tasks:\n  - command: [echo]\n",
    ),
    "no space behind a colon": (
        "version: 1\ntasks:\n- name:a\n  command: [echo]\n  resources: {type: node, count: 1}\n",
        "version: 1\ntasks:\n- name: a\n  command: [echo]\n  resources: {type: node, count: 1}\n",
    ),
    "each document of a file": (
        "tasks:\n- {command: [echo], resources: {type: node, count: 1}}\n---\n"
        "tasks:\n- {command: [echo], resources: {type: nodes, count: 1}}\n",
        "version: 1\ntasks:\n- {command: [echo], resources: {type: node, count: 1}}\n---\n"
        "version: 1\ntasks:\n- {command: [echo], resources: {type: node, count: 1}}\n",
    ),
    "everything at once": (
        "# head\ntasks:\n- name: a\n  resources:\n    type: nodes\n    command: [echo]   # tail\n    count: 1\n  service: no\n",
        "# head\nversion: 1\ntasks:\n- name: a\n  resources:\n    type: node\n    count: 1\n  command: [echo]   # tail\n"
        "  service: false\n",
    ),
}


@pytest.fixture(params=REPAIRS.values(), ids=list(REPAIRS))
def repair(request):
    return request.param


def test_a_repair_changes_what_is_wrong_and_nothing_else(repair):
    before, after = repair
    assert codes(before) != []
    assert fixed(before) == after
    assert codes(after) == []


def test_a_file_with_carriage_returns_keeps_them(repair):
    before, after = repair
    assert fixed(before.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


def test_what_needs_a_guess_at_the_meaning_is_left_alone():
    text = "version: 1\ntasks:\n- command: [echo]\n  resources: {type: node, count: 0}\n  colour: blue\n"
    assert fixed(text) == text


def test_a_second_command_is_not_made_of_one_that_stands_too_deep():
    text = "version: 1\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: 1\n    command: [ls]\n"
    assert "JS012" not in codes(fixed(text))


def test_a_misspelt_key_is_not_renamed_to_one_that_is_there():
    text = "version: 1\ntasks:\n- command: [echo]\n  comand: [ls]\n  resources: {type: node, count: 1}\n"
    assert fixed(text) == text


def test_two_misspellings_of_one_key_do_not_become_that_key_twice():
    text = "version: 1\ntasks:\n- comand: [echo]\n  commnd: [ls]\n  resources: {type: node, count: 1}\n"
    assert "JS012" not in codes(fixed(text))


def test_edits_are_applied_wherever_they_stand():
    assert apply_edits("abcdef", [Edit(4, 5, "E"), Edit(0, 1, ""), Edit(2, 2, "--")]) == "b--cdEf"


# -- properties ---------------------------------------------------------------------------------------------


def source_of(path):
    return decode_source(path.name, path.read_bytes(), Problems())


READABLE = [path for path in DOCUMENTS if source_of(path) is not None]


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_fixing_twice_changes_nothing_more(path):
    once = fix_source(source_of(path), Site())
    assert fix_source(once, Site()).text == once.text


def errors(source):
    problems = Problems()
    load_jobs(source, Site(), problems)
    return sum(problem.severity == "error" for problem in problems)


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_a_repair_makes_no_document_worse(path):
    source = source_of(path)
    assert errors(fix_source(source, Site())) <= errors(source)


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_a_document_whose_problems_are_all_mechanical_becomes_good(path):
    source = source_of(path)
    found = Problems()
    load_jobs(source, Site(), found)
    if all(problem.fix for problem in found):
        assert codes(fix_source(source, Site()).text) == []


LINES = st.sampled_from(
    [
        "version: 1", "tasks:", "tsaks:", "- command: [echo]", "  comand: [ls]", "- name: a", "  resources:",
        "    type: nodes", "    type: node", "    count: 1", "    command: [echo]", "    count: {{n}}", "\tcount: 1",
        "  service: yes", "  local: no", "# a comment", "", "---", "parameters: {n: 1}", "groups:", "  tasks:",
        "  - command: [echo]", "  name:a", "  depend_on: [a]", "    with: [{type: cores, count: 2}]",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=300, deadline=None)
def test_fixing_always_comes_to_an_end_that_stays(lines, line_break):
    once = fixed(line_break.join(lines))
    assert fixed(once) == once


@given(st.lists(LINES, max_size=12))
@settings(max_examples=300, deadline=None)
def test_fixing_never_touches_a_comment_line(lines):
    text = "\n".join(lines) + "\n"
    assert fixed(text).count("# a comment\n") == text.count("# a comment\n")
