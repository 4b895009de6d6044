"""Who may ask for what: peers of a socket, tokens, owners and administrators."""

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import httpx
import pytest

from jobman.control.administrators import another_token
from tests.control.api.world import DOCUMENT, World, until

NOBODY = 65534


@pytest.fixture
def grace(shared: World) -> httpx.Client:
    """A user who is no administrator."""
    return shared.caller(shared.token("grace"))


def test_the_service_of_another_user_lets_nobody_in(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root is let in everywhere")
    with World(tmp_path, uid=os.geteuid() + 1) as world:
        assert world.http.get("/v1/status").status_code == 403


@pytest.mark.skipif(os.geteuid() != 0, reason="takes the rights of root to become somebody else")
def test_a_peer_with_another_uid_is_refused_although_it_reaches_the_socket(world: World) -> None:
    world.socket.chmod(0o777)
    for folder in (world.folder, *world.folder.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    ask = f"""
        import os, socket
        os.setgid({NOBODY}); os.setuid({NOBODY})
        peer = socket.socket(socket.AF_UNIX)
        peer.connect({str(world.socket)!r})
        peer.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
        print(peer.makefile().read())
    """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(ask)], capture_output=True, text=True)
    assert "403 Forbidden" in said.stdout, said.stderr
    assert "belongs to ada" in said.stdout


def test_the_owner_of_a_socket_is_let_in_whatever_token_is_sent(world: World) -> None:
    assert world.caller("nonsense").get("/v1/status").status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer nonsense", "Basic YTpi", "Bearer", "Bearer \xff"])
def test_a_shared_service_asks_for_a_token(shared: World, header: str) -> None:
    headers = {b"Authorization": header.encode("latin-1")} if header else {}
    answer = shared.caller().get("/v1/jobs", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_health_and_description_are_for_everybody(shared: World) -> None:
    for path in ("/v1/health", "/v1/openapi.json", "/v1/docs"):
        assert shared.caller().get(path).status_code == 200


def test_users_see_and_touch_only_their_own_jobs(shared: World, grace: httpx.Client) -> None:
    theirs, mine = shared.submit("theirs"), shared.submit("mine", caller=grace)
    assert [job["name"] for job in grace.get("/v1/jobs").json()["items"]] == ["mine"]
    assert grace.get("/v1/jobs?owner=ada").json()["items"] == []
    for path in ("", "/why", "/events", "/logs", "/replicas", "/attempts", "/copies"):
        answer = grace.get(f"/v1/jobs/{theirs}{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "no-such-job"), path
    for path in ("/cancel", "/hold", "/release", "/gates/data/open"):
        assert grace.post(f"/v1/jobs/{theirs}{path}").status_code == 404, path
    assert grace.post(f"/v1/jobs/{theirs}/extend", json={"seconds": 5}).status_code == 404
    assert grace.delete(f"/v1/jobs/{theirs}").status_code == 404
    assert grace.get("/v1/jobs/theirs").status_code == 404
    assert grace.get(f"/v1/events?job={theirs}").status_code == 404
    assert grace.post("/v1/jobs", json={"document": "", "rerun_of": theirs}).status_code == 404
    assert grace.post(f"/v1/jobs/{mine}/cancel").status_code == 200


def test_users_hear_only_of_their_own_jobs(shared: World, grace: httpx.Client) -> None:
    shared.submit("theirs")
    mine = shared.submit("mine", caller=grace)
    assert {event["job"] for event in grace.get("/v1/events").json()["items"]} == {mine}
    assert grace.get("/v1/nodes").json()["items"][0]["jobs"] == [mine]
    assert grace.get("/v1/status").json()["jobs"] == {"waiting": 1}


def test_deleting_all_means_ones_own(shared: World, grace: httpx.Client) -> None:
    for caller in (shared.http, grace):
        job = shared.submit(caller=caller)
        caller.post(f"/v1/jobs/{job}/cancel")
    assert grace.delete("/v1/jobs?all=true&owner=ada").json() == {"deleted": 0}
    assert shared.http.delete("/v1/jobs?all=true").json() == {"deleted": 1}
    assert len(shared.http.get("/v1/jobs").json()["items"]) == 1
    assert shared.http.delete("/v1/jobs?all=true&owner=grace").json() == {"deleted": 1}


def test_an_administrator_sees_and_touches_everything(shared: World, grace: httpx.Client) -> None:
    job = shared.submit("of-grace", caller=grace)
    assert [each["owner"] for each in shared.http.get("/v1/jobs").json()["items"]] == ["grace"]
    assert shared.http.get("/v1/jobs?mine=true").json()["items"] == []
    assert shared.http.post("/v1/jobs/of-grace/cancel").json()["id"] == job


def test_only_administrators_make_tokens_and_stop_the_service(shared: World, grace: httpx.Client) -> None:
    token = {"name": "mine", "user": "grace", "role": "admin"}
    for answer in (
        grace.post("/v1/tokens", json=token),
        grace.get("/v1/tokens"),
        grace.delete("/v1/tokens/admin"),
        grace.post("/v1/stop?force=true"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_a_revoked_token_lets_nobody_in_from_the_next_request_on(shared: World, grace: httpx.Client) -> None:
    assert grace.get("/v1/jobs").status_code == 200
    assert shared.http.delete("/v1/tokens/of-grace").json()["revoked_at"] is not None
    assert grace.get("/v1/jobs").status_code == 401
    assert shared.caller(shared.token("grace")).get("/v1/jobs").status_code == 200, "its name is free again"


def test_a_token_that_was_made_beside_the_service_lets_in_at_once(shared: World) -> None:
    record, token = another_token(shared.folder / "jobman.db")
    assert shared.caller(token).get("/v1/tokens").status_code == 200
    assert shared.http.delete(f"/v1/tokens/{record.name}").json()["revoked_at"] is not None
    assert shared.caller(token).get("/v1/tokens").status_code == 401


def test_a_token_that_was_made_beside_the_service_is_listed_before_it_is_used(shared: World) -> None:
    record, _ = another_token(shared.folder / "jobman.db")
    assert record.name in [each["name"] for each in shared.http.get("/v1/tokens").json()["items"]]
    assert shared.http.delete("/v1/tokens/admin").status_code == 200, "it is not the last one any more"


def test_strangers_do_not_keep_the_store_busy(shared: World) -> None:
    looked = []
    shared.desk.door.learn = lambda: looked.append(1)  # type: ignore[method-assign]
    shared.desk.door.is_behind = iter([True, False, False]).__next__  # type: ignore[method-assign]
    assert {shared.caller("nonsense").get("/v1/jobs").status_code for _ in range(3)} == {401}
    assert looked == [1]


def test_tokens_are_listed_without_their_secrets(shared: World) -> None:
    token = shared.token("grace")
    listed = shared.http.get("/v1/tokens")
    assert [(each["name"], each["role"]) for each in listed.json()["items"]] == [
        ("admin", "admin"),
        ("of-grace", "user"),
    ]
    assert token not in listed.text
    assert "hash" not in listed.text


def test_names_of_tokens_are_unique_and_the_last_administrator_stays(shared: World) -> None:
    shared.token("grace")
    twice = shared.http.post("/v1/tokens", json={"name": "of-grace", "user": "x"})
    last = shared.http.delete("/v1/tokens/admin")
    assert [answer.json()["code"] for answer in (twice, last)] == ["wrong-state", "wrong-state"]
    assert shared.http.delete("/v1/tokens/missing").json()["code"] == "no-such-token"
    assert shared.http.post("/v1/tokens", json={"name": "a b", "user": "x"}).status_code == 400


def test_the_service_of_one_user_has_no_tokens(world: World) -> None:
    assert world.http.get("/v1/tokens").json()["code"] == "cannot"


def test_a_shared_service_takes_no_environment_of_its_callers(shared: World) -> None:
    job = shared.submit(environment={"SECRET": "1"})
    assert shared.http.get(f"/v1/jobs/{job}").json()["options"]["environment given"] is False


def test_tokens_and_bodies_are_never_logged(shared: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = shared.token("grace")
    caller = shared.caller(token)
    caller.post("/v1/jobs", json={"document": DOCUMENT, "name": "visible", "cwd": "/secret-folder"})
    caller.get("/v1/jobs?search=secret-word")
    shared.director.fault = RuntimeError("broken")
    caller.post("/v1/jobs", json={"document": "secret-document"})
    until(lambda: "status=500" in caplog.text)
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("jobman"))
    assert "method=POST path=/v1/jobs status=201" in ours
    assert "owner=grace" in ours
    for secret in (token, shared.admin, "secret-folder", "secret-word", "secret-document"):
        assert secret not in ours
