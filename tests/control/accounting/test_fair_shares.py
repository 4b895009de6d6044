"""Fair shares in the service: what counts is what was held, shares are what people end up with."""

import random

import pytest

from jobman.engines.memory import Play
from tests.control.stage import Theatre, document

EASY = """
scheduler: {stop_margin: 0s, half_life: 1h}
queues: [{name: batch, depth: 1, weights: {age: 0, fair_share: 10000}}]
accounts:
- {name: physics, shares: %s, users: [ada]}
- {name: biology, users: [eve, bob]}
"""


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path, EASY % 1)


def usage(stage, account, user):
    """Seconds of the whole cluster that count against somebody."""
    return stage.planning.priorities.tree.usage(account, user, stage.now)


# -- what counts


@pytest.mark.parametrize("price", [0, 1, 24])
def test_what_counts_for_fair_shares_is_the_same_after_a_restart_whatever_it_costs(theatre, price):
    theatre.decree(EASY % 1 + f"accounting: {{price: {price}}}\n")
    before = []

    async def use(stage):
        job = await stage.submit(document(2, 3600))
        await stage.pass_time(1800)
        await stage.end(job)
        before.append(usage(stage, "physics", "ada"))

    async def look(stage):
        assert usage(stage, "physics", "ada") == pytest.approx(before[0], rel=0.02)

    theatre.play(use, cores=4)
    assert before[0] == pytest.approx(0.5 * 1800, rel=0.2)
    theatre.play(look, cores=4)


def test_whoever_takes_a_node_as_a_whole_is_charged_for_all_of_it(theatre):
    alone = {"placement": {"exclusive": True}}

    async def scene(stage):
        await stage.submit(document(1, 3600, task=alone))
        await stage.submit(document(1, 3600), owner="eve")
        assert usage(stage, "physics", "ada") == pytest.approx(0.5 * 3600)
        assert usage(stage, "biology", "eve") == pytest.approx(3600 / 8)

    async def afterwards(stage):
        assert usage(stage, "physics", "ada") == pytest.approx(0.5 * 3600)
        assert usage(stage, "biology", "eve") == pytest.approx(3600 / 8)

    theatre.play(scene, nodes=2, cores=4)
    theatre.play(afterwards, nodes=2, cores=4)


def test_an_extension_counts_at_once(theatre):
    async def scene(stage):
        job = await stage.submit(document(4, 3600))
        await stage.director.extend(job, 1800.0, None, "ada")
        assert usage(stage, "physics", "ada") == pytest.approx(5400.0)

    async def afterwards(stage):
        assert usage(stage, "physics", "ada") == pytest.approx(5400.0)

    theatre.play(scene, cores=4)
    theatre.play(afterwards, cores=4)


def test_what_was_lost_through_no_fault_of_its_own_does_not_count(theatre):
    async def scene(stage):
        job = await stage.submit(document(4, 3600))
        await stage.pass_time(1800)
        assert usage(stage, "physics", "ada") > 1800
        (address,) = stage.engine.now_playing
        stage.engine.end(address, "launch-failed", 1)
        await stage.settle()
        assert stage.state(job) == "failed"
        assert usage(stage, "physics", "ada") == pytest.approx(0.0, abs=1.0)

    async def afterwards(stage):
        assert usage(stage, "physics", "ada") == pytest.approx(0.0, abs=1.0)

    theatre.play(scene, cores=4)
    theatre.play(afterwards, cores=4)


# -- what comes of it


async def compete(stage, hours, owners, chance, size=lambda _: 1):
    """Let everybody want more than there is for so long; the seconds each had in the second half."""
    begin = stage.now
    had = dict.fromkeys(owners, 0.0)

    def count(record):
        for one in stage.store.slices(record):
            late = one.end - max(one.start, begin + hours * 1800)
            had[one.owner] += max(0.0, late) * one.amounts["core"]

    jobs = []
    while stage.now < begin + hours * 3600:
        for owner in owners:
            waiting = sum(request.user == owner for request in stage.planning.waiting.values())
            for _ in range(4 - waiting):
                jobs.append(await stage.submit(document(size(owner), chance.choice([200, 300, 400])), owner))
        await stage.pass_time(100)
    for job in jobs:
        count(job)
    return had


def lengths(chance):
    return lambda order: Play(seconds=order.unit.duration * chance.choice([0.5, 0.9, 1.0]))


@pytest.mark.slow
@pytest.mark.parametrize("shares", [1, 3])
def test_shares_are_what_people_end_up_with_in_a_few_half_lives(theatre, shares):
    chance = random.Random(shares)
    theatre.decree(EASY % shares)

    async def scene(stage):
        had = await compete(stage, 6, ["ada", "eve"], chance)
        assert had["ada"] / had["eve"] == pytest.approx(shares, rel=0.15)

    theatre.play(scene, lengths(chance), cores=4)


@pytest.mark.slow
def test_shares_hold_level_by_level_also_where_jobs_are_of_different_sizes(theatre):
    chance = random.Random(5)
    theatre.decree(EASY % 1)

    async def scene(stage):
        had = await compete(
            stage, 8, ["ada", "eve", "bob"], chance, size=lambda owner: 2 if owner == "eve" else 1
        )
        biology = had["eve"] + had["bob"]
        assert had["ada"] / biology == pytest.approx(1.0, rel=0.2)
        assert had["eve"] / had["bob"] == pytest.approx(1.0, rel=0.25)

    theatre.play(scene, lengths(chance), cores=4)


def test_a_burst_of_submissions_does_not_pass_those_who_come_after_it(theatre):
    async def scene(stage):
        crowd = [await stage.submit(document(1, 600)) for _ in range(24)]
        assert len(stage.running()) == 4
        others = [await stage.submit(document(1, 600), owner="eve") for _ in range(4)]
        await stage.pass_time(599)
        for job in stage.running():
            await stage.end(job)
        # One of the burst was next already; whoever came later goes before all the others of it.
        assert len(set(others) & set(stage.running())) >= 3
        assert stage.running() != crowd[4:8]

    theatre.play(scene, cores=4)
