"""What Flux says, as values: its jobs, their names and its nodes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.flux.config import read_config
from jobman.engines.flux.facts import constraint
from jobman.engines.flux.names import Whose, title, whose
from jobman.engines.flux.nodes import read_drained, read_nodes
from jobman.engines.flux.queue import natives, read_jobs, rows
from jobman.engines.flux.urgencies import asked_for
from jobman.engines.flux.whys import read_stopped
from jobman.engines.scripts.delegate import NodeAt

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)


@given(
    st.text(min_size=1).filter(lambda text: "\n" not in text), NAMES, NAMES, st.none() | st.integers(0, 99)
)
def test_a_name_says_whose_a_job_is(job_name: str, piece: str, job: str, element: int | None):
    all_ = 1 if element is None else 100
    if len(job_name.splitlines()) > 1:
        return
    assert whose(title(job_name, piece, job, element, all_)) == Whose(job, piece, element, all_)


@pytest.mark.parametrize("name", ["sleep", "jobman:1", "a/b", "a/b[1/2]", "a/b jobman:"])
def test_strangers_are_left_alone(name: str):
    assert whose(name) is None


def told(**values: object) -> list[tuple[str, str, str]]:
    job = {"jobid": "f1", "name": "demo/a jobman:7", **values}
    return [(one.state, one.reason, one.failure) for one in natives(read_jobs(json.dumps({"jobs": [job]})))]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"state": "SCHED", "urgency": 16}, ("waiting", "Resources", "")),
        ({"state": "SCHED", "urgency": 0}, ("held", "held", "")),
        ({"state": "DEPEND", "dependencies": ["after-success=f2"]}, ("waiting", "Dependency", "")),
        ({"state": "DEPEND", "dependencies": ["begin@15:07:54"]}, ("waiting", "BeginTime", "")),
        ({"state": "RUN"}, ("running", "", "")),
        ({"state": "CLEANUP"}, ("running", "", "")),
        ({"state": "INACTIVE", "result": "COMPLETED"}, ("over", "", "")),
        ({"state": "INACTIVE", "result": "CANCELED"}, ("over", "", "")),
        ({"state": "INACTIVE", "result": "FAILED"}, ("over", "", "exit")),
        ({"state": "INACTIVE", "result": "TIMEOUT"}, ("over", "", "timeout")),
        (
            {"state": "INACTIVE", "result": "FAILED", "exception": {"type": "dependency"}},
            ("over", "", ""),
        ),
        (
            {
                "state": "INACTIVE",
                "result": "FAILED",
                "exception": {"type": "exec", "note": "node failure on n6 (rank 5)"},
            },
            ("over", "", "node-lost"),
        ),
        (
            {
                "state": "INACTIVE",
                "result": "FAILED",
                "exception": {"type": "alloc", "note": "unsatisfiable"},
            },
            ("over", "", "launch-failed"),
        ),
    ],
)
def test_a_job_is_told_of_in_our_words(values: dict[str, object], found: tuple[str, str, str]):
    assert told(**values) == [found]


def test_replicas_are_told_of_one_by_one_under_the_ids_of_all():
    jobs = [{"jobid": f"f{n}", "name": f"demo/a[{n}/3] jobman:7", "state": "RUN"} for n in (2, 0, 1)]
    found = list(natives(read_jobs(json.dumps({"jobs": jobs}))))
    assert [(one.element, one.id) for one in found] == [(2, "f0,f1,f2"), (0, "f0,f1,f2"), (1, "f0,f1,f2")]


def test_queues_are_counted_and_those_of_others_too():
    jobs = [
        {"jobid": "f1", "queue": "batch", "state": "RUN", "userid": 7},
        {"jobid": "f2", "queue": "batch", "state": "SCHED", "userid": 8},
        {"jobid": "f3", "state": "DEPEND", "userid": 7},
    ]
    found = rows(((job.queue or "default", job) for job in read_jobs(json.dumps({"jobs": jobs}))), 7)
    assert [(row.name, row.running, row.waiting, row.yours_running, row.yours_waiting) for row in found] == [
        ("batch", 1, 1, 1, 0),
        ("default", 0, 1, 0, 1),
    ]


def resources(lite: list[dict[str, object]], nodes: str, **properties: str) -> str:
    execution = {"R_lite": lite, "nodelist": [nodes], "properties": properties}
    return json.dumps({"version": 1, "execution": execution})


def test_nodes_have_cores_properties_and_what_is_in_use():
    every = resources(
        [
            {"rank": "0", "children": {"core": "0-7", "gpu": "0-1"}},
            {"rank": "1-2", "children": {"core": "0-3"}},
        ],
        "n[1-3]",
        gpu="0",
        ssd="0,2",
    )
    used = resources([{"rank": "2", "children": {"core": "0-1"}}], "n3")
    down = resources([{"rank": "1", "children": {"core": "0-3"}}], "n2")
    found = list(read_nodes(every, used, down, read_drained("n3|bad fan\n")))
    assert [(node.name, node.state, node.reason, node.facts) for node in found] == [
        ("n1", "up", "", ("gpu", "ssd")),
        ("n2", "down", "", ()),
        ("n3", "draining", "bad fan", ("ssd",)),
    ]
    assert found[0].amounts == {"core": 8, "gpu": 2}
    assert found[2].used == {"core": 2}


def test_facts_are_properties_and_a_no_is_the_lack_of_one():
    names = {"hardware.gpu.available": "gpu", "disk=fast": "ssd"}
    asked = {"hardware.gpu.available": "no", "disk": "fast", "net.ib": "yes", "arch": "arm64"}
    assert constraint(asked, names) == "^gpu&ssd&ib&arm64"


CONFIG = {
    "policy": {"jobspec": {"defaults": {"system": {"queue": "main"}}}},
    "queues": {"main": {"requires": ["main"]}, "all": {}},
}


def test_queues_have_the_nodes_with_their_properties():
    config = read_config(json.dumps(CONFIG))
    assert config.requires(None) == config.requires("main") == ("main",)
    assert config.requires("all") == config.requires("unknown") == ()
    node = NodeAt(name="n1", facts=("main", "ssd"))
    assert config.with_queues(node).partitions == ("main", "all")
    assert config.with_queues(NodeAt(name="n2")).partitions == ("all",)


def test_an_instance_without_queues_has_none_by_default():
    assert read_config("{}").default_queue is None


def test_a_release_gives_back_the_urgency_that_was_asked_for():
    assert asked_for(["f1,f2", "f3@24"]) == [("f1", 16), ("f2", 16), ("f3", 24)]


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("1h", 3600),
        ("1.5m", 90),
        ("90", 90),
        (90, 90),
        ("2d", 172800),
        ("0", None),
        ("inf", None),
        ({}, None),
    ],
)
def test_the_longest_time_of_a_queue_is_its_own_limit_or_that_of_all(limit: object, seconds: float | None):
    policy = {"limits": {"duration": limit}}
    config = read_config(json.dumps({"queues": {"own": {"policy": policy}, "other": {}}, "policy": {}}))
    assert (config.longest("own"), config.longest("other")) == (seconds, None)
    config = read_config(json.dumps({"queues": {"other": {}}, "policy": policy}))
    assert (config.longest("other"), config.longest(None)) == (seconds, seconds)


def test_queues_that_are_stopped_are_told_of_with_what_was_said():
    text = "a: Job submission is enabled\na: Scheduling is started\nb: Scheduling is stopped: at noon\n"
    assert read_stopped(f"{text}c: Scheduling is stopped\n") == {"b": "at noon", "c": ""}
    assert read_stopped("Job submission is enabled\nScheduling is stopped\n") == {"": ""}
