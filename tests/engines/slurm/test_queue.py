"""What squeue and sacct say, as values."""

from __future__ import annotations

import time
from math import inf

import pytest

from jobman.engines.slurm.compile import comment
from jobman.engines.slurm.queue import minutes, moment, read_accounts, read_queue, read_rows, whose

OURS = comment("0123456789ab", "train")


def line(id_: str = "7", state: str = "PENDING", reason: str = "Priority", said: str = OURS) -> str:
    return f"{id_}|{state}|N/A|N/A||{reason}|{said}\n"


@pytest.mark.parametrize(
    ("word", "reason", "state"),
    [
        ("PENDING", "Priority", "waiting"),
        ("PENDING", "JobHeldUser", "held"),
        ("PENDING", "JobHeldAdmin", "held"),
        ("REQUEUE_HOLD", "", "held"),
        ("RUNNING", "None", "running"),
        ("COMPLETING", "None", "running"),
        ("COMPLETING", "job requeued in held state", "held"),
        ("SUSPENDED", "None", "frozen"),
        ("STOPPED", "None", "frozen"),
        ("COMPLETED", "None", "over"),
        ("SOMETHING_NEW", "None", "over"),
    ],
)
def test_a_state_of_slurm_is_one_of_ours(word: str, reason: str, state: str) -> None:
    (found,) = read_queue(line(state=word, reason=reason))
    assert (found.state, found.job, found.piece, found.id) == (state, "0123456789ab", "train", "7")


@pytest.mark.parametrize(
    ("word", "failure"),
    [("TIMEOUT", "timeout"), ("NODE_FAIL", "node-lost"), ("PREEMPTED", "preempted"), ("COMPLETED", "")],
)
def test_a_failure_is_told_with_its_reason(word: str, failure: str) -> None:
    (found,) = read_queue(line(state=word))
    assert found.failure == failure


def test_elements_of_an_array_are_told_apart_and_those_that_wait_are_one() -> None:
    text = line("7_3", "RUNNING", "None") + line("7_[4-9%2]")
    assert [(found.id, found.element) for found in read_queue(text)] == [("7", 3), ("7", None)]


def test_the_components_of_a_heterogeneous_job_are_one() -> None:
    text = line("7+0", reason="Priority") + line("7+1", reason="Resources") + line("8")
    found = list(read_queue(text))
    assert [(each.id, each.element, each.reason) for each in found] == [
        ("7", None, "Resources"),
        ("8", None, "Priority"),
    ]


@pytest.mark.parametrize(
    ("words", "state", "failure"),
    [
        (("RUNNING", "RUNNING"), "running", ""),
        (("COMPLETED", "COMPLETING"), "running", ""),
        (("COMPLETED", "COMPLETED"), "over", ""),
        (("CANCELLED", "NODE_FAIL"), "over", "node-lost"),
    ],
)
def test_a_heterogeneous_job_is_over_when_all_of_it_is(
    words: tuple[str, str], state: str, failure: str
) -> None:
    for first, second in (words, words[::-1]):
        (found,) = read_queue(line("7+0", first, "None") + line("7+1", second, "None"))
        assert (found.state, found.failure) == (state, failure)


def test_a_heterogeneous_job_starts_when_the_last_of_it_can() -> None:
    at = "2026-01-01T00:00:00"
    (found,) = read_queue(f"7+0|PENDING|{at}|N/A|||{OURS}\n7+1|PENDING|2026-01-01T01:00:00|N/A|||{OURS}\n")
    assert found.starts_at == (moment(at) or 0) + 3600


def test_jobs_of_others_are_passed_over() -> None:
    text = line(said="(null)") + line(said="") + line(said="some:thing:x") + "no line of ours\n\n" + line()
    assert len(list(read_queue(text))) == 1


def test_a_comment_of_the_document_may_have_bars_and_lines_in_it() -> None:
    found = list(read_queue(line(said=f"{OURS};a|b\nc|d|e|f|g|h|jobman")))
    assert [(each.piece, each.reason) for each in found] == [("train", "Priority")]


@pytest.mark.parametrize("said", ["", "jobman", "jobman:", "jobman:x", "jobman:x:", "other:a:b"])
def test_a_comment_that_is_not_ours_names_nobody(said: str) -> None:
    assert whose(said) is None


def test_a_piece_may_have_any_name_a_task_may_have() -> None:
    assert whose(comment("ab", "a.b-c_d")) == ("ab", "a.b-c_d")


def test_accounts_are_read_and_what_is_no_job_is_passed_over() -> None:
    text = "7|COMPLETED|2026-01-01T00:00:00\n8_2|CANCELLED by 0|Unknown\n7.batch|FAILED|\nrubbish\n"
    found = list(read_accounts(text))
    assert [(each.id, each.element, each.state, each.failure) for each in found] == [
        ("7", None, "over", ""),
        ("8", 2, "over", ""),
    ]
    assert found[0].ends_at is not None
    assert found[1].ends_at is None


def test_accounts_of_components_are_one() -> None:
    text = "7+0|COMPLETED|2026-01-01T00:00:00\n7+1|NODE_FAIL|2026-01-01T00:00:01\n7+0.batch|COMPLETED|\n"
    (found,) = read_accounts(text)
    assert (found.id, found.state, found.failure) == ("7", "over", "node-lost")
    assert found.ends_at == moment("2026-01-01T00:00:01")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10:00", 10),
        ("0:30", 1),
        ("1:00:00", 60),
        ("2-00:00:00", 2880),
        ("UNLIMITED", inf),
        ("INVALID", inf),
    ],
)
def test_limits_are_counted_in_minutes(text: str, expected: float) -> None:
    assert minutes(text) == expected


def test_a_heterogeneous_job_is_counted_once() -> None:
    rows = read_rows("main|ada|PENDING|7+0\nlong|ada|PENDING|7+1\nmain|ada|PENDING|8_3\n", "ada")
    assert [(row.name, row.waiting) for row in rows] == [("main", 2)]


def test_partitions_count_who_waits_and_who_runs() -> None:
    rows = read_rows("main|ada|PENDING\nmain|bob|RUNNING\nmain|ada|RUNNING\nlong|bob|PENDING\n", "ada")
    assert [(row.name, row.waiting, row.running, row.yours_waiting, row.yours_running) for row in rows] == [
        ("long", 1, 0, 0, 0),
        ("main", 1, 2, 1, 1),
    ]


def test_times_are_those_of_this_machine() -> None:
    written = "2026-03-01T14:00:00"
    assert time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment(written))) == written
    assert moment("N/A") is moment("Unknown") is moment("") is None
