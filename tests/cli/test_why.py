"""`jobman why`: where a job stands, when it starts, and what would help."""

import time

import pytest

from jobman.client import Client
from jobman.control.answers import Blocker, Estimate, Factor, Revision, Why
from tests.cli.stub import make_job


@pytest.fixture
def noon(monkeypatch):
    """It is noon in UTC, at least for the command."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    moment = 1_800_014_400.0
    monkeypatch.setattr("jobman.cli.why.time.time", lambda: moment)
    yield moment
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def explained(service):
    """Put an explanation of a job into the service."""

    def explain(state="waiting", **fields):
        job = service.add(make_job("sweep", state, identity="0f3a"))
        job.why = Why(job="0f3a", state=state, **fields)

    return explain


def test_why_says_what_a_job_waits_for_and_what_would_help(jobman, explained):
    explained(
        summary="it waits: the gate review is closed",
        blockers=[
            Blocker(kind="gate", message="the gate review is closed"),
            Blocker(kind="resources", message="1 core is missing"),
        ],
        suggestion="jobman gate open 0f3a review",
    )
    assert jobman("why", "sweep").out.splitlines() == [
        "job      0f3a",
        "state    waiting",
        "because  the gate review is closed",
        "and      1 core is missing",
        "try      jobman gate open 0f3a review",
    ]


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_what_would_help_is_typed_for_the_engine_of_the_command(jobman, explained, monkeypatch, form):
    explained(summary="it waits: the job is held", suggestion="jobman release 0f3a")
    monkeypatch.setattr("jobman.cli.calls._direct", lambda: Client.embedded(start=False))
    assert "jobman -e kubernetes release 0f3a" in jobman("-e", "kubernetes", "why", "sweep", "-o", form).out
    assert "jobman release 0f3a" in jobman("why", "sweep", "-o", form).out


def test_of_very_many_who_wait_only_some_are_told(jobman, explained):
    waiting = [Blocker(kind="resources", message=f"main.{n}: no node has enough free") for n in range(20)]
    explained(summary="it waits: main.0: no node has enough free", blockers=waiting)
    lines = jobman("why", "sweep").out.splitlines()
    assert lines[2:4] == [
        "because  main.0: no node has enough free",
        "and      main.1: no node has enough free",
    ]
    assert lines[7:] == ["and      main.5: no node has enough free", "and      14 more; `-o json` lists them"]
    assert len(jobman("why", "sweep", "-o", "json").data["blockers"]) == 20


@pytest.fixture
def planned(explained, noon):
    explained(
        summary="it waits: train.0: 4 cores are missing until sweep-7 ends",
        position=3,
        queue="batch",
        blockers=[
            Blocker(
                kind="resources",
                replica="train.0",
                message="train.0: 4 cores are missing until sweep-7 ends",
            )
        ],
        estimate=Estimate(
            guaranteed_by=noon + 9120, expected_at=noon + 7800, expected_p90=noon + 8700, position=3
        ),
        priority=6042.25,
        factors=[
            Factor(name="age", raw=0.0422, weight=1000, contribution=42.25),
            Factor(name="fair share", raw=1, weight=5000, contribution=5000),
            Factor(name="queue", raw=1, weight=1000, contribution=1000),
        ],
        revisions=[
            Revision(at=noon - 7200, replica="train.0", before=noon + 60, after=None, cause="n7 is down"),
            Revision(at=noon - 60, replica="train.0", before=None, after=noon + 9120, cause="n7 is back"),
        ],
        suggestion="with 2 nodes instead of 4 it would start in 6 min",
    )


def test_why_tells_the_promise_the_expectation_the_priority_and_what_moved(jobman, planned):
    assert jobman("why", "sweep").out.splitlines() == [
        "job       0f3a",
        "state     waiting, 3rd in batch",
        "because   train.0: 4 cores are missing until sweep-7 ends",
        "starts    by 14:32 at the latest, in 2 h 32 min",
        "expected  around 14:10 (9 in 10: by 14:25)",
        "priority  6,042.2",
        "try       with 2 nodes instead of 4 it would start in 6 min",
        "",
        "factor      value  weight   points",
        "age         0.042   1,000     42.2",
        "fair share  1.000   5,000  5,000.0",
        "queue       1.000   1,000  1,000.0",
        "",
        "moved      replica  from        to          because",
        "1 min ago  train.0  no promise  14:32       n7 is back",
        "2 h ago    train.0  12:01:00    no promise  n7 is down",
    ]


def test_why_fits_a_narrow_terminal_and_leaves_no_factor_out(jobman, planned, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    answer = jobman("why", "sweep").out
    assert max(map(len, answer.splitlines())) <= 50
    assert all(name in answer for name in ("age", "fair share", "queue", "n7 is down"))


def test_why_has_colours_where_they_are_wanted(jobman, planned, monkeypatch):
    assert "\x1b" not in jobman("why", "sweep").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[33mwaiting, 3rd in batch\x1b[0m" in jobman("why", "sweep").out


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (Estimate(), "starts   no promise yet"),
        (Estimate(unpromised="n7 is down"), "starts   no promise: n7 is down"),
        (Estimate(starts_now=True), "starts   now"),
        (Estimate(guaranteed_by=1.0), "starts   now"),
    ],
)
def test_why_says_where_there_is_no_promise_or_no_need_of_one(jobman, explained, estimate, words):
    explained(summary="it waits: too little is free", estimate=estimate)
    assert words in jobman("why", "sweep").out.splitlines()


def test_a_job_that_runs_has_little_to_explain(jobman, explained):
    explained("running", summary="3 replicas run")
    assert jobman("why", "sweep").out == "job      0f3a\nstate    running\nbecause  3 replicas run\n"


def test_an_explanation_as_data_is_the_answer_of_the_service(jobman, planned, noon):
    data = jobman("why", "sweep", "-o", "json").data
    assert (data["position"], data["estimate"]["guaranteed_by"]) == (3, noon + 9120)
    assert [factor["name"] for factor in data["factors"]] == ["age", "fair share", "queue"]
    assert len(data["revisions"]) == 2
