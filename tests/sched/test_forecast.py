"""When jobs are told that they will start."""

from math import inf

import pytest

from jobman.sched.forecast import PLAYED, Expectation, Forecaster
from jobman.sched.history import History, Work
from jobman.sched.queues import Queue
from jobman.sched.requests import Request
from jobman.spec.shapes import Part

EASY = Queue(name="batch", depth=1)
STRICT = Queue(name="batch", depth=0)
FAIR = Queue(name="batch", depth=None)
HOUR = 3600.0


def request(id="job", *, limit=HOUR, user="ann", **more):
    return Request(id=id, alternatives=(), limit=limit, user=user, **more)


def forecaster(capacity=None, queue=EASY, runs=()):
    return Forecaster({"core": 8} if capacity is None else capacity, queue, history=History.of(runs))


def known(seconds, *, user="ann", limit=HOUR, cores=8):
    """A user whose jobs always run for the same time."""
    return [(Work(user, "", f"core={cores}", "", limit), seconds)] * 5


def run(found, id, cores=8, *, since=0.0, **more):
    found.submitted(request(id, **more), since, {"core": cores})
    found.started(id, since)


def wait(found, id, cores=8, *, now=0.0, **more):
    found.submitted(request(id, **more), now, {"core": cores})


def test_what_fits_starts_now():
    found = forecaster()
    wait(found, "job", now=50.0)
    assert found.expect("job", 50.0) == (50.0, 50.0)


def test_who_waits_for_one_that_always_runs_ten_minutes_is_told_so():
    found = forecaster(runs=known(600))
    run(found, "first")
    wait(found, "second", now=100.0)
    assert found.expect("second", 100.0) == (600.0, 600.0)


def test_without_history_the_p90_is_what_limits_say():
    found = forecaster()
    run(found, "first")
    wait(found, "second")
    expectation = found.expect("second", 0.0)
    assert 0 < expectation.p50 < HOUR
    assert expectation.p90 == HOUR


def test_what_ran_is_learned_from():
    found = forecaster()
    for number in range(5):
        run(found, f"job{number}", since=number * 1000.0)
        found.ended(f"job{number}", number * 1000.0 + 300)
    run(found, "running", since=10_000.0)
    wait(found, "job", now=10_000.0)
    assert found.expect("job", 10_000.0).p50 == 10_300.0


def test_what_was_cut_short_need_not_be_learned_from():
    found = forecaster(runs=known(600))
    run(found, "lost")
    found.ended("lost", 1.0, learn=False)
    assert len(found.history) == 5


def test_those_ahead_are_counted_with():
    found = forecaster(runs=known(600))
    run(found, "running")
    wait(found, "ahead")
    wait(found, "behind")
    assert found.expect("behind", 0.0).p50 == 1200.0


def test_a_short_job_passes_where_the_policy_lets_it():
    runs = [*known(600, limit=600), *known(60, user="bob", limit=60, cores=1)]
    for queue, expected in ((EASY, 0.0), (FAIR, 0.0), (STRICT, 1200.0)):
        found = forecaster(queue=queue, runs=runs)
        run(found, "running", 7, limit=600)
        wait(found, "ahead", limit=600)
        wait(found, "short", 1, limit=60, user="bob")
        assert found.expect("short", 0.0).p50 == expected


def test_a_job_that_would_delay_a_reservation_does_not_pass():
    found = forecaster(runs=[*known(600), *known(60, user="bob", cores=1)])
    run(found, "running", 7)
    wait(found, "ahead", limit=600)
    wait(found, "might be long", 1, user="bob", limit=10 * HOUR)
    assert found.expect("might be long", 0.0).p50 > 600.0


def test_every_kind_of_resource_counts():
    found = forecaster({"core": 8, "gpu": 1}, runs=known(600, cores=1))
    found.submitted(request("first", limit=600), 0.0, {"core": 1, "gpu": 1})
    found.started("first", 0.0)
    found.submitted(request("second", limit=600), 0.0, {"core": 1, "gpu": 1})
    found.submitted(request("third", limit=600), 0.0, {"core": 1})
    assert found.expect("second", 0.0).p50 > 0.0
    assert found.expect("third", 0.0).p50 == 0.0


def test_what_a_request_needs_is_read_from_its_shape():
    part = Part(nodes=2, slots=2, each={"core": 2})
    found = forecaster(runs=known(600))
    found.submitted(Request(id="first", alternatives=((part,),), limit=HOUR, user="ann"), 0.0)
    found.started("first", 0.0)
    wait(found, "second", 1)
    assert found.expect("second", 0.0).p50 == 600.0


def test_whole_nodes_are_counted_as_nodes():
    whole = Request(id="whole", alternatives=((Part(nodes=2, exclusive=True),),), limit=HOUR)
    found = forecaster({"node": 2})
    found.submitted(whole, 0.0)
    found.started("whole", 0.0)
    assert found.try_out(whole, 0.0).p50 > 0.0


def test_no_expectation_is_later_than_the_guarantee():
    found = forecaster(runs=known(600))
    run(found, "first")
    wait(found, "second")
    assert found.expect("second", 0.0, guaranteed_by=400.0) == (400.0, 400.0)


def test_a_guarantee_that_is_over_means_now():
    found = forecaster()
    run(found, "first")
    wait(found, "second")
    assert found.expect("second", 100.0, guaranteed_by=50.0) == (100.0, 100.0)


def test_what_there_will_never_be_room_for_is_never_expected_and_keeps_nobody_waiting():
    found = forecaster()
    wait(found, "too large", 9)
    wait(found, "behind", 8)
    assert found.expect("too large", 0.0) == (inf, inf)
    assert found.expect("behind", 0.0).p50 == 0.0
    assert found.expect_all(0.0) == {"too large": (inf, inf), "behind": (0.0, 0.0)}


def test_who_left_keeps_nobody_waiting():
    found = forecaster(runs=known(600))
    run(found, "running")
    wait(found, "ahead")
    wait(found, "job")
    found.left("ahead")
    assert found.expect("job", 0.0).p50 == 600.0


def test_the_order_of_those_who_wait_can_be_told():
    found = forecaster(runs=known(600))
    run(found, "running")
    for id in ("a", "b", "c"):
        wait(found, id)
    found.ordered(["c", "a"])
    assert {id: each.p50 for id, each in found.expect_all(0.0).items()} == {"c": 600, "a": 1200, "b": 1800}


def test_a_larger_cluster_has_room_sooner():
    found = forecaster(runs=known(600))
    run(found, "running")
    wait(found, "job")
    found.resized({"core": 16})
    assert found.expect("job", 0.0).p50 == 0.0
    found.resized({"core": 4})
    assert found.expect("job", 0.0).p50 == inf


def test_on_what_has_become_too_small_what_runs_still_ends():
    found = forecaster(runs=known(600))
    run(found, "running")
    found.resized({"core": 4})
    wait(found, "job", 4)
    assert found.expect("job", 0.0).p50 == 600.0


def test_what_is_closed_is_not_expected_to_be_used():
    found = forecaster()
    found.closed("maintenance", 1000.0, 5000.0, {"core": 8})
    wait(found, "long", 1, limit=HOUR)
    wait(found, "short", 1, limit=600)
    assert found.expect("long", 0.0).p50 == 5000.0
    assert found.expect("short", 0.0).p50 == 0.0
    found.reopened("maintenance")
    assert found.expect("long", 0.0).p50 == 0.0


def test_nobody_is_expected_before_the_time_it_asked_for():
    found = forecaster()
    wait(found, "tomorrow", earliest=86400.0)
    assert found.expect("tomorrow", 0.0).p50 == 86400.0


def test_an_extended_job_is_expected_to_run_longer():
    found = forecaster()
    run(found, "running")
    wait(found, "job")
    before = found.expect("job", 0.0)
    found.extended("running", 10 * HOUR)
    after = found.expect("job", 0.0)
    assert after.p50 > before.p50
    assert after.p90 == 10 * HOUR


def test_what_runs_longer_than_thought_moves_the_expectation():
    found = forecaster(runs=known(600))
    run(found, "running")
    wait(found, "job")
    assert found.expect("job", 599.0).p50 == 600.0
    assert found.expect("job", 700.0).p50 > 700.0
    assert found.expect("job", 2 * HOUR).p50 == 2 * HOUR


def test_trying_out_changes_nothing():
    found = forecaster(runs=known(600))
    run(found, "running")
    wait(found, "ahead")
    before = found.expect_all(0.0)
    tried = found.try_out(request("job"), 0.0, {"core": 8})
    assert tried.p50 == 1200.0
    assert found.try_out(request("job"), 0.0, {"core": 8}) == tried
    assert found.expect_all(0.0) == before


def test_all_are_told_what_each_would_be():
    found = forecaster(runs=known(600))
    run(found, "running", 5)
    for number in range(20):
        wait(found, f"job{number}", 1 + number % 7)
    together = found.expect_all(0.0)
    assert together == {id: found.expect(id, 0.0) for id in together}


@pytest.mark.parametrize("queue", [STRICT, EASY, FAIR], ids=["strict", "easy", "fair"])
def test_with_very_many_waiting_the_last_is_told_about_what_all_would_take(queue):
    """800 jobs of ten minutes, four at a time: about a day and ten hours of work."""
    found = forecaster(queue=queue, runs=known(600, cores=2))
    for number in range(4):
        run(found, f"running{number}", 2)
    for number in range(800):
        wait(found, f"job{number}", 2)
    found.submitted(request("last"), 0.0, {"core": 2})
    told = found.expect("last", 0.0)
    assert told.p50 == pytest.approx(201 * 600, rel=0.05)
    assert found.expect("job0", 0.0).p50 == pytest.approx(600, rel=0.05)
    assert found.try_out(request("another"), 0.0, {"core": 2}).p50 >= told.p50


def test_those_too_many_to_be_played_follow_at_the_pace_of_the_others():
    found = forecaster(runs=known(600))
    for number in range(5000):
        wait(found, f"job{number}")
    all_told = [each.p50 for each in found.expect_all(0.0).values()]
    assert all_told == sorted(all_told)
    assert all_told[-1] == pytest.approx(5000 * 600, rel=0.05)
    wait(found, "last")
    assert found.expect("last", 0.0).p50 > all_told[-1]


def test_many_more_who_come_after_the_last_play_of_all_queue_up():
    found = forecaster(queue=STRICT, runs=known(600))
    for number in range(10 * PLAYED):
        wait(found, f"job{number}")
    found.expect_all(0.0)
    told = []
    for number in range(50):
        wait(found, f"more{number}")
        told.append(found.expect(f"more{number}", 0.0).p50)
    assert told == sorted(set(told))


def test_the_margin_grows_where_jobs_start_later_than_told():
    found = forecaster(runs=known(600))
    first = told_and_late(found, 0)
    for number in range(1, 60):
        last = told_and_late(found, number)
    assert last > first


def told_and_late(found, number):
    """How long the p90 of a job is that always has to wait an hour longer than its turn."""
    now = number * 10 * HOUR
    run(found, f"running{number}", since=now)
    wait(found, f"job{number}", now=now)
    p90 = found.expect(f"job{number}", now).p90 - now
    found.ended(f"running{number}", now + 600)
    found.started(f"job{number}", now + 600 + HOUR)
    found.ended(f"job{number}", now + 1200 + HOUR)
    return p90


def test_who_is_overdue_is_learned_from_before_it_starts():
    late, waiting = forecaster(runs=known(600)), forecaster(runs=known(600))
    for found in (late, waiting):
        run(found, "running")
        wait(found, "job")
        found.expect("job", 0.0)
    late.started("job", 5000.0)
    waiting.expect_all(5000.0)
    assert late.margins == waiting.margins


def test_an_expectation_has_two_names():
    assert Expectation(1.0, 2.0)._asdict() == {"p50": 1.0, "p90": 2.0}
