"""Fair share: what use leaves behind, what a correction corrects, and whose turn it is."""

import heapq
import json
from collections import Counter
from itertools import pairwise
from math import inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.sched.accounts import DEFAULT, ROOT, Account, AccountTree
from jobman.sched.fairshare import WEEK, Decay, FairTree, Usage, dominant

DAY = 86400.0
NOW = 1.8e9
CLUSTER = {"core": 1000.0, "gpu": 100.0}


def account(name, parent=ROOT, shares=1.0, **users):
    return Account(name=name, parent=parent, shares=shares, users=users)


def fair_tree(*accounts, **rest):
    return FairTree(AccountTree(accounts), CLUSTER, **rest)


def used(tree, **amounts):
    """Let members use so many seconds of the whole cluster; `physics_anna=3.0`."""
    for member, seconds in amounts.items():
        account_, user = member.split("_")
        tree.charge(account_, user, seconds, NOW - 1.0, NOW)
    return tree


def ranks(tree, asking=()):
    """Users by their rank; `account/user`."""
    rows = [row for row in tree.standings(NOW, asking) if row.user]
    return {f"{row.account}/{row.user}": row.rank for row in rows}


def nearly(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


# -- what is charged


@pytest.mark.parametrize(
    ("amounts", "part"),
    [
        ({"core": 10}, 0.01),
        ({"core": 10, "gpu": 10}, 0.1),
        ({"gpu": 100, "core": 1}, 1.0),
        ({"licence": 5}, 0.0),
        ({}, 0.0),
    ],
)
def test_a_job_is_charged_by_what_it_holds_most_of(amounts, part):
    assert dominant(amounts, {**CLUSTER, "licence": 0.0}) == part


def test_a_job_counts_from_its_start_for_all_of_its_limit():
    tree = fair_tree()
    tree.start("j", "", "anna", {"gpu": 10, "core": 10}, NOW, limit=3600.0)
    assert tree.usage("", "anna", NOW) == nearly(360.0)


def test_a_job_without_a_limit_is_charged_as_it_runs():
    tree = fair_tree(half_life=inf)
    tree.start("j", "", "anna", {"gpu": 10}, NOW)
    assert [tree.usage("", "anna", NOW + after) for after in (0.0, 60.0, 600.0)] == [
        0.0,
        nearly(6),
        nearly(60),
    ]


def test_at_its_end_a_job_gets_back_what_it_did_not_use():
    tree = fair_tree(half_life=inf)
    tree.start("j", "", "anna", {"gpu": 10}, NOW, limit=3600.0)
    tree.end("j", NOW + 60.0)
    assert tree.usage("", "anna", NOW + 60.0) == nearly(6.0)


def test_a_job_that_runs_over_its_limit_is_charged_for_its_real_time():
    tree = fair_tree(half_life=inf)
    tree.start("j", "", "anna", {"gpu": 100}, NOW, limit=60.0)
    assert tree.usage("", "anna", NOW + 90.0) == nearly(90.0)
    tree.end("j", NOW + 90.0)
    assert tree.usage("", "anna", NOW + 90.0) == nearly(90.0)


def test_an_extension_is_charged_at_once():
    tree = fair_tree(half_life=inf)
    tree.start("j", "", "anna", {"gpu": 100}, NOW, limit=60.0)
    tree.extend("j", 100.0)
    assert tree.usage("", "anna", NOW + 10.0) == nearly(100.0)


def test_what_ends_without_the_users_fault_leaves_nothing():
    tree = fair_tree()
    used(tree, default_anna=5.0)
    before = tree.to_dict()
    tree.start("j", "", "anna", {"gpu": 100}, NOW, limit=60.0)
    tree.forgive("j")
    assert tree.to_dict() == before


def test_a_refund_takes_a_slice_back():
    tree = fair_tree()
    tree.charge("", "anna", 0.1, NOW - 60.0, NOW)
    tree.charge("", "anna", -0.1, NOW - 60.0, NOW)
    assert tree.usage("", "anna", NOW + DAY) == 0.0


def test_a_larger_cluster_counts_for_what_starts_from_then_on():
    tree = fair_tree(half_life=inf)
    tree.start("before", "", "anna", {"gpu": 10}, NOW, limit=10.0)
    tree.totals["gpu"] = 200.0
    tree.start("after", "", "bert", {"gpu": 10}, NOW, limit=10.0)
    assert tree.usage("", "anna", NOW) == 2 * tree.usage("", "bert", NOW)


def test_nothing_is_started_twice_or_ended_when_it_does_not_run():
    tree = fair_tree()
    tree.start("j", "", "anna", {"gpu": 10}, NOW)
    with pytest.raises(ValueError, match="j runs already"):
        tree.start("j", "", "anna", {"gpu": 10}, NOW)
    for act in (lambda: tree.end("x", NOW), lambda: tree.extend("x", 1.0), lambda: tree.forgive("x")):
        with pytest.raises(ValueError, match="x does not run"):
            act()


# -- decay


def test_use_counts_half_after_each_half_life():
    tree = used(fair_tree(), default_anna=1000.0)
    first = tree.usage("", "anna", NOW)
    assert [tree.usage("", "anna", NOW + n * WEEK) for n in (1, 2, 30)] == [
        nearly(first / 2),
        nearly(first / 4),
        nearly(first / 2**30),
    ]


def test_what_is_very_old_is_forgotten():
    tree = used(fair_tree(), default_anna=1000.0)
    assert tree.usage("", "anna", NOW + 200 * WEEK) == 0.0
    assert tree.factors(NOW + 200 * WEEK) == {}


def test_an_infinite_half_life_forgets_nothing():
    tree = used(fair_tree(half_life=inf), default_anna=1000.0)
    assert tree.usage("", "anna", NOW + 1e9) == 1000.0


@pytest.mark.parametrize("half_life", [0.0, -1.0, float("nan")])
def test_a_half_life_must_be_more_than_nothing(half_life):
    with pytest.raises(ValueError, match="half-life"):
        fair_tree(half_life=half_life)


def test_another_half_life_counts_from_now_on():
    tree = used(fair_tree(), default_anna=1000.0)
    first = tree.usage("", "anna", NOW)
    tree.change_half_life(DAY, NOW)
    assert tree.usage("", "anna", NOW) == nearly(first)
    assert tree.usage("", "anna", NOW + DAY) == nearly(first / 2)
    tree.change_half_life(inf, NOW + DAY)
    assert tree.usage("", "anna", NOW + 1e9) == nearly(first / 2)


MOMENTS = st.floats(0.0, 2e9)
SPANS = st.floats(1e-3, 60 * DAY)
RATES = st.floats(1e-6, 1.0)
HALF_LIVES = st.floats(600.0, 100 * DAY) | st.sampled_from([DAY, WEEK, inf])


@given(MOMENTS, SPANS, RATES, HALF_LIVES, st.lists(st.floats(0.0, 1e7), max_size=20))
def test_looking_never_changes_what_is_left(start, span, rate, half_life, looks):
    looked, left = (fair_tree(half_life=half_life) for _ in range(2))
    for tree in (looked, left):
        tree.charge("", "anna", rate, start, start + span)
    for look in looks:
        looked.usage("", "anna", start + look)
        looked.factors(start + look)
    assert looked.to_dict() == left.to_dict()


WHOLE = st.integers(0, 2 * 10**9)


@given(WHOLE, RATES, st.integers(600, 10**7), st.lists(st.integers(0, 50 * 10**7), max_size=20))
def test_use_that_is_moved_on_again_and_again_stays_the_same_to_the_last_digit(
    moment, amount, half_life, after
):
    decay = Decay(half_life)
    touched, left = Usage(), Usage()
    for usage in (touched, left):
        usage.add(amount, moment, decay)
    for later in after:
        if later / half_life < 900:
            touched.add(0.0, moment + later, decay)
    look = moment + max(after, default=0)
    assert touched.at(look, decay) == left.at(look, decay)


@given(WHOLE, RATES, st.integers(600, 10**7), st.integers(0, 60))
def test_use_is_halved_to_the_last_digit_by_each_half_life(moment, amount, half_life, times):
    decay = Decay(half_life)
    usage = Usage()
    usage.add(amount, moment, decay)
    assert usage.at(moment + times * half_life, decay) == usage.at(moment, decay) / 2**times


def test_a_clock_that_was_set_back_is_survived():
    tree = used(fair_tree(), default_anna=1.0)
    assert tree.usage("", "anna", NOW - 60.0) == pytest.approx(1.0, rel=1e-3)
    assert tree.factors(0.0) == {(DEFAULT, "anna"): 1.0}
    tree.start("j", "", "anna", {"gpu": 100}, NOW, limit=60.0)
    assert tree.usage("", "anna", NOW - 60.0) == pytest.approx(61.0, rel=1e-3)
    tree.end("j", NOW - 60.0)
    assert tree.usage("", "anna", NOW) == pytest.approx(1.0, rel=1e-3)


@given(
    MOMENTS, SPANS, RATES, HALF_LIVES, st.lists(st.floats(0.0, 1.0), max_size=10), st.floats(0.0, 30 * DAY)
)
def test_slices_leave_what_the_whole_leaves_in_any_order(start, span, rate, half_life, cuts, later):
    whole, sliced, reverse = (fair_tree(half_life=half_life) for _ in range(3))
    end = start + span
    whole.charge("", "anna", rate, start, end)
    edges = [start, *(start + span * cut for cut in sorted(cuts)), end]
    slices = list(pairwise(edges))
    for one in slices:
        sliced.charge("", "anna", rate, *one)
    for one in reversed(slices):
        reverse.charge("", "anna", rate, *one)
    left = whole.usage("", "anna", end + later)
    for tree in (sliced, reverse):
        assert isclose(tree.usage("", "anna", end + later), left, rel_tol=1e-6, abs_tol=1e-12)


@settings(max_examples=30)
@given(st.floats(0.01, 20.0), st.floats(0.0, 20.0), RATES, st.floats(600.0, 100 * DAY))
def test_what_is_left_is_the_sum_of_moments_that_each_decayed(span, later, rate, half_life):
    """Against a sum over small steps, which knows nothing of the closed form; times in half-lives."""
    tree = fair_tree(half_life=half_life)
    tree.charge("", "anna", rate, NOW, NOW + span * half_life)
    step = span / 500
    middles = (later + (number + 0.5) * step for number in range(500))
    summed = sum(rate * step * half_life * 0.5**age for age in middles)
    assert isclose(tree.usage("", "anna", NOW + (span + later) * half_life), summed, rel_tol=1e-3)


# -- correction

JOBS = st.lists(
    st.tuples(st.floats(0.0, 30 * DAY), SPANS, st.floats(1.0, 4.0) | st.just(inf), st.integers(1, 100)),
    min_size=1,
    max_size=8,
)


def events(jobs):
    """Starts and ends as they follow each other; each job has its start, how long it runs, limit and GPUs."""
    found = []
    for number, (start, ran, _, _) in enumerate(jobs):
        found += [(start, 0, number), (start + ran, 1, number)]
    return sorted(found)


def history(jobs, half_life, limits):
    tree = fair_tree(half_life=half_life)
    for moment, is_end, number in events(jobs):
        _, ran, times, gpus = jobs[number]
        if is_end:
            tree.end(str(number), moment)
        else:
            tree.start(str(number), "", "anna", {"gpu": gpus}, moment, ran * times if limits else inf)
    return tree


@given(JOBS, HALF_LIVES)
def test_a_correction_leaves_exactly_what_the_real_time_leaves(jobs, half_life):
    corrected, as_it_ran = (history(jobs, half_life, limits) for limits in (True, False))
    assert corrected.to_dict() == as_it_ran.to_dict()
    only_charged = fair_tree(half_life=half_life)
    for moment, is_end, number in events(jobs):
        start, _, _, gpus = jobs[number]
        if is_end:
            only_charged.charge("", "anna", gpus / 100, start, moment)
    assert corrected.to_dict() == only_charged.to_dict()


@given(SPANS, st.floats(1.0, 4.0), HALF_LIVES, st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5))
def test_while_it_runs_a_job_counts_for_no_less_than_its_use_and_no_more_than_its_limit(
    ran, times, half_life, parts
):
    bounded, unbounded = (fair_tree(half_life=half_life) for _ in range(2))
    limit = ran * times
    bounded.start("j", "", "anna", {"gpu": 100}, 0.0, limit)
    unbounded.start("j", "", "anna", {"gpu": 100}, 0.0)
    before = inf
    for part in sorted(parts):
        charged = bounded.usage("", "anna", ran * part)
        assert unbounded.usage("", "anna", ran * part) * (1 - 1e-12) <= charged <= limit * (1 + 1e-12)
        assert charged <= before * (1 + 1e-12)
        before = charged


@given(SPANS, HALF_LIVES)
def test_at_its_limit_nothing_is_left_to_correct(span, half_life):
    tree = fair_tree(half_life=half_life)
    tree.start("j", "", "anna", {"gpu": 50}, 0.0, span)
    before = tree.usage("", "anna", span)
    tree.end("j", span)
    assert isclose(tree.usage("", "anna", span), before, rel_tol=1e-9)


# -- ranking


def test_without_accounts_who_used_less_comes_first():
    tree = used(fair_tree(), default_anna=3.0, default_bert=1.0, default_carl=2.0)
    assert ranks(tree) == {"default/bert": 1, "default/carl": 2, "default/anna": 3}
    found = tree.factors(NOW)
    assert found == {(DEFAULT, "bert"): 1.0, (DEFAULT, "carl"): 2 / 3, (DEFAULT, "anna"): 1 / 3}


def test_nobody_is_nowhere():
    assert fair_tree().factors(NOW) == {}
    assert [row.account for row in fair_tree().standings(NOW)] == [DEFAULT]


def test_who_asks_for_the_first_time_comes_first():
    tree = used(fair_tree(), default_anna=3.0)
    assert tree.factors(NOW, [("", "zoe"), ("", "anna")]) == {(DEFAULT, "zoe"): 1.0, (DEFAULT, "anna"): 0.5}


def test_who_asks_for_an_account_that_is_gone_comes_last():
    tree = used(fair_tree(account("physics", anna=1.0)), physics_anna=9.0, alchemy_zoe=1.0)
    assert tree.factors(NOW, [("alchemy", "zoe")]) == {("physics", "anna"): 1.0, ("alchemy", "zoe"): 0.5}
    assert tree.factors(NOW) == {("physics", "anna"): 1.0}


def test_use_counts_by_shares():
    tree = used(fair_tree(account("physics", anna=4.0, bert=1.0)), physics_anna=3.0, physics_bert=1.0)
    assert ranks(tree) == {"physics/anna": 1, "physics/bert": 2}


def test_everybody_of_a_better_account_comes_before_everybody_of_a_worse_one():
    tree = fair_tree(account("a", anna=1.0, alma=1.0), account("b", bert=1.0, berta=1.0))
    used(tree, a_anna=5.0, b_bert=6.0, b_berta=0.0)
    assert ranks(tree) == {"a/alma": 1, "a/anna": 2, "b/berta": 3, "b/bert": 4}


def test_accounts_are_compared_level_by_level():
    tree = fair_tree(
        account("science"),
        account("physics", "science", anna=1.0),
        account("optics", "physics", olga=1.0),
        account("trade", carl=1.0),
    )
    used(tree, physics_anna=1.0, optics_olga=2.0, trade_carl=4.0)
    assert ranks(tree) == {"physics/anna": 1, "optics/olga": 2, "trade/carl": 3}


def test_a_user_of_two_accounts_stands_in_each_of_them():
    tree = used(fair_tree(account("a", anna=1.0), account("b", anna=1.0)), a_anna=5.0)
    assert ranks(tree) == {"b/anna": 1, "a/anna": 2}


def test_equal_users_share_a_rank_and_the_next_one_counts_them():
    tree = fair_tree(account("a", anna=1.0, bert=1.0, carl=1.0, dora=1.0))
    used(tree, a_anna=2.0, a_bert=1.0, a_carl=1.0, a_dora=0.5)
    assert ranks(tree) == {"a/dora": 1, "a/bert": 2, "a/carl": 2, "a/anna": 4}


def test_the_users_of_equal_accounts_are_compared_with_each_other():
    tree = fair_tree(account("a", anna=1.0, alma=1.0), account("b", bert=1.0, berta=1.0))
    used(tree, a_anna=3.0, a_alma=1.0, b_bert=2.0, b_berta=2.0)
    assert ranks(tree) == {"a/alma": 1, "b/bert": 2, "b/berta": 2, "a/anna": 4}


def test_equal_accounts_may_have_accounts_and_users_below_them():
    tree = fair_tree(
        account("a"), account("low", "a", lara=1.0, lisa=1.0), account("b", bert=1.0), account("c", carl=1.0)
    )
    used(tree, low_lara=1.0, b_bert=1.0, c_carl=2.0)
    assert ranks(tree) == {"b/bert": 1, "low/lisa": 1, "low/lara": 3, "c/carl": 4}


def test_a_user_who_is_equal_to_an_account_shares_the_rank_of_its_first_user():
    tree = fair_tree(account("a", anna=1.0), account("low", "a", lara=1.0, lisa=1.0))
    used(tree, a_anna=2.0, low_lara=1.5, low_lisa=0.5)
    assert ranks(tree) == {"a/anna": 1, "low/lisa": 1, "low/lara": 3}


def test_what_runs_counts_in_the_ranking_at_once():
    tree = fair_tree(account("a", anna=1.0, bert=1.0))
    tree.start("j", "a", "anna", {"gpu": 1}, NOW, limit=60.0)
    assert ranks(tree) == {"a/bert": 1, "a/anna": 2}


def test_the_standings_show_how_the_ranking_came_about():
    tree = fair_tree(account("a", shares=3.0, anna=1.0), account("b", shares=1.0, bert=1.0))
    used(tree, a_anna=4.0, b_bert=4.0)
    a, anna, b, bert, default = tree.standings(NOW)[1:] + tree.standings(NOW)[:1]
    assert (default.account, default.usage, default.level, default.rank) == (DEFAULT, 0.0, inf, None)
    assert (a.account, a.user, a.depth, a.shares, a.share) == ("a", "", 0, 3.0, 0.6)
    assert (a.used, a.level, a.rank, a.factor) == (0.5, nearly(1.2), 1, 1.0)
    assert (anna.account, anna.user, anna.parent, anna.depth) == ("a", "anna", "a", 1)
    assert (anna.share, anna.used, anna.level, anna.rank, anna.factor) == (1.0, 1.0, 1.0, 1, 1.0)
    assert (b.used, b.level, b.rank, b.factor) == (0.5, nearly(0.4), 2, 0.5)
    assert bert.rank == 2
    assert a.usage == anna.usage == pytest.approx(4.0, rel=1e-5)


def test_a_deep_tree_is_ranked_too():
    depth = 3000
    chain = [account(f"a{n}", f"a{n - 1}" if n else ROOT) for n in range(depth)]
    tree = fair_tree(*chain, account("end", f"a{depth - 1}", anna=1.0))
    assert tree.factors(NOW) == {("end", "anna"): 1.0}


# -- for all trees


@st.composite
def used_trees(draw):
    """A tree of accounts with users, and what each has used; equal shares and uses are likely."""
    accounts = []
    for number in range(draw(st.integers(0, 6))):
        parent = draw(st.sampled_from([ROOT, *(f"a{n}" for n in range(number))]))
        shares = st.sampled_from([1.0, 2.0, 3.0, 0.5])
        users = draw(st.dictionaries(st.sampled_from("pqrs"), shares, max_size=4))
        accounts.append(
            Account(name=f"a{number}", parent=parent, shares=draw(shares), users=users),
        )
    tree = FairTree(AccountTree(accounts), CLUSTER)
    amounts = st.sampled_from([0.0, 1.0, 2.0, 4.0]) | st.floats(0.1, 1e4)
    for name in tree.accounts.order:
        for user in [*tree.accounts.members(name), *draw(st.sets(st.sampled_from("pqxy"), max_size=2))]:
            used(tree, **{f"{name}_{user}": draw(amounts)})
    return tree


def ways(tree):
    """For each user the nodes from the top down to the user."""
    rows = tree.standings(NOW)
    accounts = {row.account: row for row in rows if not row.user}
    users = [row for row in rows if row.user]
    return [(*(accounts[name] for name in tree.accounts.path(row.account)[::-1]), row) for row in users]


@settings(max_examples=50)
@given(used_trees())
def test_where_two_ways_part_the_higher_level_wins(tree):
    """What the ranking is for: at the first difference, more share by use comes first with all below it."""
    all_ways = ways(tree)
    for one in all_ways:
        for other in all_ways:
            parted = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
            if parted and parted[0].level > parted[1].level:
                assert one[-1].rank < other[-1].rank
                assert one[-1].factor > other[-1].factor


@settings(max_examples=50)
@given(used_trees())
def test_less_use_by_share_is_never_ranked_below_a_sibling(tree):
    rows = [row for row in tree.standings(NOW) if row.rank]
    for one in rows:
        for other in rows:
            siblings = one.parent == other.parent and bool(one.user) == bool(other.user)
            if siblings and one.usage * other.shares < other.usage * one.shares * (1 - 1e-9):
                assert one.rank < other.rank


@settings(max_examples=50)
@given(used_trees())
def test_a_rank_counts_those_who_are_better_and_factors_follow_it(tree):
    users = [row for row in tree.standings(NOW) if row.user]
    factors = tree.factors(NOW)
    assert len(factors) == len(users)
    for row in users:
        assert row.rank == 1 + sum(other.rank < row.rank for other in users)
        assert factors[row.account, row.user] == row.factor == (len(users) - row.rank + 1) / len(users)
        assert 0.0 < row.factor <= 1.0


@settings(max_examples=50)
@given(used_trees())
def test_the_parts_of_siblings_add_up(tree):
    rows = tree.standings(NOW)
    for parent in {row.parent for row in rows}:
        siblings = [row for row in rows if row.parent == parent]
        assert sum(row.share for row in siblings) == nearly(1.0)
        assert sum(row.used for row in siblings) == nearly(1.0) or not any(row.usage for row in siblings)


@settings(max_examples=50)
@given(used_trees(), st.floats(0.0, 5 * WEEK))
def test_time_alone_changes_no_order(tree, later):
    """All decay alike; only a rounding may part those who were equal."""
    ranks_then = {(row.account, row.user): row for row in tree.standings(NOW) if row.user}
    for (name, user), factor in tree.factors(NOW + later).items():
        assert factor == ranks_then[name, user].factor or _has_near_equals(tree)


def _has_near_equals(tree):
    rows = tree.standings(NOW)
    levels: dict[str, list[float]] = {}
    for row in rows:
        levels.setdefault(row.parent, []).append(row.level)
    for name in tree.accounts.order:
        levels.setdefault("merged", []).extend(levels.get(name, []))
    for some in levels.values():
        finite = sorted(level for level in some if level < inf)
        if any(b - a <= 1e-9 * b for a, b in pairwise(finite)):
            return True
    return False


# -- as plain data


@settings(max_examples=50)
@given(used_trees(), HALF_LIVES)
def test_a_tree_comes_back_from_its_plain_data(tree, half_life):
    tree.change_half_life(half_life, NOW)
    tree.start("bounded", "", "p", {"gpu": 3}, NOW, limit=600.0)
    tree.start("unbounded", "a1", "q", {"core": 7}, NOW)
    state = json.loads(json.dumps(tree.to_dict(), allow_nan=False))
    back = FairTree.from_dict(state, tree.accounts, tree.totals)
    assert back.to_dict() == tree.to_dict()
    for each in (tree, back):
        each.end("bounded", NOW + 50.0)
    assert back.factors(NOW + DAY) == tree.factors(NOW + DAY)
    assert back.standings(NOW + DAY) == tree.standings(NOW + DAY)


def test_a_tree_can_be_built_again_from_slices():
    running, rebuilt = fair_tree(), fair_tree()
    running.start("j", "", "anna", {"gpu": 10}, NOW, limit=600.0)
    running.end("j", NOW + 300.0)
    for number in range(5):
        rebuilt.charge("", "anna", 0.1, NOW + 60.0 * number, NOW + 60.0 * (number + 1))
    assert rebuilt.usage("", "anna", NOW + DAY) == nearly(running.usage("", "anna", NOW + DAY))


# -- convergence


def compete(tree, members, slots, length, jobs):
    """Everybody always has a job that waits; the best by factor starts where a slot is free.

    Says what part of the second half each had. Jobs ask for three times the time that they use.
    """
    free_at = [(0.0, slot) for slot in range(slots)]
    had: Counter[tuple[str, str]] = Counter()
    for number in range(jobs):
        now, slot = heapq.heappop(free_at)
        if number >= slots:
            tree.end(f"{slot}", now)
        factors = tree.factors(now, members)
        first = max(members, key=lambda member: (factors[member], -members.index(member)))
        tree.start(f"{slot}", *first, {"core": CLUSTER["core"] / slots}, now, limit=3 * length(number))
        heapq.heappush(free_at, (now + length(number), slot))
        if number >= jobs // 2:
            had[first] += length(number)
    return {member: had[member] / had.total() for member in members}


def test_two_accounts_with_shares_of_two_to_one_have_two_to_one_of_the_machine():
    tree = fair_tree(account("a", shares=2.0, anna=1.0), account("b", shares=1.0, bert=1.0), half_life=DAY)
    had = compete(tree, [("a", "anna"), ("b", "bert")], slots=4, length=lambda _: 600.0, jobs=2000)
    assert had["a", "anna"] == pytest.approx(2 / 3, abs=0.03)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.integers(1, 4))
def test_shares_are_what_those_who_compete_end_up_with(shares, slots):
    accounts = [account(f"a{n}", shares=float(share), u=1.0) for n, share in enumerate(shares)]
    tree = fair_tree(*accounts, half_life=100 * 600.0)
    members = [(each.name, "u") for each in accounts]
    had = compete(tree, members, slots, length=lambda number: 300.0 + 100.0 * (number % 7), jobs=600)
    for member, share in zip(members, shares, strict=True):
        assert had[member] == pytest.approx(share / sum(shares), abs=0.06)


def test_shares_hold_on_every_level():
    tree = fair_tree(
        account("a", shares=3.0),
        account("a1", "a", shares=2.0, anna=1.0, alma=3.0),
        account("a2", "a", shares=1.0, arno=1.0),
        account("b", shares=1.0, bert=1.0),
        half_life=DAY,
    )
    members = [("a1", "anna"), ("a1", "alma"), ("a2", "arno"), ("b", "bert")]
    had = compete(tree, members, slots=3, length=lambda _: 600.0, jobs=2000)
    expected = [3 / 4 * 2 / 3 * 1 / 4, 3 / 4 * 2 / 3 * 3 / 4, 3 / 4 * 1 / 3, 1 / 4]
    assert [had[member] for member in members] == [pytest.approx(part, abs=0.03) for part in expected]


def test_who_was_away_catches_up_and_does_not_take_everything_for_ever():
    tree = fair_tree(account("a", anna=1.0), account("b", bert=1.0), half_life=DAY)
    compete(tree, [("a", "anna")], slots=1, length=lambda _: 600.0, jobs=500)
    tree.end("0", 500 * 600.0)
    later = FairTree.from_dict(tree.to_dict(), tree.accounts, tree.totals)
    had = compete(later, [("a", "anna"), ("b", "bert")], slots=1, length=lambda _: 600.0, jobs=2000)
    assert had["a", "anna"] == pytest.approx(0.5, abs=0.05)
