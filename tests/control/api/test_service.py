"""The service about itself."""

import os

import msgspec
import pytest

from jobman.version import __version__
from tests.control.api.world import World, until


def test_health_tells_of_trouble(world: World) -> None:
    assert world.http.get("/v1/health").json() == {"status": "ok", "version": __version__}
    world.director.trouble = "The disk is full."
    assert world.http.get("/v1/health").json()["status"] == "degraded"
    status = world.http.get("/v1/status").json()
    assert (status["healthy"], status["trouble"]) == (False, "The disk is full.")


def test_probes_need_no_token_and_tell_life_from_readiness(shared: World) -> None:
    stranger = shared.caller(None)
    assert stranger.get("/healthz").text == "alive\n"
    assert stranger.get("/readyz").text == "ready\n"
    shared.director.trouble = "The disk is full."
    troubled = stranger.get("/readyz")
    assert troubled.status_code == 200, "it can still be read"
    assert troubled.text == "in trouble: The disk is full.\n"


def test_the_status_says_who_and_where_it_is(world: World) -> None:
    world.submit()
    status = world.http.get("/v1/status").json()
    assert (status["version"], status["pid"], status["mode"]) == (__version__, os.getpid(), "embedded")
    assert (status["socket"], status["jobs"]) == (str(world.socket), {"waiting": 1})


def test_nodes_and_queue(world: World) -> None:
    job = world.submit()
    assert world.http.get("/v1/nodes").json()["items"][0]["jobs"] == [job]
    row = world.http.get("/v1/queue").json()["items"][0]
    assert (row["waiting"], row["yours_waiting"]) == (1, 1)


def test_a_busy_service_stops_only_by_force(world: World) -> None:
    world.submit()
    refused = world.http.post("/v1/stop")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong-state")
    assert world.http.post("/v1/stop?force=true").status_code == 200


def test_every_answer_carries_a_request_id(world: World) -> None:
    for path in ("/v1/health", "/v1/nowhere", "/v1/jobs/none"):
        assert world.http.get(path).headers["X-Request-Id"]
    mine = world.http.get("/v1/health", headers={"X-Request-Id": "mine-1"})
    assert mine.headers["X-Request-Id"] == "mine-1"
    for wrong in ("x" * 65, "a b", "a;b"):
        assert world.http.get("/v1/health", headers={"X-Request-Id": wrong}).headers["X-Request-Id"] != wrong


def test_an_unknown_path_or_method_is_a_failure_like_any_other(world: World) -> None:
    nowhere = world.http.get("/v1/nowhere")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "no-such-path")
    method = world.http.put("/v1/jobs")
    assert (method.status_code, method.json()["code"]) == (405, "no-such-method")
    assert method.headers["Allow"] == "DELETE, GET, POST"
    assert world.http.get("/v1/jobs/").status_code == 404
    assert world.http.get("/v1/health?x=1").json()["code"] == "bad-request"


def test_metrics_count_jobs_and_requests(world: World) -> None:
    world.submit()
    world.http.get("/v1/nowhere")
    text = world.http.get("/metrics").text
    for line in (
        'jobman_jobs{state="waiting"} 1.0',
        'jobman_jobs{state="failed"} 0.0',
        'jobman_requests_total{method="POST",path="/v1/jobs",status="201"} 1.0',
        'jobman_request_seconds_count{method="POST",path="/v1/jobs"} 1.0',
        'jobman_requests_total{method="GET",path="-",status="404"} 1.0',
        "jobman_event_loop_lag_seconds",
        "jobman_healthy 1.0",
    ):
        assert line in text


def test_the_description_names_every_endpoint_with_its_answers(world: World) -> None:
    description = world.http.get("/v1/openapi.json").json()
    submit = description["paths"]["/v1/jobs"]["post"]
    assert submit["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Submission"
    }
    assert {"200", "201", "400", "401", "409", "413", "415", "422", "503"} <= set(submit["responses"])
    listing = description["paths"]["/v1/jobs"]["get"]
    limit = next(each for each in listing["parameters"] if each["name"] == "limit")
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    names = [about["operationId"] for path in description["paths"].values() for about in path.values()]
    assert len(names) == len(set(names))
    references = set(_references(description))
    assert references <= {f"#/components/schemas/{name}" for name in description["components"]["schemas"]}


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for each in value.values() for found in _references(each)]
    return [found for each in value for found in _references(each)] if isinstance(value, list) else []


def test_the_page_of_the_description_needs_nothing_from_elsewhere(world: World) -> None:
    page = world.http.get("/v1/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "://" not in page.text


def test_requests_are_logged_in_one_line_each(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world.http.get("/v1/jobs/a%0Ab", headers={"X-Request-Id": "r1"})
    line = until(lambda: next((line for line in caplog.messages if "request=r1" in line), ""))
    assert line.startswith("method=GET path=/v1/jobs/a%0Ab status=404 ms=")
    assert line.endswith("owner=ada request=r1")


def test_a_service_that_stops_takes_no_more_requests(world: World) -> None:
    world.let(world.desk.stopping.set)
    answer = world.http.get("/v1/jobs")
    assert (answer.status_code, answer.json()["code"]) == (503, "stopping")
    assert msgspec.json.decode(answer.content)["exit"] == 5
