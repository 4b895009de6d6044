"""Limits in a forecast: who may not hold more is expected when something of theirs has ended."""

from jobman.sched.forecast import Forecaster
from jobman.sched.forecast_limits import Ceilings
from jobman.sched.history import History, Work
from jobman.sched.queues import Queue
from jobman.sched.requests import Request

HOUR = 3600.0


def request(id, user="ann", job=""):
    return Request(id=id, alternatives=(), limit=HOUR, user=user, job=job)


def ceilings(**limits):
    """Limits of users, by their names."""
    return Ceilings(lambda request: [(request.user, limits[request.user])] if request.user in limits else [])


class TestCeilings:
    def test_one_that_is_hardly_used_is_not_counted(self):
        found = ceilings(ann={"core": 10})
        found.join(request("a"), {"core": 5})
        assert found.capacity == {}
        found.join(request("b"), {"core": 1})
        assert list(found.capacity.values()) == [10]
        assert found.is_changed

    def test_whoever_has_no_limit_counts_for_nothing(self):
        assert ceilings(ann={"core": 10}).join(request("a", "bob"), {"core": 50}) == {}

    def test_each_has_a_kind_of_its_own(self):
        found = ceilings(ann={"core": 4, "job": 1}, bob={"core": 4})
        ann, bob = (found.join(request(user, user), {"core": 3}) for user in ("ann", "bob"))
        assert sorted(ann.values()) == [1, 3]
        assert list(bob.values()) == [3]
        assert not ann.keys() & bob.keys()
        assert found.capacity.keys() == ann.keys() | bob.keys()

    def test_the_requests_of_a_job_are_one_job(self):
        found = ceilings(ann={"job": 1})
        counts = [found.join(request(f"r{number}", job="j"), {}) for number in range(3)]
        assert [sum(each.values()) for each in counts] == [1, 0, 0]
        assert found.leave("r1") is None
        heir, count = found.leave("r0")
        assert (heir, sum(count.values())) == ("r2", 1)
        assert found.leave("r2") is None
        assert found.capacity == {}

    def test_who_is_not_there_is_asked_of_without_being_counted(self):
        found = ceilings(ann={"core": 4, "job": 2})
        joined = found.join(request("a"), {"core": 3})
        assert found.of(request("b"), {"core": 2}).keys() == joined.keys()
        assert found.leave("a") is None
        assert found.capacity == {}

    def test_very_many_limits_are_not_all_counted(self):
        found = ceilings(**{f"u{number}": {"core": 1} for number in range(100)})
        for number in range(100):
            found.join(request(str(number), f"u{number}"), {"core": 1})
        assert 10 < len(found.capacity) < 100


class TestForecast:
    def forecaster(self):
        history = History.of([(Work("ann", "", "core=1", "", HOUR), 600.0)] * 5)
        return Forecaster({"core": 8}, Queue(name="batch", depth=1), history=history)

    def test_what_counts_beside_amounts_holds_back_and_makes_no_other_shape(self):
        found = self.forecaster()
        found.resized({"core": 8, "jobs of ann": 1})
        found.submitted(request("a"), 0.0, {"core": 1}, {"jobs of ann": 1})
        found.started("a", 0.0)
        found.submitted(request("b"), 0.0, {"core": 1}, {"jobs of ann": 1})
        found.submitted(request("c", "bob"), 0.0, {"core": 1})
        assert found.expect("b", 0.0) == (600.0, 600.0)
        assert found.expect("c", 0.0) == (0.0, 0.0)
        assert found.try_out(request("d"), 0.0, {"core": 1}, also={"jobs of ann": 1}).p50 == 1200.0

    def test_what_one_counts_for_may_change_while_it_runs(self):
        found = self.forecaster()
        found.resized({"core": 8, "jobs of ann": 1})
        for id, count in (("a", 1), ("b", 0)):
            found.submitted(request(id), 0.0, {"core": 1}, {"jobs of ann": count})
            found.started(id, 0.0)
        found.ended("a", 100.0, learn=False)
        found.submitted(request("c"), 100.0, {"core": 1}, {"jobs of ann": 1})
        assert found.try_out(request("c"), 100.0, {"core": 1}, also={"jobs of ann": 1}).p50 == 700.0
        found.counts("b", {"jobs of ann": 1})
        assert found.expect("c", 100.0).p50 == 600.0

    def test_the_first_end_of_what_runs_is_the_soonest_that_anything_changes(self):
        found = self.forecaster()
        assert found.soonest(5.0) == float("inf")
        for id, since in (("a", 0.0), ("b", 100.0)):
            found.submitted(request(id), since, {"core": 1})
            found.started(id, since)
        assert found.soonest(200.0) == 600.0

    def test_another_history_is_believed_at_once(self):
        found = self.forecaster()
        found.submitted(request("a"), 0.0, {"core": 8})
        found.started("a", 0.0)
        found.submitted(request("b"), 0.0, {"core": 8})
        before = found.expect("b", 0.0).p50
        found.remember(History.of([(Work("ann", "", "core=8", "", HOUR), 60.0)] * 5))
        assert found.expect("b", 0.0).p50 == 60.0 != before
