"""`jobman logs`: the output of copies, merged, chosen and decorated."""

import json
import time

import pytest
import yaml

from jobman.control.answers import Task
from jobman.control.refusals import Refusal
from tests.cli import stub
from tests.cli.stub import NOW, Script, line, make_job

LINES = [
    line("one", "left.0", at=0.0, node="n1"),
    line("two", "left.1", at=0.5, node="n2", stream="stderr"),
    line("three", "right.0", at=1.25, node="n1", attempt=2),
]


@pytest.fixture
def pair(service):
    tasks = [Task(unit="left", name="left", replicas=2), Task(unit="right", name="right")]
    return service.add(make_job("pair", identity="0f3a", tasks=tasks), Script(LINES))


@pytest.fixture
def alone(service):
    return service.add(
        make_job("hello", identity="77c0"), Script([line("one"), line("two", stream="stderr")])
    )


def test_all_of_it_is_the_answer_in_order_of_time(jobman, pair):
    assert jobman("logs", "pair") == (0, "left.0  │ one\nleft.1  │ two\nright.0 │ three\n", "")


def test_log_is_another_name(jobman, pair):
    assert jobman("log", "-j", "pair") == jobman("logs", "pair")


def test_who_asks_for_what_is_not_there_is_told(jobman, pair):
    answer = jobman("logs", "pair", "--replica", "middle.0")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.splitlines() == [
        "jobman: nothing of that is there",
        "        `jobman details --replicas 0f3a` shows what there is",
    ]


def test_one_copy_needs_no_name(jobman, alone):
    assert jobman("logs", "hello").out == "one\ntwo\n"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--task", "left"), ["one", "two"]),
        (("--replica", "1"), ["two"]),
        (("--replica", "left.0"), ["one"]),
        (("--node", "n1"), ["one", "three"]),
        (("--attempt", "2"), ["three"]),
        (("--stdout",), ["one", "three"]),
        (("--stderr",), ["two"]),
        (("--tail", "1"), ["three"]),
        (("--tail", "0"), []),
        (("--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW + 1))), ["three"]),
    ],
)
def test_lines_can_be_chosen(jobman, pair, arguments, wanted):
    assert jobman("logs", "pair", "--no-prefix", *arguments).out.splitlines() == wanted


def test_what_comes_from_one_copy_alone_needs_no_name(jobman, pair):
    assert jobman("logs", "pair", "--task", "left", "--replica", "0").out == "one\n"
    assert jobman("logs", "pair", "--task", "right").out == "three\n"


def test_times_before_lines(jobman, pair):
    answer = jobman("logs", "pair", "--timestamps", "--utc")
    assert answer.out.splitlines()[2] == "2027-01-15T08:00:01.250Z right.0 │ three"
    assert jobman("logs", "pair", "--timestamps", "--no-prefix").out.splitlines()[0].endswith(".000 one")


def test_following_ends_with_the_job(jobman, service, pair):
    assert jobman("logs", "-f", "pair", "--no-prefix").out.splitlines() == ["one", "two", "three"]
    assert pair.details.state == "succeeded"


def test_lines_as_data_are_one_object_each(jobman, pair):
    found = [json.loads(text) for text in jobman("logs", "pair", "-o", "json").out.splitlines()]
    assert [one["text"] for one in found] == ["one", "two", "three"]
    assert (found[1]["replica"], found[1]["stream"], found[1]["at"]) == ("left.1", "stderr", NOW + 0.5)


def test_lines_as_yaml_are_one_document_each(jobman, pair):
    found = list(yaml.safe_load_all(jobman("logs", "pair", "-o", "yaml").out))
    assert [one["text"] for one in found] == ["one", "two", "three"]


def test_copies_have_colours_of_their_own(jobman, pair, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    first, second, _ = jobman("logs", "pair").out.splitlines()
    assert first.startswith("\x1b[36mleft.0 \x1b[0m")
    assert second.startswith("\x1b[32mleft.1 \x1b[0m")


@pytest.mark.parametrize(
    "arguments", [("--stdout", "--stderr"), ("--tail", "-1"), ("--attempt", "0"), ("--since", "soon")]
)
def test_a_wrong_use_ends_with_2(jobman, pair, arguments):
    answer = jobman("logs", "pair", *arguments)
    assert (answer.code, answer.out) == (2, "")


@pytest.mark.parametrize("arguments", [(), ("-f",), ("--tail", "3")])
def test_output_that_is_kept_no_longer_is_said_to_be_removed(jobman, pair, monkeypatch, arguments):
    words = "its output was removed on 2026-11-15: output is kept for 30 days"

    def removed(*_):
        raise Refusal("output-removed", words, "The job is still there: jobman details 0f3a")

    monkeypatch.setattr(stub, "_chosen", removed)
    advice = "        The job is still there: jobman details 0f3a\n"
    assert jobman("logs", "pair", *arguments) == (1, "", f"jobman: {words}\n{advice}")
    answer = jobman("logs", "pair", *arguments, "-o", "json")
    assert (answer.code, answer.err) == (1, "")
    assert (answer.data["code"], answer.data["message"]) == ("output-removed", words)
