"""Submissions that are interrupted, on a real Slurm: never twice, and never half without a word of it."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jobman.client.failures import Refused, Unreachable
from jobman.engines.failpoints import VARIABLE
from jobman.engines.scripts import commands
from jobman.engines.slurm import engine
from lab.components import FOLDER as LAB
from tests.engines.slurm.ground import Ground, a_slurm, eventually, on_a_real_slurm, python, wrapped

pytestmark = on_a_real_slurm

GRAPH = """
- {name: first, command: [sh, -c, "echo first >>ledger"]}
- {name: second, depends_on: first, command: [sh, -c, "echo second >>ledger"]}
- {name: third, depends_on: second, command: [sh, -c, "echo third >>ledger"]}
- {name: tidy, when: always, command: [sh, -c, "echo tidy >>ledger"]}
"""
NAMES = ["first", "second", "third", "tidy"]
PIECES = [f"fault/{name}" for name in NAMES]
SINGLE = '- {name: first, command: [sh, -c, "echo first >>ledger"]}'
POINTS = (
    "batch.before-register=kill",
    *(f"batch.before-submit=kill@{time}" for time in (1, 3)),
    *(f"batch.after-submit=kill@{time}" for time in (1, 2, 4)),
    "batch.before-release=kill",
    "batch.after-release=kill",
)
HALF = "its submission was interrupted"
TIMED_OUT = 'echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2'


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with a_slurm("faults", tmp_path) as made:
        yield made


def submitter(ground: Ground, document: str = GRAPH, **variables: str) -> subprocess.Popen[bytes]:
    """Another process that submits a document."""
    (ground.folder / "document").write_text(document)
    return python(ground, "tests.engines.slurm.submitting", str(ground.folder), ground.key, **variables)


def killed(ground: Ground, point: str, document: str = GRAPH) -> None:
    process = submitter(ground, document, **{VARIABLE: point})
    assert process.wait(60) == -signal.SIGKILL


# -- whoever submits dies ------------------------------------------------------------------------------------


def test_a_submission_that_was_killed_anywhere_is_completed_by_the_same_key(ground: Ground) -> None:
    grounds = [ground.beside(str(number)) for number in range(len(POINTS))]
    for each, point in zip(grounds, POINTS, strict=True):
        killed(each, point)
    assert [each.said() for each in grounds[1:]] == [HALF] * (len(POINTS) - 1)
    assert [each.ran() for each in grounds[:-1]] == [[]] * (len(POINTS) - 1)
    jobs = [each.submit(GRAPH, key=each.key) for each in grounds]
    for each, job in zip(grounds, jobs, strict=True):
        assert (job.wait().state, each.ran()) == ("succeeded", NAMES)
    assert ground.natives() == sorted(PIECES * len(POINTS))


def test_a_submission_that_is_killed_at_any_moment_is_completed_by_the_same_key(ground: Ground) -> None:
    grounds = [ground.beside(str(number)) for number in range(8)]
    for each in grounds:
        process = submitter(each)
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.2, 1.2))
        process.kill()
        process.wait()
    jobs = [each.submit(GRAPH, key=each.key) for each in grounds]
    for each, job in zip(grounds, jobs, strict=True):
        assert (job.wait().state, each.ran()) == ("succeeded", NAMES)
    assert ground.natives() == sorted(PIECES * len(grounds))


def test_what_is_left_of_it_can_be_completed_by_a_release(ground: Ground) -> None:
    killed(ground, "batch.after-submit=kill@2")
    (job,) = ground.client.jobs()
    assert HALF in job.reason
    handle = ground.handle(job.id)
    assert (
        f"`jobman release {job.id}` completes it, `jobman cancel {job.id}` gives it up"
        in handle.why().summary
    )
    assert ground.natives("PENDING") == PIECES[:2]
    handle.release()
    assert handle.wait().state == "succeeded"
    assert (ground.ran(), ground.natives()) == (NAMES, PIECES)


def test_what_is_left_of_it_can_be_given_up(ground: Ground) -> None:
    killed(ground, "batch.after-submit=kill@2")
    (job,) = ground.client.jobs()
    handle = ground.handle(job.id)
    handle.cancel()
    assert handle.wait().state == "cancelled"
    assert (ground.ran(), ground.natives("PENDING", "RUNNING")) == ([], [])


def test_a_single_task_that_ran_though_nobody_heard_of_it_does_not_run_again(ground: Ground) -> None:
    killed(ground, "batch.after-submit=kill@1", SINGLE)
    eventually(lambda: ground.ran() == ["first"], "that it runs")
    ground.forget_finished()
    job = ground.submit(SINGLE, key=ground.key)
    assert (job.wait().state, ground.ran()) == ("succeeded", ["first"])


def test_two_who_submit_the_same_at_once_submit_it_once(ground: Ground) -> None:
    both = [submitter(ground), submitter(ground)]
    assert [process.wait(60) for process in both] == [0, 0]
    (job,) = ground.client.jobs()
    assert ground.handle(job.id).wait().state == "succeeded"
    assert (ground.ran(), ground.natives()) == (NAMES, PIECES)


# -- answers that do not come --------------------------------------------------------------------------------


def test_an_answer_that_is_lost_submits_nothing_twice(ground: Ground) -> None:
    wrapped(
        ground,
        "sbatch",
        f"""
        mark=$here/lost-$(basename "${{@: -1}}")
        [ -e "$mark" ] && exec $real "$@"
        touch "$mark"
        $real "$@" >/dev/null
        {TIMED_OUT}
        exit 1
    """,
    )
    job = ground.submit(GRAPH)
    assert job.wait().state == "succeeded"
    assert (ground.ran(), ground.natives()) == (NAMES, PIECES)


def test_a_submission_that_arrives_late_does_not_run_a_second_time(ground: Ground) -> None:
    wrapped(
        ground,
        "sbatch",
        f"""
        [ -e "$here/late" ] && exec $real "$@"
        touch "$here/late"
        ( until [ -e "$here/ledger" ]; do sleep 0.1; done; $real "$@" ) >/dev/null 2>&1 &
        {TIMED_OUT}
        exit 1
    """,
    )
    job = ground.submit(SINGLE)
    assert job.wait().state == "succeeded"
    eventually(lambda: ground.natives("COMPLETED") == ["fault/first"] * 2, "the end of both")
    assert (job.look().state, ground.ran()) == ("succeeded", ["first"])


def test_a_command_that_hangs_is_given_up_and_what_it_did_is_found(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_PATIENCE", 3.0)
    wrapped(
        ground,
        "sbatch",
        """
        [ -e "$here/hung" ] && exec $real "$@"
        touch "$here/hung"
        $real "$@" >/dev/null
        exec sleep 600
    """,
    )
    job = ground.submit(GRAPH)
    assert job.wait().state == "succeeded"
    assert (ground.ran(), ground.natives()) == (NAMES, PIECES)


# -- the controller dies -------------------------------------------------------------------------------------


def test_a_controller_that_dies_between_two_tasks_and_forgets_the_last_loses_none(ground: Ground) -> None:
    wrapped(
        ground,
        "sbatch",
        f"""
        $real "$@" || exit
        case "${{@: -1}}" in */second.sh)
            [ -e "$here/died" ] && exit
            touch "$here/died"
            export JOBMAN_LAB_SLURM=faults
            {LAB}/slurm ctld stop >&2 && {LAB}/slurm ctld start >&2
        esac
    """,
    )
    job = ground.submit(GRAPH)
    assert job.wait().state == "succeeded"
    assert (ground.ran(), ground.natives()) == (NAMES, PIECES)


def test_a_controller_that_stays_away_leaves_word_of_the_half_that_is_there(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_AMBIGUOUS", 1.0)
    wrapped(
        ground,
        "sbatch",
        f"""
        case "${{@: -1}}" in */second.sh)
            if [ ! -e "$here/died" ]; then
                touch "$here/died"
                export JOBMAN_LAB_SLURM=faults
                {LAB}/slurm ctld restart >&2 && {LAB}/slurm ctld stop >&2
            fi
        esac
        exec $real "$@"
    """,
    )
    with pytest.raises(Unreachable) as told:
        ground.submit(GRAPH, key=ground.key)
    ground.lab("ctld", "start")
    (job,) = ground.client.jobs()
    assert f"`jobman release {job.id}` completes the submission" in told.value.advice
    assert (HALF in job.reason, ground.natives("PENDING"), ground.ran()) == (True, PIECES[:1], [])
    handle = ground.handle(job.id)
    handle.release()
    assert (handle.wait().state, ground.ran()) == ("succeeded", NAMES)


# -- Slurm says no -------------------------------------------------------------------------------------------


def test_a_graph_of_which_a_part_is_refused_leaves_nothing(ground: Ground) -> None:
    impossible = (
        '- {name: last, command: ["true"], attributes: {flags: {slurm: ["--constraint=unheard-of"]}}}'
    )
    with pytest.raises(Refused) as told:
        ground.submit(GRAPH + impossible)
    assert (told.value.code, told.value.exit_code) == ("does-not-fit", 4)
    assert list(ground.client.jobs()) == []
    assert (ground.natives("PENDING", "RUNNING"), ground.ran()) == ([], [])
    assert [place.name for place in (ground.folder / "jobs").iterdir()] == [".clusters.json"]
