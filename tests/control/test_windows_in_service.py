"""Administrators' acts in the service: maintenance, reservations, and the states of queues and nodes."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from jobman.control.administration import NewEntry
from jobman.control.refusals import Refusal
from jobman.engines.memory import Play
from jobman.sched.calendar import Recurrence
from tests.control.audit import Witness, disagreements, leftovers
from tests.control.histories import History
from tests.control.stage import EXACT, NOON, Theatre, document

HOUR = 3600.0
_CORE = "{type: slot, count: 1, with: [{type: core, count: 1}]}"
GROUP = f"""
version: 1
name: grouped
groups:
- name: pair
  resources: {{type: node, count: 1}}
  attributes: {{duration: 1000s}}
  tasks:
  - {{name: a, command: x, resources: {_CORE}}}
  - {{name: b, command: x, resources: {_CORE}}}
"""


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path)


async def add(stage, kind, name, after, duration=None, **more):
    """Add an entry to the calendar that begins in so many seconds."""
    start = datetime.fromtimestamp(stage.now + after, UTC)
    entry = NewEntry(kind=kind, name=name, start=start, duration=duration, **more)
    found = await stage.director.add_calendar(entry, "root")
    await stage.settle()
    return found


async def refusal(stage, text, owner="ada", **more):
    with pytest.raises(Refusal) as refused:
        await stage.submit(text, owner, **more)
    return refused.value


class TestMaintenance:
    def test_nothing_starts_that_would_run_into_it_and_what_fits_does(self, theatre):
        async def scene(stage):
            await add(stage, "maintenance", "disk", 300, 600, nodes=["node-0"])
            fits = await stage.submit(document(2, 300))
            other_node = await stage.submit(document(2, 1000))
            after = await stage.submit(document(2, 301))
            without_limit = await stage.submit(document(1))
            assert stage.nodes_of(fits) == ["node-0"]
            assert stage.nodes_of(other_node) == ["node-1"]
            assert stage.by(after) == 900
            assert stage.by(without_limit) in (1000, 1201)

        theatre.play(scene, nodes=2, cores=2)

    def test_what_runs_at_its_beginning_goes_back_to_the_queue_and_runs_again(self, theatre):
        async def scene(stage):
            on_it = await stage.submit(document(2, 1000))
            beside = await stage.submit(document(2, 2000))
            await add(stage, "maintenance", "disk", 300, 600, nodes=["node-0"])
            assert stage.nodes_of(on_it) == ["node-0"]
            await stage.pass_time(300)
            assert stage.running() == [beside]
            assert stage.told(on_it, "displaced") == [
                "maintenance disk begins on its node; it goes back to the queue"
            ]
            assert stage.by(on_it) == 600
            assert "displaced" not in stage.kinds(beside)
            await stage.pass_time(600)
            assert stage.nodes_of(on_it) == ["node-0"]
            await stage.end(on_it)
            assert stage.state(on_it) == "succeeded"
            assert [attempt.attempt for attempt in stage.store.attempts(on_it).items] == [1, 2]
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, nodes=2, cores=2)

    def test_a_copy_that_takes_its_time_to_stop_is_waited_for(self, theatre):
        async def scene(stage):
            stage.engine.lasting = 20
            job = await stage.submit(document(1, 1000, grace="30s"))
            await add(stage, "maintenance", "disk", 300, 600)
            await stage.pass_time(310)
            assert stage.running() == [job]
            await stage.pass_time(591)
            assert stage.running() == [job]
            assert stage.begun(job) == NOON
            assert stage.launched() == [job, job]

        theatre.play(scene, cores=1)

    def test_it_moves_promises_with_its_name_as_the_cause(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            job = await stage.submit(document(1, 500))
            await add(stage, "maintenance", "disk", 300, 600)
            assert stage.by(job) == 900
            [revision] = stage.store.revisions(job, 5)
            assert "maintenance disk" in revision.cause
            [words] = stage.told(job, "promise-moved")
            assert "maintenance disk" in words

        theatre.play(scene, cores=1)

    def test_when_it_is_removed_things_start_at_once(self, theatre):
        async def scene(stage):
            await add(stage, "maintenance", "disk", 0)
            job = await stage.submit(document(1, 100))
            assert stage.running() == []
            assert stage.by(job) is None
            await stage.pass_time(HOUR)
            assert stage.running() == []
            await stage.director.remove_calendar("disk", "maintenance", "root")
            await stage.settle()
            assert stage.running() == [job]
            assert stage.director.calendar() == []
            with pytest.raises(Refusal) as refused:
                await stage.director.remove_calendar("disk", None, "root")
            assert refused.value.code == "no-such-entry"

        theatre.play(scene, cores=1)

    def test_one_that_is_removed_before_it_begins_leaves_no_trace_in_the_plan(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            job = await stage.submit(document(1, 500))
            await add(stage, "maintenance", "disk", 300, 600)
            await stage.director.remove_calendar("disk", None, "root")
            await stage.settle()
            assert stage.by(job) == 100
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)

    def test_a_restart_in_its_midst_displaces_nobody_again(self, theatre):
        async def scenes():
            async with theatre.stage(nodes=2, cores=1) as stage:
                job = await stage.submit(document(1, 1000))
                await add(stage, "maintenance", "disk", 300, 600, nodes=["node-0"])
                await stage.pass_time(310)
                assert stage.nodes_of(job) == ["node-1"]
                other = await stage.submit(document(1, 100))
                assert stage.by(other) == 590
            async with theatre.stage(nodes=2, cores=1) as stage:
                await stage.pass_time(1)
                assert stage.nodes_of(job) == ["node-1"]
                assert stage.kinds(job).count("displaced") == 1
                assert stage.by(other) == 589
                await stage.pass_time(589)
                assert stage.nodes_of(other) == ["node-0"]

        asyncio.run(scenes())

    @pytest.mark.parametrize("text", [document(1, 1000), GROUP], ids=["task", "group"])
    def test_who_is_on_the_way_out_when_the_service_is_restarted_is_told_once(self, theatre, text):
        async def scenes():
            async with theatre.stage(cores=2, lasting=60) as stage:
                job = await stage.submit(text)
                await add(stage, "maintenance", "disk", 300, 600)
                await stage.pass_time(310)
                assert stage.running() == [job]
            async with theatre.stage(cores=2, lasting=60) as stage:
                await stage.pass_time(1)
                assert stage.kinds(job).count("displaced") == 1
                await stage.pass_time(700)
                assert stage.running() == [job]
                assert stage.kinds(job).count("displaced") == 1

        asyncio.run(scenes())

    def test_a_restart_before_it_keeps_it_in_the_plan(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                await add(stage, "maintenance", "disk", 300, 600)
            async with theatre.stage(cores=1) as stage:
                job = await stage.submit(document(1, 400))
                assert stage.by(job) == 900
                await stage.pass_time(900)
                assert stage.running() == [job]

        asyncio.run(scenes())

    def test_one_that_began_while_nobody_led_clears_its_nodes(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                job = await stage.submit(document(1, 10_000))
                await add(stage, "maintenance", "disk", 300, 600)
            theatre.clock.now += 400
            async with theatre.stage(cores=1) as stage:
                await stage.pass_time(1)
                assert stage.running() == []
                assert "displaced" in stage.kinds(job)
                await stage.pass_time(500)
                assert stage.running() == [job]

        asyncio.run(scenes())

    def test_every_week_it_comes_again(self, theatre):
        async def scene(stage):
            day = 24 * HOUR
            await add(stage, "maintenance", "weekly", HOUR, HOUR, repeats=Recurrence(every="day"))
            job = await stage.submit(document(1, 23 * HOUR))
            too_long = await stage.submit(document(1, 24 * HOUR))
            assert stage.by(job) == 2 * HOUR
            assert stage.by(too_long) is None or stage.by(too_long) > 20 * day
            await stage.pass_time(2 * HOUR)
            assert stage.running() == [job]
            assert stage.director.calendar()[0].next_start == stage.now + 23 * HOUR

        theatre.play(scene, cores=1)

    def test_groups_go_back_as_a_whole(self, theatre):
        async def scene(stage):
            job = await stage.submit(GROUP)
            assert len(stage.engine.now_playing) == 2
            await add(stage, "maintenance", "disk", 300, 600)
            await stage.pass_time(301)
            assert stage.running() == []
            await stage.pass_time(600)
            assert len(stage.engine.now_playing) == 2
            await stage.end(job)
            assert stage.state(job) == "succeeded"
            assert leftovers(stage) == []

        theatre.play(scene, cores=2)


class TestReservations:
    def test_only_those_for_whom_it_is_may_use_it_and_only_by_name(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            mine = await stage.submit(document(1, 500), reservation="night")
            assert stage.by(mine) == 100
            without = await stage.submit(document(1, 500))
            assert stage.by(without) == 1100
            fits_before = await stage.submit(document(1, 100), "bob")
            assert stage.running() == [fits_before]
            assert (await refusal(stage, document(1, 10), "bob", reservation="night")).code == "forbidden"
            assert (await refusal(stage, document(1, 10), reservation="nigth")).code == "no-such-entry"
            await stage.pass_time(100)
            assert stage.running() == [mine]
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)

    def test_an_account_may_have_one(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "course", 0, 1000, accounts=["physics"])
            taken = await stage.submit(document(1, 100, account="physics"), reservation="course")
            assert stage.running() == [taken]
            assert (await refusal(stage, document(1, 10), "bob", reservation="course")).code == "forbidden"

        theatre.decree(f"{EXACT}accounts: [{{name: physics, users: [ada]}}, {{name: other, users: [bob]}}]\n")
        theatre.play(scene)

    def test_an_account_need_not_be_named_and_those_below_it_may_use_it(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "course", 100, 1000, accounts=["science"])
            jobs = [await stage.submit(document(1, 200), reservation="course") for _ in range(2)]
            assert [stage.by(job) for job in jobs] == [100, 300]
            assert (await refusal(stage, document(1, 100), "bob", reservation="course")).code == "forbidden"

        science = "{name: science}, {name: physics, parent: science, users: [ada]}"
        theatre.decree(f"{EXACT}accounts: [{science}, {{name: other, users: [bob]}}]\n")
        theatre.play(scene, cores=1)

    def test_one_for_an_account_that_is_not_there_is_refused(self, theatre):
        async def scene(stage):
            with pytest.raises(Refusal) as refused:
                await add(stage, "reservation", "course", 100, 1000, accounts=["phisics"])
            assert refused.value.advice == "Did you mean physics?"

        theatre.decree(f"{EXACT}accounts: [{{name: physics, users: [ada]}}]\n")
        theatre.play(scene, cores=2)

    def test_one_that_is_over_is_refused(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 0, 100)
            await stage.pass_time(101)
            found = await refusal(stage, document(1, 10), "root", reservation="night")
            assert found.code == "wrong-state"

        theatre.play(scene, cores=1)

    def test_those_who_wait_in_it_are_promised_times_within_it(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            jobs = [await stage.submit(document(2, 400), reservation="night") for _ in range(2)]
            assert [stage.by(job) for job in jobs] == [100, 500]
            small = await stage.submit(document(1, 200), reservation="night")
            assert stage.by(small) == 900
            stage.each_time.append(witness := Witness())
            await stage.pass_time(1200)
            assert (witness.broken, witness.moved) == ([], [])
            assert [stage.begun(job) - NOON for job in (*jobs, small)] == [100, 500, 900]

        theatre.play(scene, cores=2)

    def test_what_fits_into_none_of_its_times_does_not_wait_for_ever(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            assert (await refusal(stage, document(1, 2000), reservation="night")).code == "does-not-fit"

        theatre.play(scene, cores=1)

    def test_who_waits_in_it_until_it_is_over_is_told(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            first = await stage.submit(document(1, 800), reservation="night")
            late = await stage.submit(document(1, 800), reservation="night")
            assert stage.by(late) is None
            await stage.pass_time(1200)
            assert stage.state(first) == "failed"  # it ran to its limit
            assert stage.state(late) == "failed"
            words = "work.0: the reservation night was over before it could start"
            assert stage.store.job(late).reason == words
            assert stage.told(late, "failed") == ["the reservation night was over before it could start"]
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)

    def test_what_asks_when_it_is_over_fails_and_what_cleans_up_runs_outside(self, theatre):
        def tasks(*tasks):
            cores = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
            made = [{"command": "x", "resources": cores, **task} for task in tasks]
            return json.dumps({"version": 1, "name": "job", "grace": "0s", "tasks": made})

        limit = {"attributes": {"duration": "800s"}}
        text = tasks(
            {"name": "first", **limit},
            {"name": "second", "depends_on": ["first"], **limit},
            {"name": "tidy", "when": "always", **limit},
        )

        async def scene(stage):
            await add(stage, "reservation", "night", 0, 1000, users=["ada"])
            job = await stage.submit(text, reservation="night")
            await stage.pass_time(1050)
            assert stage.state(job) == "failed"
            assert [address[1] for address in stage.engine.launched] == ["first.0", "tidy.0"]
            assert stage.told(job, "failed") == ["the reservation night was over before it could start"]
            assert leftovers(stage) == []

        theatre.play(scene, lambda order: Play(seconds=700 if order.key == "first.0" else 10), cores=1)

    def test_who_waits_in_one_that_comes_again_waits_for_the_next_time(self, theatre):
        async def scene(stage):
            await add(
                stage,
                "reservation",
                "night",
                100,
                1000,
                users=["ada"],
                repeats=Recurrence(every="day", count=2),
            )
            jobs = [await stage.submit(document(1, 800), reservation="night") for _ in range(3)]
            await stage.pass_time(1200)
            assert [stage.state(job) for job in jobs] == ["failed", "waiting", "waiting"]
            await stage.pass_time(86400)
            assert [stage.state(job) for job in jobs] == ["failed"] * 3
            assert [stage.begun(job) - NOON for job in jobs[:2]] == [100, 86500]
            assert stage.store.job(jobs[2]).reason.startswith("work.0: the reservation night was over")

        theatre.play(scene, cores=1)

    def test_one_that_ends_while_the_service_is_down_fails_who_waits_for_it(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                await add(stage, "reservation", "night", 100, 1000, users=["ada"])
                jobs = [await stage.submit(document(1, 800), reservation="night") for _ in range(2)]
            theatre.clock.now += 5000
            async with theatre.stage(cores=1) as stage:
                await stage.pass_time(1)
                assert [stage.state(job) for job in jobs] == ["failed"] * 2
                assert leftovers(stage) == []

        asyncio.run(scenes())

    def test_one_that_is_removed_frees_its_nodes_and_moves_who_counted_on_it(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            job = await stage.submit(document(1, 500), reservation="night")
            other = await stage.submit(document(1, 500), "bob")
            assert (stage.by(job), stage.by(other)) == (100, 1100)
            await stage.director.remove_calendar("night", None, "root")
            await stage.settle()
            assert stage.running() == [other]
            [words] = stage.told(job, "promise-moved")
            assert "night" in words

        theatre.play(scene, cores=1)

    def test_who_waits_for_one_that_is_removed_is_told_and_goes_on_when_it_is_made_anew(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            jobs = [await stage.submit(document(1, 800), reservation="night") for _ in range(2)]
            other = await stage.submit(document(1, 20), "bob")
            assert [stage.by(job) for job in jobs] == [100, None]
            assert stage.promise(jobs[0]).expected_at == stage.now + 100
            await stage.director.remove_calendar("night", None, "root")
            await stage.pass_time(1)
            assert stage.promise(jobs[0]).expected_at is None
            for job in jobs:
                [words] = stage.told(job, "reservation-removed")
                assert words.startswith("the reservation night was removed")
                why = await stage.director.why(job)
                assert [blocker.kind for blocker in why.blockers] == ["reservation"]
                assert "no reservation night" in why.summary
            assert stage.told(other, "reservation-removed") == []
            await add(stage, "reservation", "night", 100, 2000, users=["ada"])
            assert [stage.by(job) for job in jobs] == [100, 900]

        theatre.play(scene, cores=1)

    def test_a_restart_in_its_midst_breaks_no_promise(self, theatre):
        async def scenes():
            async with theatre.stage(cores=2) as stage:
                await add(stage, "reservation", "night", 100, 10_000, users=["ada"])
                jobs = [await stage.submit(document(2, 1000), reservation="night") for _ in range(2)]
                outside = await stage.submit(document(2, 1000))
                await stage.pass_time(150)
                assert stage.running() == jobs[:1]
                assert [stage.by(job) for job in (jobs[1], outside)] == [950, 9950]
            async with theatre.stage(cores=2) as stage:
                assert disagreements(stage) == []
                assert [stage.by(job) for job in (jobs[1], outside)] == [950, 9950]
                jobs.append(await stage.submit(document(2, 1000), reservation="night"))
                assert stage.by(jobs[2]) == 1950
                stage.each_time.append(witness := Witness())
                await stage.play_out()
                assert (witness.broken, witness.moved) == ([], [])
                assert leftovers(stage) == []

        asyncio.run(scenes())

    def test_so_many_nodes_whichever_stay_the_same_over_a_restart(self, theatre):
        async def scenes():
            async with theatre.stage(nodes=3, cores=2) as stage:
                await add(stage, "reservation", "one", 0, 10_000, count=1, users=["ada"])
                first = await stage.submit(document(2, 1000), reservation="one")
                [node] = stage.nodes_of(first)
            async with theatre.stage(nodes=3, cores=2) as stage:
                second = await stage.submit(document(2, 1000), reservation="one")
                assert stage.by(second) == 1000
                others = [await stage.submit(document(2, 5000), "bob") for _ in range(2)]
                assert node not in [name for job in others for name in stage.nodes_of(job)]
                assert len(stage.running()) == 3

        asyncio.run(scenes())

    def test_nodes_that_were_chosen_because_others_were_in_use_stay_the_same_over_a_restart(self, theatre):
        async def scenes():
            async with theatre.stage(nodes=3, cores=2) as stage:
                busy = await stage.submit(document(2, 5000), "bob")
                assert stage.nodes_of(busy) == ["node-0"]
                await add(stage, "reservation", "one", 100, 10_000, count=1, users=["ada"])
                first = await stage.submit(document(2, 1000), reservation="one")
                other = await stage.submit(document(2, 20_000), "bob")
                later = await stage.submit(document(2, 20_000), "bob")
                assert stage.nodes_of(other) == ["node-2"]
                assert [stage.by(first), stage.by(later)] == [100, 5000]
            for _ in range(2):
                async with theatre.stage(nodes=3, cores=2) as stage:
                    await stage.pass_time(100)
                    assert stage.nodes_of(first) == ["node-1"]
                    assert stage.by(later) == 5000 - (stage.now - NOON)
                    assert stage.told(first, "promise-moved") == []
                    assert disagreements(stage) == []

        asyncio.run(scenes())

    def test_nodes_that_were_chosen_and_are_gone_are_chosen_anew(self, theatre):
        async def scenes():
            async with theatre.stage(nodes=3, cores=2) as stage:
                for _ in range(2):
                    await stage.submit(document(2, 100), "bob")
                await add(stage, "reservation", "one", 50, 10_000, count=1, users=["ada"])
                job = await stage.submit(document(2, 1000), reservation="one")
            async with theatre.stage(nodes=2, cores=2) as stage:
                await stage.pass_time(200)
                assert len(stage.nodes_of(job)) == 1

        asyncio.run(scenes())

    def test_maintenance_goes_before_it(self, theatre):
        async def scene(stage):
            await add(stage, "reservation", "night", 100, 1000, users=["ada"])
            job = await stage.submit(document(1, 300), reservation="night")
            assert stage.by(job) == 100
            await add(stage, "maintenance", "disk", 50, 400)
            assert stage.by(job) == 450
            await stage.pass_time(451)
            assert stage.running() == [job]

        theatre.play(scene, cores=1)


class TestQueues:
    def test_a_draining_queue_takes_nothing_in_and_starts_what_waits(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            waiting = await stage.submit(document(1, 100))
            await stage.director.set_queue_state("batch", "draining", "friday", "root")
            found = await refusal(stage, document(1, 100))
            assert (found.code, "friday" in str(found)) == ("wrong-state", True)
            await stage.end(running)
            assert stage.running() == [waiting]
            await stage.submit(document(1, 100, queue="interactive"))

        theatre.play(scene, cores=1)

    def test_a_closed_queue_starts_nothing_until_it_is_opened(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            waiting = await stage.submit(document(1, 100))
            await stage.director.set_queue_state("batch", "closed", "", "root")
            await stage.settle()
            assert (await refusal(stage, document(1, 100))).code == "wrong-state"
            await stage.end(running)
            await stage.pass_time(1000)
            assert stage.running() == []
            await stage.director.set_queue_state("batch", "open", "", "root")
            await stage.settle()
            assert stage.running() == [waiting]
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)

    def test_closing_takes_promises_back_with_the_cause(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            waiting = await stage.submit(document(1, 100))
            await stage.director.set_queue_state("batch", "closed", "audit", "root")
            await stage.settle()
            assert stage.by(waiting) is None
            [words] = stage.told(waiting, "promise-moved")
            assert "batch" in words
            await stage.director.set_queue_state("batch", "open", "", "root")
            await stage.settle()
            assert stage.by(waiting) == 100

        theatre.play(scene, cores=1)

    def test_what_waits_in_a_closed_queue_blocks_nobody_else(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            await stage.submit(document(1, 100))
            await stage.director.set_queue_state("batch", "closed", "", "root")
            await stage.end(running)
            other = await stage.submit(document(1, 100, queue="interactive"))
            assert stage.running() == [other]

        theatre.play(scene, cores=1)

    @pytest.mark.parametrize("state", ["closed", "draining"])
    def test_states_hold_over_a_restart(self, theatre, state):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                running = await stage.submit(document(1, 100))
                waiting = await stage.submit(document(1, 100))
                await stage.director.set_queue_state("batch", state, "", "root")
            async with theatre.stage(cores=1) as stage:
                assert (await refusal(stage, document(1, 100))).code == "wrong-state"
                await stage.end(running)
                assert stage.running() == ([] if state == "closed" else [waiting])

        asyncio.run(scenes())

    def test_one_that_the_settings_close_stays_open_where_somebody_opened_it(self, theatre):
        async def scenes():
            theatre.decree(f"{EXACT}queues: [{{name: batch, state: closed}}]\n")
            async with theatre.stage(cores=1) as stage:
                assert (await refusal(stage, document(1, 100))).code == "wrong-state"
                await stage.director.set_queue_state("batch", "open", "", "root")
                running = await stage.submit(document(1, 100))
                waiting = await stage.submit(document(1, 100))
            async with theatre.stage(cores=1) as stage:
                await stage.end(running)
                assert stage.running() == [waiting]

        asyncio.run(scenes())

    def test_an_unknown_queue_is_refused_with_what_was_meant(self, theatre):
        async def scene(stage):
            with pytest.raises(Refusal) as refused:
                await stage.director.set_queue_state("bacth", "open", "", "root")
            assert (refused.value.code, refused.value.advice) == ("no-such-queue", "Did you mean batch?")

        theatre.play(scene)


class TestNodes:
    def test_a_drained_node_gets_nothing_new_and_keeps_what_runs(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(2, 1000))
            assert stage.nodes_of(running) == ["node-0"]
            await stage.director.set_node_state("node-0", "draining", "fan", "root")
            await stage.settle()
            other = await stage.submit(document(1, 100))
            waiting = await stage.submit(document(2, 100))
            assert stage.nodes_of(running) == ["node-0"]
            assert stage.nodes_of(other) == ["node-1"]
            await stage.end(running)
            assert stage.by(waiting) == 100
            assert stage.director.nodes()[0].state == "draining"
            await stage.director.set_node_state("node-0", "up", "", "root")
            await stage.settle()
            assert stage.nodes_of(waiting) == ["node-0"]
            assert stage.director.nodes()[0].state == "up"
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, nodes=2, cores=2)

    def test_it_stays_drained_over_a_restart(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                await stage.director.set_node_state("node-0", "draining", "", "root")
                job = await stage.submit(document(1, 100))
                assert stage.running() == []
            async with theatre.stage(cores=1) as stage:
                assert stage.running() == []
                await stage.director.set_node_state("node-0", "up", "", "root")
                await stage.settle()
                assert stage.running() == [job]

        asyncio.run(scenes())

    def test_to_drain_it_twice_is_to_drain_it_once(self, theatre):
        async def scene(stage):
            for reason in ("fan", "disk"):
                await stage.director.set_node_state("node-0", "draining", reason, "root")
                await stage.settle()
            job = await stage.submit(document(1, 100))
            assert stage.running() == []
            for _ in range(2):
                await stage.director.set_node_state("node-0", "up", "", "root")
                await stage.settle()
            assert stage.running() == [job]
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)

    def test_drained_nodes_and_windows_together_leave_everything_as_it_was(self, theatre):
        async def scene(stage):
            jobs = [await stage.submit(document(1 + number % 2, 200, replicas=2)) for number in range(5)]
            await add(stage, "maintenance", "disk", 100, 300, nodes=["node-0"])
            await stage.pass_time(50)
            await stage.director.set_node_state("node-0", "draining", "", "root")
            await stage.pass_time(100)
            await add(stage, "reservation", "mine", 100, 300, nodes=["node-1"], users=["ada"])
            jobs.append(await stage.submit(document(1, 150), reservation="mine"))
            await stage.pass_time(100)
            await stage.director.set_node_state("node-0", "up", "", "root")
            await stage.pass_time(50)
            await stage.director.remove_calendar("disk", None, "root")
            await stage.play_out()
            assert {stage.state(job) for job in jobs} == {"succeeded"}
            await stage.pass_time(HOUR)
            assert leftovers(stage) == []

        theatre.play(scene, lambda _order: Play(seconds=120), nodes=2, cores=2)


class TestAllTogether:
    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [20, 22])
    def test_whatever_administrators_do_each_move_of_a_promise_has_its_cause(self, theatre, seed):
        machine = {"cores": 1} if seed == 20 else {"nodes": 2, "cores": 2}
        history = History(theatre, seed, acts=True, governed=True, machine=machine)
        asyncio.run(history.play(60))
        assert history.found == []
