"""Jobs over HTTP: submitted, listed, looked at, changed and deleted."""

from typing import Any

import pytest

from tests.control.api.world import DOCUMENT, World


def listed(world: World, **query: Any) -> list[str]:
    answer = world.http.get("/v1/jobs", params=query)
    assert answer.status_code == 200, answer.text
    return [job["name"] for job in answer.json()["items"]]


def test_a_job_is_submitted_and_its_details_are_there(world: World) -> None:
    answer = world.http.post("/v1/jobs", json={"document": DOCUMENT, "name": "train"})
    assert answer.status_code == 201
    job = answer.json()["jobs"][0]
    assert (job["name"], job["owner"], job["state"]) == ("train", "ada", "waiting")

    details = world.http.get(f"/v1/jobs/{job['id']}").json()
    assert details["document"] == DOCUMENT
    assert [task["name"] for task in details["tasks"]] == ["main"]
    assert details["gates"] == {"data": False}
    assert {each["type"] for each in details["conditions"] if each["status"]} == {"Submitted", "GatesClosed"}
    assert "settings" not in details["options"]


def test_the_same_key_submits_once_and_another_request_with_it_is_refused(world: World) -> None:
    body = {"document": DOCUMENT, "name": "once"}
    headers = {"Idempotency-Key": "one"}
    first = world.http.post("/v1/jobs", json=body, headers=headers)
    again = world.http.post("/v1/jobs", json=body, headers=headers)
    other = world.http.post("/v1/jobs", json={**body, "name": "other"}, headers=headers)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json()["replayed"]
    assert again.json()["jobs"][0]["id"] == first.json()["jobs"][0]["id"]
    assert other.json()["code"] == "key-reused"
    assert listed(world) == ["once"]


def test_a_dry_run_submits_nothing(world: World) -> None:
    answer = world.http.post("/v1/jobs", json={"document": DOCUMENT, "dry_run": True})
    assert answer.status_code == 200
    assert listed(world) == []


def test_a_wrong_document_is_refused_with_its_problems(world: World) -> None:
    answer = world.http.post("/v1/jobs", json={"document": "version: 1\ntasks: []\n"})
    failure = answer.json()
    assert (answer.status_code, failure["code"], failure["exit"]) == (422, "bad-document", 3)
    assert failure["problems"]
    assert failure["request"] == answer.headers["X-Request-Id"]


def test_those_who_wait_are_listed_first_in_the_order_of_their_queues(world: World) -> None:
    names = [f"job{number}" for number in range(6)]
    ids = {name: world.submit(name) for name in names}
    for name in ("job1", "job4"):
        world.http.post(f"/v1/jobs/{ids[name]}/cancel")
    expected = ["job0", "job2", "job3", "job5", "job4", "job1"]
    assert listed(world, order="queue") == expected
    assert listed(world, order="queue", state="waiting", limit=3) == expected[:3]
    assert listed(world, order="queue", state="cancelled") == expected[4:]
    assert listed(world, order="queue", name="job[03]") == []
    assert listed(world, order="queue", name="job3") == ["job3"]
    assert world.http.get("/v1/jobs", params={"order": "size"}).status_code == 400


@pytest.mark.parametrize("limit", range(1, 8))
def test_the_order_of_the_queues_goes_on_from_page_to_page(world: World, limit: int) -> None:
    ids = [world.submit(f"job{number}") for number in range(6)]
    for job in ids[:2]:
        world.http.post(f"/v1/jobs/{job}/cancel")
    found: list[str] = []
    query: dict[str, Any] = {"order": "queue", "limit": limit}
    while True:
        page = world.http.get("/v1/jobs", params=query).json()
        found += [job["name"] for job in page["items"]]
        assert 0 < len(page["items"]) <= limit
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert found == ["job2", "job3", "job4", "job5", "job1", "job0"]
    if "cursor" in query:
        del query["order"]
        assert world.http.get("/v1/jobs", params=query).status_code == 400


def test_jobs_are_listed_in_pages_the_newest_first(world: World) -> None:
    names = [f"job{number}" for number in range(5)]
    for name in names:
        world.submit(name)
    seen, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = world.http.get("/v1/jobs", params=query).json()
        seen += [job["name"] for job in page["items"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == names[::-1]


def test_jobs_are_filtered_by_the_server(world: World) -> None:
    labelled = DOCUMENT + "labels: {team: vision}\n"
    world.submit("train-1", document=labelled)
    done = world.submit("train-2")
    world.submit("eval")
    world.let(world.director.finish, done)
    assert listed(world, name="train-*") == ["train-2", "train-1"]
    assert listed(world, state=["succeeded", "failed"]) == ["train-2"]
    assert listed(world, label="team=vision") == ["train-1"]
    assert listed(world, label="team") == ["train-1"]
    assert listed(world, label="team=speech") == []
    assert listed(world, search="EVA") == ["eval"]
    assert listed(world, mine="true", state="waiting") == ["eval", "train-1"]
    assert listed(world, owner="grace") == []
    assert listed(world, until=1.0) == []
    assert len(listed(world, since=1.0)) == 3


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=ten", "limit"),
        ("colour=red", "colour"),
        ("state=done", "state"),
        ("name=a&name=b", "name"),
        ("cursor=nonsense", "nonsense"),
        ("since=nan", "since"),
        ("label==x", "label"),
        ("name=%00", "name"),
        ("name=%ff", "cannot be read"),
    ],
)
def test_a_query_that_means_nothing_is_refused(world: World, query: str, word: str) -> None:
    answer = world.http.get(f"/v1/jobs?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")
    assert word in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b'{"document": 7}', 400, "$.document"),
        (b'{"document": "x", "colour": "red"}', 400, "colour"),
        (b'{"parameters": {"a": 1}}', 400, "$.parameters"),
        (b"{", 400, "truncated"),
        (b"\xff", 400, "body"),
        (b"[" * 100_000, 400, "body"),
    ],
)
def test_a_wrong_body_is_refused_with_the_place(world: World, body: bytes, status: int, word: str) -> None:
    answer = world.http.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (status, "bad-request")
    assert word in answer.json()["message"]


def test_a_body_that_is_not_json_is_refused(world: World) -> None:
    answer = world.http.post("/v1/jobs", data={"document": "x"})
    assert (answer.status_code, answer.json()["code"]) == (415, "not-json")


def test_a_body_that_is_too_large_is_refused_declared_or_not(world: World) -> None:
    large = b'"' + b"x" * (21 * 2**20)
    headers = {"Content-Type": "application/json"}
    declared = world.http.post("/v1/jobs", content=large, headers=headers)
    assert (declared.status_code, declared.json()["code"]) == (413, "too-large")

    parts = (large[start : start + 2**20] for start in range(0, len(large), 2**20))
    streamed = world.http.post("/v1/jobs", content=parts, headers=headers)
    assert (streamed.status_code, streamed.json()["code"]) == (413, "too-large")
    assert listed(world) == []


def test_an_unusable_idempotency_key_is_refused(world: World) -> None:
    answer = world.http.post("/v1/jobs", json={}, headers={"Idempotency-Key": "x" * 256})
    assert answer.status_code == 400


def test_a_job_is_found_by_id_prefix_and_name(world: World) -> None:
    older, newer = world.submit("train"), world.submit("train")
    for reference, meant in ((older, older), (older[:8], older), ("train", newer)):
        assert world.http.get(f"/v1/jobs/{reference}").json()["id"] == meant
    missing = world.http.get("/v1/jobs/zzz")
    assert (missing.status_code, missing.json()["code"]) == (404, "no-such-job")


def test_a_prefix_of_several_ids_is_ambiguous_and_names_them(world: World) -> None:
    ids = [world.submit() for _ in range(17)]
    prefix = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
    answer = world.http.get(f"/v1/jobs/{prefix}")
    assert (answer.status_code, answer.json()["code"]) == (409, "ambiguous")
    assert sum(one in answer.json()["advice"] for one in ids) > 1


def test_a_job_is_held_released_extended_and_its_gate_opened(world: World) -> None:
    job = world.submit()
    assert world.http.post(f"/v1/jobs/{job}/hold").json()["held"]
    assert not world.http.post(f"/v1/jobs/{job}/release").json()["held"]
    extended = world.http.post(f"/v1/jobs/{job}/extend", json={"seconds": 60})
    assert extended.json()["reason"] == "60.0 s more"
    assert world.http.post(f"/v1/jobs/{job}/gates/data/open").status_code == 200
    assert world.http.get(f"/v1/jobs/{job}").json()["gates"] == {"data": True}
    assert world.http.post(f"/v1/jobs/{job}/gates/other/open").json()["code"] == "no-such-gate"
    assert world.http.post(f"/v1/jobs/{job}/extend", json={"seconds": 6, "task": "x"}).status_code == 404
    assert world.http.post(f"/v1/jobs/{job}/extend", json={"seconds": -6}).status_code == 400
    refused = world.http.post(f"/v1/jobs/{job}/extend", json={"seconds": 2e6})
    assert (refused.status_code, refused.json()["largest"]) == (409, 93.5)
    assert "largest" not in world.http.post(f"/v1/jobs/{job}/gates/other/open").json()


def test_a_cancelled_job_is_over_and_cannot_be_cancelled_again(world: World) -> None:
    job = world.submit()
    assert world.http.post(f"/v1/jobs/{job}/cancel").json()["state"] == "cancelled"
    again = world.http.post(f"/v1/jobs/{job}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "wrong-state")


def test_only_finished_jobs_are_deleted_unless_by_force(world: World) -> None:
    job = world.submit()
    refused = world.http.delete(f"/v1/jobs/{job}")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong-state")
    assert world.http.delete(f"/v1/jobs/{job}", params={"force": True}).json()["state"] == "cancelled"
    assert world.http.get(f"/v1/jobs/{job}").status_code == 404


def test_many_finished_jobs_are_deleted_at_once(world: World) -> None:
    jobs = [world.submit(f"job{number}") for number in range(4)]
    world.let(world.director.finish, jobs[0])
    world.let(world.director.finish, jobs[1], "failed", 3)
    assert world.http.delete("/v1/jobs").status_code == 400
    assert world.http.delete("/v1/jobs?all=true&state=failed").json() == {"deleted": 1}
    assert world.http.delete("/v1/jobs?all=true").json() == {"deleted": 1}
    assert listed(world) == ["job3", "job2"]


def test_replicas_and_attempts_of_a_job_are_listed(world: World) -> None:
    job = world.submit()
    world.let(world.director.begin, job)
    replicas = world.http.get(f"/v1/jobs/{job}/replicas?state=running&unit=main").json()["items"]
    attempts = world.http.get(f"/v1/jobs/{job}/attempts?replica=main.0").json()["items"]
    assert [(each["key"], each["state"]) for each in replicas] == [("main.0", "running")]
    assert [(each["replica"], each["attempt"], each["nodes"]) for each in attempts] == [
        ("main.0", 1, ["here"])
    ]
    assert world.http.get(f"/v1/jobs/{job}/replicas?state=failed").json()["items"] == []


def test_copies_that_run_are_listed(world: World) -> None:
    job = world.submit()
    assert world.http.get(f"/v1/jobs/{job}/copies").json() == {"items": []}
    world.let(world.director.begin, job)
    copy = world.http.get(f"/v1/jobs/{job}/copies").json()["items"][0]
    assert (copy["replica"], copy["node"], copy["container"]) == ("main.0", "here", None)


def test_a_job_says_why_it_waits_and_how_it_ended(world: World) -> None:
    job = world.submit()
    assert world.http.get(f"/v1/jobs/{job}/why").json()["position"] == 1
    world.let(world.director.finish, job, "failed", 2, "exit code 2")
    why = world.http.get(f"/v1/jobs/{job}/why").json()
    assert (why["state"], why["position"]) == ("failed", None)
    assert "exit code 2" in why["summary"]


def test_a_store_in_trouble_is_told_as_such(world: World) -> None:
    from jobman.control.store.errors import StoreError

    world.director.fault = StoreError("The disk is full.", "Make room.")
    answer = world.http.post("/v1/jobs", json={"document": DOCUMENT})
    assert (answer.status_code, answer.json()["code"], answer.json()["advice"]) == (
        503,
        "store",
        "Make room.",
    )


def test_a_fault_is_answered_with_the_id_that_is_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.director.fault = RuntimeError("private words")
    answer = world.http.post("/v1/jobs", json={"document": DOCUMENT})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "private words" not in answer.text
    assert f"request={answer.headers['X-Request-Id']} broke" in caplog.text
