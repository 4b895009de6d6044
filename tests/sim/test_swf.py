"""Reading and writing traces in the Standard Workload Format."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sim.generate import generate
from jobman.sim.swf import read_swf, swf_text, write_swf
from jobman.sim.trace import TraceError
from tests.sim.builders import trace

ROOT = Path(__file__).parents[2]
GOOD = "7 100 5 60 4 -1 -1 4 120 -1 1 12 -1 3 -1 -1 -1 -1"


@pytest.fixture
def read(tmp_path):
    def make(*lines, data=None):
        path = tmp_path / "trace.swf"
        path.write_bytes("\n".join(lines).encode() if data is None else data)
        return read_swf(path)

    return make


def changed(**fields):
    """The good line with fields of other values; they count from 1."""
    values = GOOD.split()
    for name, value in fields.items():
        values[int(name[1:]) - 1] = str(value)
    return " ".join(values)


def test_a_line_is_a_job(read):
    job = read(GOOD).jobs[0]
    assert (job.number, job.submit, job.run, job.processors, job.requested) == (7, 100, 60, 4, 120)
    assert (job.user, job.name, job.wait, job.memory) == ("12", "3", 5, 0)


def test_the_head_says_what_the_machine_is(read):
    found = read("; MaxNodes: 50", "; MaxProcs: 100", "; UnixStartTime: 843480031", ";Note: x: y", GOOD)
    assert (found.processors, found.began) == (100, 843480031)
    assert found.header["Note"] == "x: y"


@pytest.mark.parametrize(
    ("head", "processors"),
    [("; MaxNodes: 50", 50), ("; MaxProcs: -1", None), ("; MaxProcs: many", None), ("", None)],
)
def test_a_head_that_knows_less(read, head, processors):
    assert read(head, GOOD).processors == processors


def test_jobs_come_in_order_of_submission_then_of_their_numbers(read):
    found = read(changed(f1=3, f2=9), changed(f1=2, f2=5), changed(f1=1, f2=9))
    assert [job.number for job in found.jobs] == [2, 1, 3]


def test_a_run_is_cut_where_the_requested_time_ends(read):
    assert read(changed(f4=500, f9=120)).jobs[0].run == 120


def test_without_a_requested_time_the_run_time_stands_for_it(read):
    assert read(changed(f9=-1)).jobs[0].requested == 60
    assert read(changed(f4=0, f9=-1)).jobs[0].requested == 1


def test_without_requested_processors_those_that_were_given_count(read):
    assert read(changed(f8=-1, f5=6)).jobs[0].processors == 6


def test_memory_is_asked_for_per_processor_in_kib(read):
    assert read(changed(f10=2048)).jobs[0].memory == 2 * 2**20


def test_unknown_users_and_waits_stay_unknown(read):
    job = read(changed(f12=-1, f3=-1)).jobs[0]
    assert (job.user, job.wait) == ("", None)


def test_times_with_a_fraction_are_taken_down_to_the_second(read):
    assert read(changed(f2="100.75")).jobs[0].submit == 100


def test_gzip_is_known_by_its_content(read):
    assert len(read(data=gzip.compress(GOOD.encode())).jobs) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 2 3", "it has 3 fields; a line of SWF has 18 numbers, -1 for what is not known"),
        (changed(f4="soon"), "'soon' is no number"),
        (changed(f2="inf"), "'inf' is no number"),
        (changed(f4=-1), "job 7 never ran"),
        (changed(f4=0, f11=5), "job 7 never ran"),
        (changed(f5=-1, f8=-1), "job 7 has no processors"),
        (changed(f2=-3), "job 7 was submitted before the trace began"),
        (changed(f11=3), "job 7 has a line of a part of it, its status is 3"),
    ],
)
def test_what_cannot_be_replayed_is_told_with_its_line(read, line, words):
    found = read("; MaxProcs: 8", changed(f1=1), line, changed(f1=9))
    assert [job.number for job in found.jobs] == [1, 9]
    assert [(each.line, each.words) for each in found.left_out] == [(3, words)]


def test_the_second_line_of_a_job_is_told_with_the_first(read):
    found = read(GOOD, GOOD)
    assert found.left_out[0].words == "job 7 was on line 1 already"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"; MaxProcs: 8\n", r"has no jobs \(1 line\)"),
        (b"hello\n", "line 1: 'hello' is no number"),
        (b"\x1f\x8bnothing", "is not a whole gzip file"),
        (b"\0\0\0\0", "is no text"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_advice(read, data, words):
    with pytest.raises(TraceError, match=words) as caught:
        read(data=data)
    assert caught.value.advice


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TraceError, match="cannot be read"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(TraceError, match="is a folder"):
        read_swf(tmp_path)


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    made = generate(5, jobs=40)
    write_swf(tmp_path / name, made)
    found = read_swf(tmp_path / name)
    assert (found.jobs, found.processors, found.began) == (made.jobs, made.processors, None)


def test_the_same_trace_is_the_same_file(tmp_path):
    for name in ("a.swf.gz", "b.swf.gz"):
        write_swf(tmp_path / name, generate(5, jobs=40))
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()


def test_starts_are_written_as_waits(tmp_path):
    write_swf(tmp_path / "out.swf", trace((10, 5, 1), (12, 5, 1)), starts=[10, 15])
    assert [job.wait for job in read_swf(tmp_path / "out.swf").jobs] == [0, 3]


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text):
    from jobman.sim.swf import _Reading

    found = _Reading().read(text.splitlines(), "x")
    written = [line for line in text.splitlines() if line.split() and line.split()[0][0] != ";"]
    assert len(found.jobs) + len(found.left_out) == len(written)


def test_a_generated_trace_is_the_same_for_the_same_seed():
    assert swf_text(generate(3)) == swf_text(generate(3))
    assert swf_text(generate(3)) != swf_text(generate(4))


def test_a_generated_trace_has_the_load_that_was_asked_for():
    made = generate(11, jobs=2000, processors=32, load=0.7)
    span = made.jobs[-1].submit - made.jobs[0].submit
    assert 0.65 < sum(job.work for job in made.jobs) / (32 * span) < 0.75
    assert all(0 < job.run <= job.requested and 1 <= job.processors <= 32 for job in made.jobs)


def test_the_trace_among_the_examples_is_a_generated_one():
    example = read_swf(ROOT / "examples" / "traces" / "week.swf")
    made = generate(7, jobs=400, processors=64, load=0.85)
    assert (example.jobs, example.processors, example.header) == (
        made.jobs,
        64,
        {**made.header, "MaxProcs": "64"},
    )
