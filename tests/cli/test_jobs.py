"""`jobman list`, `why` and `wait`."""

import time

import pytest

from jobman.control.answers import Estimate
from tests.cli.stub import Script, make_job

NEEDS_A_JOB = ["why", "details", "logs", "events", "cancel", "wait", "connect", "rerun"]


@pytest.fixture
def now():
    return time.time()


@pytest.fixture
def jobs(service, now):
    service.add(
        make_job("old", "succeeded", submitted_at=now - 9000, ended_at=now - 8000, counts={"succeeded": 1})
    )
    service.add(
        make_job(
            "sweep",
            identity="0f3a91c2d4e5",
            submitted_at=now - 200,
            counts={"succeeded": 3, "running": 2, "waiting": 3, "retried": 4},
            labels={"team": "blue"},
            flavor="small",
        )
    )
    service.add(make_job("wait", "waiting", submitted_at=now - 20, held=True, reason="held by its document"))
    service.add(make_job("theirs", "running", owner="bob", submitted_at=now - 10))
    return service


def rows(answer):
    return [text.split()[1] for text in answer.out.splitlines()[1:]]


# -- list ---------------------------------------------------------------------------------------------------


def test_your_jobs_are_listed_the_newest_first(jobman, jobs):
    answer = jobman("list")
    assert (answer.code, answer.err) == (0, "")
    assert rows(answer) == ["wait", "sweep", "old"]


def test_a_row_says_how_far_a_job_is(jobman, jobs):
    answer = jobman("list", "--name", "sw*")
    head, row = answer.out.splitlines()
    assert head.split() == ["id", "name", "state", "done", "submitted", "took", "flavor"]
    assert row.split()[:4] == ["0f3a91c2d4e5", "sweep", "running", "3/8"]
    assert "3 min ago" in row


def test_queues_are_told_where_there_are_several(jobman, service, now):
    for name, queue in (("a", "batch"), ("b", "batch"), ("c", "night")):
        service.add(make_job(name, "running", submitted_at=now - 10, queue=queue))
    assert "queue" in jobman("list").out.splitlines()[0].split()
    assert "queue" not in jobman("list", "--name", "a").out.splitlines()[0].split()


def test_a_job_that_is_held_says_so_and_why(jobman, jobs):
    row = jobman("list", "--state", "waiting").out.splitlines()[1]
    assert row.split()[2] == "held"
    assert row.endswith("held by its document")


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (Estimate(starts_now=True), "now"),
        (Estimate(guaranteed_by=None, position=2), "no promise"),
        (Estimate(guaranteed_by=4_102_444_800.0), "by 2100-01-01 00:00:00Z"),
        (None, ""),
    ],
)
def test_a_job_that_waits_says_by_when_it_starts(jobman, service, estimate, words):
    service.add(make_job("wait", "waiting", estimate=estimate))
    head, row = jobman("list", "--utc").out.splitlines()
    assert ("starts" in head) == bool(words)
    assert row.endswith(words)


def test_everybodys_jobs_have_owners(jobman, jobs):
    answer = jobman("list", "--all-users")
    assert answer.out.splitlines()[0].split()[:3] == ["id", "name", "owner"]
    assert rows(answer)[0] == "theirs"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--state", "running"), ["sweep"]),
        (("--state", "running,waiting"), ["wait", "sweep"]),
        (("--state", "running", "--state", "succeeded"), ["sweep", "old"]),
        (("--name", "*e*"), ["sweep"]),
        (("-l", "team=blue"), ["sweep"]),
        (("--since", "1h"), ["wait", "sweep"]),
        (("-n", "1"), ["wait"]),
    ],
)
def test_a_list_can_be_narrowed(jobman, jobs, arguments, wanted):
    assert rows(jobman("list", *arguments)) == wanted


def test_more_than_fit_are_mentioned(jobman, jobs):
    answer = jobman("list", "-n", "2")
    assert len(rows(answer)) == 2
    assert "there are more than 2" in answer.err


def test_no_jobs_are_no_answer_and_no_error(jobman, service):
    assert jobman("list") == (0, "", "jobman: there are no such jobs\n")
    assert jobman("list", "-o", "json").data == {"items": [], "cursor": None}


def test_a_list_as_data_has_moments_as_numbers(jobman, jobs, now):
    data = jobman("list", "-o", "json").data
    assert [job["name"] for job in data["items"]] == ["wait", "sweep", "old"]
    assert data["items"][1]["submitted_at"] == pytest.approx(now - 200)


def test_moments_in_utc(jobman, jobs, now):
    assert time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now - 200)) in jobman("list", "--utc").out


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_list_fits_the_terminal(jobman, jobs, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, jobman("list").out.splitlines())) <= width


def test_states_have_colours_where_they_are_wanted(jobman, jobs, monkeypatch):
    assert "\x1b" not in jobman("list").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[36mrunning\x1b[0m" in jobman("list").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in jobman("list").out


@pytest.mark.parametrize(
    "arguments", [("--state", "done"), ("-l", "team"), ("--since", "soon"), ("-n", "0"), ("-n", "many")]
)
def test_a_wrong_filter_ends_with_2(jobman, service, arguments):
    answer = jobman("list", *arguments)
    assert (answer.code, answer.out) == (2, "")


# -- naming a job -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("sweep",), ("0f3",), ("-j", "sweep"), ("--job-name", "0f3a91c2d4e5")])
@pytest.mark.parametrize("command", ["why", "details", "logs", "log", "events", "cancel", "hold", "release"])
def test_a_job_is_named_by_id_start_of_it_or_name(jobman, jobs, command, words):
    assert jobman(command, *words).code == 0
    assert any("/v1/jobs/" in one for one in jobs.requests)


@pytest.mark.parametrize("command", NEEDS_A_JOB)
def test_a_command_without_its_job_ends_with_2(jobman, service, command):
    answer = jobman(command)
    assert (answer.code, answer.out) == (2, "")
    assert "which job?" in answer.err


@pytest.mark.parametrize("command", NEEDS_A_JOB)
def test_a_job_that_is_not_there_ends_with_1_and_an_advice(jobman, service, command):
    answer = jobman(command, "nowhere")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "jobman: there is no job nowhere\n        `jobman list` shows yours\n"


def test_a_start_that_several_jobs_have_ends_with_2(jobman, service):
    service.add(make_job("a", identity="0f3a"))
    service.add(make_job("b", identity="0f3b"))
    answer = jobman("details", "0f3")
    assert (answer.code, answer.out) == (2, "")
    assert "0f3 is the start of 2 jobs" in answer.err


# -- wait ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "exit_code", "wanted"),
    [("succeeded", 0, 0), ("failed", 7, 7), ("failed", None, 1), ("cancelled", None, 1)],
)
def test_waiting_ends_with_the_code_of_the_job(jobman, service, state, exit_code, wanted):
    service.add(make_job("a", identity="0f3a"), Script(state=state, exit_code=exit_code))
    answer = jobman("wait", "a")
    assert answer.code == wanted
    assert answer.out.splitlines()[1].split()[:3] == ["0f3a", "a", state]


def test_of_several_jobs_the_worst_code_counts(jobman, service):
    for name, code in (("a", 0), ("b", 9), ("c", 2)):
        service.add(make_job(name), Script(state="failed" if code else "succeeded", exit_code=code))
    assert jobman("wait", "a", "b", "-j", "c").code == 9


def test_waiting_too_long_ends_with_1(jobman, service):
    service.add(make_job("a"), Script(endless=True))
    answer = jobman("wait", "a", "--timeout", "0.2")
    assert answer.code == 1
    assert "gave up waiting for a" in answer.err


def test_a_wrong_timeout_ends_with_2(jobman, service):
    assert jobman("wait", "a", "--timeout", "soon").code == 2


def test_a_job_that_is_over_is_not_waited_for(jobman, service):
    service.add(make_job("a", "failed", exit_code=5, ended_at=1.0))
    assert jobman("wait", "a", "-o", "json").data["exit_code"] == 5
