"""What a service has run, as a trace."""

from math import inf

import pytest

from jobman.sim.cluster import cluster
from jobman.sim.history import Finished, trace_of
from jobman.sim.trace import TraceError
from jobman.spec.shapes import Part
from tests.sim.builders import nodes, replayed

T = 1_800_000_000.0


def slots(count, **each):
    return ((Part(slots=count, each=each or {"core": 1}),),)


def ran(what="a.0", submitted=0.0, started=0.0, ended=10.0, shape=None, **fields):
    moments = [None if moment is None else T + moment for moment in (submitted, started, ended)]
    return Finished(
        what=what,
        submitted_at=moments[0],
        started_at=moments[1],
        ended_at=moments[2],
        alternatives=slots(2) if shape is None else shape,
        **fields,
    )


def test_each_time_something_ran_is_a_job():
    found = trace_of(
        [ran(submitted=5, started=7, limit=60, owner="ada"), ran("b.0", shape=slots(4))], "history"
    )
    assert found.began == T
    first, second = found.jobs
    assert (first.submit, first.run, first.processors, first.wait) == (0, 10, 4, 0)
    assert (second.submit, second.run, second.requested, second.user, second.wait) == (5, 3, 60, "ada", 2)


def test_what_had_no_limit_has_none():
    assert trace_of([ran()], "history").jobs[0].requested == inf


def test_what_ran_longer_than_its_limit_counts_as_if_it_had_asked_for_that():
    assert trace_of([ran(limit=4)], "history").jobs[0].requested == 10


@pytest.mark.parametrize(
    ("field", "words"),
    [("submitted", "submission"), ("started", "start"), ("ended", "end"), ("shape", "shape")],
)
def test_what_lacks_something_is_left_out_by_name(field, words):
    value = () if field == "shape" else None
    found = trace_of([ran("x.0 of sim (4f)", **{field: value}), ran()], "history")
    assert [each.words for each in found.left_out] == [f"x.0 of sim (4f) has no {words}"]
    assert len(found.jobs) == 1


def test_a_history_without_anything_is_refused():
    with pytest.raises(TraceError, match="nothing that could be replayed"):
        trace_of([], "history")
    with pytest.raises(TraceError, match=r"x\.0 has no end"):
        trace_of([ran("x.0", ended=None)], "history")


def test_shapes_are_replayed_as_they_were_asked_for():
    gpu = slots(1, core=1, gpu=1)
    found = trace_of([ran(shape=gpu, limit=10), ran(shape=gpu, limit=10), ran(shape=slots(2), limit=10)], "h")
    outcome = replayed(found, "conservative", cluster(nodes(1, core=8, gpu=1)))
    assert sorted(outcome.starts) == [0, 0, 10]


def test_what_other_nodes_could_not_take_is_left_out():
    found = trace_of([ran(shape=slots(1, core=1, gpu=1)), ran()], "h")
    outcome = replayed(found, "easy", cluster(nodes(1, core=8)))
    assert len(outcome.jobs) == 1
    assert "gpu" in outcome.left_out[0].words
