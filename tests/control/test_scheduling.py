"""The planner in charge of the service: who starts before whom, within which limits; nothing is lost."""

import asyncio
import json
import random
import threading
from datetime import UTC, datetime

import pytest

from jobman.control.administration import NewEntry
from jobman.control.answers import Submission
from jobman.control.refusals import Refusal
from jobman.engines.memory import Play
from tests.control.audit import disagreements, leftovers
from tests.control.histories import History
from tests.control.stage import EXACT, NOON, Theatre, document, lasting

ONE_CORE = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path)


def several(*tasks, **keys):
    """A job of several tasks, a core for each copy."""
    made = [{"command": "x", "resources": ONE_CORE, **task} for task in tasks]
    return json.dumps({"version": 1, "name": "several", "grace": "0s", "tasks": made, **keys})


class TestOrder:
    def test_a_higher_class_goes_first_and_equals_in_the_order_of_submission(self, theatre):
        async def scene(stage):
            first = await stage.submit(document(1))
            classes = ("low", "normal", "high", "normal", "high", "low")
            waiting = [await stage.submit(document(1, priority=priority)) for priority in classes]
            await stage.play_out()
            assert stage.launched() == [first, *(waiting[number] for number in (2, 4, 1, 3, 0, 5))]

        theatre.play(scene, lambda _order: Play(seconds=100), cores=1)

    def test_those_who_wait_are_in_line_as_they_are_served(self, theatre):
        async def scene(stage):
            await stage.submit(document(1))
            classes = ("low", "high", "normal")
            waiting = [await stage.submit(document(1, priority=priority)) for priority in classes]
            held = await stage.submit(document(1), hold=True)
            await stage.pass_time(1)
            line = [waiting[1], waiting[2], waiting[0], held]
            assert stage.director.in_line() == [stage.store.job(job).number for job in line]

        theatre.play(scene, cores=1)

    def test_a_job_that_names_no_queue_is_in_the_usual_one(self, theatre):
        async def scene(stage):
            jobs = [await stage.submit(document(1)), await stage.submit(document(1, queue="fast"))]
            assert [stage.store.job(job).queue for job in jobs] == ["batch", "fast"]

        theatre.decree(f"{EXACT}queues: [{{name: fast}}, {{name: batch}}]\n")
        theatre.play(scene, cores=1)

    def test_a_higher_class_breaks_no_promise(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            first = await stage.submit(document(1, 100, priority="low"))
            urgent = await stage.submit(document(1, 100, priority="high"))
            later = await stage.submit(document(1, 100, priority="normal"))
            assert [stage.by(job) for job in (first, urgent, later)] == [100, 200, 300]
            await stage.play_out()
            assert stage.launched()[1:] == [first, urgent, later]

        theatre.play(scene, lambda _order: Play(seconds=90), cores=1)

    def test_where_only_the_first_is_promised_anything_a_higher_class_passes_the_others(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            classes = ("high", "low", "normal", "high", "normal")
            waiting = [await stage.submit(document(1, 100, priority=priority)) for priority in classes]
            assert [stage.by(job) for job in waiting] == [100, None, None, None, None]
            await stage.play_out()
            assert stage.launched()[1:] == [waiting[number] for number in (0, 3, 2, 4, 1)]

        theatre.decree(f"{EXACT}queues: [{{name: batch, depth: 1}}]\n")
        theatre.play(scene, lambda _order: Play(seconds=90), cores=1)

    def test_a_short_job_passes_a_large_one_that_is_blocked_if_it_ends_before_its_start(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(2, 100))
            large = await stage.submit(document(4, 50))
            short = await stage.submit(document(2, 100))
            long = await stage.submit(document(2, 101))
            assert stage.running() == [running, short]
            assert stage.by(large) == 100
            assert stage.by(long) == 150

        theatre.play(scene, cores=4)

    def test_a_large_job_is_not_starved_by_a_stream_of_small_ones(self, theatre):
        async def scene(stage):
            for _ in range(4):
                await stage.submit(document(1, 50))
            large = await stage.submit(document(4, 50))
            promised = stage.promise(large).guaranteed_by
            for number in range(12):
                await stage.submit(document(1, 50, priority="high"), owner=f"user-{number % 5}")
                await stage.pass_time(5)
            assert stage.begun(large) <= promised

        theatre.play(scene, lambda _order: Play(seconds=45), cores=4)

    @pytest.mark.parametrize("queue", ["depth: 1", "depth: 3", "depth: 1, order: shortest-first"])
    def test_backfill_of_any_depth_starts_everybody_in_the_end(self, theatre, queue):
        async def scene(stage):
            for _ in range(4):
                await stage.submit(document(1, 50))
            large = await stage.submit(document(4, 50))
            promised = stage.promise(large).guaranteed_by
            others = [await stage.submit(document(1 + number % 3, 30 + number)) for number in range(20)]
            await stage.play_out()
            assert stage.begun(large) <= promised
            assert {stage.state(job) for job in others} == {"succeeded"}
            assert leftovers(stage) == []

        theatre.decree(f"{EXACT}queues: [{{name: batch, {queue}}}]\n")
        theatre.play(scene, lambda _order: Play(seconds=25), cores=4)

    def test_jobs_without_a_limit_keep_strict_order(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1))
            await stage.pass_time(1)
            large = await stage.submit(document(4))
            small = await stage.submit(document(1))
            assert stage.running() == [running]
            await stage.pass_time(1000)
            assert stage.running() == [running]
            await stage.end(running)
            assert stage.running() == [large]
            await stage.end(large)
            assert stage.running() == [small]

        theatre.play(scene, cores=4)

    def test_also_those_who_ask_together(self, theatre):
        async def scene(stage):
            large = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 4}]}
            await stage.submit(several({"name": "a"}, {"name": "large", "resources": large}, {"name": "b"}))
            assert [key for _, key, _ in stage.engine.launched] == ["a.0"]

        theatre.play(scene, cores=4)

    def test_a_job_with_a_limit_may_pass_one_that_waits_for_something_without(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1))
            await stage.submit(document(4, 100))
            short = await stage.submit(document(1, 100))
            assert stage.running() == [running, short]

        theatre.play(scene, cores=4)

    def test_retries_come_before_jobs_that_were_submitted_later(self, theatre):
        async def scene(stage):
            flaky = await stage.submit(document(1, name="flaky", task={"retries": 1}))
            others = [await stage.submit(document(1, name="other")) for _ in range(2)]
            await stage.play_out()
            assert [job for job in stage.launched() if job != others[0]] == [flaky, flaky, others[1]]

        def script(order):
            return Play(seconds=10, exit_code=order.job_name == "flaky" and order.attempt == 1)

        theatre.play(scene, script, cores=1)


class TestInteractive:
    def test_nobody_passes_anybody(self, theatre):
        async def scene(stage):
            interactive = {"queue": "interactive"}
            await stage.submit(document(2, 100, **interactive))
            large = await stage.submit(document(4, 100, **interactive))
            short = await stage.submit(document(1, 10, **interactive))
            urgent = await stage.submit(document(1, 10, priority="high", **interactive))
            assert [stage.by(job) for job in (large, short, urgent)] == [100, 200, 200]
            await stage.play_out()
            assert stage.launched()[1:] == [large, short, urgent]

        theatre.play(scene, cores=4)

    def test_no_fair_share_and_no_age_change_the_order(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000, queue="interactive"))
            owners = ("ada", "bob", "ada", "carl", "bob")
            waiting = [await stage.submit(document(1, 10, queue="interactive"), owner) for owner in owners]
            promised = [stage.promise(job).guaranteed_by for job in waiting]
            await stage.pass_time(600)
            assert [(await stage.director.why(job)).position for job in waiting] == [1, 2, 3, 4, 5]
            await stage.play_out()
            assert [stage.begun(job) for job in waiting] == promised
            assert stage.launched()[1:] == waiting

        theatre.play(scene, cores=1)

    def test_batch_uses_what_it_leaves_and_takes_nothing_of_its_promises(self, theatre):
        async def scene(stage):
            await stage.submit(document(2, 100, queue="interactive"))
            large = await stage.submit(document(4, 100, queue="interactive"))
            fits = await stage.submit(document(2, 100))
            does_not = await stage.submit(document(2, 101))
            assert fits in stage.running()
            assert stage.by(large) == 100
            assert stage.by(does_not) == 200

        theatre.play(scene, cores=4)


class TestLimits:
    def test_what_breaks_a_limit_alone_is_refused(self, theatre):
        async def scene(stage):
            for text, words in (
                (document(3, 10), "may hold 2"),
                (document(1, 101), "is 1m40s"),
                (document(1), "sets no time limit"),
            ):
                with pytest.raises(Refusal) as refused:
                    await stage.submit(text)
                assert refused.value.code == "quota"
                assert words in str(refused.value)
            assert stage.store.counts() == {}

        limits = "{resources: {cores: 2}, longest: 100s}"
        theatre.decree(f"{EXACT}queues: [{{name: batch, limits: {limits}}}]\n")
        theatre.play(scene, cores=4)

    def test_one_too_many_that_waits_is_refused_and_taken_when_there_is_room(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            await stage.submit(document(1, 100))
            with pytest.raises(Refusal) as refused:
                await stage.submit(document(1, 100))
            assert (refused.value.code, "waiting" in str(refused.value)) == ("quota", True)
            await stage.submit(document(1, 100), owner="bob")
            await stage.end(running)
            await stage.submit(document(1, 100))

        theatre.decree(f"{EXACT}queues: [{{name: batch, each_user: {{waiting: 1}}}}]\n")
        theatre.play(scene, cores=1)

    def test_unknown_queues_and_accounts_are_refused(self, theatre):
        async def scene(stage):
            for text, owner, code in (
                (document(1, queue="nope"), "ada", "no-such-queue"),
                (document(1, account="nope"), "ada", "forbidden"),
                (document(1, account="physics"), "bob", "forbidden"),
                (document(1, account="closed"), "ada", "forbidden"),
            ):
                with pytest.raises(Refusal) as refused:
                    await stage.submit(text, owner)
                assert refused.value.code == code
            await stage.submit(document(1, account="physics"), "ada")

        accounts = "[{name: physics, users: [ada]}, {name: closed, users: [ada], active: false}]"
        theatre.decree(f"{EXACT}accounts: {accounts}\n")
        theatre.play(scene)

    def test_a_limit_of_running_jobs_holds(self, theatre):
        async def scene(stage):
            mine = [await stage.submit(document(1, 100)) for _ in range(3)]
            other = await stage.submit(document(1, 100), owner="bob")
            assert stage.running() == [mine[0], mine[1], other]
            assert stage.by(mine[2]) == 100
            await stage.end(mine[0])
            assert mine[2] in stage.running()

        theatre.decree(f"{EXACT}queues: [{{name: batch, each_user: {{jobs: 2}}}}]\n")
        theatre.play(scene, cores=8)

    @pytest.mark.parametrize(
        ("limits", "words"),
        [
            ("each_user: {jobs: 2}", "the limit of 2 running jobs of user ada in batch is reached"),
            (
                "limits: {resources: {cores: 2}}",
                "the limit of 2 cores of queue batch is reached: 2 in use, and this needs 1",
            ),
            ("share: 25%", "the share of 2 cores"),
        ],
    )
    def test_why_names_the_limit(self, theatre, limits, words):
        async def scene(stage):
            mine = [await stage.submit(document(1, 100)) for _ in range(3)]
            why = await stage.director.why(mine[2])
            assert [blocker.kind for blocker in why.blockers] == ["limit"]
            assert words in why.summary

        theatre.decree(f"{EXACT}queues: [{{name: batch, {limits}}}]\n")
        theatre.play(scene, cores=8)

    def test_who_has_spent_the_budget_submits_nothing_more(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            stage.planning.quotas.spend("batch", "", "ada", 10)
            with pytest.raises(Refusal) as refused:
                await stage.submit(document(1, 100))
            assert refused.value.code == "quota"
            assert "user ada may spend 10 in batch and has spent 10" in refused.value.message
            await stage.submit(document(1, 100), "bob")

        theatre.decree(f"{EXACT}queues: [{{name: batch, each_user: {{budget: 10}}}}]\n")
        theatre.play(scene, cores=8)

    def test_what_may_cost_more_than_is_left_of_a_budget_is_refused(self, theatre):
        async def scene(stage):
            hour = {"duration": 3600}
            with pytest.raises(Refusal) as refused:
                await stage.submit(document(4, **hour, replicas=3))
            assert "may cost 12; user ada may spend 10 in batch" in refused.value.message
            await stage.submit(document(4, **hour))
            stage.planning.quotas.spend("batch", "", "ada", 8)
            with pytest.raises(Refusal) as refused:
                await stage.submit(document(4, **hour))
            assert "may spend 10 in batch and has spent 8; this may cost 4" in refused.value.message
            await stage.submit(document(2, **hour))

        theatre.decree(f"{EXACT}queues: [{{name: batch, each_user: {{budget: 10}}}}]\n")
        theatre.play(scene, cores=8)

    def test_whole_nodes_that_hold_more_than_a_limit_are_refused(self, theatre):
        async def scene(stage):
            with pytest.raises(Refusal) as refused:
                await stage.submit(document(nodes=2, duration=100))
            assert refused.value.code == "quota"
            assert "asks for 8 cores; user ada may hold 5 in batch" in refused.value.message
            job = await stage.submit(document(nodes=1, duration=100))
            assert stage.running() == [job]

        theatre.decree(f"{EXACT}queues: [{{name: batch, each_user: {{resources: {{cores: 5}}}}}}]\n")
        theatre.play(scene, nodes=2, cores=4)

    def test_what_is_too_large_for_the_nodes_of_its_queue_is_refused(self, theatre):
        async def scene(stage):
            for text in (document(nodes=3, duration=10), document(nodes=2, duration=10, queue="night")):
                with pytest.raises(Refusal) as refused:
                    await stage.submit(text)
                assert refused.value.code == "does-not-fit"
                assert "the nodes of the queue" in refused.value.message
            await stage.submit(document(nodes=3, duration=10, queue="wide"))

        wide = "{name: wide, nodes: [node-0], borrow: [batch, night]}"
        queues = f"[{{name: batch}}, {{name: night, nodes: [node-2]}}, {wide}]"
        theatre.decree(f"{EXACT}queues: {queues}\n")
        theatre.play(scene, nodes=4, cores=2)

    def test_the_replicas_of_a_job_are_one_job(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100, replicas=5))
            assert len(stage.engine.now_playing) == 5
            others = [await stage.submit(document(1, 100)) for _ in range(2)]
            assert stage.running()[1:] == others[:1]

        theatre.decree(f"{EXACT}queues: [{{name: batch, limits: {{jobs: 2}}}}]\n")
        theatre.play(scene, cores=8)

    def test_an_alternative_within_the_limits_is_taken(self, theatre):
        async def scene(stage):
            text = several(
                {"name": "w", "resources": "big|small"}, resources={"big": cores(8), "small": cores(2)}
            )
            job = await stage.submit(text)
            assert stage.running() == [job]
            tallies = {each.row.scope: each.amounts for each in stage.planning.quotas.tallies()}
            assert tallies["queue"]["core"] == 2

        theatre.decree(f"{EXACT}queues: [{{name: batch, limits: {{resources: {{cores: 4}}}}}}]\n")
        theatre.play(scene, cores=16)

    def test_what_needs_more_than_the_share_of_its_queue_is_refused(self, theatre):
        async def scene(stage):
            with pytest.raises(Refusal) as refused:
                await stage.submit(document(5, 100))
            assert "asks for 5 cores, and the share of the queue batch is 4 cores" in refused.value.message
            await stage.submit(document(4, 100))

        theatre.decree(f"{EXACT}queues: [{{name: batch, share: 50%}}]\n")
        theatre.play(scene, cores=8)

    def test_a_queue_uses_no_more_than_its_share(self, theatre):
        async def scene(stage):
            jobs = [await stage.submit(document(1, 100)) for _ in range(5)]
            assert stage.running() == jobs[:4]
            assert stage.by(jobs[4]) == 100

        theatre.decree(f"{EXACT}queues: [{{name: batch, share: 50%}}]\n")
        theatre.play(scene, cores=8)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(2))
    def test_limits_are_never_exceeded_whatever_happens(self, theatre, seed):
        settings = (
            f"{EXACT}queues:\n"
            "- {name: batch, limits: {jobs: 4}, each_user: {jobs: 2, resources: {cores: 5}}}\n"
            "accounts:\n"
            "- {name: physics, users: [ada, bob], limits: {jobs: 3}}\n"
            "- {name: chemistry, users: [carl]}\n"
        )

        def look(stage):
            for tally in stage.planning.quotas.tallies():
                most = tally.limits
                assert most.jobs is None or tally.jobs <= most.jobs, tally
                assert all(tally.amounts.get(kind, 0) <= amount for kind, amount in most.amounts.items()), (
                    tally
                )

        theatre.decree(settings)
        asyncio.run(History(theatre, seed, look=look, whole=False, machine={"cores": 4, "nodes": 2}).play(40))


def cores(count):
    return {"type": "slot", "count": 1, "with": [{"type": "core", "count": count}]}


class TestQueues:
    def test_batch_borrows_nodes_only_up_to_the_next_promise_there(self, theatre):
        async def scene(stage):
            own = await stage.submit(document(2, 1000))
            borrowing = await stage.submit(document(2, 100))
            assert (stage.nodes_of(own), stage.nodes_of(borrowing)) == (["node-1"], ["node-0"])
            interactive = await stage.submit(document(2, 50, queue="interactive"))
            assert stage.by(interactive) == 100
            waiting = await stage.submit(document(2, 100))
            assert stage.by(waiting) == 1000
            await stage.end(borrowing)
            assert stage.nodes_of(interactive) == ["node-0"]
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.decree(
            f"{EXACT}queues:\n- {{name: interactive, nodes: node-0}}\n"
            "- {name: batch, nodes: node-1, borrow: interactive}\n"
        )
        theatre.play(scene, nodes=2, cores=2)

    def test_who_has_used_little_goes_before_who_has_used_much(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000), "ada")
            first = await stage.submit(document(1, 1000), "ada")
            owners = ("ada", "ada", "bob", "carl")
            waiting = [await stage.submit(document(1, 1000), owner) for owner in owners]
            await stage.play_out()
            assert stage.launched()[1:] == [first, *(waiting[number] for number in (2, 3, 0, 1))]

        theatre.decree(f"{EXACT}queues: [{{name: batch, depth: 1}}]\n")
        theatre.play(scene, lambda _order: Play(seconds=900), cores=1)

    def test_jobs_with_nodes_of_their_own_wait_for_nobody(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            await stage.director.set_queue_state("batch", "closed", "", "root")
            await stage.director.set_node_state("node-0", "draining", "", "root")
            job = await stage.submit(document(1, 100), virtual="1x1")
            assert job in stage.running()

        theatre.play(scene, cores=1)

    def test_who_is_held_has_neither_a_place_nor_a_promise(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            answer = await stage.answer(document(1, 100), hold=True)
            assert answer.estimates == []
            job = answer.jobs[0].id
            why = await stage.director.why(job)
            assert ([blocker.kind for blocker in why.blockers], why.position) == (["hold"], None)
            await stage.director.release(job, "ada")
            await stage.settle()
            assert (stage.by(job), (await stage.director.why(job)).position) == (1000, 1)

        theatre.play(scene, cores=1)


class TestWhy:
    def test_it_tells_the_place_the_estimate_and_every_factor(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            jobs = [
                await stage.submit(document(1, 100, priority="high" if n == 2 else "normal"))
                for n in range(3)
            ]
            await stage.pass_time(120)
            found = [await stage.director.why(job) for job in jobs]
            assert sorted(why.position for why in found) == [1, 2, 3]
            for job, why in zip(jobs, found, strict=True):
                assert why.priority == pytest.approx(sum(factor.contribution for factor in why.factors))
                assert all(f.contribution == pytest.approx(f.raw * f.weight) for f in why.factors)
                assert why.estimate.guaranteed_by == stage.promise(job).guaranteed_by
                assert (why.queue, why.estimate.position) == ("batch", why.position)
            ages = [factor.raw for why in found for factor in why.factors if factor.name == "age"]
            assert min(ages) > 0

        theatre.play(scene, cores=1)

    def test_it_tells_the_last_revisions_newest_first(self, theatre):
        async def scene(stage):
            await stage.submit(document(2, 100))
            await stage.submit(document(2, 1000))
            job = await stage.submit(document(2, 100))
            for reason in ("disk", "fan"):
                await stage.director.set_node_state("node-0", "draining", reason, "root")
                await stage.settle()
                await stage.director.set_node_state("node-0", "up", "", "root")
                await stage.settle()
            found = (await stage.director.why(job)).revisions
            assert [each.cause for each in found if each.after > each.before] == [
                "node node-0 is drained by root: fan",
                "node node-0 is drained by root: disk",
            ]

        theatre.play(scene, nodes=2, cores=2)


class TestPlacement:
    def test_replicas_that_must_be_apart_are_so(self, theatre):
        async def scene(stage):
            job = await stage.submit(
                document(1, 100, replicas=4, task={"placement": {"apart": {"by": "node"}}})
            )
            assert sorted(stage.nodes_of(job)) == ["node-0", "node-1", "node-2"]
            await stage.end(job, "work.1")
            assert sorted(stage.nodes_of(job)) == ["node-0", "node-1", "node-2"]
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, nodes=3, cores=4)

    def test_replicas_near_each_other_share_a_rack(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            job = await stage.submit(
                document(2, 100, replicas=4, task={"placement": {"near": {"by": "rack"}}})
            )
            used = {stage.engine._nodes[int(node[-1])].labels["rack"] for node in stage.nodes_of(job)}
            assert len(used) == 1

        racks = [{"rack": "a"}, {"rack": "a"}, {"rack": "b"}, {"rack": "b"}]
        theatre.play(scene, nodes=4, cores=4, labels=racks)

    def test_replicas_are_spread_evenly_also_when_they_come_one_by_one(self, theatre):
        async def scene(stage):
            blocker = await stage.submit(document(4, 50))
            spread = {"placement": {"spread": {"by": "node"}}}
            job = await stage.submit(document(1, 100, replicas=6, task=spread))
            await stage.end(blocker)
            nodes = stage.nodes_of(job)
            assert sorted(nodes.count(node) for node in set(nodes)) == [2, 2, 2]

        theatre.play(scene, nodes=3, cores=4)

    def test_copies_that_look_at_each_other_have_the_only_node_one_after_the_other(self, theatre):
        async def scene(stage):
            alone = {"placement": {"spread": {"by": "node"}, "exclusive": True}}
            job = await stage.submit(document(1, 100, replicas=5, task=alone))
            await stage.play_out()
            assert stage.store.job(job).counts == {"succeeded": 5}

        theatre.play(scene, lambda _: Play(seconds=50.0), nodes=1, cores=4)

    def test_a_task_is_apart_from_another_that_asks_together_with_it(self, theatre):
        async def scene(stage):
            job = await stage.submit(several({"name": "a"}, {"name": "b", "placement": {"apart": "a"}}))
            assert stage.nodes_of(job, "a.0") != stage.nodes_of(job, "b.0")

        theatre.play(scene, nodes=2, cores=4)

    def test_a_task_is_near_another_that_had_to_go_elsewhere(self, theatre):
        async def scene(stage):
            first = {"name": "first"}
            apart = {"name": "apart", "placement": {"apart": "first"}}
            near = {"name": "near", "replicas": 2, "placement": {"near": "apart"}}
            job = await stage.submit(several(first, apart, near))
            assert stage.nodes_of(job, "apart.0") == ["node-1"]
            assert stage.nodes_of(job, "near.0") == stage.nodes_of(job, "near.1") == ["node-1"]

        theatre.play(scene, nodes=3, cores=4)

    def test_copies_that_look_at_each_other_wait_among_many_others(self, theatre):
        async def scene(stage):
            blockers = [await stage.submit(document(2, 100)) for _ in range(2)]
            spread = {"name": "a", "replicas": 4, "placement": {"spread": {"by": "node"}}}
            job = await stage.submit(several(spread, {"name": "b", "replicas": 30}))
            await stage.end(blockers[0])
            await stage.play_out()
            assert stage.store.job(job).counts == {"succeeded": 34}
            assert leftovers(stage) == []

        theatre.play(
            scene, lambda order: Play(seconds=50.0 if order.unit.name == "b" else 90.0), nodes=2, cores=2
        )


class TestConnectedJobs:
    @staticmethod
    def connected(name, *others, owner="ada"):
        return document(4, 300, name=name, network={"connect": list(others)}), owner

    def test_they_start_together_although_one_was_promised_a_place_alone(self, theatre):
        async def scene(stage):
            for seconds in (100, 200):
                await stage.submit(document(4, seconds))
            left = await stage.submit(*self.connected("left", "right"))
            assert stage.by(left) == 100
            right = await stage.submit(*self.connected("right", "left", owner="bob"))
            assert (stage.by(left), stage.by(right)) == (200, 200)
            [words] = stage.told(left, "promise-moved")
            assert words.endswith(f"job {right} joins it")
            await stage.pass_time(200)
            assert set(stage.running()) == {left, right}

        theatre.play(scene, nodes=2, cores=4)

    def test_nobody_waits_for_a_stranger(self, theatre):
        async def scene(stage):
            for seconds in (100, 200):
                await stage.submit(document(4, seconds))
            job = await stage.submit(document(4, 300, name="left"))
            stranger = await stage.submit(*self.connected("right", "left", owner="bob"))
            assert (stage.by(job), stage.by(stranger)) == (100, 200)

        theatre.play(scene, nodes=2, cores=4)

    def test_one_whose_partner_is_cancelled_goes_on_alone(self, theatre):
        async def scene(stage):
            for seconds in (100, 200):
                await stage.submit(document(4, seconds))
            left = await stage.submit(*self.connected("left", "right"))
            right = await stage.submit(*self.connected("right", "left"))
            await stage.director.cancel(right, "ada")
            await stage.settle()
            assert stage.by(left) == 100

        theatre.play(scene, nodes=2, cores=4)

    def test_who_joins_a_job_that_runs_is_planned_to_start_before_that_is_over(self, theatre):
        async def scene(stage):
            host = await stage.submit(document(4, 100, name="host"))
            await stage.submit(document(4, 50))
            guest = await stage.submit(*self.connected("guest", "host"))
            assert stage.by(guest) == 50
            await stage.pass_time(50)
            assert set(stage.running()) == {host, guest}

        theatre.play(scene, nodes=2, cores=4)

    def test_where_that_cannot_be_nothing_is_promised_and_it_goes_on_alone(self, theatre):
        async def scene(stage):
            host = await stage.submit(document(4, 100, name="host"))
            await stage.submit(document(4, 200))
            guest = await stage.submit(*self.connected("guest", "host"))
            assert stage.by(guest) is None
            why = await stage.director.why(guest)
            assert "no room for it within the 100 s in which it has to start" in why.estimate.unpromised
            assert stage.told(guest, "partner-over") == []
            await stage.pass_time(100)
            [words] = stage.told(guest, "partner-over")
            assert words.startswith(f"job {host} was over before it could join it")
            assert guest in stage.running()

        theatre.play(scene, nodes=2, cores=4)

    def test_more_time_for_the_one_is_more_time_to_join_it_for_the_other(self, theatre):
        async def scene(stage):
            host = await stage.submit(document(4, 100, name="host"))
            await stage.submit(document(4, 150))
            guest = await stage.submit(*self.connected("guest", host))
            assert stage.by(guest) is None
            await stage.director.extend(host, 100.0, None, "ada")
            await stage.settle()
            assert stage.by(guest) == 150
            await stage.pass_time(150)
            assert set(stage.running()) == {host, guest}

        theatre.play(scene, nodes=2, cores=4)

    def test_a_job_of_which_something_is_still_to_start_can_be_joined_at_any_time(self, theatre):
        async def scene(stage):
            await stage.submit(document(4, 100, name="host", replicas=3))
            guest = await stage.submit(*self.connected("guest", "host"))
            assert stage.by(guest) is not None

        theatre.play(scene, nodes=1, cores=4)


class TestManyAtOnce:
    @pytest.mark.parametrize("many", [500, pytest.param(5_000, marks=pytest.mark.slow)])
    def test_a_burst_makes_few_passes_and_all_run_in_the_end(self, theatre, capsys, many):
        async def scene(stage):
            gaps = []

            async def ping():
                loop = asyncio.get_running_loop()
                while True:
                    before = loop.time()
                    await asyncio.sleep(0)
                    gaps.append(loop.time() - before)
                    await asyncio.sleep(0.001)

            pinging = asyncio.create_task(ping())
            before = stage.planning.passes
            text = document(1, 100)
            await asyncio.gather(
                *(stage.director.submit(_submission(text), "ada", None) for _ in range(many))
            )
            passes = stage.planning.passes - before
            pinging.cancel()
            with capsys.disabled():
                print(f"\n{many} submissions: {passes} passes, largest gap of the loop {max(gaps):.3f} s")
            assert passes < many / 20
            await stage.play_out()
            assert stage.store.counts() == {"succeeded": many}
            assert leftovers(stage) == []

        theatre.play(scene, lambda _order: Play(seconds=50), nodes=2, cores=many // 6)

    def test_each_start_is_granted_once(self, theatre):
        async def scene(stage):
            stage.each_time.append(lambda stage: asserts(disagreements(stage) == []))
            jobs = [await stage.submit(document(1 + n % 2, 20 + n, replicas=3)) for n in range(12)]
            await stage.play_out()
            assert len(stage.engine.launched) == len(set(stage.engine.launched)) == 3 * len(jobs)
            assert leftovers(stage) == []

        theatre.play(scene, lambda _order: Play(seconds=15), nodes=2, cores=3)


def asserts(condition):
    assert condition


def _submission(text):
    return Submission(document=text)


class TestSlowPasses:
    """A pass that takes its time: it goes on beside everything else, and is carried out when it is done."""

    def test_submissions_are_answered_meanwhile(self, theatre, monkeypatch):
        async def scene(stage):
            gate = _slow(stage, monkeypatch)
            first = await asyncio.wait_for(
                stage.director.submit(_submission(document(1, 10)), "ada", None), 20
            )
            others = [
                await asyncio.wait_for(stage.director.submit(_submission(document(1, 10)), "ada", None), 20)
                for _ in range(3)
            ]
            assert stage.planning.is_busy
            assert first.estimates == [] or not first.estimates[0].starts_now
            jobs = [answer.jobs[0].id for answer in (first, *others)]
            assert [stage.state(job) for job in jobs] == ["waiting"] * 4
            gate.set()
            await stage.settle()
            assert stage.running() == jobs
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=4)

    @pytest.mark.parametrize("act", ["cancel", "hold"])
    def test_who_has_left_meanwhile_gets_nothing(self, theatre, monkeypatch, act):
        async def scene(stage):
            gate = _slow(stage, monkeypatch)
            answers = [
                await stage.director.submit(_submission(document(2, 10)), "ada", None) for _ in range(3)
            ]
            leaving, *staying = [answer.jobs[0].id for answer in answers]
            await getattr(stage.director, act)(leaving, "ada")
            gate.set()
            await stage.settle()
            assert stage.running() == staying
            assert disagreements(stage) == []
            if act == "hold":
                await stage.director.release(leaving, "ada")
                await stage.settle()
                assert stage.promise(leaving) is not None
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=4)

    def test_who_has_left_and_come_back_meanwhile_starts_once(self, theatre, monkeypatch):
        async def scene(stage):
            gate = _slow(stage, monkeypatch)
            job = (await stage.director.submit(_submission(document(2, 10)), "ada", None)).jobs[0].id
            for _ in range(3):
                await stage.director.hold(job, "ada")
                await stage.director.release(job, "ada")
            gate.set()
            await stage.settle()
            assert stage.launched() == [job]
            assert disagreements(stage) == []
            await stage.play_out()
            assert leftovers(stage) == []

        theatre.play(scene, cores=4)

    def test_ends_meanwhile_are_not_forgotten(self, theatre, monkeypatch):
        async def scene(stage):
            running = await stage.submit(document(4, 100))
            waiting = await stage.submit(document(4, 100))
            gate = _slow(stage, monkeypatch)
            late = (await stage.director.submit(_submission(document(4, 100)), "ada", None)).jobs[0].id
            for address in list(stage.engine.now_playing):
                stage.engine.end(address)
            await stage.director.submit(_submission(document(1, 1)), "ada", None)
            assert stage.state(running) == "succeeded"
            gate.set()
            await stage.settle()
            assert stage.running() == [waiting]
            assert stage.by(late) == 100
            assert disagreements(stage) == []

        theatre.play(scene, cores=4)


def _slow(stage, monkeypatch):
    """Let every pass wait until it is told to go on."""
    gate = threading.Event()
    planner = stage.planning._planner
    plan = planner.plan

    def slowly(now):
        assert gate.wait(30)
        return plan(now)

    monkeypatch.setattr(planner, "plan", slowly)
    return gate


class TestNothingIsLost:
    @pytest.mark.parametrize(
        "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
    )
    def test_whatever_people_do_all_is_free_in_the_end(self, theatre, seed):
        machine = random.Random(seed).choice(
            [{"cores": 1}, {"cores": 4}, {"nodes": 2, "cores": 2}, {"nodes": 3, "cores": 4}]
        )
        history = History(theatre, seed, acts=True, machine=machine)
        asyncio.run(history.play(40))
        assert history.found == []

    def test_a_deleted_job_leaves_nothing(self, theatre):
        async def scene(stage):
            running = await stage.submit(document(1, 100))
            waiting = await stage.submit(document(1, 100))
            await stage.director.cancel(waiting, "ada")
            await stage.end(running)
            for job in (running, waiting):
                await stage.director.delete(job, "ada")
            assert stage.store.promises() == []
            assert leftovers(stage) == []

        theatre.play(scene, cores=1)

    def test_time_limits_end_what_nobody_else_ends(self, theatre):
        async def scene(stage):
            jobs = [await stage.submit(document(1, 100)) for _ in range(3)]
            await stage.play_out()
            assert [stage.begun(job) - NOON for job in jobs] == [0, 100, 200]
            assert leftovers(stage) == []

        theatre.play(scene, lasting(), cores=1)


class TestExpectations:
    """What those who wait are told to expect is possible, and never later than what they are guaranteed."""

    def expected(self, stage, job):
        """In how many seconds a job is expected to start, and by when with nine chances in ten."""
        promise = stage.promise(job)
        return promise.expected_at - stage.now, promise.expected_p90 - stage.now

    def test_who_is_held_back_by_a_limit_is_not_expected_now(self, theatre):
        async def scene(stage):
            mine = [await stage.submit(document(1, 1000)) for _ in range(4)]
            assert stage.running() == mine[:2]
            third, fourth = (self.expected(stage, job) for job in mine[2:])
            assert 0 < third[0] <= third[1] <= 1000
            assert third[0] <= fourth[0] <= fourth[1] <= 1000

        theatre.decree(f"{EXACT}queues: [{{name: batch, each_user: {{jobs: 2}}}}]\n")
        theatre.play(scene, cores=8)

    @pytest.mark.parametrize("limits", ["limits: {resources: {cores: 4}}", "share: 50%"])
    def test_what_may_be_held_at_one_time_is_counted_with(self, theatre, limits):
        """Each runs for 1000 s of its 2000 s, two at a time: the fifth starts after 2000 s."""

        async def scene(stage):
            for _ in range(3):
                await stage.submit(document(2, 2000))
                await stage.pass_time(1000)
            jobs = [await stage.submit(document(2, 2000)) for _ in range(5)]
            assert stage.running() == jobs[:2]
            assert self.expected(stage, jobs[2]) == (1000, 1000)
            assert self.expected(stage, jobs[4])[0] == 2000

        theatre.decree(f"{EXACT}queues: [{{name: batch, {limits}}}]\n")
        theatre.play(scene, lambda _order: Play(seconds=1000), cores=8)

    def test_a_queue_is_played_on_its_own_nodes(self, theatre):
        async def scene(stage):
            first = await stage.submit(document(4, 1000, queue="gpu"))
            second = await stage.submit(document(4, 1000, queue="gpu"))
            assert stage.nodes_of(first) == ["node-1"]
            assert self.expected(stage, second)[0] > 0
            other = await stage.submit(document(4, 1000))
            assert stage.nodes_of(other) == ["node-0"]

        theatre.decree(f"{EXACT}queues: [{{name: batch}}, {{name: gpu, nodes: [node-1]}}]\n")
        theatre.play(scene, nodes=2, cores=4)

    def test_whole_nodes_are_not_expected_while_others_use_them(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 1000))
            whole = await stage.submit(document(nodes=1, duration=1000))
            assert 0 < self.expected(stage, whole)[0] <= 1000

        theatre.play(scene, cores=4)

    def test_borders_of_nodes_count_at_least_until_something_ends(self, theatre):
        """Two cores are free, but on two nodes."""

        async def scene(stage):
            for _ in range(2):
                await stage.submit(document(2, 1000))
            job = await stage.submit(document(2, 1000))
            assert 0 < self.expected(stage, job)[0] <= 1000

        theatre.play(scene, nodes=2, cores=3)

    def test_nobody_is_expected_during_maintenance(self, theatre):
        async def scene(stage):
            start = datetime.fromtimestamp(stage.now + 100, UTC)
            entry = NewEntry(kind="maintenance", name="disks", start=start, duration=5000)
            await stage.director.add_calendar(entry, "root")
            job = await stage.submit(document(1, 1000))
            assert stage.by(job) == 5100
            assert self.expected(stage, job) == (5100, 5100)

        theatre.play(scene, cores=4)

    def test_in_a_queue_that_is_closed_nothing_is_expected(self, theatre):
        async def scene(stage):
            await stage.submit(document(4, 1000))
            job = await stage.submit(document(4, 1000))
            assert self.expected(stage, job)[1] <= 1000
            await stage.director.set_queue_state("batch", "closed", "", "root")
            await stage.settle()
            assert stage.promise(job).expected_at is None
            await stage.director.set_queue_state("batch", "open", "", "root")
            await stage.settle()
            assert 0 < self.expected(stage, job)[1] <= 1000

        theatre.play(scene, cores=4)

    def look(self, stage):
        for promise in stage.store.promises():
            if promise.guaranteed_by is not None and promise.expected_p90 is not None:
                assert promise.expected_at <= promise.expected_p90 <= promise.guaranteed_by

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(3))
    def test_whatever_happens_nobody_is_expected_later_than_guaranteed(self, theatre, seed, caplog):
        limits = "each_user: {jobs: 2}, limits: {resources: {cores: 3}}"
        queues = f"[{{name: batch, {limits}}}, {{name: night, nodes: [node-2], share: 50%}}]"
        theatre.decree(f"{EXACT}queues: {queues}\n")
        history = History(
            theatre,
            seed,
            acts=True,
            governed=seed == 2,
            restarts=2,
            queues=("batch", "night"),
            machine={"nodes": 3, "cores": 2},
            look=self.look,
            whole=seed == 1,
        )
        asyncio.run(history.play(60))
        assert "foretold" not in caplog.text

    def test_whose_guarantee_becomes_better_is_not_expected_later(self, theatre):
        async def scene(stage):
            stage.each_time.append(self.look)
            jobs = [await stage.submit(document(2, 1000)) for _ in range(6)]
            for job in jobs[:3]:
                await stage.pass_time(5)
                await stage.end(job)
            assert stage.by(jobs[5]) < 3000

        theatre.play(scene, cores=2)

    def test_what_ran_before_a_restart_is_known_after_it(self, theatre):
        """By user, name, shape and limit."""

        async def scenes():
            script = lasting(short=100, long=3600)
            texts = [document(4, 5000, name="long"), document(2, 5000, name="short")]
            asked = [document(4, 5000, name="short"), document(4, 5000, name="other")]
            async with theatre.stage(script, cores=4) as stage:
                for text in texts * 3:
                    await stage.submit(text)
                    await stage.pass_time(4000)
                told = [await self.told(stage, text) for text in asked]
            async with theatre.stage(script, cores=4) as stage:
                assert [await self.told(stage, text) for text in asked] == told
            assert told[0] == (100, 100)
            assert told[1][0] == 3600  # as those of its shape, though others were the last

        asyncio.run(scenes())

    async def told(self, stage, text):
        """What one is told that waits for another like it; both go then."""
        first, second = [await stage.submit(text) for _ in range(2)]
        found = self.expected(stage, second)
        for job in (second, first):
            await stage.director.cancel(job, "root")
            await stage.settle()
        return found

    def test_the_past_is_looked_at_when_somebody_waits_and_not_before(self, theatre):
        async def scenes():
            async with theatre.stage(lasting(job=100), cores=2) as stage:
                for _ in range(3):
                    await stage.submit(document(2, 1000))
                    await stage.pass_time(200)
            async with theatre.stage(cores=2) as stage:
                expectations = stage.planning._expectations
                await stage.submit(document(2, 1000))
                assert len(expectations._history) == 0
                waiting = await stage.submit(document(2, 1000))
                assert len(expectations._history) == 3
                assert self.expected(stage, waiting) == (100, 100)

        asyncio.run(scenes())


class TestNoPromise:
    """Where nothing can be promised it is said why: at submission, in lists, by `why` and by `--what-if`."""

    async def told(self, stage, text, **more):
        """Why a job is promised nothing, wherever that can be asked."""
        [tried] = (await stage.answer(text, what_if=True, **more)).estimates
        found = await stage.answer(text, **more)
        [at_once], job = found.estimates, found.jobs[0].id
        why = (await stage.director.why(job)).estimate
        listed, _ = stage.director.glance(job)
        assert tried.guaranteed_by is at_once.guaranteed_by is why.guaranteed_by is None
        assert tried.unpromised == at_once.unpromised == why.unpromised == listed.unpromised
        return tried.unpromised

    def test_something_ahead_has_no_limit(self, theatre):
        async def scene(stage):
            await stage.submit(document(1))
            assert await self.told(stage, document(1, 100)) == "something in its way has no time limit"

        theatre.play(scene, cores=1)

    def test_only_the_first_are_promised_anything(self, theatre):
        async def scene(stage):
            for _ in range(2):
                await stage.submit(document(1, 100))
            words = "in the queue batch only the first is promised a start"
            assert await self.told(stage, document(1, 100)) == words

        theatre.decree(f"{EXACT}queues: [{{name: batch, depth: 1}}]\n")
        theatre.play(scene, cores=1)

    def test_the_nodes_are_away(self, theatre):
        async def scene(stage):
            await stage.director.set_node_state("node-0", "draining", "fan", "root")
            assert await self.told(stage, document(1, 100)) == "node-0 is draining"

        theatre.play(scene, cores=1)

    def test_a_queue_that_is_closed_takes_promises_back_with_the_reason(self, theatre):
        async def scene(stage):
            await stage.submit(document(1, 100))
            job = await stage.submit(document(1, 100))
            assert stage.director.glance(job)[0].unpromised == ""
            await stage.director.set_queue_state("batch", "closed", "", "root")
            await stage.settle()
            assert stage.director.glance(job)[0].unpromised == "the queue batch is closed"
            await stage.director.set_queue_state("batch", "open", "", "root")
            await stage.settle()
            assert stage.director.glance(job)[0].unpromised == ""

        theatre.play(scene, cores=1)

    @pytest.mark.parametrize(
        ("keys", "words"),
        [({"gates": ["approval"]}, "its gate approval is closed"), ({"hold": True}, "it is held")],
    )
    def test_what_somebody_has_to_let_go_would_not_start_now(self, theatre, keys, words):
        async def scene(stage):
            [tried] = (await stage.answer(document(1, 100, **keys), what_if=True)).estimates
            assert (tried.starts_now, tried.guaranteed_by, tried.unpromised) == (False, None, words)

        theatre.play(scene, cores=1)

    def test_time_limits_are_suggested_as_documents_give_them(self, theatre):
        """With a grace of 30 s and a margin of 10 s beside them."""

        async def scene(stage):
            start = datetime.fromtimestamp(stage.now + 1000, UTC)
            entry = NewEntry(kind="maintenance", name="disks", start=start, duration=5000)
            await stage.director.add_calendar(entry, "root")
            job = await stage.submit(document(1, 1800, grace="30s"))
            why = await stage.director.why(job)
            assert why.suggestion == "with a time limit of 15 min instead of 30 min it would start at once"

        theatre.decree("")
        theatre.play(scene, cores=1)

    def test_in_strict_order_nobody_has_a_priority(self, theatre):
        async def scene(stage):
            jobs = [
                await stage.submit(document(1, 100, queue=queue))
                for queue in ("batch", "batch", "interactive")
            ]
            batch, strict = [await stage.director.why(job) for job in jobs[1:]]
            assert batch.factors
            assert (strict.priority, strict.factors, strict.queue) == (None, [], "interactive")

        theatre.play(scene, cores=1)
