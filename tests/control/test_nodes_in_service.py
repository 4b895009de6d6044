"""Nodes that come, go, change and are used by others, while a service runs and over its restarts."""

from datetime import UTC, datetime

import msgspec
import pytest

from jobman.api import loads
from jobman.control.administration import NewEntry
from jobman.control.admission import Fitting
from jobman.control.refusals import Refusal
from jobman.engines.base import NodeSeen
from jobman.plan.nodes import COPY, ClusterNode
from tests.control.stage import NOON, Theatre, document

HOUR = 3600.0


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path)


def node(number, cores=4, **more):
    amounts = {"core": cores, "memory": cores * 2**32, **more.pop("also", {})}
    return ClusterNode(name=f"node-{number}", amounts=amounts, **more)


def seen(number, state="up", *, reason="", foreign=None, **more):
    return NodeSeen(node=node(number, **more), state=state, reason=reason, foreign=foreign or {})


async def news(stage, *nodes):
    stage.engine.nodes_changed(*nodes)
    await stage.settle()


async def shown(stage, number=0):
    return {each.name: each for each in stage.director.nodes()}[f"node-{number}"]


# -- nodes that come and go ----------------------------------------------------------------------------------


def test_a_node_that_comes_is_used_at_once(theatre):
    async def scene(stage):
        running = await stage.submit(document(4, 500))
        waiting = await stage.submit(document(4, 500))
        assert stage.by(waiting) == 500
        await news(stage, seen(1))
        assert stage.running() == [running, waiting]
        assert stage.nodes_of(waiting) == ["node-1"]

    theatre.play(scene)


def test_what_only_a_new_node_has_is_admitted_once_it_is_there(theatre):
    text = document(8, 60)

    async def scene(stage):
        with pytest.raises(Refusal, match="can never start"):
            await stage.submit(text)
        await news(stage, seen(1, cores=8))
        assert stage.nodes_of(await stage.submit(text)) == ["node-1"]

    theatre.play(scene)


def test_a_service_begins_without_any_node(theatre):
    async def scene(stage):
        assert stage.director.nodes() == []
        with pytest.raises(Refusal):
            await stage.submit(document(1, 60))
        await news(stage, seen(0))
        job = await stage.submit(document(1, 60))
        assert stage.running() == [job]

    theatre.play(scene, nodes=0)


def test_promises_move_only_with_the_cause_when_a_node_goes_down(theatre):
    async def scene(stage):
        await stage.submit(document(4, 100, name="short"))
        await stage.submit(document(4, 800, name="long"))
        job = await stage.submit(document(4, 100))
        assert stage.by(job) == 100
        await news(stage, seen(0, "down", reason="it does not answer"))
        assert stage.by(job) == 800
        (words,) = stage.told(job, "promise-moved")
        assert words.endswith("node node-0 is down: it does not answer")
        (revision,) = (await stage.director.why(job)).revisions
        assert revision.cause == "node node-0 is down: it does not answer"

    theatre.play(scene, nodes=2)


def test_nothing_starts_on_a_node_that_is_down_and_why_says_so(theatre):
    async def scene(stage):
        await news(stage, seen(0, "down", reason="it does not answer"))
        job = await stage.submit(document(1, 60))
        assert stage.running() == []
        assert "node-0 is down" in (await stage.director.why(job)).summary
        found = await shown(stage)
        assert (found.state, found.reason) == ("down", "it does not answer")
        await news(stage, seen(0))
        assert stage.running() == [job]
        assert (await shown(stage)).state == "up"

    theatre.play(scene)


def test_a_suspect_node_is_expected_back(theatre):
    async def scene(stage):
        await news(stage, seen(0, "suspect", reason="not ready for 3 s"))
        job = await stage.submit(document(1, 60))
        assert stage.running() == []
        assert 0 < stage.by(job) < HOUR
        await news(stage, seen(0))
        assert stage.running() == [job]

    theatre.play(scene)


@pytest.mark.parametrize("state", ["down", "suspect", "drained"])
def test_a_node_that_comes_back_is_as_drained_as_administrators_left_it(theatre, state):
    async def scene(stage):
        await stage.director.set_node_state("node-0", "draining", "disk", "root")
        await news(stage, seen(0, state, reason="away"))
        found = await shown(stage)
        assert found.state == ("down" if state == "down" else "draining")
        assert found.reason == "away; by root: disk"
        job = await stage.submit(document(1, 60))
        await news(stage, seen(0))
        assert stage.running() == []
        assert (await shown(stage)).state == "draining"
        await stage.director.set_node_state("node-0", "up", "", "root")
        await stage.settle()
        assert stage.running() == [job]

    theatre.play(scene)


def test_a_node_is_not_used_because_an_administrator_resumes_what_the_host_has_lost(theatre):
    async def scene(stage):
        await stage.director.set_node_state("node-0", "draining", "", "root")
        await news(stage, seen(0, "down"))
        await stage.director.set_node_state("node-0", "up", "", "root")
        await stage.submit(document(1, 60))
        assert stage.running() == []
        assert (await shown(stage)).state == "down"

    theatre.play(scene)


def test_a_node_that_was_drained_before_it_came_is_drained(theatre):
    async def first(stage):
        await stage.director.set_node_state("node-1", "draining", "new disks", "root")

    async def second(stage):
        await news(stage, seen(1))
        await stage.submit(document(4, 60))
        await stage.submit(document(4, 60))
        assert len(stage.running()) == 1
        assert (await shown(stage, 1)).reason == "by root: new disks"

    theatre.play(first, nodes=2)
    theatre.play(second, nodes=1)


def test_states_come_from_the_host_again_after_a_restart(theatre):
    kept = {}

    async def first(stage):
        await news(stage, seen(0, "down"))
        kept["job"] = await stage.submit(document(1, 60))
        assert stage.running() == []

    async def second(stage):
        assert stage.running() == [kept["job"]]

    theatre.play(first)
    theatre.play(second)


def test_nothing_starts_before_the_host_has_said_how_its_nodes_are(theatre):
    kept = {}

    async def first(stage):
        await news(stage, seen(0, "down"), seen(1, foreign={"core": 4}))
        kept["job"] = await stage.submit(document(1, 60))

    async def second(stage):
        assert stage.engine.launched == []
        assert stage.state(kept["job"]) == "waiting"

    theatre.play(first, nodes=2)
    theatre.play(second, nodes=2, news=(seen(0, "down"), seen(1, foreign={"core": 4})))


def test_a_promise_that_a_restart_finds_broken_moves_with_the_cause(theatre):
    kept = {}

    async def first(stage):
        await stage.submit(document(4, 100))
        await stage.submit(document(4, 800))
        kept["job"] = await stage.submit(document(4, 100))
        assert stage.by(kept["job"]) == 100

    async def second(stage):
        assert stage.by(kept["job"]) == 800
        (words,) = stage.told(kept["job"], "promise-moved")
        assert words.endswith("node node-0 is down: it does not answer")

    theatre.play(first, nodes=2)
    theatre.play(second, nodes=2, news=(seen(0, "down", reason="it does not answer"), seen(1)))


# -- what others use -----------------------------------------------------------------------------------------


def test_what_others_use_is_not_given_away_and_is_shown(theatre):
    async def scene(stage):
        await news(stage, seen(0, foreign={"core": 2.5}))
        job = await stage.submit(document(2, 60))
        assert stage.running() == []
        assert "others use 2.5 cores of node-0" in (await stage.director.why(job)).summary
        found = await shown(stage)
        assert (found.used["core"], found.foreign) == (2.5, {"core": 2.5})
        await news(stage, seen(0))
        assert stage.running() == [job]
        assert (await shown(stage)).used["core"] == 2

    theatre.play(scene)


def test_promises_move_with_the_cause_when_others_use_more(theatre):
    async def scene(stage):
        await stage.submit(document(4, 100))
        await stage.submit(document(4, 800))
        job = await stage.submit(document(4, 100))
        assert stage.by(job) == 100
        await news(stage, seen(0, foreign={"core": 1}))
        assert stage.by(job) == 800
        (words,) = stage.told(job, "promise-moved")
        assert words.endswith("others use more of node node-0")

    theatre.play(scene, nodes=2)


def test_what_runs_goes_on_when_others_take_what_it_holds_and_is_given_back_well(theatre):
    async def scene(stage):
        job = await stage.submit(document(3, 100))
        await news(stage, seen(0, foreign={"core": 3}))
        assert stage.running() == [job]
        after = await stage.submit(document(2, 100))
        await stage.pass_time(150)
        assert stage.is_over(job)
        assert stage.running() == []
        await news(stage, seen(0, foreign={"core": 1}))
        assert stage.running() == [after]
        await stage.end(after)
        assert (await shown(stage)).used["core"] == 1

    theatre.play(scene)


def test_a_whole_node_is_what_others_leave_of_it(theatre):
    async def scene(stage):
        await news(stage, seen(0, foreign={"core": 1.5, "memory": 2**32}))
        job = await stage.submit(document(nodes=1, duration=60))
        (order,) = stage.engine.now_playing.values()
        assert order.allocation.slots[0].amounts == {"core": 2, "memory": 3 * 2**32}
        await news(stage, seen(0, foreign={"core": 1}))
        await stage.end(job)
        assert (await shown(stage)).used == {"core": 1, "memory": 0}

    theatre.play(scene)


def test_a_start_that_others_foil_is_planned_again(theatre):
    async def scene(stage):
        await stage.submit(document(4, 100))
        job = await stage.submit(document(4, 100))
        # The pool hears of others at once, the planner at its next pass.
        stage.planning.pool.set_foreign("node-0", {"core": 1})
        await stage.end(stage.running()[0])
        assert stage.running() == []
        stage.planning.pool.set_foreign("node-0", {})
        await stage.pass_time(10)
        assert stage.running() == [job]

    theatre.play(scene)


# -- nodes that change ---------------------------------------------------------------------------------------


def test_a_node_that_grows_has_room_for_more(theatre):
    async def scene(stage):
        await stage.submit(document(4, 500))
        job = await stage.submit(document(4, 500))
        assert stage.by(job) == 500
        await news(stage, seen(0, cores=8))
        assert len(stage.running()) == 2
        assert (await shown(stage)).amounts["core"] == 8
        large = await stage.submit(document(8, 100))
        assert stage.by(large) == 500

    theatre.play(scene)


def test_a_node_that_shrinks_keeps_what_runs_and_promises_move(theatre):
    async def scene(stage):
        first = await stage.submit(document(4, 100))
        await stage.submit(document(4, 800))
        job = await stage.submit(document(4, 100))
        await news(stage, seen(0, cores=2))
        assert first in stage.running()
        assert stage.by(job) == 800
        (words,) = stage.told(job, "promise-moved")
        assert words.endswith("node node-0 has less than before")
        await stage.end(first)
        assert stage.nodes_of(await stage.submit(document(2, 50))) == ["node-0"]

    theatre.play(scene, nodes=2)


def test_a_label_that_comes_makes_a_node_fit_and_one_that_goes_takes_promises_away(theatre):
    wanted = document(4, 100, placement={"labels": {"disk": "fast"}})

    async def scene(stage):
        with pytest.raises(Refusal):
            await stage.submit(wanted)
        await news(stage, seen(0, labels={"disk": "fast"}), seen(1, labels={"disk": "fast"}))
        first, second = [await stage.submit(wanted) for _ in range(2)]
        assert stage.running() == [first, second]
        third = await stage.submit(wanted)
        assert stage.by(third) == 100
        await news(stage, seen(0), seen(1, labels={"disk": "fast"}))
        await stage.end(first)
        assert third not in stage.running()
        await stage.end(second)
        assert stage.nodes_of(third) == ["node-1"]

    theatre.play(scene, nodes=2)


def test_a_new_kind_of_resource_can_be_asked_for(theatre):
    task = {"resources": {"type": "slot", "count": 1, "with": [{"type": "gpu", "count": 1}]}}

    async def scene(stage):
        with pytest.raises(Refusal):
            await stage.submit(document(task=task, duration=60))
        await news(stage, seen(0, also={"gpu": 2}))
        job = await stage.submit(document(task=task, duration=60))
        assert stage.running() == [job]

    theatre.play(scene)


# -- restarts ------------------------------------------------------------------------------------------------

GROUP = msgspec.json.encode(
    {
        "version": 1,
        "name": "group",
        "grace": "0s",
        "tasks": [{"group": "pair"}],
        "groups": [
            {
                "name": "pair",
                "resources": {"type": "node", "count": 2},
                "tasks": [
                    {
                        "name": "work",
                        "command": "x",
                        "replicas": 2,
                        "resources": {"type": "slot", "count": 1, "with": [{"type": "core", "count": 4}]},
                    }
                ],
            }
        ],
    }
).decode()


def test_jobs_on_nodes_that_are_gone_after_a_restart_are_taken_up(theatre):
    kept = {}

    async def first(stage):
        kept["alone"] = await stage.submit(document(4, 1000))
        kept["group"] = await stage.submit(GROUP)
        assert len(stage.engine.now_playing) == 3

    async def second(stage):
        assert {stage.state(job) for job in kept.values()} == {"running"}
        await stage.end(kept["alone"])
        assert stage.state(kept["alone"]) == "succeeded"

    theatre.play(first, nodes=3)
    theatre.play(second, nodes=1)


def test_a_group_that_lost_a_node_goes_back_to_the_queue(theatre):
    async def scene(stage):
        job = await stage.submit(GROUP)
        (lost,) = [
            address for address in stage.engine.now_playing if stage.nodes_of(job, address[1]) == ["node-0"]
        ]
        await news(stage, seen(0, "down"))
        stage.engine.end(lost, "node-lost", None)
        await stage.settle()
        assert stage.told(job, "displaced") == ["node node-0 of its group is lost; it goes back to the queue"]
        assert stage.running() == []
        await news(stage, seen(2))
        assert set(stage.nodes_of(job)) == {"node-1", "node-2"}

    theatre.play(scene, nodes=2)


# -- draining at the host ------------------------------------------------------------------------------------


def maintenance(start, duration, nodes=()):
    return NewEntry(
        kind="maintenance",
        name="disks",
        start=datetime.fromtimestamp(start, UTC),
        duration=duration,
        nodes=list(nodes),
    )


def test_the_host_keeps_others_away_while_nodes_are_drained(theatre):
    async def scene(stage):
        await stage.director.set_node_state("node-0", "draining", "", "root")
        await stage.settle()
        assert stage.engine.drained == {"node-0"}
        await stage.director.set_node_state("node-0", "up", "", "root")
        await stage.settle()
        assert stage.engine.drained == set()

    theatre.play(scene, nodes=2)


def test_the_host_keeps_others_away_while_nodes_are_maintained(theatre):
    async def scene(stage):
        await stage.director.add_calendar(maintenance(NOON + 100, 100, ["node-1"]), "root")
        await stage.pass_time(50)
        assert stage.engine.drained == set()
        await stage.pass_time(60)
        assert stage.engine.drained == {"node-1"}
        await stage.director.set_node_state("node-1", "draining", "", "root")
        await stage.pass_time(100)
        assert stage.engine.drained == {"node-1"}
        await stage.director.set_node_state("node-1", "up", "", "root")
        await stage.settle()
        assert stage.engine.drained == set()

    theatre.play(scene, nodes=2)


def test_a_node_that_comes_during_maintenance_of_all_is_kept_free(theatre):
    async def scene(stage):
        await stage.director.add_calendar(maintenance(NOON + 10, 1000), "root")
        await stage.pass_time(20)
        await news(stage, seen(1))
        assert stage.engine.drained == {"node-0", "node-1"}
        await stage.submit(document(1, 60))
        assert stage.running() == []

    theatre.play(scene)


def test_windows_removed_while_they_hold_give_nodes_back(theatre):
    async def scene(stage):
        await stage.director.add_calendar(maintenance(NOON + 10, 1000), "root")
        await stage.pass_time(20)
        await stage.director.remove_calendar("disks", None, "root")
        await stage.settle()
        assert stage.engine.drained == set()

    theatre.play(scene)


def test_what_was_to_be_said_to_the_host_before_a_restart_is_said_after_it(theatre):
    async def first(stage):
        await stage.director.set_node_state("node-0", "draining", "", "root")

    async def second(stage):
        assert stage.engine.told == {"node-0": True, "node-1": False}

    theatre.play(first, nodes=2)
    theatre.play(second, nodes=2)


# -- what hosts are told -------------------------------------------------------------------------------------


def test_ends_are_settled_and_jobs_are_finished_after_they_were_written_down(theatre):
    async def scene(stage):
        settle = stage.engine.settle
        known = []

        async def look(address):
            record = next(each for each in stage.store.attempts(address[0]).items if each.key == address[1])
            known.append(record.ended_at)
            await settle(address)

        stage.engine.settle = look
        job = await stage.submit(document(1, 60))
        assert stage.engine.settled == []
        await stage.end(job)
        assert stage.engine.settled == [(job, "work.0", 1)]
        assert known == [NOON]
        assert stage.engine.finished == [job]

    theatre.play(scene)


def test_an_end_that_is_reported_again_is_settled_again(theatre):
    async def scene(stage):
        job = await stage.submit(document(1, 60))
        (order,) = stage.engine.now_playing.values()
        await stage.end(job)
        stage.engine.now_playing[order.address] = order
        await stage.end(job)
        assert stage.engine.settled == [order.address] * 2

    theatre.play(scene)


def test_what_copies_cost_beside_what_they_ask_for_is_planned(theatre):
    async def scene(stage):
        stage.engine.overheads = {"core": 500}
        await stage.submit(document(3, 100))
        job = await stage.submit(document(1, 100))
        assert stage.by(job) == 100
        with pytest.raises(Refusal, match="beside"):
            await stage.submit(document(4, 100))

    theatre.play(scene)


@pytest.mark.parametrize(("slots", "fits"), [(6, True), (7, False)])
def test_slots_cost_something_wherever_they_are(slots, fits):
    shape = f"{{type: slot, count: {slots}, with: [{{type: core, count: 1}}]}}"
    plan = loads(f"version: 1\ntasks: [{{name: a, command: x, resources: {shape}}}]\n").plan()
    nodes = [ClusterNode(name=name, amounts={"core": 8, COPY: 3}) for name in ("n1", "n2")]
    assert Fitting(nodes).fits_beside(plan.unit("a"), {COPY: 1}) == fits


def connected(name, *names):
    network = {"network": {"connect": list(names)}} if names else {}
    return document(1, 500, name=name, **network)


def test_jobs_that_are_connected_are_told_so_on_both_sides(theatre):
    async def scene(stage):
        server = await stage.submit(connected("server"))
        client = await stage.submit(connected("client", "server"))
        assert stage.engine.connections == {server: (client,), client: (server,)}
        orders = {order.job: order for order in stage.engine.now_playing.values()}
        assert orders[client].connected == (server,)
        assert orders[client].plan.name == "client"
        await stage.director.cancel(client, "ada")
        await stage.settle()
        assert stage.engine.connections[server] == ()

    theatre.play(scene)


def test_nobody_is_connected_with_the_job_of_somebody_else_that_does_not_want_it(theatre):
    async def scene(stage):
        ours = await stage.submit(connected("server"))
        theirs = await stage.submit(connected("client", "server"), owner="bob")
        assert stage.engine.connections.get(ours, ()) == ()
        assert stage.engine.connections.get(theirs, ()) == ()
        mutual = await stage.submit(connected("friend", "client"), owner="ada")
        assert stage.engine.connections.get(mutual, ()) == ()

    theatre.play(scene)


def test_jobs_of_two_owners_are_connected_where_each_names_the_other(theatre):
    async def scene(stage):
        one = await stage.submit(connected("one", "two"))
        two = await stage.submit(connected("two", "one"), owner="bob")
        assert stage.engine.connections == {one: (two,), two: (one,)}

    theatre.play(scene)


def test_connections_and_time_that_was_given_are_told_again_after_a_restart(theatre):
    kept = {}

    async def first(stage):
        kept["server"] = await stage.submit(connected("server"))
        kept["client"] = await stage.submit(connected("client", "server"))
        await stage.director.extend(kept["server"], 100, None, "ada")
        await stage.settle()

    async def second(stage):
        server, client = kept["server"], kept["client"]
        assert stage.engine.connections == {server: (client,), client: (server,)}
        orders = {order.job: order for order in stage.engine.now_playing.values()}
        assert (orders[server].extra, orders[client].extra) == (100, 0)

    theatre.play(first)
    theatre.play(second)


def test_a_coordinator_is_named_by_the_host_that_runs_it(theatre):
    slot = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
    tasks = [{"name": name, "command": "x", "resources": slot} for name in ("chief", "work")]
    text = msgspec.json.encode({"version": 1, "coordinator": "chief/0", "tasks": tasks}).decode()

    async def scene(stage):
        stage.engine.host_of = lambda job, key, copy=0: f"{key}-{copy}"
        await stage.submit(text)
        assert {order.coordinator for order in stage.engine.now_playing.values()} == {"chief.0-0"}

    theatre.play(scene)
