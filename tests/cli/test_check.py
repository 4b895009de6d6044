"""`jobman check`: every problem, in its place, as text and as data."""

# ruff: noqa: E501 - a document stands in one line

import pty
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from rich.cells import cell_len

TASK = "tasks: [{command: [echo], resources: {type: node, count: 1}}]\n"
GOOD = f"version: 1\n{TASK}"
WARNED = TASK
WRONG = "version: 1\ntasks: [{command: [echo], resources: {type: node, count: 0}}]\n"
GUTTER = len("    1 | ")


def excerpts(text):
    """The pairs of a source line and the carets under it, without the gutter."""
    lines = text.splitlines()
    return [
        (above[GUTTER:], below[GUTTER:]) for above, below in pairwise(lines) if below.startswith("      | ")
    ]


def marked(line, carets):
    """The part of a line that stands above the carets, measured in cells of a terminal."""
    start, length = len(carets) - len(carets.lstrip()), len(carets.strip())
    found, cells = "", 0
    for character in line:
        if start <= cells < start + length:
            found += character
        cells += cell_len(character)
    return found


# -- the verdict --------------------------------------------------------------------------------------------


def test_a_good_document_is_said_to_be_good(jobman, write):
    assert jobman("check", write(GOOD)) == (0, "job.yaml: ok (1 task)\n", "")


def test_the_verdict_counts_tasks_and_groups(jobman, write):
    name = write(
        "version: 1\ngroups: [{name: g, resources: {type: node, count: 1}, tasks: [{command: a}, {command: b}]}]\n"
    )
    assert jobman("check", name).out == "job.yaml: ok (2 tasks, 1 group)\n"


def test_a_problem_is_shown_with_place_line_caret_and_advice(jobman, write):
    answer = jobman("check", write(WRONG))
    assert answer.code == 3
    assert answer.err == ""
    assert answer.out.splitlines() == [
        'job.yaml:2:58: error JS406: "0" is not a count',
        "    2 | tasks: [{command: [echo], resources: {type: node, count: 0}}]",
        "      |                                                          ^",
        "      help: write a whole number, at least 1",
        "job.yaml: 1 error",
    ]


def test_a_warning_alone_is_no_failure(jobman, write):
    answer = jobman("check", write(WARNED))
    assert answer.code == 0
    assert "warning JS110" in answer.out
    assert answer.out.endswith("job.yaml: ok (1 task, 1 warning)\n")


def test_strict_makes_a_warning_an_error(jobman, write):
    answer = jobman("check", "--strict", write(WARNED))
    assert answer.code == 3
    assert "error JS110" in answer.out
    assert answer.out.endswith("job.yaml: 1 error\n")


def test_strict_has_nothing_against_a_good_document(jobman, write):
    assert jobman("check", "--strict", write(GOOD)).code == 0


# -- as data ------------------------------------------------------------------------------------------------


def test_the_data_of_a_good_document(jobman, write):
    (entry,) = jobman("check", write(GOOD), "-o", "json").data
    assert list(entry) == ["file", "ok", "digests", "problems"]
    assert (entry["file"], entry["ok"], entry["problems"]) == ("job.yaml", True, [])
    assert [digest[:7] for digest in entry["digests"]] == ["sha256:"]


def test_the_data_of_a_problem(jobman, write):
    answer = jobman("check", write(WRONG), "-o", "json")
    assert (answer.code, answer.err) == (3, "")
    (entry,) = answer.data
    assert (entry["ok"], entry["digests"]) == (False, [])
    assert entry["problems"] == [
        {
            "code": "JS406",
            "severity": "error",
            "message": '"0" is not a count',
            "advice": "write a whole number, at least 1",
            "place": {"file": "job.yaml", "line": 2, "column": 58, "end_line": 2, "end_column": 59},
            "line_text": WRONG.splitlines()[1],
        }
    ]


def test_json_and_yaml_say_the_same(jobman, write):
    name = write(WRONG)
    assert yaml.safe_load(jobman("check", name, "-o", "yaml").out) == jobman("check", name, "-o", "json").data


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_form_may_be_asked_for_before_or_behind_the_command(jobman, good, form):
    assert (
        jobman("-o", form, "check", good)
        == jobman("check", good, "-o", form)
        == jobman("check", "-o", form, good)
    )


def test_the_form_behind_the_command_wins(jobman, good):
    assert jobman("-o", "yaml", "check", good, "-o", "json").data[0]["ok"]


def test_the_same_meaning_has_the_same_digest(jobman, write):
    name = write(
        "# a comment\nversion: 1\n\ntasks:\n- resources:\n    type: node\n    count: 1\n  command: [echo]\n"
    )
    other = write(GOOD, "other.yaml")
    first, second = jobman("check", name, other, "-o", "json").data
    assert first["digests"] == second["digests"]


def test_a_file_with_a_wide_name_is_named_as_it_is(jobman, write):
    assert jobman("check", write(GOOD, "仕事.yaml"), "-o", "json").data[0]["file"] == "仕事.yaml"


# -- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "arrange"),
    [
        ("JS001", lambda path: None),
        ("JS002", lambda path: path.mkdir()),
        ("JS003", lambda path: path.write_bytes(b"\x7fELF\0\0\0")),
        ("JS004", lambda path: path.write_bytes("name: Jürgen".encode("latin-1"))),
        ("JS007", lambda path: path.touch()),
    ],
    ids=["missing", "folder", "binary", "latin-1", "empty"],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_what_is_no_document_gets_its_message(jobman, code, arrange, form):
    arrange(Path("job.yaml"))
    answer = jobman("check", "job.yaml", "-o", form)
    assert (answer.code, answer.err) == (3, "")
    assert code in answer.out
    assert answer.codes == [code] if form == "json" else answer.out.endswith("job.yaml: 1 error\n")


def test_a_dash_reads_standard_input(jobman):
    assert jobman("check", "-", stdin=GOOD) == (0, "-: ok (1 task)\n", "")


def test_a_problem_on_standard_input_has_its_place(jobman):
    answer = jobman("check", "-", stdin=WRONG)
    assert answer.code == 3
    assert answer.out.startswith("<stdin>:2:58: error JS406")


def test_every_file_is_checked_also_behind_a_wrong_one(jobman, write):
    write(WRONG, "wrong.yaml")
    write(GOOD, "good.yaml")
    answer = jobman("check", "wrong.yaml", "missing.yaml", "good.yaml")
    assert answer.code == 3
    verdicts = [
        line
        for line in answer.out.splitlines()
        if line.split(":")[0].endswith(".yaml") and line.count(":") == 1
    ]
    assert verdicts == ["wrong.yaml: 1 error", "missing.yaml: 1 error", "good.yaml: ok (1 task)"]


def test_the_data_of_several_files_stands_in_their_order(jobman, write):
    write(WRONG, "wrong.yaml")
    write(GOOD, "good.yaml")
    entries = jobman("check", "wrong.yaml", "good.yaml", "-o", "json").data
    assert [(entry["file"], entry["ok"]) for entry in entries] == [("wrong.yaml", False), ("good.yaml", True)]


def test_every_document_of_a_file_is_a_job(jobman, write):
    name = write(f"{GOOD}---\n{GOOD}---\n{GOOD}")
    assert jobman("check", name).out == "job.yaml: ok (3 jobs, 3 tasks)\n"
    assert len(jobman("check", name, "-o", "json").data[0]["digests"]) == 3


def test_a_wrong_document_behind_a_good_one_is_found_in_its_line(jobman, write):
    answer = jobman("check", write(f"{GOOD}---\n{WRONG}"))
    assert answer.code == 3
    assert answer.out.startswith("job.yaml:5:58: error JS406")


# -- parameters ---------------------------------------------------------------------------------------------

WITH_PARAMETER = (
    "version: 1\nparameters: {nodes: 1}\n"
    'tasks: [{command: [echo], resources: {type: node, count: "{{nodes}}"}}]\n'
)


def test_set_changes_what_a_document_means(jobman, write):
    name = write(WITH_PARAMETER)
    two, three = (jobman("check", name, "--set", f"nodes={count}", "-o", "json").data[0] for count in (2, 3))
    assert two["digests"] != three["digests"]


def test_the_last_set_of_a_parameter_wins(jobman, write):
    name = write(WITH_PARAMETER)
    once = jobman("check", name, "--set", "nodes=3", "-o", "json").data
    assert jobman("check", name, "--set", "nodes=2", "--set", "nodes=3", "-o", "json").data == once


@pytest.mark.parametrize(
    ("given", "code"),
    [("nodes=0", "JS406"), ("nodes=two", "JS803"), ("ndoes=2", "JS802"), ("nodes", "JS809")],
)
def test_a_wrong_set_is_a_wrong_document(jobman, write, given, code):
    answer = jobman("check", write(WITH_PARAMETER), "--set", given, "-o", "json")
    assert answer.code == 3
    assert answer.codes == [code]


def test_a_set_that_cannot_be_read_is_told_on_stderr(jobman, write):
    answer = jobman("check", write(WITH_PARAMETER), "--set", "nodes")
    assert (answer.code, answer.out) == (3, "")
    assert "JS809: `nodes` is not `name=value`" in answer.err


# -- carets, long lines, many problems ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "culprit"),
    [("漢字", "x"), ("abc", "漢字"), ("漢字漢字", "漢字"), ("\t", "x"), ("é̄ü", "x"), ("😀", "😀😀")],
    ids=["behind wide", "wide", "both", "behind a tab", "accents", "emoji"],
)
def test_the_carets_stand_under_the_culprit(jobman, write, before, culprit):
    name = write(
        f'version: 1\ntasks: [{{command: [echo, "{before}"], resources: {{type: node, count: {culprit}}}}}]\n'
    )
    (excerpt,) = excerpts(jobman("check", name).out)
    assert marked(*excerpt) == culprit


@pytest.mark.parametrize("length", [50, 139, 500, 10_000])
@pytest.mark.parametrize("character", ["x", "漢"])
def test_a_culprit_far_out_keeps_its_carets(jobman, write, length, character):
    name = write(
        f'version: 1\ntasks: [{{command: [echo, "{character * length}"], resources: {{type: node, count: zzz}}, '
        f'image: "{character * length}"}}]\n'
    )
    found = [excerpt for excerpt in excerpts(jobman("check", name).out) if "zzz" in excerpt[0]]
    assert "zzz" in [marked(*excerpt) for excerpt in found]


def test_a_long_line_is_cut_around_the_culprit(jobman, write):
    name = write(
        f'version: 1\ntasks: [{{command: [echo, "{"x" * 5000}"], resources: {{type: node, count: zzz}}}}]\n'
    )
    lines = jobman("check", name).out.splitlines()
    assert max(map(len, lines)) < 200
    assert lines[1][GUTTER] == "…"


def test_a_hundred_problems_are_printed_and_all_are_in_the_data(jobman, write):
    tasks = "".join("- {command: [echo], resources: {type: node, count: 0}}\n" for _ in range(130))
    name = write(f"version: 1\ntasks:\n{tasks}")
    printed = jobman("check", name).out.splitlines()
    assert sum("error JS406" in line for line in printed) == 100
    assert printed[-2:] == ["… and 30 more; `-o json` lists them all", "job.yaml: 130 errors"]
    assert jobman("check", name, "-o", "json").codes == ["JS406"] * 130


def test_exactly_a_hundred_problems_are_all_printed(jobman, write):
    tasks = "".join("- {command: [echo], resources: {type: node, count: 0}}\n" for _ in range(100))
    assert "more" not in jobman("check", write(f"version: 1\ntasks:\n{tasks}")).out


@pytest.mark.parametrize("text", ["[bold]loud[/bold]", "[/x]", ":smile:", "a\\"])
def test_the_text_of_a_document_is_printed_as_it_is(jobman, write, text):
    answer = jobman("check", write(f"version: 1\nname: '{text}'\n{TASK}"))
    assert f"name: '{text}'" in answer.out
    assert f'"{text}" is not a name' in answer.out


# -- terminals ----------------------------------------------------------------------------------------------


def in_a_terminal(*arguments, **environment):
    """What a command prints where its output is a terminal."""
    import os

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jobman.cli.main", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side is closed.
            break
        if not some:
            break
        printed += some
    os.close(ours)
    process.wait(timeout=60)
    return printed.decode()


def test_a_terminal_gets_colours(write):
    assert "\x1b[" in in_a_terminal("check", write(WRONG))


def test_no_color_means_no_colours(write):
    printed = in_a_terminal("check", write(WRONG), NO_COLOR="1")
    assert "JS406" in printed
    assert "\x1b[3" not in printed
    assert "\x1b[9" not in printed


def test_a_file_or_pipe_gets_plain_text(real_jobman, write):
    answer = real_jobman("check", write(WRONG), TERM="xterm-256color")
    assert "JS406" in answer.out
    assert "\x1b" not in answer.out + answer.err


def test_the_real_command_ends_with_the_code_of_the_outcome(real_jobman, write):
    write(GOOD, "good.yaml")
    write(WRONG, "wrong.yaml")
    assert real_jobman("check", "good.yaml") == (0, "good.yaml: ok (1 task)\n", "")
    assert real_jobman("check", "wrong.yaml").code == 3
    assert real_jobman("check", "-", stdin=GOOD).out == "-: ok (1 task)\n"
