"""What `flux jobs --recursive` says, as values: jobs inside jobs, and what is deeper than it tells."""

from __future__ import annotations

import json
from typing import Any

from jobman.engines.flux.nested import walk
from jobman.engines.flux.queue import rows

ME, OTHER = 7, 8


def job(id_: str, name: str = "sleep", **more: Any) -> dict[str, Any]:
    return {"jobid": id_, "name": name, "state": "RUN", "userid": ME, **more}


def told(listings: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, str]]:
    def ask(uri: str) -> str:
        return json.dumps({"jobs": listings[uri]}) if uri in listings else ""

    return [(each.place, each.uri, each.job.jobid) for each in walk(ask, ME)]


def test_jobs_inside_jobs_are_told_of_below_their_queue_and_where_they_are():
    inner = job("f2", state="SCHED")
    assert told({"": [job("f1", queue="batch", uri="local://a", jobs=[inner])]}) == [
        ("batch", "", "f1"),
        ("batch/f1", "local://a", "f2"),
    ]


def test_what_is_deeper_than_one_listing_tells_is_asked_there():
    inner = job("f2", uri="local://b")
    found = told({"": [job("f1", uri="local://a", jobs=[inner])], "local://b": [job("f3")]})
    assert found[-1] == ("default/f1/f2", "local://b", "f3")


def test_nobody_looks_into_jobs_of_others_nor_into_those_that_are_over():
    jobs = [job("f1", userid=OTHER, uri="local://a"), job("f2", state="INACTIVE", uri="local://a")]
    assert [id_ for _, _, id_ in told({"": jobs, "local://a": [job("f3")]})] == ["f1", "f2"]


def test_one_that_does_not_answer_hides_nothing_but_its_own():
    jobs = [job("f1", uri="local://gone"), job("f2")]
    assert [id_ for _, _, id_ in told({"": jobs})] == ["f1", "f2"]


def test_what_replicas_of_ours_run_counts_together():
    def group(number: int, *states: str) -> dict[str, Any]:
        inner = [job(f"f{number}{place}", state=state) for place, state in enumerate(states)]
        name = f"demo/train[{number}/2] jobman:ab12"
        return job(f"f{number}", name, queue="batch", uri=f"local://{number}", jobs=inner)

    listing = json.dumps({"jobs": [group(0, "RUN", "SCHED"), group(1, "RUN")]})
    found = rows(((each.place, each.job) for each in walk(lambda _: listing, ME)), ME)
    assert [(row.name, row.running, row.waiting) for row in found] == [
        ("batch", 2, 0),
        ("batch/demo/train", 2, 1),
    ]
