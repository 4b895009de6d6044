"""Retention: what of the output of jobs that are over goes, what stays, and what a crash leaves."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.control import retention
from jobman.control.retention import Retention, Rule, overdue
from jobman.control.store.errors import Fenced
from jobman.control.store.outputs import KeptOutput
from jobman.engines import failpoints
from jobman.engines.failpoints import parsed
from tests.control.store.builders import NOON, attempt, changes, event, job, log, replica, slice_of

DAY = 86400.0
GIB = 2**30
NOW = NOON + 100 * DAY
RULE = Rule(keep=30 * DAY, keep_size=None)


# -- the decision --------------------------------------------------------------------------------------


def kept(days, size=0, **values):
    """The output of a job that ended so many days ago."""
    return KeptOutput(job=f"{days} days", ended_at=NOW - days * DAY, size=size, **values)


def chosen(outputs, rule, total=None):
    total = sum(output.size for output in outputs) if total is None else total
    return [output.job for output in overdue(outputs, total, rule, NOW)]


def test_output_goes_when_it_is_older_than_it_is_kept():
    assert chosen([kept(31), kept(30), kept(29)], RULE) == ["31 days", "30 days"]


def test_without_a_rule_everything_is_kept_for_ever():
    assert chosen([kept(1000, GIB), kept(2, GIB)], Rule()) == []


def test_the_oldest_goes_first_until_the_rest_is_not_too_much():
    outputs = [kept(days, GIB) for days in (9, 7, 5, 3, 1)]
    assert chosen(outputs, Rule(keep_size=2 * GIB)) == ["9 days", "7 days", "5 days"]
    assert chosen(outputs, Rule(keep_size=5 * GIB)) == []


def test_what_is_too_old_makes_room_for_what_is_not():
    outputs = [kept(40, GIB), kept(3, GIB), kept(1, GIB)]
    assert chosen(outputs, Rule(keep=30 * DAY, keep_size=2 * GIB)) == ["40 days"]


def test_what_has_just_ended_is_never_too_much():
    fresh = KeptOutput(job="fresh", ended_at=NOW - 60, size=3 * GIB)
    assert chosen([kept(2, GIB), fresh], Rule(keep_size=GIB)) == ["2 days"]


def test_a_removal_that_was_begun_is_completed_whatever_the_rule_says_now():
    assert chosen([kept(2, GIB, removed_at=NOW - 5), kept(9)], Rule()) == ["2 days"]


@given(
    st.lists(st.tuples(st.floats(0, 60), st.integers(0, 100)), max_size=30),
    st.none() | st.floats(0.1, 60),
    st.none() | st.integers(0, 1000),
)
def test_no_more_goes_than_must_and_no_less(drawn, keep, keep_size):
    outputs = [
        KeptOutput(job=str(number), ended_at=NOW - days * DAY, size=size)
        for number, (days, size) in enumerate(sorted(drawn, reverse=True))
    ]
    rule = Rule(None if keep is None else keep * DAY, keep_size)
    gone = overdue(outputs, sum(output.size for output in outputs), rule, NOW)
    stays = [output for output in outputs if output not in gone]
    assert not any(rule.is_old(output.ended_at, NOW) for output in stays)
    for_size = [output for output in gone if not rule.is_old(output.ended_at, NOW)]
    removable = [output for output in stays if output.ended_at + 600 <= NOW]
    if removable:
        assert not rule.is_too_much(sum(output.size for output in stays))
        assert all(output.ended_at <= removable[0].ended_at for output in for_size)
    if for_size:
        assert rule.is_too_much(sum(output.size for output in [*stays, for_size[-1]]))


# -- in words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "ended_at", "words"),
    [
        (Rule(30 * DAY), NOW - 31 * DAY, ": output is kept for 30 days"),
        (Rule(36 * 3600.0), NOW - 31 * DAY, ": output is kept for 36 h"),
        (Rule(30 * DAY, 10 * GIB), NOW - 31 * DAY, ": output is kept for 30 days"),
        (Rule(30 * DAY, 10 * GIB), NOW - 2 * DAY, ": at most 10Gi of output is kept"),
        (Rule(None, 10 * GIB), NOW - 2 * DAY, ": at most 10Gi of output is kept"),
        (Rule(30 * DAY), NOW - 2 * DAY, ""),
        (Rule(), NOW - 2 * DAY, ""),
    ],
)
def test_readers_are_told_when_it_was_removed_and_by_which_rule(rule, ended_at, words):
    day = time.strftime("%Y-%m-%d", time.localtime(NOW))
    assert rule.words(ended_at, NOW) == f"its output was removed on {day}{words}"


# -- files and records ---------------------------------------------------------------------------------


class Site:
    """A store, a state folder, and jobs that left output in it."""

    def __init__(self, store, state):
        self.store = store
        self.state = state
        self.jobs = state / "jobs"
        self.now = NOW
        self.jobs.mkdir(parents=True)

    def add(self, number, days=40.0, text="hello\n", state="succeeded", copies=1, paths=None, **values):
        """A job that ended so many days ago, with output of each copy where the engine or `paths` puts it."""
        one = job(number, state=state, ended_at=None if days is None else NOW - days * DAY, **values)
        records = [one, replica(one), attempt(one), event(number, one), slice_of(one)]
        for copy in range(copies):
            for stream, ending in (("stdout", "out"), ("stderr", "err")):
                path = (paths or {}).get(stream) or self.folder(one) / f"{copy}.{ending}"
                _write(path, text)
                _write(Path(f"{path}.times"), "x" * 16)
                size = path.stat().st_size
                records.append(
                    log(one, copy=copy, stream=stream, path=str(path), size=size, ended=days is not None)
                )
        _write(self.folder(one) / "0.exit", "{}")
        self.store.write(changes(*records))
        return one

    def folder(self, one):
        return self.jobs / one.id / "train.0" / "1"

    def files(self, one):
        """What is left of the output of a job, where the engine put it."""
        return sorted(path.name for path in self.folder(one).glob("*.*") if path.name != "0.exit")

    def marks(self, one):
        """Of every stream, whether it counts as removed, and whether that is completed."""
        return {
            (record.removed_at is not None, record.path == "") for record in self.store.logs(one.id).items
        }

    def retention(self, keep=30 * DAY, keep_size=None):
        return Retention(self.store, self.state, keep, keep_size, lambda: self.now)

    def sweep(self, keep=30 * DAY, keep_size=None):
        return asyncio.run(self.retention(keep, keep_size).sweep())


ALL = ["0.err", "0.err.times", "0.out", "0.out.times"]
KEPT, BEGUN, GONE = {(False, False)}, {(True, False)}, {(True, True)}


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def site(store, tmp_path):
    return Site(store, tmp_path / "site")


def test_old_output_is_removed_and_young_output_stays(site):
    old, young = site.add(1, days=40), site.add(2, days=20)
    assert site.sweep() == 1
    assert (site.files(old), site.marks(old)) == ([], GONE)
    assert (site.files(young), site.marks(young)) == (ALL, KEPT)
    assert site.store.output_removed_at(old.id) == NOW
    assert site.store.output_removed_at(young.id) is None
    assert site.sweep() == 0


def test_of_the_job_itself_everything_stays(site):
    old = site.add(1)
    site.sweep()
    store = site.store
    assert store.job(old.id).state == "succeeded"
    assert store.document(old.id) is not None
    assert (len(store.attempts(old.id).items), len(store.replicas(old.id).items)) == (1, 1)
    assert (len(store.events(old.id)), len(store.slices(old.id))) == (1, 1)
    assert [(each.stream, each.size) for each in store.logs(old.id).items] == [("stderr", 6), ("stdout", 6)]
    assert (site.folder(old) / "0.exit").exists()


def test_the_oldest_output_is_removed_first_when_there_is_too_much(site):
    jobs = [site.add(number, days=10 - number, text="x" * 500) for number in (1, 2, 3, 4)]
    assert site.sweep(keep=None, keep_size=2_000) == 2
    assert [bool(site.files(one)) for one in jobs] == [False, False, True, True]
    assert site.sweep(keep=None, keep_size=2_000) == 0


def test_what_runs_or_waits_is_never_touched(site):
    # Whatever moment of an end a record may carry, and however much it has written.
    alive = [
        site.add(1, days=None, state="running", text="x" * 5_000),
        site.add(2, days=50, state="waiting", text="x" * 5_000),
        site.add(3, days=50, state="running", text="x" * 5_000, held=True),
    ]
    assert site.sweep(keep=DAY, keep_size=1) == 0
    assert [site.files(one) for one in alive] == [ALL] * 3
    assert [site.marks(one) for one in alive] == [KEPT] * 3


def test_what_runs_does_not_count_for_what_is_over(site):
    site.add(1, days=None, state="running", text="x" * 5_000)
    over = site.add(2, days=2)
    assert site.sweep(keep=None, keep_size=100) == 0
    assert site.files(over) == ALL


def test_files_that_people_placed_themselves_are_never_removed(site, tmp_path):
    home = tmp_path / "home"
    mine = site.add(1, paths={"stdout": home / "train.log", "stderr": home / "train.log"}, text="x" * 500)
    half = site.add(2, paths={"stdout": home / "half.log"})
    assert site.sweep(keep=DAY, keep_size=1) == 1
    assert site.sweep(keep=DAY, keep_size=1) == 0
    assert sorted(path.name for path in home.iterdir()) == [
        "half.log",
        "half.log.times",
        "train.log",
        "train.log.times",
    ]
    assert site.marks(mine) == KEPT
    assert (site.files(half), site.marks(half)) == ([], KEPT | GONE)


def test_files_in_the_state_folder_that_are_not_of_the_job_stay(site):
    other = site.add(1, days=1)
    places = [
        site.state / "mine.log",
        site.jobs / "mine.log",
        site.folder(other) / "0.out",
        site.jobs / f"{other.id}x" / "0.out",
    ]
    paths = [{"stdout": place, "stderr": place} for place in places]
    odd = [site.add(number, paths=each) for number, each in enumerate(paths, 2)]
    assert site.sweep(keep_size=1) == 1
    assert [place.exists() for place in places] == [True, True, False, True]
    assert [site.marks(one) for one in odd] == [KEPT] * 4
    assert site.marks(other) == GONE


def test_a_way_back_up_leads_nowhere(site, tmp_path):
    outside = tmp_path / "outside.log"
    _write(outside, "mine")
    one = job(1, state="failed", ended_at=NOON)
    path = f"{site.jobs}/{one.id}/../../../outside.log"
    (site.jobs / one.id).mkdir()
    site.store.write(changes(one, log(one, path=path, size=4, ended=True)))
    assert site.sweep(keep=DAY, keep_size=1) == 0
    assert outside.read_text() == "mine"
    assert site.marks(one) == KEPT


def test_a_folder_that_was_replaced_by_a_link_is_left_alone(site, tmp_path, caplog):
    one = site.add(1)
    site.folder(one).rename(tmp_path / "moved")
    site.folder(one).symlink_to(tmp_path / "moved")
    assert site.sweep() == 0
    assert (tmp_path / "moved" / "0.out").read_text() == "hello\n"
    assert site.marks(one) == KEPT
    assert "is left alone" in caplog.text


def test_the_state_folder_may_be_reached_by_a_link(site, tmp_path):
    link = tmp_path / "short"
    link.symlink_to(site.state)
    # One job ran when the service was started with the link, one when it was not.
    by_link = {stream: link / "jobs" / job(1).id / stream for stream in ("stdout", "stderr")}
    jobs = [site.add(1, paths=by_link), site.add(2)]
    assert asyncio.run(Retention(site.store, link, 30 * DAY, None, lambda: NOW).sweep()) == 2
    assert [site.marks(one) for one in jobs] == [GONE, GONE]
    assert not any(path.exists() for path in by_link.values())


def test_files_that_are_gone_already_are_no_trouble(site):
    old = site.add(1)
    (site.folder(old) / "0.out").unlink()
    (site.folder(old) / "0.err.times").unlink()
    assert site.sweep() == 1
    assert (site.files(old), site.marks(old)) == ([], GONE)


def test_a_folder_of_jobs_that_is_not_there_decides_nothing(site, caplog):
    old = site.add(1)
    site.jobs.rename(site.state / "elsewhere")
    found = site.retention()
    assert asyncio.run(found.sweep()) == 0
    assert site.marks(old) == KEPT
    assert "cannot be removed now" in caplog.text
    (site.state / "elsewhere").rename(site.jobs)
    assert asyncio.run(found.sweep()) == 1
    assert site.marks(old) == GONE


def test_a_large_job_is_removed_in_pieces(site, monkeypatch):
    monkeypatch.setattr(retention, "_FILES_AT_ONCE", 3)
    monkeypatch.setattr(retention, "_JOBS_AT_ONCE", 1)
    jobs = [site.add(1, copies=5), site.add(2, copies=1), site.add(3, copies=2)]
    assert site.sweep() == 3
    assert [site.files(one) for one in jobs] == [[], [], []]
    assert [site.marks(one) for one in jobs] == [GONE] * 3


def test_a_job_that_is_deleted_meanwhile_is_no_trouble(site, monkeypatch):
    one, other = site.add(1), site.add(2)
    real = site.store.write

    def write(records):
        monkeypatch.setattr(site.store, "write", real)
        real(changes(deleted=[one.id]))
        real(records)

    monkeypatch.setattr(site.store, "write", write)
    site.sweep()
    assert site.store.logs(one.id).items == []
    assert (site.files(other), site.marks(other)) == ([], GONE)


def test_a_service_that_was_taken_over_removes_nothing(site, url, opened):
    old = site.add(1)
    opened(url).claim("another")
    assert site.sweep() == 0
    assert (site.files(old), site.marks(old)) == (ALL, KEPT)
    with pytest.raises(Fenced):
        site.store.write(changes(job(9)))


# -- trouble and crashes -------------------------------------------------------------------------------


def fail_at(monkeypatch, text):
    monkeypatch.setattr(failpoints, "_points", parsed(text))


def test_what_cannot_be_removed_is_tried_again_and_holds_up_nothing_else(site, monkeypatch, caplog):
    stuck, other = site.add(1), site.add(2)
    fail_at(monkeypatch, "retention.unlink=error@1-2")  # both streams of the first
    assert site.sweep() == 1
    assert (site.files(stuck), site.marks(stuck)) == (ALL, BEGUN)
    assert (site.files(other), site.marks(other)) == ([], GONE)
    assert caplog.text.count("cannot be removed now") == 1
    site.now += DAY
    assert site.sweep() == 1
    assert (site.files(stuck), site.marks(stuck)) == ([], GONE)
    assert site.store.output_removed_at(stuck.id) == NOW


def test_what_cannot_be_written_removes_nothing(site, monkeypatch, caplog):
    old = site.add(1)
    fail_at(monkeypatch, "store.before-commit=disk-full")
    assert site.sweep() == 0
    assert (site.files(old), site.marks(old)) == (ALL, KEPT)
    assert "cannot be removed now" in caplog.text


PROGRAM = """
import asyncio, sys
from pathlib import Path
from jobman.control.retention import Retention
from jobman.control.store.store import Store
store = Store.open(sys.argv[1])
store.claim("a service that will be killed")
asyncio.run(Retention(store, Path(sys.argv[2]), 30 * 86400.0, None, lambda: float(sys.argv[3])).sweep())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "files", "marks"),
    [
        ("store.before-commit=kill@1", ALL, KEPT),
        ("store.after-commit=kill@1", ALL, BEGUN),
        ("retention.decided=kill", ALL, BEGUN),
        ("retention.unlink=kill@2", ["0.err.times", "0.out", "0.out.times"], BEGUN),
        ("retention.unlinked=kill", [], BEGUN),
        ("store.after-commit=kill@2", [], GONE),
    ],
)
def test_a_service_killed_in_the_middle_leaves_a_decision_that_the_next_completes(
    site, url, point, files, marks
):
    old, young = site.add(1), site.add(2, days=20)
    environment = {**os.environ, "JOBMAN_FAILPOINTS": point, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", PROGRAM, url, str(site.state), str(NOW)]
    assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
    assert (site.files(old), site.marks(old)) == (files, marks)
    site.store.claim("the next service")
    # Also where output is kept for ever by now: what was decided is completed, and nothing else.
    assert site.sweep(keep=None if marks == BEGUN else 30 * DAY) == (marks != GONE)
    assert (site.files(old), site.marks(old)) == ([], GONE)
    assert (site.files(young), site.marks(young)) == (ALL, KEPT)


# -- when --------------------------------------------------------------------------------------------


def swept(site, **rule):
    found = site.retention(**rule)
    asyncio.run(found.sweep())
    return found


def test_a_first_look_is_due_soon_whatever_the_rule(site):
    for keep in (None, DAY):
        assert site.retention(keep=keep).next_due(NOW) == NOW + 10


def test_the_next_sweep_is_due_when_the_oldest_output_is(site):
    site.add(1, days=20)
    site.add(2, days=10)
    assert swept(site).next_due(NOW) == NOW + 10 * DAY


def test_where_nothing_is_kept_a_sweep_is_due_when_something_could_be(site):
    assert swept(site).next_due(NOW) == NOW + 30 * DAY


def test_sweeps_do_not_follow_one_another_closely(site):
    site.add(1, days=29.99999)
    assert swept(site).next_due(NOW) == NOW + 3600
    assert swept(site, keep=10.0).next_due(NOW) == NOW + 60


def test_sizes_are_looked_at_now_and_then(site):
    assert swept(site, keep=None, keep_size=GIB).next_due(NOW) == NOW + 600
    assert swept(site, keep_size=GIB).next_due(NOW) == NOW + 600


def test_where_everything_is_kept_nothing_is_due_after_a_first_look(site):
    assert swept(site, keep=None).next_due(NOW) is None


def test_what_could_not_be_removed_is_due_soon(site, monkeypatch):
    site.add(1)
    fail_at(monkeypatch, "retention.unlink=error")
    assert swept(site).next_due(NOW) == NOW + 600


def test_a_clock_that_was_set_back_makes_a_sweep_due(site):
    assert swept(site).next_due(NOW - DAY) == NOW - DAY


def held_up(monkeypatch, reached, released):
    """Let a sweep stand still when it has decided, until it is released."""

    def wait(name):
        if name == "retention.decided":
            reached.set()
            assert released.wait(20)

    monkeypatch.setattr(retention, "failpoint", wait)


def test_nothing_is_due_while_a_sweep_is_under_way_and_a_second_does_nothing(site, monkeypatch):
    site.add(1)
    reached, released = threading.Event(), threading.Event()
    held_up(monkeypatch, reached, released)

    async def scene():
        found = site.retention()
        first = asyncio.create_task(found.sweep())
        await asyncio.to_thread(reached.wait, 20)
        assert found.next_due(NOW + 99 * DAY) is None
        assert await found.sweep() == 0
        released.set()
        assert await first == 1

    asyncio.run(scene())


def test_a_cancelled_sweep_ends_with_the_piece_that_is_under_way(site, monkeypatch):
    monkeypatch.setattr(retention, "_FILES_AT_ONCE", 2)
    first, second = site.add(1), site.add(2)
    reached, released = threading.Event(), threading.Event()
    held_up(monkeypatch, reached, released)

    async def scene():
        sweep = asyncio.create_task(site.retention().sweep())
        await asyncio.to_thread(reached.wait, 20)
        sweep.cancel()
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await sweep

    asyncio.run(scene())
    assert site.marks(first) == GONE
    assert (site.files(second), site.marks(second)) == (ALL, KEPT)
