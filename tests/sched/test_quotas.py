"""Quotas: who may hold, have waiting and spend how much, and what is said where it is too much."""

from collections import defaultdict
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.sched.accounts import DEFAULT, Account, AccountTree
from jobman.sched.queues import EVERYTHING, Limits, Queue
from jobman.sched.quotas import JOB, Quotas, Row
from jobman.sched.requests import Request
from jobman.spec.shapes import Part

HOUR = 3600.0
GI = 2**30


def request(id="r", user="anna", account="physics", shapes=(), **rest):
    alternatives = tuple((shape,) for shape in shapes)
    return Request(id=id, alternatives=alternatives, user=user, account=account, **rest)


def quotas(limits=None, each_user=None, each_account=None, accounts=()):
    """One queue, `batch`, with its limits, and accounts."""
    none = Limits()
    queue = Queue(
        name="batch",
        limits=limits or none,
        each_user=each_user or none,
        each_account=each_account or none,
    )
    return Quotas([queue], AccountTree(accounts))


def account(name="physics", parent="", users=("anna", "bert"), **rest):
    return Account(name=name, parent=parent, users=dict.fromkeys(users, 1.0), **rest)


def physics(**limits):
    return quotas(accounts=[account(limits=Limits(**limits))])


def fill(quota, count, **rest):
    """Start so many requests, each a job of one core."""
    for number in range(count):
        quota.start(request(f"r{number}", **rest), {"core": 1})
    return quota


def words(blocked):
    assert blocked is not None
    return blocked.words


# -- without limits


def test_without_limits_everything_may_start_and_wait():
    quota = Quotas()
    anything = request(account="", limit=inf)
    assert quota.may_start(anything, {"core": 10**6}, charge=inf) is None
    assert quota.may_wait(anything) is None
    assert quota.bounds(anything) == []


def test_without_limits_it_is_counted_all_the_same():
    quota = Quotas()
    quota.start(request(account=""), {"core": 2, "memory": GI}, charge=3.0)
    tally = quota.tally(Row("account", account=DEFAULT))
    assert (tally.jobs, tally.amounts, tally.committed) == (1, {"core": 2, "memory": GI}, 3.0)


# -- running jobs


def test_an_account_may_have_so_many_running_jobs():
    quota = fill(physics(jobs=10), 10)
    blocked = quota.may_start(request("more"), {"core": 1})
    assert words(blocked) == "account physics has 10 running jobs, which is all it may have"
    assert (blocked.what, blocked.never) == (JOB, False)
    assert blocked.row == Row("account", account="physics")
    quota.end("r3")
    assert quota.may_start(request("more"), {"core": 1}) is None


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        (quotas(limits=Limits(jobs=1)), "queue batch has 1 running job, which is all it may have"),
        (
            quotas(each_user=Limits(jobs=1)),
            "user anna has 1 running job in batch, which is all they may have",
        ),
        (
            quotas(each_account=Limits(jobs=1)),
            "account physics has 1 running job in batch, which is all it may have",
        ),
        (
            quotas(accounts=[account(each_user=Limits(jobs=1))]),
            "user anna has 1 running job in account physics, which is all they may have",
        ),
    ],
)
def test_it_is_said_whose_limit_it_is(quota, said):
    assert words(fill(quota, 1).may_start(request("more"), {})) == said


def test_others_are_not_held_back_by_a_users_or_an_accounts_limit():
    quota = fill(quotas(each_user=Limits(jobs=1), each_account=Limits(jobs=2)), 1)
    assert quota.may_start(request("b", user="bert"), {}) is None
    quota.start(request("b", user="bert"), {})
    assert words(quota.may_start(request("c", user="carl"), {})).startswith("account physics has 2")
    assert quota.may_start(request("c", user="carl", account="trade"), {}) is None


def test_requests_of_one_job_are_one_running_job_until_the_last_ends():
    quota = physics(jobs=1)
    for id in ("a", "b"):
        assert quota.may_start(request(id, job="j"), {}) is None
        quota.start(request(id, job="j"), {})
    other = request("c", job="k")
    quota.end("a")
    assert words(quota.may_start(other, {})) == "account physics has 1 running job, which is all it may have"
    quota.end("b")
    assert quota.may_start(other, {}) is None


def test_who_may_have_no_jobs_never_starts_one():
    blocked = physics(jobs=0).may_start(request(), {})
    assert blocked.never
    assert words(blocked) == "account physics may have no running jobs"


# -- resources


def test_a_user_may_hold_so_much_in_a_queue():
    quota = quotas(each_user=Limits(amounts={"core": 64.0}))
    quota.start(request("a"), {"core": 60})
    blocked = quota.may_start(request("b"), {"core": 8})
    assert words(blocked) == "user anna may hold 64 cores in batch and holds 60; this needs 8"
    assert (blocked.what, blocked.never) == ("core", False)
    assert quota.may_start(request("b"), {"core": 4}) is None


def test_what_is_larger_than_a_limit_never_starts():
    blocked = physics(amounts={"core": 64.0}).may_start(request(), {"core": 128})
    assert words(blocked) == "asks for 128 cores; account physics may hold 64"
    assert blocked.never


def test_sizes_are_said_with_their_units():
    quota = physics(amounts={"memory": 64.0 * GI})
    assert words(quota.may_start(request(), {"memory": 128 * GI})) == (
        "asks for 128Gi memory; account physics may hold 64Gi"
    )
    quota.start(request("a"), {"memory": 60 * GI})
    assert words(quota.may_start(request("b"), {"memory": 8 * GI})) == (
        "account physics may hold 64Gi memory and holds 60Gi; this needs 8Gi"
    )


def test_nodes_are_counted_like_any_kind():
    quota = physics(amounts={"node": 2.0})
    quota.start(request("a"), {"node": 2, "core": 8})
    assert words(quota.may_start(request("b"), {"node": 1})) == (
        "account physics may hold 2 nodes and holds 2; this needs 1"
    )


def test_what_needs_none_of_a_kind_is_not_held_back_by_its_limit():
    quota = physics(amounts={"gpu": 1.0})
    quota.start(request("a"), {"gpu": 1})
    assert quota.may_start(request("b"), {"core": 8}) is None


def test_what_can_never_be_is_said_before_what_cannot_be_now():
    quota = quotas(limits=Limits(jobs=1), accounts=[account(limits=Limits(amounts={"core": 4.0}))])
    fill(quota, 1)
    blocked = quota.may_start(request("b"), {"core": 8})
    assert blocked.never
    assert words(blocked) == "asks for 8 cores; account physics may hold 4"


def test_parts_of_cores_add_up_without_rounding():
    quota = physics(amounts={"core": 0.3})
    for id in "abc":
        assert quota.may_start(request(id), {"core": 0.1}) is None
        quota.start(request(id), {"core": 0.1})
    assert quota.may_start(request("d"), {"core": 0.1}) is not None
    for id in "abc":
        quota.end(id)
    assert quota.tallies() == []


# -- accounts above


def test_a_limit_of_an_account_is_for_everything_below_it():
    quota = quotas(
        accounts=[
            account("science", users=(), limits=Limits(amounts={"core": 10.0})),
            account("physics", "science"),
            account("biology", "science", users=("carl",)),
        ]
    )
    quota.start(request("a"), {"core": 6})
    blocked = quota.may_start(request("b", user="carl", account="biology"), {"core": 6})
    assert words(blocked) == "account science may hold 10 cores and holds 6; this needs 6"
    assert quota.may_start(request("b", user="zoe", account=DEFAULT), {"core": 6}) is None


def test_a_limit_of_each_user_is_for_all_that_a_user_has_below_the_account():
    quota = quotas(
        accounts=[
            account("science", users=(), each_user=Limits(jobs=1)),
            account("physics", "science"),
            account("optics", "science"),
        ]
    )
    fill(quota, 1)
    assert words(quota.may_start(request("b", account="optics"), {})) == (
        "user anna has 1 running job in account science, which is all they may have"
    )
    assert quota.may_start(request("b", user="bert", account="optics"), {}) is None


def test_who_names_no_account_counts_for_the_own_one():
    quota = physics(jobs=1)
    quota.start(request("a", account=""), {})
    assert quota.may_start(request("b"), {}) is not None


def test_who_names_no_queue_counts_for_the_one_that_is_for_everything():
    limits = Limits(jobs=1)
    quota = Quotas([Queue(name="fast"), Queue(name=EVERYTHING.name, limits=limits)])
    quota.start(request("a"), {})
    assert words(quota.may_start(request("b", queue="batch"), {})).startswith("queue batch has 1 running job")
    assert quota.may_start(request("b", queue="fast"), {}) is None


@pytest.mark.parametrize(("default", "name"), [("second", "second"), ("batch", "first")])
def test_a_site_may_have_another_queue_for_everything(default, name):
    limits = Limits(jobs=1)
    queues = [Queue(name="first", limits=limits), Queue(name="second", limits=limits)]
    quota = Quotas(queues, default_queue=default)
    quota.start(request("a"), {})
    assert words(quota.may_start(request("b"), {})).startswith(f"queue {name} has 1 running job")


def test_queues_and_accounts_that_are_gone_have_no_limits():
    quota = physics(jobs=1)
    gone = request("a", account="alchemy", queue="athanor")
    quota.start(gone, {"core": 1})
    assert quota.may_start(request("b", account="alchemy", queue="athanor"), {}) is None
    quota.end("a")
    assert quota.tallies() == []


# -- waiting


def test_so_many_jobs_may_wait():
    quota = quotas(each_user=Limits(waiting=2))
    for id in ("a", "b"):
        assert quota.may_wait(request(id)) is None
        quota.wait(request(id))
    blocked = quota.may_wait(request("c"))
    assert words(blocked) == "user anna has 2 waiting jobs in batch, which is all they may have"
    assert (blocked.what, blocked.never) == ("waiting", False)
    quota.start(request("a"), {})
    assert quota.may_wait(request("c")) is None


def test_requests_of_one_job_wait_as_one():
    quota = physics(waiting=1)
    quota.wait(request("a", job="j"))
    assert quota.may_wait(request("b", job="j")) is None
    quota.wait(request("b", job="j"))
    quota.leave("a")
    assert quota.may_wait(request("c", job="k")) is not None
    quota.leave("b")
    assert quota.may_wait(request("c", job="k")) is None


def test_leaving_twice_changes_nothing():
    quota = physics(waiting=1)
    quota.wait(request("a"))
    quota.leave("a")
    quota.leave("a")
    assert quota.tallies() == []


def test_where_nothing_may_wait_it_is_said_so():
    blocked = physics(waiting=0).may_wait(request())
    assert (words(blocked), blocked.never) == ("account physics may have no waiting jobs", True)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (25 * HOUR, "asks for 1d1h; the most for queue batch is 1d"),
        (inf, "sets no time limit; the most for queue batch is 1d"),
    ],
)
def test_what_asks_for_too_much_time_is_not_taken_in(limit, said):
    blocked = quotas(limits=Limits(longest=24 * HOUR)).may_wait(request(limit=limit))
    assert (words(blocked), blocked.what, blocked.never) == (said, "time", True)


def test_grace_does_not_count_for_the_longest_time():
    quota = quotas(each_user=Limits(longest=24 * HOUR))
    with_grace = request(limit=24 * HOUR + 30.0)
    assert quota.may_wait(with_grace, seconds=24 * HOUR) is None
    assert words(quota.may_wait(with_grace)) == "asks for 1d30s; the most for user anna in batch is 1d"


def test_what_could_never_start_is_not_taken_in():
    quota = physics(amounts={"core": 64.0, "node": 4.0})
    assert words(quota.may_wait(request(shapes=[Part(slots=16, each={"core": 8})]))) == (
        "asks for 128 cores; account physics may hold 64"
    )
    assert words(quota.may_wait(request(shapes=[Part(nodes=8)]))) == (
        "asks for 8 nodes; account physics may hold 4"
    )


def test_what_has_an_alternative_that_fits_is_taken_in():
    quota = physics(amounts={"core": 64.0})
    both = [Part(slots=16, each={"core": 8}), Part(slots=8, each={"core": 8})]
    assert quota.may_wait(request(shapes=both)) is None


# -- budgets


def test_what_is_spent_and_what_may_still_be_spent_count_for_a_budget():
    quota = physics(budget=1000.0)
    quota.spend("batch", "physics", "anna", 900.0)
    quota.start(request("a"), {}, charge=50.0)
    blocked = quota.may_start(request("b"), {}, charge=60.5)
    assert words(blocked) == (
        "account physics may spend 1000 and has spent 900, with 50 set aside for what runs; "
        "this may cost 60.5"
    )
    assert (blocked.what, blocked.never) == ("budget", False)
    assert quota.may_start(request("b"), {}, charge=50.0) is None
    assert quota.may_start(request("b"), {}) is None


def test_what_costs_more_than_the_budget_never_starts():
    quota = physics(budget=100.0)
    blocked = quota.may_start(request(), {}, charge=101.0)
    assert (words(blocked), blocked.never) == ("may cost 101; account physics may spend 100", True)
    assert words(quota.may_wait(request(), charge=101.0)) == words(blocked)
    assert words(quota.may_start(request(), {}, charge=inf)) == (
        "sets no time limit, so its cost has no bound; account physics may spend 100"
    )


def test_billing_takes_from_what_was_set_aside_and_the_end_gives_the_rest_back():
    quota = physics(budget=100.0)
    row = Row("account", account="physics")
    quota.start(request("a"), {}, charge=60.0)
    quota.bill("a", 20.0)
    assert (quota.tally(row).charged, quota.tally(row).committed) == (20.0, 40.0)
    quota.end("a")
    assert (quota.tally(row).charged, quota.tally(row).committed) == (20.0, 0.0)
    assert quota.may_start(request("b"), {}, charge=80.0) is None


def test_an_extension_sets_more_aside():
    quota = physics(budget=100.0)
    quota.start(request("a"), {}, charge=60.0)
    quota.extend("a", 30.0)
    assert quota.may_start(request("b"), {}, charge=20.0) is not None
    quota.end("a")
    assert quota.may_start(request("b"), {}, charge=100.0) is None


def test_a_refund_can_be_spent_again():
    quota = physics(budget=100.0)
    quota.spend("", "physics", "anna", 100.0)
    assert quota.may_start(request(), {}, charge=1.0) is not None
    quota.spend("", "physics", "anna", -1.0)
    assert quota.may_start(request(), {}, charge=1.0) is None


def test_what_runs_goes_on_as_long_as_its_own_charge_lasts():
    quota = physics(budget=100.0)
    quota.start(request("bounded"), {}, charge=60.0)
    quota.start(request("unbounded"), {}, charge=inf)
    quota.bill("unbounded", 50.0)
    assert quota.exhausted("unbounded") is None
    quota.bill("bounded", 50.0)
    assert words(quota.exhausted("unbounded")) == "account physics may spend 100 and has spent 100"
    assert quota.exhausted("bounded") is None
    quota.bill("bounded", 10.0)
    assert words(quota.exhausted("bounded")) == "account physics may spend 100 and has spent 110"


def test_a_budget_without_end_is_none():
    quota = physics(budget=inf)
    quota.start(request("a"), {}, charge=1e12)
    assert quota.may_start(request("b"), {}, charge=1e12) is None
    assert quota.may_start(request("b"), {}, charge=inf) is None
    assert quota.exhausted("a") is None


# -- other limits


def test_other_limits_count_what_runs_waits_and_was_spent_before():
    quota = physics(jobs=5, budget=100.0)
    fill(quota, 3)
    quota.wait(request("w"))
    quota.spend("", "", "anna", 40.0)
    accounts = AccountTree(
        [account("science", limits=Limits(jobs=2, budget=50.0)), account("physics", "science")]
    )
    quota.change([EVERYTHING], accounts)
    assert words(quota.may_start(request("more"), {})) == (
        "account science has 3 running jobs and may have 2"
    )
    tally = quota.tally(Row("account", account="science"))
    assert (tally.jobs, tally.waiting, tally.charged) == (3, 1, 40.0)


def test_what_runs_stays_with_the_account_it_was_started_for():
    quota = quotas(accounts=[account("physics")])
    quota.start(request("a", account=""), {"core": 1})
    quota.change([EVERYTHING], AccountTree([account("optics"), account("physics")]))
    assert quota.tally(Row("account", account="physics")).jobs == 1
    assert quota.tally(Row("account", account="optics")).jobs == 0
    quota.end("a")
    assert quota.tallies() == []


def test_nothing_is_started_twice_or_ended_when_it_does_not_run():
    quota = Quotas()
    quota.wait(request("w"))
    quota.start(request("a"), {})
    with pytest.raises(ValueError, match="w waits already"):
        quota.wait(request("w"))
    with pytest.raises(ValueError, match="a runs already"):
        quota.start(request("a"), {})
    with pytest.raises(ValueError, match="x does not run"):
        quota.end("x")


# -- for planning ahead


def test_bounds_are_the_rows_with_what_may_be_held_there():
    quota = quotas(
        limits=Limits(jobs=100, waiting=5),
        each_user=Limits(amounts={"core": 64.0}, jobs=3),
        each_account=Limits(budget=5.0),
        accounts=[
            account("science", users=(), limits=Limits(amounts={"gpu": 8.0})),
            account("physics", "science"),
        ],
    )
    assert quota.bounds(request()) == [
        (Row("queue", queue="batch"), {JOB: 100}),
        (Row("queue user", queue="batch", user="anna"), {"core": 64.0, JOB: 3}),
        (Row("account", account="science"), {"gpu": 8.0}),
    ]


# -- for all histories

KINDS = ("core", "gpu", "node")
AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "core": st.sampled_from([0.1, 0.25, 1, 2, 5]),
        "gpu": st.integers(1, 3),
        "node": st.integers(1, 2),
    },
)
HELD = st.dictionaries(st.sampled_from(KINDS), st.sampled_from([2.0, 4.0, 6.3]), min_size=1, max_size=2)
BUDGETS = st.floats(1.0, 30.0)
MAYBE = st.one_of(
    # Mostly one limit at a time: of many, the strictest would hide the others.
    st.just(Limits()),
    st.just(Limits()),
    st.builds(Limits, jobs=st.integers(1, 4)),
    st.builds(Limits, amounts=HELD),
    st.builds(Limits, budget=BUDGETS),
    st.builds(Limits, waiting=st.integers(0, 4)),
    st.builds(Limits, jobs=st.integers(0, 4), amounts=HELD, budget=BUDGETS, waiting=st.integers(0, 4)),
)


@st.composite
def sites(draw):
    queues = [
        Queue(name=name, limits=draw(MAYBE), each_user=draw(MAYBE), each_account=draw(MAYBE))
        for name in ("batch", "fast")
    ]
    accounts = [
        Account(name=name, parent=parent, users=users, limits=draw(MAYBE), each_user=draw(MAYBE))
        for name, parent, users in [
            ("science", "", {}),
            ("physics", "science", {"anna": 1.0}),
            ("biology", "science", {"anna": 1.0, "bert": 1.0}),
        ]
    ]
    return queues, AccountTree(accounts)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "start", "start", "end", "bill"]),
        st.sampled_from(["", "batch", "fast"]),
        st.sampled_from(["", "physics", "biology", DEFAULT]),
        st.sampled_from(["anna", "bert", "carl"]),
        st.integers(0, 5),
        AMOUNTS,
        st.floats(0.0, 10.0),
    ),
    min_size=10,
    max_size=30,
)


class Book:
    """The same, kept as a list of what runs and added up anew each time."""

    def __init__(self, queues, accounts):
        self.queues = {queue.name: queue for queue in queues}
        self.accounts = accounts
        self.running = {}
        self.spent = []

    def rows(self, one):
        """Each row a request counts for, with its limits."""
        queue = self.queues[one.queue or "batch"]
        name = one.account or self.accounts.default_of(one.user)
        yield ("queue", queue.name), queue.limits
        yield ("queue user", queue.name, one.user), queue.each_user
        yield ("queue account", queue.name, name), queue.each_account
        for above in self.accounts.path(name):
            yield ("account", above), self.accounts[above].limits
            yield ("account user", above, one.user), self.accounts[above].each_user

    def excess(self):
        """The limits that are broken by what runs and was spent."""
        jobs, limits = defaultdict(set), {}
        held: defaultdict[tuple[object, ...], float] = defaultdict(float)
        money: defaultdict[tuple[object, ...], float] = defaultdict(float)
        for one, amounts, rest in self.running.values():
            for row, its in self.rows(one):
                limits[row] = its
                jobs[row].add(one.job or one.id)
                money[row] += rest
                for kind, amount in amounts.items():
                    held[row, kind] += amount
        for one, units in self.spent:
            for row, its in self.rows(one):
                limits[row] = its
                money[row] += units
        found = []
        for row, its in limits.items():
            found += [(row, JOB)] if its.jobs is not None and len(jobs[row]) > its.jobs else []
            found += [(row, kind) for kind, most in its.amounts.items() if held[row, kind] > most + 1e-6]
            found += [(row, "budget")] if its.budget is not None and money[row] > its.budget + 1e-6 else []
        return found


def play(site, steps):
    """Follow a history that asks before each start: the quotas, the book and the answer at each step."""
    queues, accounts = site
    quota, book = Quotas(queues, accounts), Book(queues, accounts)
    for number, (act, queue, account_, user, pick, amounts, charge) in enumerate(steps):
        running = sorted(book.running)
        blocked = None
        if act == "start":
            one = request(f"r{number:03}", user, account_, queue=queue, job=f"j{pick}" if pick else "")
            blocked = quota.may_start(one, amounts, charge), one, amounts, charge
            if blocked[0] is None:
                quota.start(one, amounts, charge)
                book.running[one.id] = (one, amounts, charge)
        elif running:
            id = running[pick % len(running)]
            one, held, rest = book.running[id]
            if act == "end":
                quota.end(id)
                del book.running[id]
            else:
                units = min(charge, rest)
                quota.bill(id, units)
                book.running[id] = (one, held, rest - units)
                book.spent.append((one, units))
        yield quota, book, blocked


@given(sites(), STEPS)
def test_no_limit_is_exceeded_where_the_answer_is_obeyed(site, steps):
    for _, book, _ in play(site, steps):
        assert book.excess() == []


@given(sites(), STEPS)
def test_what_is_refused_would_exceed_the_limit_that_is_named(site, steps):
    for _, book, asked in play(site, steps):
        if asked is None or asked[0] is None:
            continue
        blocked, one, amounts, charge = asked
        book.running[one.id] = (one, amounts, charge + 2e-6)
        rows = {(row[0], *row[1:], what) for row, what in book.excess()}
        del book.running[one.id]
        named = [part for part in (blocked.row.queue, blocked.row.account, blocked.row.user) if part]
        assert (blocked.row.scope, *named, blocked.what) in rows


@settings(max_examples=50)
@given(sites(), STEPS)
def test_what_can_never_start_cannot_start_where_nothing_else_runs(site, steps):
    for _, _, asked in play(site, steps):
        if asked is not None and asked[0] is not None:
            blocked, *what = asked
            alone = Quotas(*site).may_start(*what)
            assert (alone is not None and alone.never) == blocked.never


@settings(max_examples=50)
@given(sites(), STEPS)
def test_what_has_ended_leaves_only_what_it_spent(site, steps):
    *_, (quota, book, _) = play(site, steps)
    for id in list(book.running):
        quota.end(id)
    for tally in quota.tallies():
        assert (tally.jobs, tally.waiting, tally.amounts, tally.committed) == (0, 0, {}, 0.0)
    total = sum(units for _, units in book.spent)
    charged = sum(tally.charged for tally in quota.tallies() if tally.row.scope == "queue")
    assert charged == pytest.approx(total, abs=1e-6)


@settings(max_examples=50)
@given(sites(), STEPS)
def test_bounds_hold_what_the_tallies_show(site, steps):
    for quota, book, _ in play(site, steps):
        for one, _, _ in book.running.values():
            for row, bound in quota.bounds(one):
                tally = quota.tally(row)
                shown = {**tally.amounts, JOB: tally.jobs}
                assert all(shown.get(kind, 0) <= most for kind, most in bound.items())


@settings(max_examples=50)
@given(sites(), sites(), STEPS)
def test_changing_the_limits_and_back_changes_nothing(site, other, steps):
    for quota, _, _ in play(site, steps):
        before = quota.tallies()
        quota.change(*other)
        quota.change(*site)
        assert quota.tallies() == before


WAITS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "wait", "leave", "start"]),
        st.sampled_from(["", "physics", "biology"]),
        st.sampled_from(["anna", "bert"]),
        st.integers(0, 5),
    ),
    max_size=30,
)


@given(sites(), WAITS)
def test_no_more_wait_than_may_where_the_answer_is_obeyed(site, steps):
    quota = Quotas(*site)
    waiting = []
    for number, (act, account_, user, pick) in enumerate(steps):
        if act == "wait":
            one = request(f"r{number}", user, account_, job=f"j{pick}" if pick else "")
            if quota.may_wait(one) is None:
                quota.wait(one)
                waiting.append(one)
        elif waiting:
            one = waiting.pop(pick % len(waiting))
            quota.leave(one.id) if act == "leave" else quota.start(one, {})
        for tally in quota.tallies():
            assert tally.limits.waiting is None or tally.waiting <= tally.limits.waiting
        jobs = {one.job or one.id for one in waiting}
        shown = [tally.waiting for tally in quota.tallies() if tally.row.scope == "queue"]
        assert sum(shown) == len(jobs)
