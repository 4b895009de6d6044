"""Promises of the service: stored, kept over ends and restarts, moved only with a cause; and estimates."""

import asyncio
import json

import pytest

from jobman.control.refusals import Refusal
from jobman.engines.memory import Play
from tests.control.audit import Witness, leftovers
from tests.control.histories import History
from tests.control.stage import EXACT, Theatre, document, lasting

slow = pytest.mark.slow

ONE_CORE = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path)


def told(stage, *jobs):
    return [stage.promise(job).guaranteed_by for job in jobs]


class TestGiving:
    def test_everybody_who_waits_for_what_has_limits_is_promised_a_start(self, theatre):
        async def scene(stage):
            await stage.submit(document(2, 100))
            jobs = [await stage.submit(document(cores, 50)) for cores in (4, 1, 2, 3)]
            assert [stage.by(job) for job in jobs] == [100, None, 50, 150]
            assert stage.running()[1:] == [jobs[1]]
            jobs.append(await stage.submit(document(1, 100, replicas=3)))
            assert all(stage.by(jobs[-1], f"work.{number}") is not None for number in range(3))

        theatre.play(scene, cores=4)

    def test_behind_something_without_a_limit_nothing_is_promised(self, theatre):
        async def scene(stage):
            await stage.submit(document(4))
            answer = await stage.answer(document(1, 100))
            assert stage.by(answer.jobs[0].id) is None
            assert all(estimate.guaranteed_by is None for estimate in answer.estimates)

        theatre.play(scene, cores=4)

    def test_the_answer_to_a_submission_carries_the_estimate(self, theatre):
        async def scene(stage):
            [first] = (await stage.answer(document(4, 100))).estimates
            assert first.starts_now
            answer = await stage.answer(document(2, 50))
            [second] = answer.estimates
            assert (second.job, second.replica) == (answer.jobs[0].id, "work.0")
            assert second.guaranteed_by == stage.now + 100
            assert (second.position, second.queue, second.starts_now) == (1, "batch", False)

        theatre.play(scene, cores=4)

    def test_grace_and_the_margin_of_the_site_belong_to_the_limit(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100, grace="20s"))
            assert stage.by(await stage.submit(document(1, 100))) == 125

        theatre.decree("scheduler: {stop_margin: 5s}\n")
        theatre.play(scene, cores=1)

    def test_a_job_that_gives_no_limit_has_that_of_the_site_and_is_ended_by_it(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1))
            waiting = await stage.submit(document(1, 100))
            assert stage.by(waiting) == 100
            await stage.pass_time(100)
            assert stage.state(job) == "failed"
            assert stage.running() == [waiting]

        theatre.decree(f"{EXACT.replace('}', ', default_duration: 100s}', 1)}")
        theatre.play(scene, cores=1)


class TestKeeping:
    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=slow) for seed in range(1, 4))])
    def test_no_promise_moves_later_over_random_ends(self, theatre, seed):
        machine = ({"cores": 1}, {"cores": 4}, {"nodes": 2, "cores": 2}, {"nodes": 3, "cores": 4})[seed]
        history = asyncio.run(History(theatre, seed, machine=machine).play(40))
        assert history.found == []

    def test_also_with_an_interactive_queue_beside_the_other(self, theatre):
        history = History(theatre, 5, queues=("batch", "interactive"), machine={"nodes": 2, "cores": 2})
        assert asyncio.run(history.play(50)).found == []

    @slow
    @pytest.mark.parametrize("depth", [1, 3])
    def test_also_where_only_the_first_are_promised_anything(self, theatre, depth):
        theatre.decree(f"{EXACT}queues: [{{name: batch, depth: {depth}}}]\n")
        assert asyncio.run(History(theatre, depth, acts=True).play(50)).found == []

    def test_the_plan_is_compressed_when_something_ends_early(self, theatre):
        async def scene(stage):
            first = await stage.submit(document(1, 1000))
            jobs = [await stage.submit(document(1, 1000)) for _ in range(3)]
            await stage.pass_time(100)
            await stage.end(first)
            assert stage.running() == jobs[:1]
            assert [stage.by(job) for job in jobs[1:]] == [1000, 2000]
            assert "promise-moved" not in stage.kinds(jobs[2])

        theatre.play(scene, cores=1)

    def test_a_job_that_uses_all_of_its_limit_delays_nobody(self, theatre):
        async def scene(stage):
            witness = Witness()
            stage.each_time.append(witness)
            jobs = [await stage.submit(document(1 + number % 4, 60 + number)) for number in range(12)]
            await stage.play_out()
            assert (witness.broken, witness.moved) == ([], [])
            assert {stage.state(job) for job in jobs} == {"failed"}  # their time was up

        theatre.play(scene, lasting(), cores=4)


class TestVanishing:
    @pytest.mark.parametrize("act", ["cancel", "hold"])
    def test_a_promise_is_gone_with_its_wish(self, theatre, act):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            job, other = [await stage.submit(document(1, 1000)) for _ in range(2)]
            await getattr(stage.director, act)(job, "ada")
            await stage.settle()
            assert stage.promise(job) is None
            assert stage.by(other) == 100
            if act == "hold":
                await stage.director.release(job, "ada")
                await stage.settle()
                assert stage.by(job) == 1100
            assert stage.promise(running) is None

        theatre.play(scene, cores=1)

    def test_a_promise_is_gone_with_the_start(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            job = await stage.submit(document(1, 1000, replicas=2))
            await stage.end(running)
            assert stage.promise(job, "work.0") is None
            assert stage.by(job, "work.1") == 1000

        theatre.play(scene, cores=1)

    def test_a_job_that_did_not_start_in_its_window_leaves_none(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            job = await stage.submit(document(1, 10, start={"latest": "+50s"}))
            await stage.pass_time(51)
            assert stage.state(job) == "failed"
            assert stage.store.promises() == []

        theatre.play(scene, cores=1)


class TestRestarts:
    """Another director over the same store, as after kill -9."""

    def test_promises_are_the_same(self, theatre):
        async def scenes():
            async with theatre.stage(nodes=2, cores=2) as stage:
                await stage.submit(document(2, 1000))
                await stage.submit(document(2, 700))
                jobs = [await stage.submit(document(1 + number % 2, 300)) for number in range(6)]
                jobs.append(await stage.submit(document(nodes=2, duration=100)))
                before = told(stage, *jobs)
                await stage.pass_time(50)
            async with theatre.stage(nodes=2, cores=2) as stage:
                assert told(stage, *jobs) == before
                assert stage.store.revisions(jobs[-1], 5) == []
                stage.each_time.append(witness := Witness())
                await stage.play_out()
                assert (witness.broken, witness.moved) == ([], [])
                assert leftovers(stage) == []

        asyncio.run(scenes())

    def test_what_was_planned_behind_a_small_improvement_is_kept(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                jobs = [await stage.submit(document(1, 1000)) for _ in range(4)]
                await stage.pass_time(950)
                await stage.end(jobs[0])
                jobs.append(await stage.submit(document(1, 1000)))
                before = told(stage, *jobs[2:])
            async with theatre.stage(cores=1) as stage:
                assert all(after <= by for after, by in zip(told(stage, *jobs[2:]), before, strict=True))
                assert stage.told(jobs[-1], "promise-moved") == []

        asyncio.run(scenes())

    def test_an_extension_is_planned_with(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                running = await stage.submit(document(1, 100))
                await stage.director.extend(running, 1000, None, "ada")
                first = await stage.submit(document(1, 100))
                assert stage.by(first) == 1100
            async with theatre.stage(cores=1) as stage:
                second = await stage.submit(document(1, 100))
                assert (stage.by(first), stage.by(second)) == (1100, 1200)
                await stage.pass_time(1100)
                assert stage.running() == [first]

        asyncio.run(scenes())

    def test_what_has_no_limit_left_is_still_waited_for(self, theatre):
        """While nobody led, the limit of what runs was passed."""

        async def scenes():
            async with theatre.stage(cores=1) as stage:
                running = await stage.submit(document(1, 100))
                waiting = await stage.submit(document(1, 100))
            theatre.clock.now += 500
            async with theatre.stage(cores=1) as stage:
                await stage.pass_time(1)
                assert (stage.state(running), stage.running()) == ("failed", [waiting])
                await stage.play_out()
                assert leftovers(stage) == []

        asyncio.run(scenes())

    @slow
    @pytest.mark.parametrize("seed", range(4))
    def test_random_histories_with_restarts_break_no_promise(self, theatre, seed):
        machine = ({"cores": 1}, {"cores": 4}, {"nodes": 2, "cores": 2})[seed % 3]
        history = History(theatre, seed, acts=True, restarts=3, machine=machine)
        assert asyncio.run(history.play(60)).found == []

    @slow
    @pytest.mark.parametrize("seed", range(10, 12))
    def test_nor_where_each_look_at_the_clock_takes_its_time(self, sqlite_url, tmp_path, seed):
        theatre = Theatre(sqlite_url, tmp_path, "scheduler: {stop_margin: 5s}\n", tick=1e-4)
        history = History(theatre, seed, restarts=3, machine={"nodes": 2, "cores": 2}, tolerance=0.5)
        assert asyncio.run(history.play(60)).found == []

    def test_what_runs_is_planned_with_as_before(self, sqlite_url, tmp_path):
        theatre = Theatre(sqlite_url, tmp_path, "scheduler: {stop_margin: 5s}\n", tick=1e-3)

        async def scenes():
            async with theatre.stage(cores=1) as stage:
                await stage.submit(document(1, 600))
                jobs = [await stage.submit(document(1, seconds)) for seconds in (60, 40, 20)]
                before = told(stage, *jobs)
            for _ in range(3):
                async with theatre.stage(cores=1) as stage:
                    assert told(stage, *jobs) == before

        asyncio.run(scenes())

    def test_fewer_nodes_move_promises_with_a_cause(self, theatre):
        async def scenes():
            async with theatre.stage(nodes=2, cores=1) as stage:
                for _ in range(2):
                    await stage.submit(document(1, 1000))
                jobs = [await stage.submit(document(1, 500)) for _ in range(2)]
                assert [stage.by(job) for job in jobs] == [1000, 1000]
            async with theatre.stage(nodes=1, cores=1) as stage:
                assert sorted(stage.by(job) for job in jobs) == [1000, 1500]
                [words] = [words for job in jobs for words in stage.told(job, "promise-moved")]
                assert not words.rstrip().endswith(":")

        asyncio.run(scenes())

    def test_other_queues_in_the_settings_lose_nobody(self, theatre):
        async def scenes():
            theatre.decree(f"{EXACT}queues: [{{name: long}}, {{name: batch}}]\n")
            async with theatre.stage(cores=1) as stage:
                running = await stage.submit(document(1, 100))
                job = await stage.submit(document(1, 100, queue="long"))
            theatre.decree(f"{EXACT}queues: [{{name: batch}}]\n")
            async with theatre.stage(cores=1) as stage:
                await stage.end(running)
                assert stage.running() == [job]
                await stage.play_out()
                assert leftovers(stage) == []

        asyncio.run(scenes())


class TestMoving:
    def test_a_drained_node_moves_promises_and_says_so(self, theatre):
        async def scene(stage):
            await stage.submit(document(2, 100))
            await stage.submit(document(2, 200))
            jobs = [await stage.submit(document(2, 50)) for _ in range(2)]
            whole = await stage.submit(document(nodes=2, duration=50))
            assert [stage.by(job) for job in (*jobs, whole)] == [100, 150, 200]
            await stage.director.set_node_state("node-0", "draining", "disk", "root")
            await stage.settle()
            assert [stage.by(job) for job in (*jobs, whole)] == [200, 250, None]
            cause = "node node-0 is drained by root: disk"
            for job in (*jobs, whole):
                [revision] = stage.store.revisions(job, 5)
                assert revision.cause == cause
                [words] = stage.told(job, "promise-moved")
                assert cause in words
            await stage.director.set_node_state("node-0", "up", "", "root")
            await stage.settle()
            assert stage.by(whole) is not None
            assert len(stage.told(jobs[0], "promise-moved")) == 1

        theatre.play(scene, nodes=2, cores=2)

    def test_causes_name_jobs_as_people_know_them(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 1000))
            await stage.submit(document(1, 500))
            job = await stage.submit(document(1, 500))
            await stage.pass_time(10)
            await stage.end(running)
            [revision] = stage.store.revisions(job, 5)
            assert revision.after < revision.before
            assert revision.cause == f"job {running} ended"

        theatre.play(scene, cores=1)

    @pytest.mark.parametrize("suspend", ["freeze", "requeue"])
    def test_holding_what_runs_moves_nobodys_promise(self, theatre, suspend):
        async def scene(stage):
            stage.each_time.append(witness := Witness())
            running = await stage.submit(document(1, 100, task={"suspend": suspend}))
            waiting = await stage.submit(document(1, 100))
            await stage.pass_time(50)
            await stage.director.hold(running, "ada")
            await stage.pass_time(300)
            assert (witness.broken, witness.moved) == ([], [])
            assert stage.state(waiting) == "failed"  # it has run to its limit
            await stage.director.release(running, "ada")
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)


class TestWhatIf:
    VARIANTS = (
        document(2, 100),
        document(1, 1000),
        document(1, 50),
        document(1, 100, task={"placement": {"exclusive": True}}),
        document(1, 100, priority="high"),
        document(1, 100, queue="interactive"),
        document(1, 100, replicas=3),
    )

    def ask_and_submit(self, theatre):
        async def scene(stage):
            stage.director.patience = 60.0  # so that a submission is always told what was planned for it
            await stage.submit(document(1, 100))
            await stage.submit(document(2, 100))
            for text in self.VARIANTS:
                [guess] = (await stage.answer(text, what_if=True)).estimates
                answer = await stage.answer(text)
                [real] = answer.estimates
                assert guess.starts_now == real.starts_now, text
                if not real.starts_now:
                    assert (guess.guaranteed_by, guess.queue) == (real.guaranteed_by, real.queue), text
                    why = await stage.director.why(answer.jobs[0].id)
                    assert guess.position == why.position, text

        theatre.play(scene, cores=2)

    def test_it_agrees_with_a_submission_right_after(self, theatre):
        self.ask_and_submit(theatre)

    @pytest.mark.parametrize("depth", [0, 1, 3])
    def test_also_where_only_the_first_are_promised_anything(self, theatre, depth):
        theatre.decree(f"{EXACT}queues: [{{name: batch, depth: {depth}}}, {{name: interactive}}]\n")
        self.ask_and_submit(theatre)

    def test_it_changes_nothing(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            waiting = await stage.submit(document(2, 100))
            before = _everything(stage)
            for text in self.VARIANTS:
                answer = await stage.answer(text, what_if=True)
                assert answer.notes == ["nothing was submitted"]
            assert _everything(stage) == before
            late = await stage.submit(document(2, 100))
            assert (stage.by(waiting), stage.by(late)) == (100, 200)

        theatre.play(scene, cores=2)

    def test_what_would_be_refused_is_refused(self, theatre):
        async def scene(stage):
            for text in (document(1, queue="nope"), document(9, 100)):
                with pytest.raises(Refusal) as refused:
                    await stage.submit(text, what_if=True)
                assert refused.value.code in ("no-such-queue", "does-not-fit")

        theatre.play(scene, cores=2)

    def test_it_knows_when_a_job_may_start(self, theatre):
        async def scene(stage):
            text = document(1, 100, start={"earliest": "+500s"})
            [estimate] = (await stage.answer(text, what_if=True)).estimates
            assert not estimate.starts_now
            assert estimate.guaranteed_by == stage.now + 500

        theatre.play(scene, cores=2)


class TestStartWindows:
    def test_who_may_not_start_yet_is_promised_a_place_and_keeps_it(self, theatre):
        async def scene(stage):
            later = await stage.submit(document(2, 100, start={"earliest": "+500s"}))
            assert stage.by(later) == 500
            assert [blocker.kind for blocker in (await stage.director.why(later)).blockers] == ["start"]
            short, long = [await stage.submit(document(1, seconds)) for seconds in (400, 600)]
            assert stage.running() == [short]
            assert stage.by(long) == 600
            await stage.pass_time(501)
            assert stage.running() == [later]

        theatre.play(scene, cores=2)

    def test_it_holds_over_a_restart(self, theatre):
        async def scenes():
            async with theatre.stage(cores=1) as stage:
                later = await stage.submit(document(1, 100, start={"earliest": "+500s"}))
            async with theatre.stage(cores=1) as stage:
                assert (stage.running(), stage.by(later)) == ([], 500)
                await stage.pass_time(499)
                assert stage.running() == []
                await stage.pass_time(1)
                assert stage.running() == [later]

        asyncio.run(scenes())

    def test_who_cannot_start_in_time_is_promised_nothing_and_fails(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            late = await stage.submit(document(1, 100, start={"latest": "+300s"}))
            assert stage.by(late) is None
            await stage.pass_time(301)
            assert stage.state(late) == "failed"

        theatre.play(scene, cores=1)

    def test_the_others_of_a_job_that_has_begun_may_come_later(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1, 400, replicas=3, start={"latest": "+300s"}))
            await stage.pass_time(1000)
            assert len(stage.engine.now_playing) == 1
            assert stage.state(job) == "running"

        theatre.play(scene, lambda _: Play(seconds=390.0), cores=1)


def _everything(stage):
    """All that is known and planned."""
    timeline = stage.planning._planner.timeline
    return (
        stage.store.counts(),
        len(stage.store.events()),
        [
            (row.profile.times[1:], [column[1:] for column in row.profile.columns[:1]])
            for row in timeline.rows
        ],
        sorted(stage.planning._known),
        stage.store.promises(),
    )


class TestExtending:
    def test_it_is_granted_where_nobody_waits(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1, 100))
            await stage.director.extend(job, 500, None, "ada")
            await stage.pass_time(599)
            assert stage.running() == [job]
            assert stage.by(await stage.submit(document(1, 10))) == 1
            await stage.pass_time(1)
            assert stage.state(job) == "failed"

        theatre.play(scene, cores=1)

    def test_where_it_would_delay_somebody_the_most_is_told_and_can_be_had(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1, 100))
            await stage.submit(document(1, 160))
            waiting = await stage.submit(document(2, 50))
            assert stage.by(waiting) == 160
            with pytest.raises(Refusal) as refused:
                await stage.director.extend(job, 61, None, "ada")
            assert refused.value.code == "would-delay"
            assert f"jobman extend {job} +60s" in refused.value.advice
            assert refused.value.largest == 60
            assert refused.value.message == f"job {waiting} was promised these nodes in 3 min"
            await stage.director.extend(job, 60, None, "ada")
            await stage.settle()
            assert stage.by(waiting) == 160
            with pytest.raises(Refusal):
                await stage.director.extend(job, 1, None, "ada")
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=2)

    def test_whoever_is_in_the_way_goes_elsewhere_if_that_is_no_later(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1, 100))
            await stage.submit(document(1, 100))
            waiting = await stage.submit(document(1, 50))
            await stage.director.extend(job, 1000, None, "ada")
            await stage.settle()
            assert stage.by(waiting) == 100
            await stage.pass_time(100)
            assert waiting in stage.running()
            assert job in stage.running()

        theatre.play(scene, nodes=2, cores=1)

    @pytest.mark.parametrize("task", [None, "pair", "pair/inner"])
    def test_a_task_in_a_group_gets_no_more_than_its_group_can(self, theatre, task):
        inner = {"name": "inner", "command": "x", "resources": ONE_CORE, "attributes": {"duration": "100s"}}
        group = {"name": "pair", "resources": ONE_CORE, "attributes": {"duration": "100s"}, "tasks": [inner]}
        text = json.dumps({"version": 1, "name": "grouped", "grace": "0s", "groups": [group]})

        async def scene(stage):
            job = await stage.submit(text)
            waiting = await stage.submit(document(1, 100))
            with pytest.raises(Refusal) as refused:
                await stage.director.extend(job, 1000, task, "ada")
            assert refused.value.code == "would-delay"
            await stage.pass_time(100)
            assert stage.running() == [waiting]

        theatre.play(scene, cores=1)

    def test_a_refusal_changes_nothing(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1, 100, replicas=2))
            waiting = await stage.submit(document(1, 100))
            with pytest.raises(Refusal):
                await stage.director.extend(job, 1000, None, "ada")
            other = await stage.submit(document(1, 100))
            assert (stage.by(waiting), stage.by(other)) == (100, 100)

        theatre.play(scene, nodes=2, cores=1)

    def test_several_replicas_are_extended_together(self, theatre):
        async def scene(stage):
            job = await stage.submit(document(1, 100, replicas=2))
            await stage.submit(document(2, 50))
            with pytest.raises(Refusal):
                await stage.director.extend(job, 1, None, "ada")
            other = await stage.submit(document(1, 100, name="other"))
            await stage.end(job, "work.0")
            await stage.director.cancel(other, "ada")
            with pytest.raises(Refusal):
                await stage.director.extend(job, 1, None, "ada")

        theatre.play(scene, lambda _order: Play(seconds=None), cores=2)
