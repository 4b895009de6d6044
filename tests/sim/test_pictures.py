"""The pictures of replays: well-formed, readable, and of a size that programs open."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sim.axes import number_marks, time_marks
from jobman.sim.charts import chart
from jobman.sim.cluster import cluster
from jobman.sim.gantt import bars, gantt
from jobman.sim.generate import generate
from jobman.sim.series import series
from tests.sim.builders import nodes, outcome, replayed, trace

SVG = "{http://www.w3.org/2000/svg}"
WIDE = [(0, 10, 8), (0, 10, 4), (0, 10, 4)]


def texts(picture):
    return [each.text for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def jobs_in(picture):
    return [each for each in ElementTree.fromstring(picture).iter(f"{SVG}rect") if each.get("class") == "job"]


def test_use_and_queue_are_averages_over_steps():
    found = series(outcome(*WIDE, starts=[0, 10, 10]), steps=4)
    assert (found.begin, found.step, found.end) == (0, 5, 20)
    assert found.used == [8, 8, 8, 8]
    assert found.waiting == [2, 2, 0, 0]


def test_a_part_of_a_step_counts_in_part():
    found = series(outcome((0, 5, 8), (0, 5, 8), starts=[0, 15]), steps=2)
    assert found.used == [4, 4]
    assert found.waiting == [1, 0.5]


@given(st.integers(1, 40), st.integers(0, 5))
def test_no_work_is_lost_between_the_steps(steps, seed):
    found = replayed(generate(seed, jobs=30, processors=8))
    drawn = series(found, steps)
    assert sum(drawn.used) * drawn.step == pytest.approx(sum(job.work for job in found.jobs))
    assert sum(drawn.waiting) * drawn.step == pytest.approx(sum(found.waits))


def test_only_what_is_asked_for_is_looked_at():
    found = series(outcome(*WIDE, starts=[0, 10, 10]), steps=2, begin=5, end=15)
    assert (found.used, found.waiting) == ([8, 8], [2, 0])


def test_a_chart_has_a_title_axes_and_a_legend():
    found = replayed(generate(2, jobs=50))
    picture = chart([found, replayed(generate(2, jobs=50), "fcfs")], "my trace")
    assert {"my trace", "processors in use", "jobs that wait", "easy", "fcfs", "64"} <= {
        *texts(picture),
        "64",
    }
    assert any((text or "").startswith("50 jobs on 64 processors") for text in texts(picture))


def test_a_chart_of_a_moment_is_a_chart():
    assert "easy" in texts(chart([replayed(trace((0, 0, 1, 1)))], "t"))


def test_titles_are_no_markup():
    assert "<b>&" in texts(chart([replayed(trace((0, 5, 1)))], "<b>&"))


def test_a_gantt_chart_has_a_rectangle_for_each_job():
    picture = gantt(replayed(trace(*WIDE)), "t")
    assert len(jobs_in(picture)) == 3
    assert "easy: 3 jobs on 8 processors, a colour for each user" in texts(picture)


def test_a_gantt_chart_of_very_many_jobs_shows_the_largest_and_says_so():
    found = replayed(generate(2, jobs=200))
    picture = gantt(found, "t", most=50)
    assert len(jobs_in(picture)) == 50
    assert any("only the 50 largest of" in (text or "") for text in texts(picture))


def test_a_gantt_chart_of_a_part_shows_what_ran_then():
    picture = gantt(replayed(trace((0, 10, 8), (0, 10, 8), (0, 10, 8))), "t", begin=12, end=18)
    assert len(jobs_in(picture)) == 1


def areas_overlap(found):
    rows = sorted(found, key=lambda bar: bar.start)
    return any(
        one.end > other.start and one.low < other.high and other.low < one.high
        for place, one in enumerate(rows)
        for other in rows[place + 1 :]
    )


@pytest.mark.parametrize("machine", [None, cluster(nodes(4, core=16))], ids=["one node", "nodes"])
def test_no_two_jobs_are_drawn_on_the_same_processor(machine):
    found = replayed(generate(4, jobs=80), machine=machine, keep_places=True)
    drawn = list(bars(found))
    assert not areas_overlap(drawn)
    assert sum(bar.area for bar in drawn) == pytest.approx(sum(job.work for job in found.jobs))


def test_on_nodes_a_bar_stays_on_its_node():
    found = replayed(trace((0, 10, 6)), machine=cluster(nodes(2)), keep_places=True)
    assert [(bar.low, bar.high) for bar in bars(found)] == [(0, 4), (4, 6)]


def test_marks_are_round():
    assert [mark.words for mark in number_marks(100)] == ["0", "25", "50", "75", "100"]
    assert [mark.words for mark in number_marks(7)] == ["0", "2", "4", "6", "8"]
    assert number_marks(0.3)[-1].at >= 0.3


@given(st.floats(0, 1e8), st.floats(1, 1e8))
def test_moments_on_an_axis_are_few_and_inside(begin, span):
    for began in (None, 843480031.0):
        marks = time_marks(begin, begin + span, began)
        assert len(marks) <= 10
        assert all(begin - 1e-3 <= mark.at <= begin + span + 1e-3 for mark in marks)


@pytest.mark.parametrize(
    ("begin", "end", "began", "words"),
    [
        (0, 8 * 86400, 843436800.0, ["1996-09-23", "1996-09-24"]),
        (0, 86400, 843436800.0, ["09-23 00:00", "09-23 03:00"]),
        (86400, 9 * 86400, None, ["day 1", "day 2"]),
        (0, 2 * 86400, None, ["0:00", "6:00"]),
        (86400, 3 * 86400, None, ["day 1, 0:00", "day 1, 6:00"]),
        (0, 30, None, ["0:00:00", "0:00:05"]),
    ],
)
def test_moments_are_dates_where_these_are_known(begin, end, began, words):
    assert [mark.words for mark in time_marks(begin, end, began)][:2] == words
