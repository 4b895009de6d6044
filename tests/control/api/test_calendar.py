"""`/v1/calendar`, `/v1/queues` and the states of nodes, over HTTP and by our own client.

The director here is the scripted one: it keeps the calendar as the real one does, but plans nothing.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from jobman.client import Refused
from jobman.control.administration import NewEntry
from jobman.sched.calendar import Recurrence
from tests.control.api.world import World

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0, tzinfo=None)


def window(**more: Any) -> dict[str, Any]:
    return {
        "kind": "maintenance",
        "name": "repair",
        "start": TOMORROW.isoformat(),
        "duration": 7200,
        **more,
    }


def reservation(**more: Any) -> dict[str, Any]:
    return {**window(), "kind": "reservation", "name": "course", "nodes": ["n1"], **more}


def test_a_window_is_added_listed_and_removed(world: World) -> None:
    made = world.http.post("/v1/calendar", json=window(nodes=["n[1-2]"], reason="new disks"))
    assert made.status_code == 201
    entry = made.json()
    assert (entry["nodes"], entry["reason"], entry["created_by"]) == (["n1", "n2"], "new disks", "ada")
    assert entry["next_start"] == TOMORROW.replace(tzinfo=UTC).timestamp()
    assert world.http.get("/v1/calendar").json()["items"] == [entry]
    gone = world.http.delete("/v1/calendar/repair")
    assert (gone.status_code, gone.json()["name"]) == (200, "repair")
    assert world.http.get("/v1/calendar").json()["items"] == []


def test_entries_are_listed_by_kind(world: World) -> None:
    world.http.post("/v1/calendar", json=window(nodes=["n2"]))
    world.http.post("/v1/calendar", json=reservation())
    for kind, names in (("maintenance", ["repair"]), ("reservation", ["course"])):
        found = world.http.get("/v1/calendar", params={"kind": kind}).json()["items"]
        assert [entry["name"] for entry in found] == names
    assert world.http.get("/v1/calendar", params={"kind": "party"}).status_code == 400


def test_one_is_removed_as_what_it_is(world: World) -> None:
    world.http.post("/v1/calendar", json=reservation())
    refused = world.http.delete("/v1/calendar/course", params={"kind": "maintenance"})
    assert (refused.status_code, refused.json()["code"]) == (404, "no-such-entry")
    assert world.http.delete("/v1/calendar/course", params={"kind": "reservation"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (window(nodes=["nowhere"]), 404, "no-such-node"),
        (window(colour="blue"), 400, "bad-request"),
        (window(name="a/b"), 400, "bad-request"),
        (window(duration=-1), 400, "bad-request"),
        (window(zone="\0"), 400, "bad-request"),
        (window(start="tomorrow"), 400, "bad-request"),
        (window(start="0001-01-01T00:00:00+14:00"), 400, "bad-request"),
        (window(repeats={"every": "day", "interval": 10**20}), 400, "bad-request"),
        (window(repeats={"every": "moon"}), 400, "bad-request"),
        (reservation(count=1), 400, "bad-request"),
        (reservation(nodes=[], count=99), 422, "does-not-fit"),
    ],
)
def test_what_makes_no_sense_is_refused(world: World, body: Any, status: int, code: str) -> None:
    answer = world.http.post("/v1/calendar", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_users_see_the_calendar_and_only_administrators_change_it(shared: World) -> None:
    user = shared.caller(shared.token("bob"))
    shared.http.post("/v1/calendar", json=window())
    assert len(user.get("/v1/calendar").json()["items"]) == 1
    for answer in (
        user.post("/v1/calendar", json=reservation()),
        user.delete("/v1/calendar/repair"),
        user.post("/v1/queues/batch/state", json={"state": "closed"}),
        user.post("/v1/nodes/n1/state", json={"state": "draining"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert user.get("/v1/queues").status_code == 200


def test_queues_are_opened_drained_and_closed(world: World) -> None:
    states = {queue["name"]: queue["state"] for queue in world.http.get("/v1/queues").json()["items"]}
    assert states == {"interactive": "open", "batch": "open"}
    for state in ("draining", "closed", "open"):
        answer = world.http.post("/v1/queues/batch/state", json={"state": state, "reason": "new disks"})
        assert (answer.json()["state"], answer.json()["by"]) == (state, "ada")
        batch = world.http.get("/v1/queues").json()["items"][1]
        assert (batch["state"], batch["reason"]) == (state, "new disks")
    assert world.http.post("/v1/queues/bach/state", json={"state": "open"}).json()["code"] == "no-such-queue"
    assert world.http.post("/v1/queues/batch/state", json={"state": "ajar"}).status_code == 400


def test_nodes_are_drained_and_used_again(world: World) -> None:
    for state in ("draining", "up"):
        answer = world.http.post("/v1/nodes/n1/state", json={"state": state})
        assert answer.json()["state"] == state
    assert world.http.post("/v1/nodes/n9/state", json={"state": "up"}).json()["code"] == "no-such-node"


def test_our_own_client_speaks_of_the_calendar(world: World) -> None:
    with world.client() as client:
        made = client.add_calendar(
            NewEntry(
                kind="reservation",
                name="course",
                start=TOMORROW,
                zone="Europe/Berlin",
                duration=3600,
                count=2,
                users=["bob"],
                repeats=Recurrence(every="week", weekdays=("mon", "thu"), count=4),
                skips=[date(2030, 1, 1)],
            )
        )
        assert (made.rhythm, made.count, made.users) == ("every week on mon, thu, 4 times", 2, ["bob"])
        assert made.next_start is not None
        assert made.next_start > time.time()
        assert client.calendar("reservation") == [made]
        assert client.calendar("maintenance") == []
        with pytest.raises(Refused):
            client.remove_calendar("course", "maintenance")
        assert client.remove_calendar("course").name == "course"


def test_our_own_client_switches_queues_and_nodes(world: World) -> None:
    with world.client() as client:
        assert client.set_queue_state("batch", "closed", "new disks").state == "closed"
        assert client.queues()[1].reason == "new disks"
        assert client.set_node_state("n1", "draining").name == "n1"
        with pytest.raises(Refused, match="no queue"):
            client.set_queue_state("bach", "open")
