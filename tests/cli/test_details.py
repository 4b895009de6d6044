"""`jobman details` and `events`: one job, looked at closely."""

import json
import time

import pytest

from jobman.control.answers import Attempt, Condition, Event, Replica, Task
from tests.cli.stub import Script, make_job


@pytest.fixture
def now():
    return time.time()


@pytest.fixture
def sweep(service, now):
    tasks = [
        Task(unit="prepare", name="prepare", outcome="succeeded", counts={"succeeded": 1}),
        Task(
            unit="train",
            name="train",
            replicas=1000,
            counts={
                "succeeded": 3,
                "failed": 1,
                "queued": 4,
                "running": 1,
                "starting": 1,
                "waiting": 990,
                "retried": 2,
            },
            depends_on=["prepare"],
        ),
        Task(unit="serve", name="serve", kind="group"),
        Task(unit="serve/page", name="page", scope="serve.0", service=True, counts={"running": 1}),
    ]
    job = make_job(
        "sweep",
        identity="0f3a",
        tasks=tasks,
        submitted_at=now - 600,
        conditions=[
            Condition(type="Started", status=True, since=now - 500),
            Condition(type="Held", status=False, since=now),
            Condition(type="PartiallyFailed", status=True, since=now, message="1 failed"),
        ],
        gates={"data": True, "review": False},
        labels={"team": "blue"},
        cwd="/home/ada",
        document="version: 1\nname: sweep",
        options={"virtual": "4x4", "no_container": False},
    )
    script = Script(
        replicas=[
            Replica(
                key="train.0", unit="train", index=0, state="failed", attempt=3, exit_code=7, reason="exit"
            ),
            Replica(key="train.1", unit="train", index=1, state="running", attempt=1, since=now - 30),
        ],
        attempts=[
            Attempt(
                replica="train.0",
                attempt=3,
                granted_at=now - 100,
                started_at=now - 100,
                ended_at=now - 40,
                exit_code=7,
                reason="exit",
                cpu_seconds=55,
                max_rss=3 * 2**30,
                nodes=["n1"],
            ),
            Attempt(replica="train.1", attempt=1, granted_at=now - 31, started_at=now - 30, nodes=["n2"]),
        ],
    )
    events = [
        Event(number=1, job="0f3a", at=now - 600, kind="submitted", message="by ada"),
        Event(
            number=2,
            job="0f3a",
            at=now - 200,
            kind="retrying",
            replica="train.0",
            attempt=2,
            message="exit 7",
        ),
    ]
    return service.add(job, script, events=events)


def facts(text):
    """Names and values, up to the first empty line."""
    lines = text.split("\n\n")[0].splitlines()
    return dict(line.split("  ", 1) for line in lines)


def test_the_facts_of_a_job(jobman, sweep):
    found = {name: value.strip() for name, value in facts(jobman("details", "sweep").out).items()}
    assert found["job"] == "0f3a"
    assert found["state"] == "running"
    assert found["submitted"].startswith("10 min ago (2")
    assert found["gates"] == "data open, review closed"
    assert found["labels"] == "team=blue"
    assert found["options"] == "virtual=4x4"
    assert found["conditions"] == "Started, PartiallyFailed"
    assert "exit code" not in found


def test_a_condition_has_its_message(jobman, sweep):
    assert "  PartiallyFailed  1 failed\n" in jobman("details", "sweep").out


def test_every_task_says_how_many_replicas_are_where(jobman, sweep):
    table = jobman("details", "sweep").out.split("\n\n")[1].splitlines()
    assert table[0].split() == [
        "task",
        "outcome",
        "replicas",
        "succeeded",
        "failed",
        "running",
        "waiting",
        "retried",
        "after",
    ]
    assert table[2].split() == ["train", "running", "1,000", "3", "1", "2", "994", "2", "prepare"]
    assert table[3].split()[:3] == ["serve", "(group)", "waiting"]
    assert table[4].split()[:3] == ["serve.0/page", "(service)", "running"]


def test_replicas_and_attempts_on_request(jobman, sweep):
    answer = jobman("details", "sweep", "--replicas", "--attempts").out.split("\n\n")
    assert answer[2].splitlines()[1].split() == ["train.0", "failed", "3", "7", "exit"]
    assert answer[3].splitlines()[1].split()[:5] == ["train.0", "3", "exit", "code", "7"]
    assert "3 GiB" in answer[3]
    assert answer[3].splitlines()[2].split()[2] == "running"


def test_the_document_alone(jobman, sweep):
    assert jobman("details", "sweep", "--document").out == "version: 1\nname: sweep\n"


def test_all_of_it_as_data(jobman, sweep):
    data = jobman("details", "sweep", "--replicas", "--attempts", "-o", "json").data
    assert (data["id"], data["tasks"][1]["replicas"]) == ("0f3a", 1000)
    assert [one["key"] for one in data["replicas"]] == ["train.0", "train.1"]
    assert data["attempts"][0]["max_rss"] == 3 * 2**30
    assert "replicas" not in jobman("details", "sweep", "-o", "json").data


@pytest.mark.parametrize("width", [60, 100])
def test_details_fit_the_terminal(jobman, sweep, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, jobman("details", "sweep", "--replicas", "--attempts").out.splitlines())) <= width


# -- events -------------------------------------------------------------------------------------------------


def test_events_are_listed_the_oldest_first(jobman, sweep):
    assert jobman("events", "sweep").out.splitlines() == [
        "when        what       replica              message",
        "10 min ago  submitted                       by ada",
        "3 min ago   retrying   train.0 (attempt 2)  exit 7",
    ]


def test_events_are_followed_to_the_end_of_the_job(jobman, sweep, now):
    answer = jobman("events", "-f", "sweep", "--utc")
    stamp = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now - 200))
    assert answer.out.splitlines()[1] == f"{stamp}  retrying    train.0 (attempt 2)  exit 7"
    assert sweep.details.state == "succeeded"


def test_events_as_data(jobman, sweep):
    assert [one["number"] for one in jobman("events", "sweep", "-o", "json").data] == [1, 2]
    followed = jobman("events", "-f", "sweep", "-o", "json").out.splitlines()
    assert [json.loads(text)["kind"] for text in followed] == ["submitted", "retrying"]
