"""`jobman simulate`: traces under policies, side by side, in words, as data and as pictures."""

import csv
from xml.etree import ElementTree

import pytest
import yaml

from jobman.control import answers
from jobman.sim.generate import generate
from jobman.sim.swf import swf_text
from tests.cli.stub import NOW, Script, make_job

TRACE = """\
; MaxProcs: 8
1 0 0 10 6 -1 -1 6 10 -1 1 1 -1 1 -1 -1 -1 -1
2 1 9 10 4 -1 -1 4 10 -1 1 2 -1 1 -1 -1 -1 -1
3 2 0 5 2 -1 -1 2 5 -1 1 1 -1 1 -1 -1 -1 -1
"""
BARE = TRACE.replace("; MaxProcs: 8\n", "")
WAITS = ["average_wait", "median_wait", "p95_wait", "longest_wait"]


@pytest.fixture
def trace(write):
    return write(TRACE, "trace.swf")


def test_a_trace_is_replayed_beside_what_really_happened(jobman, trace):
    answer = jobman("simulate", trace)
    assert (answer.code, answer.err) == (0, "")
    title, head, *rows = answer.out.splitlines()[:4]
    assert title == "trace.swf: 3 jobs, 8 processors"
    assert head.split()[:3] == ["policy", "wait", "median"]
    assert [row.split("  ")[0] for row in rows] == ["as it was", "easy"]
    assert "guarantees of jobs that had to wait" in answer.out
    assert "expectations of jobs that had to wait" in answer.out


def test_every_number_of_promises_is_seen_in_80_columns(jobman, trace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = jobman("simulate", trace, "--policy", "conservative").out.splitlines()
    heads = [line.split("  ") for line in lines if line.startswith("policy")]
    guarantees, expectations = ([word.strip() for word in head if word] for head in heads[1:])
    assert guarantees == ["policy", "waited", "guaranteed", "broken", "within 1 min", "within 10 min"]
    assert expectations[2:6] == ["expected", "within 1 min", "within 10 min", "by its p90"]


def test_what_nobody_was_told_has_no_table(jobman, trace):
    answer = jobman("simulate", trace, "--policy", "fcfs", "--no-forecast")
    assert "that had to wait" not in answer.out


def test_policies_are_compared_in_one_table(jobman, trace):
    names = ["fcfs", "easy", "easy-sjbf", "conservative", "hybrid:2"]
    arguments = [word for name in names for word in ("--policy", name)]
    data = jobman("simulate", trace, *arguments, "-o", "json").data
    assert [row["policy"] for row in data["policies"]] == ["as it was", *names]
    assert [row["longest_wait"] for row in data["policies"]] == [9, 9, 9, 9, 9, 9]


def test_the_documented_keys_of_the_data(jobman, trace):
    data = jobman("simulate", trace, "--fairness", "-o", "json").data
    assert list(data) == ["trace", "jobs", "processors", "nodes", "left_out", "policies"]
    easy = data["policies"][1]
    assert list(easy) == [
        *("policy", "jobs", "processors", *WAITS, "bounded_slowdown", "utilisation", "makespan"),
        *("promises", "jobs_per_second", "fairness"),
    ]
    assert [easy[name] for name in WAITS] == [3, 0, 9, 9]
    assert (easy["makespan"], easy["utilisation"]) == (20, (60 + 40 + 10) / 160)
    assert easy["promises"]["broken"] == 0
    assert easy["promises"]["guaranteed"] == 1
    assert [row["user"] for row in easy["fairness"]["users"]] == ["1", "2"]


def test_json_and_yaml_say_the_same(jobman, trace):
    one = jobman("simulate", trace, "-o", "json").data
    other = yaml.safe_load(jobman("-o", "yaml", "simulate", trace).out)
    for data in (one, other):
        for row in data["policies"]:
            row.pop("jobs_per_second")
    assert one == other


def test_users_are_shown_where_it_is_asked_for(jobman, trace):
    answer = jobman("simulate", trace, "--fairness")
    assert "users under easy" in answer.out
    assert "Jain's index" in answer.out
    assert "users under" not in jobman("simulate", trace).out


def test_forecasts_may_be_left_out(jobman, trace):
    told, untold = (
        jobman("simulate", trace, *options, "-o", "json").data["policies"][1]["promises"]
        for options in ((), ("--no-forecast",))
    )
    assert (told["expected"], untold["expected"]) == (1, 0)
    assert (told["p90_coverage"], untold["p90_coverage"]) == (1, None)


def test_another_number_of_processors_leaves_what_was_aside(jobman, trace):
    data = jobman("simulate", trace, "--processors", "16", "-o", "json").data
    assert [row["policy"] for row in data["policies"]] == ["easy"]
    assert (data["processors"], data["policies"][0]["longest_wait"]) == (16, 0)


def test_a_trace_may_be_replayed_on_nodes(jobman, trace, write):
    write("- {name: 'n[1-4]', cores: 2}\n", "nodes.yaml")
    data = jobman("simulate", trace, "--cluster", "nodes.yaml", "-o", "json").data
    assert (data["processors"], data["nodes"]) == (8, 4)
    assert "on 4 nodes" in jobman("simulate", trace, "--cluster", "nodes.yaml").out


def test_a_trace_without_a_machine_needs_one(jobman, write):
    answer = jobman("simulate", write(BARE, "bare.swf"))
    assert (answer.code, answer.out) == (3, "")
    assert "does not say how many processors there are" in answer.err
    assert "give --processors N or --cluster FILE" in answer.err
    assert jobman("simulate", "bare.swf", "--processors", "8").code == 0


def test_a_trace_may_come_from_standard_input(jobman):
    assert jobman("simulate", "-", stdin=TRACE).code == 0


def test_broken_lines_are_told_with_their_numbers(jobman, write):
    answer = jobman("simulate", write(TRACE + "4 3 hello\n" + TRACE.splitlines()[1] + "\n", "broken.swf"))
    assert answer.code == 0
    assert answer.err.splitlines() == [
        "jobman: broken.swf:5: 'hello' is no number",
        "jobman: broken.swf:6: job 1 was on line 2 already",
        "jobman: left out: 2",
    ]
    data = jobman("simulate", "broken.swf", "-o", "json").data
    assert [each["line"] for each in data["left_out"]] == [5, 6]


def test_many_broken_lines_are_counted(jobman, write):
    answer = jobman("simulate", write(TRACE + "x\n" * 40, "broken.swf"))
    assert "jobman: … and 35 more; `-o json` lists all" in answer.err
    assert len(answer.err.splitlines()) == 7


def test_what_the_machine_could_never_take_is_told(jobman, trace):
    answer = jobman("simulate", trace, "--processors", "5")
    assert "job 1 could never start: it asks for 6 processors, and there are 5" in answer.err
    assert answer.out.startswith("trace.swf: 2 jobs, 5 processors")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.swf"], "none.swf cannot be read"),
        (["."], ". is a folder"),
    ],
)
def test_a_trace_that_cannot_be_read_is_refused(jobman, arguments, words):
    answer = jobman("simulate", *arguments)
    assert (answer.code, answer.out) == (3, "")
    assert words in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either a trace or --from-history"),
        (["trace.swf", "--from-history"], "either a trace or --from-history"),
        (["trace.swf", "--policy", "sjf"], "is not one of fcfs, easy, easy-sjbf, conservative, hybrid:K"),
        (["trace.swf", "--policy", "hybrid:0"], "such as hybrid:64"),
        (["trace.swf", "--processors", "4", "--cluster", "n"], "either --processors or --cluster"),
        (["trace.swf", "--plot", "out.png"], "pictures are drawn as SVG"),
        (["trace.swf", "--gantt", "out.pdf"], "the name must end in .svg"),
        (["trace.swf", "--since", "3d"], "only a history has a since"),
        (["trace.swf", "--plot", "x.svg", "--from", "1996-10-01"], "the trace has no dates"),
        (["trace.swf", "--plot", "x.svg", "--from", "2d", "--to", "1d"], "1d is not behind --from 2d"),
        (["trace.swf", "--processors", "0"], "--processors"),
    ],
)
def test_a_wrong_use_is_told(jobman, trace, arguments, words):
    answer = jobman("simulate", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in " ".join(answer.err.replace("│", " ").split())


def test_a_file_of_nodes_that_is_wrong_is_told(jobman, trace, write):
    write("- {name: n1, coers: 4}\n", "nodes.yaml")
    answer = jobman("simulate", trace, "--cluster", "nodes.yaml")
    assert (answer.code, answer.out) == (3, "")
    assert "a node has no key `coers`" in answer.err


def test_every_start_is_written(jobman, trace, tmp_path):
    answer = jobman("simulate", trace, "--policy", "easy", "--policy", "fcfs", "--starts", "starts.csv")
    assert "wrote starts.csv" in answer.err
    with (tmp_path / "work" / "starts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["start"] for row in rows if row["policy"] == "fcfs"] == ["0", "10", "10"]
    assert [row["start"] for row in rows if row["policy"] == "easy"] == ["0", "10", "2"]
    assert [row["guaranteed_by"] for row in rows if row["policy"] == "easy"] == ["", "10", ""]


def test_pictures_are_drawn(jobman, write, tmp_path):
    name = write(swf_text(generate(1, jobs=60)), "made.swf")
    answer = jobman("simulate", name, "--plot", "p.svg", "--gantt", "g.svg", "--from", "1d", "--to", "2d")
    assert answer.code == 0
    for picture in ("p.svg", "g.svg"):
        ElementTree.parse(tmp_path / "work" / picture)


@pytest.mark.parametrize("options", [(), ("--plot", "x.svg"), ("--fairness",), ("-o", "json")])
def test_a_machine_that_can_take_none_of_the_jobs_is_refused(jobman, trace, options):
    answer = jobman("simulate", trace, "--processors", "1", *options)
    assert (answer.code, answer.out) == (3, "")
    assert "job 1 could never start: it asks for 6 processors, and there is 1" in answer.err
    assert answer.err.endswith("machine\n        give it more processors, or larger nodes\n")


@pytest.mark.parametrize("picture", ["--plot", "--gantt"])
def test_a_part_in_which_nothing_ran_is_not_drawn(jobman, trace, tmp_path, picture):
    answer = jobman("simulate", trace, picture, "x.svg", "--from", "400d")
    assert answer.code == 2
    words = " ".join(answer.err.replace("│", " ").split())
    assert "400d is behind the end: the last job ended 20 s into the trace" in words
    assert not (tmp_path / "work" / "x.svg").exists()


def test_each_policy_has_a_gantt_chart_of_its_own(jobman, trace, tmp_path):
    jobman("simulate", trace, "--policy", "easy", "--policy", "hybrid:2", "--gantt", "g.svg")
    assert {path.name for path in (tmp_path / "work").glob("g*")} == {"g-easy.svg", "g-hybrid-2.svg"}


def test_a_file_that_cannot_be_written_is_told(jobman, trace, tmp_path):
    answer = jobman("simulate", trace, "--starts", "work.csv/starts.csv")
    assert (answer.code, answer.out) == (1, "")
    (tmp_path / "work" / "work.csv").mkdir()
    answer = jobman("simulate", trace, "--starts", "work.csv")
    assert answer.code == 1
    assert "work.csv cannot be written" in answer.err


@pytest.mark.parametrize("option", ["--starts", "--plot", "--gantt"])
def test_a_folder_that_is_not_there_is_told_before_the_replay(jobman, trace, option):
    answer = jobman("simulate", trace, option, "no/such/folder.svg")
    assert (answer.code, answer.out) == (1, "")
    assert "no/such/folder.svg cannot be written: there is no folder no/such" in answer.err


# -- from history ------------------------------------------------------------------------------------------

DOCUMENT = """\
version: 1
name: night
tasks:
- name: one
  command: ./one
  replicas: 2
  resources: {type: slot, count: 2, with: [{type: core, count: 1}]}
  attributes: {duration: 1h}
- name: two
  command: ./two
  depends_on: [one]
  resources: {type: slot, count: 4, with: [{type: core, count: 1}]}
  attributes: {duration: 1h}
"""


def attempt(replica, granted, ended, number=1):
    return answers.Attempt(
        replica=replica,
        attempt=number,
        granted_at=NOW + granted,
        ended_at=None if ended is None else NOW + ended,
    )


@pytest.fixture
def night(service):
    """A job that has run on the four cores of one node."""

    def add(*attempts, document=DOCUMENT, **fields):
        details = make_job("night", "succeeded", document=document, digest="d1", **fields)
        service.add(details, Script(attempts=attempts))
        service.nodes = [answers.Node(name="n1", amounts={"core": 4.0})]

    return add


def test_what_the_service_has_run_is_replayed(jobman, night):
    night(attempt("one.0", 0, 100), attempt("one.1", 0, 200), attempt("two.0", 250, 300))
    data = jobman("simulate", "--from-history", "-o", "json").data
    assert (data["jobs"], data["processors"]) == (3, 4)
    real, easy = data["policies"]
    # `two` could have started at 200, when the last it depends on had ended.
    assert (real["policy"], real["longest_wait"], easy["longest_wait"]) == ("as it was", 50, 0)


def test_a_history_may_be_replayed_on_another_cluster(jobman, night, write):
    night(attempt("one.0", 0, 100), attempt("one.1", 0, 100), attempt("two.0", 100, 200))
    write("- {name: n1, cores: 2}\n", "small.yaml")
    answer = jobman("simulate", "--from-history", "--cluster", "small.yaml")
    assert answer.out.startswith("history: 2 jobs, 2 processors")
    assert "job 3 could never start" in answer.err


def test_an_attempt_after_another_waits_from_its_end_on(jobman, night):
    night(attempt("one.0", 0, 100), attempt("one.0", 110, 200, 2))
    real = jobman("simulate", "--from-history", "-o", "json").data["policies"][0]
    assert real["longest_wait"] == 10


def test_a_group_holds_what_it_has_from_its_first_task_to_its_last(jobman, night):
    document = (
        "version: 1\nname: night\n"
        "groups:\n- name: g\n  resources: {type: slot, count: 2, with: [{type: core, count: 1}]}\n"
        "  attributes: {duration: 1h}\n  tasks: [{name: a, command: x}, {name: b, command: x}]\n"
        "tasks: [{group: g}]\n"
    )
    night(attempt("g.0/a.0", 0, 50), attempt("g.0/b.0", 50, 120), document=document)
    data = jobman("simulate", "--from-history", "-o", "json").data
    assert (data["jobs"], data["policies"][1]["makespan"]) == (1, 120)


def test_what_has_no_end_is_left_out(jobman, night):
    night(attempt("one.0", 0, 100), attempt("one.1", 0, None))
    answer = jobman("simulate", "--from-history")
    assert "one.1 of night" in answer.err
    assert "has no end" in answer.err


def test_a_job_whose_document_cannot_be_read_any_more_is_left_out(jobman, night):
    night(attempt("one.0", 0, 100), document=DOCUMENT.replace("{type: slot", "nowhere # {"))
    answer = jobman("simulate", "--from-history")
    assert answer.code == 3
    assert "nothing that could be replayed: night (nigh0001) cannot be read with these settings" in answer.err


def test_a_service_that_has_run_nothing_is_told(jobman, service):
    answer = jobman("simulate", "--from-history")
    assert (answer.code, answer.out) == (3, "")
    assert "has anything run yet?" in answer.err
