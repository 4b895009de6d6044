"""What stands in the panes of `jobman top`."""

import time
from math import inf

import pytest

from jobman.cli.top import rows
from jobman.cli.top.looks import Look, read
from jobman.client import Client
from jobman.control.answers import Estimate, Job, Node, Page, Status

NOON = 1_800_014_400.0  # 2027-01-15, 12:00 UTC


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def job(name="sweep", state="waiting", **fields):
    fields.setdefault("submitted_at", NOON)
    return Job(id=f"{name}-id", name=name, owner="ada", state=state, **fields)


def texts(found, titles):
    """Rows as a person reads them: by the titles of their columns, without what is empty."""
    return [
        {title: cell.text for title, cell in zip(titles, row.cells, strict=True) if cell.text}
        for row in found
    ]


def waiting(*jobs, words=""):
    return texts(rows.waiting(Look(at=NOON, waiting=list(jobs)), words), rows.WAITING)


def running(*jobs, words=""):
    return texts(rows.running(Look(at=NOON, running=list(jobs)), words), rows.RUNNING)


def nodes(*found, words="", jobs=()):
    return texts(rows.nodes(Look(at=NOON, nodes=list(found), running=list(jobs)), words), rows.NODES)


def test_one_who_waits_has_a_place_a_promise_and_an_expectation():
    estimate = Estimate(
        guaranteed_by=NOON + 9120,
        expected_at=NOON + 7800,
        expected_p90=NOON + 8700,
        position=3,
        queue="batch",
    )
    assert waiting(job(estimate=estimate, reason="4 cores are missing")) == [
        {
            "#": "3",
            "job": "sweep-id",
            "name": "sweep",
            "owner": "ada",
            "queue": "batch",
            "starts by": "14:32",
            "expected": "14:10",
            "9 in 10": "14:25",
            "why": "4 cores are missing",
        }
    ]


@pytest.mark.parametrize(
    ("estimate", "wanted"),
    [
        (None, {}),
        (Estimate(starts_now=True), {"starts by": "now"}),
        (Estimate(position=1), {"#": "1", "starts by": "no promise"}),
        (
            Estimate(guaranteed_by=NOON + 90, expected_at=NOON - 1, expected_p90=NOON - 1),
            {"starts by": "12:01:30", "expected": "any moment"},
        ),
    ],
)
def test_what_cannot_be_said_is_not_said(estimate, wanted):
    (row,) = waiting(job(estimate=estimate))
    assert {
        title: row[title] for title in ("#", "starts by", "expected", "9 in 10") if title in row
    } == wanted


def test_one_who_is_held_says_so():
    assert waiting(job(held=True, reason="held by ada"))[0]["why"] == "held"


def test_one_who_runs_tells_its_time_and_its_limit():
    counts = {"succeeded": 1, "running": 3}
    found = running(job(state="running", started_at=NOON - 1800, ends_by=NOON + 1800, counts=counts))
    assert [(row["done"], row["used"], row["limit"], row[""]) for row in found] == [
        ("1/4", "30 min", "1 h", "█████░░░░░")
    ]


def test_one_without_a_limit_has_no_bar():
    (row,) = running(job(state="running", started_at=NOON - 5.4))
    assert (row["used"], row["limit"], row.get("")) == ("5 s", "none", None)


def test_a_node_has_bars_for_cores_and_gpus():
    found = nodes(
        Node(
            name="n1",
            amounts={"core": 8, "gpu": 2, "memory": 2**34},
            used={"core": 4, "gpu": 2},
            jobs=["a", "b"],
        ),
        Node(name="n2", state="draining", reason="drained by ada", amounts={"core": 8}),
    )
    assert found == [
        {
            "node": "n1",
            "state": "up",
            "load": "█████░░░░░",
            "cores": "4/8",
            "gpu load": "██████████",
            "gpus": "2/2",
            "memory": "0/16 GiB",
            "jobs": "2",
        },
        {"node": "n2", "state": "draining", "load": "░░░░░░░░░░", "cores": "0/8", "reason": "drained by ada"},
    ]


def test_totals_count_what_was_not_read_too():
    look = Look(
        at=NOON,
        waiting=[job()],
        counts={"waiting": 12_000, "running": 2, "succeeded": 9},
        nodes=[
            Node(name="n1", amounts={"core": 8, "gpu": 1}, used={"core": 2}),
            Node(name="n2", state="down", amounts={"core": 8}, used={"core": 6}),
        ],
    )
    assert [cell.text for cell in rows.totals(look)] == [
        "12,000 waiting",
        "2 running",
        "█████░░░░░ 8/16 cores",
        "░░░░░░░░░░ 0/1 gpus",
        "2 nodes",
        "1 not up",
    ]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", ["train", "test"]),
        ("TRAIN", ["train"]),
        ("t", ["train", "test"]),
        ("team=blue", ["test"]),
        ("gpu a", ["train"]),
        ("test-id", ["test"]),
        ("held", ["test"]),
        ("nowhere", []),
    ],
)
def test_a_filter_finds_jobs_by_each_of_its_words(words, wanted):
    found = waiting(job("train", flavor="gpu"), job("test", labels={"team": "blue"}, held=True), words=words)
    assert [row["name"] for row in found] == wanted


def test_a_filter_finds_a_node_by_what_runs_there():
    there = job("train", "running")
    found = nodes(Node(name="n1", jobs=[there.id]), Node(name="n2"), jobs=[there], words="train")
    assert [row["node"] for row in found] == ["n1"]


class Service(Client):
    """As much of a client as a look needs."""

    def __init__(self, waiting=(), running=()):
        self._jobs = {"waiting": list(waiting), "running": list(running)}

    def jobs_page(self, *, limit=100, cursor=None, **filters):
        found = self._jobs[filters["state"]]
        if filters.get("order") == "queue":
            found = sorted(found, key=lambda job: job.estimate.position if job.estimate else inf)
        return Page(items=found[:limit])

    def nodes(self):
        return [Node(name="n1")]

    def status(self):
        return Status(version="1", pid=1, mode="embedded", since=0, database="", jobs={"waiting": 5})


def test_a_look_has_those_who_wait_in_the_order_in_which_they_start():
    places = {"a": 2, "b": 11, "c": None, "d": 1}
    jobs = [
        job(name, estimate=None if place is None else Estimate(position=place, queue="batch"))
        for name, place in places.items()
    ]
    look = read(Service(waiting=jobs))
    assert [each.name for each in look.waiting] == ["d", "a", "b", "c"]
    assert (look.counts, [node.name for node in look.nodes]) == ({"waiting": 5}, ["n1"])


def test_of_very_many_who_wait_the_front_of_the_queue_is_seen():
    jobs = [
        job(f"job-{place}", estimate=Estimate(position=place, queue="batch")) for place in range(3000, 0, -1)
    ]
    seen = read(Service(waiting=jobs)).waiting
    assert (seen[0].name, seen[-1].name) == ("job-1", "job-1000")


def test_a_look_has_the_newest_of_those_who_run_first():
    jobs = [job("old", "running", started_at=NOON - 60), job("new", "running", started_at=NOON)]
    assert [each.name for each in read(Service(running=jobs)).running] == ["new", "old"]
