"""Settings that are changed while the service runs: what counts at once, and what is told to count later."""

import pytest

from jobman.control.refusals import Refusal
from jobman.control.rereading import reread
from jobman.sched.accounts import Account
from jobman.sched.queues import Limits, Queue
from jobman.sched.scheduling import Scheduling, scheduling
from jobman.settings.accounting import Accounting
from tests.control.audit import Witness, leftovers
from tests.control.stage import EXACT, Theatre, document

SITE = EXACT + "accounts: [{name: physics, users: [ada, bob]}, {name: biology, users: [eve]}]\n"


@pytest.fixture
def theatre(sqlite_url, tmp_path):
    return Theatre(sqlite_url, tmp_path, SITE)


def charged(stage, job):
    return sum(one.units for one in stage.store.slices(job))


# -- which counts when


def later(before, after, **accounting):
    return reread(after, Accounting(**accounting), (before, Accounting())).later


def site(**values):
    return Scheduling(accounts=(Account(name="physics", **values),))


def test_accounts_users_shares_budgets_and_prices_count_at_once():
    after = site(shares=3.0, users={"ada": 1.0}, active=False, limits=Limits(budget=5.0, longest=60.0))
    found = reread(after, Accounting(price=2.0), (site(), Accounting()))
    assert (found.scheduling, found.accounting.price, found.later, found.words) == (after, 2.0, (), "")
    assert later(site(), Scheduling()) == ()
    assert later(Scheduling(), site(limits=Limits(jobs=2))) == ()


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (Scheduling(queues=(Queue(name="batch", depth=1),)), "queues"),
        (Scheduling(half_life=60.0), "scheduler.half_life"),
        (Scheduling(keep_logs=60.0), "scheduler.logs"),
        (Scheduling(default_duration=60.0), "scheduler.default_duration"),
    ],
)
def test_what_the_plan_is_made_of_counts_when_the_service_starts_again(after, told):
    found = reread(after, Accounting(), (Scheduling(), Accounting()))
    assert (found.scheduling, found.later) == (Scheduling(), (told,))
    assert told in found.words


def test_what_may_be_held_at_one_time_and_the_length_of_slices_stay():
    before, after = site(limits=Limits(jobs=2)), site(limits=Limits(jobs=3, budget=9.0))
    found = reread(after, Accounting(slice=30.0), (before, Accounting()))
    assert found.scheduling.accounts[0].limits == Limits(jobs=2, budget=9.0)
    assert found.accounting.slice == 60.0
    assert found.later == ("limits of account physics", "accounting.slice")
    assert later(before, before) == ()


def test_an_account_stays_where_it_is_in_the_tree_unless_what_was_above_it_is_gone():
    def tree(*pairs):
        return Scheduling(accounts=tuple(Account(name=name, parent=parent) for name, parent in pairs))

    science = tree(("science", ""), ("physics", "science"))
    found = reread(tree(("science", ""), ("physics", "")), Accounting(), (science, Accounting()))
    assert (found.scheduling, found.later) == (science, ("parent of account physics",))
    gone = tree(("physics", ""))
    assert reread(gone, Accounting(), (science, Accounting())).scheduling == gone
    # What stays and what is new would go round in a circle.
    before = tree(("x", ""), ("a", "x"), ("b", "a"))
    found = reread(tree(("b", ""), ("a", "b")), Accounting(), (before, Accounting()))
    assert (found.scheduling, found.later) == (before, ("accounts",))


# -- in the service


def test_a_new_price_counts_for_what_begins_from_then_on_also_after_a_restart(theatre):
    jobs = []

    async def before(stage):
        jobs.append(await stage.submit(document(1)))
        await stage.pass_time(3600)
        theatre.decree(SITE + "accounting: {price: 10}\n")
        jobs.append(await stage.submit(document(1)))
        await stage.pass_time(3600)
        old, new = (charged(stage, job) for job in jobs)
        assert (old, new) == (pytest.approx(2.0, abs=0.05), pytest.approx(10.0, abs=0.5))

    async def after(stage):
        await stage.pass_time(3600)
        for job in jobs:
            await stage.end(job)
        old, new = (charged(stage, job) for job in jobs)
        assert (old, new) == (pytest.approx(3.0, abs=0.05), pytest.approx(20.0, abs=0.5))

    theatre.play(before)
    theatre.play(after)


def test_an_account_that_is_no_longer_active_takes_nothing_in_and_its_jobs_are_stopped(theatre):
    async def scene(stage):
        runs = await stage.submit(document(1))
        other = await stage.submit(document(1), owner="eve")
        theatre.decree(SITE.replace("users: [ada, bob]", "users: [ada, bob], active: false"))
        stage.director.reread()
        await stage.settle()
        assert stage.told(runs, "permission-lost") == ["account physics is not active"]
        assert stage.state(runs) == "cancelled"
        assert stage.running() == [other]
        with pytest.raises(Refusal, match="account physics is not active"):
            await stage.submit(document(1))

    theatre.play(scene)


def test_a_job_whose_account_is_closed_while_it_waits_never_starts(theatre):
    async def scene(stage):
        blocker = await stage.submit(document(4), owner="eve")
        waits = await stage.submit(document(4))
        theatre.decree(SITE.replace("users: [ada, bob]", "users: [ada, bob], active: false"))
        stage.director.reread()
        await stage.settle()
        assert stage.state(waits) == "waiting"
        await stage.end(blocker)
        assert stage.told(waits, "permission-lost") == ["account physics is not active"]
        assert stage.state(waits) == "cancelled"
        assert stage.store.slices(waits) == []
        assert stage.launched() == [blocker]
        assert leftovers(stage) == []

    theatre.play(scene)


def test_a_submission_sees_accounts_that_were_written_right_before(theatre):
    async def scene(stage):
        with pytest.raises(Refusal, match="there is no account optics"):
            await stage.submit(document(1, account="optics"))
        theatre.decree(SITE.replace("accounts: [", "accounts: [{name: optics, users: [ada]}, "))
        job = await stage.submit(document(1, account="optics"))
        assert stage.running() == [job]
        assert stage.director.accounts.path("optics") == ("optics",)

    theatre.play(scene)


def test_changed_shares_change_who_comes_next(theatre):
    async def scene(stage):
        for owner in ("ada", "eve"):
            await stage.submit(document(2, 600), owner)
        await stage.pass_time(300)
        await stage.end(stage.running()[1])  # so that eve has used less
        await stage.pass_time(300)
        blocker = await stage.submit(document(4), "carl")
        for owner in ("ada", "eve"):
            await stage.submit(document(4), owner)
        await stage.pass_time(120)
        assert goes_first(stage) == "eve"
        theatre.decree(SITE.replace("name: physics", "name: physics, shares: 1000"))
        stage.director.reread()
        await stage.settle()
        assert goes_first(stage) == "ada"
        await stage.end(blocker)
        assert stage.floor.jobs[stage.running()[0]].record.owner == "ada"

    def goes_first(stage):
        requests = stage.planning.waiting.values()
        return max(requests, key=lambda each: stage.planning.priorities(each, stage.now)).user

    theatre.play(scene)


def test_what_needs_a_restart_is_told_and_what_is_wrong_changes_nothing(theatre):
    async def scene(stage):
        theatre.decree(SITE + "queues: [{name: batch, depth: 1}]\n")
        stage.director.reread()
        told = "settings that were changed count when the service starts again: queues"
        assert stage.director.notes == [told]
        assert len(stage.planning.scheduling.queues) == 2
        theatre.decree(SITE + "queues: 7\n")
        stage.director.reread()
        assert "those read before stay in force" in stage.director.notes[0]
        assert "physics" in stage.director.accounts
        theatre.decree(SITE)
        stage.director.reread()
        assert stage.director.notes == []

    async def afterwards(stage):
        assert [queue.depth for queue in stage.planning.scheduling.queues] == [1]
        assert stage.director.notes == []

    theatre.play(scene)
    theatre.decree(SITE + "queues: [{name: batch, depth: 1}]\n")
    theatre.play(afterwards)


def test_a_limit_for_jobs_without_one_promises_no_end_of_those_that_came_before_it(theatre):
    jobs = []

    async def before(stage):
        jobs.extend([await stage.submit(document(4)), await stage.submit(document(4))])

    async def after(stage):
        witness = Witness()
        stage.each_time.append(witness)
        behind = await stage.submit(document(4, 60))
        assert stage.by(behind) is None
        await stage.pass_time(7200)
        assert stage.running() == [jobs[0]]
        await stage.end(jobs[0])
        await stage.end(jobs[1])
        limited = await stage.submit(document(4))
        assert stage.running() == [behind]
        assert stage.by(limited) == 60
        assert (witness.broken, witness.moved) == ([], [])

    theatre.play(before)
    theatre.decree(SITE.replace("stop_margin: 0s", "stop_margin: 0s, default_duration: 600s"))
    theatre.play(after)


def test_accounts_are_one_tree_and_settings_are_read_once_at_the_start(theatre, monkeypatch):
    calls = []

    def counted(settings):
        calls.append(1)
        return scheduling(settings)

    monkeypatch.setattr("jobman.control.admission.scheduling", counted)

    async def scene(stage):
        assert calls == [1]
        assert stage.planning.accounts is stage.floor.book.accounts
        theatre.decree(SITE + "accounts: [{name: other}]\n")
        stage.director.reread()
        await stage.settle()
        assert stage.planning.accounts is stage.floor.book.accounts
        assert stage.planning.priorities.tree.accounts is stage.floor.book.accounts

    theatre.play(scene)
