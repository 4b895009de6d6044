"""`jobman run`: the output of the job, what is told beside it, and the exit code of the job."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from jobman.control.answers import Attempt, Estimate, LogLine, Replica
from tests.cli.stub import NOW, Script, line, make_job

PAIR = """\
version: 1
name: pair
tasks:
- {name: left, replicas: 2, command: [a], resources: {type: node, count: 1}}
- {name: right, command: [b], resources: {type: node, count: 1}, depends_on: [left]}
"""


def started(*arguments, **settings):
    """A command in a process of its own."""
    command = [sys.executable, "-m", "jobman.cli.main", *arguments]
    return subprocess.Popen(command, env={**os.environ, **settings.pop("env", {})}, **settings)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


# -- one copy: the command itself ---------------------------------------------------------------------------


def test_the_output_of_one_copy_is_exactly_that_of_the_command(jobman, service):
    service.scripts["echo"] = Script(
        [
            line("one", "echo.0"),
            line("  two ", "echo.0"),
            line("oops", "echo.0", stream="stderr"),
            line("", "echo.0"),
        ]
    )
    answer = jobman("run", "--", "echo")
    assert (answer.code, answer.out) == (0, "one\n  two \n\n")
    assert answer.err == "oops\n✔ echo succeeded in 2.0 s  0001beef\n"


def test_a_line_that_never_ends_is_not_given_an_end(real_jobman, service):
    service.scripts["printf"] = Script(
        [line("no ", "printf.0", partial=True), line("end", "printf.0", partial=True)]
    )
    assert real_jobman("run", "-q", "--", "printf").out == "no end"


def test_a_last_line_without_a_newline_is_not_given_one(real_jobman, service):
    service.scripts["printf"] = Script([line("one", "printf.0"), line("last", "printf.0", end=8)])
    assert real_jobman("run", "-q", "--", "printf").out == "one\nlast"


def test_quiet_prints_only_the_output(jobman, service):
    service.scripts["echo"] = Script([line("one", "echo.0"), line("oops", "echo.0", stream="stderr")])
    assert jobman("run", "-q", "--", "echo") == (0, "one\n", "oops\n")


def test_when_it_starts_is_said_before_its_output(jobman, service):
    service.estimates["echo"] = Estimate(position=2, queue="batch")
    service.scripts["echo"] = Script([line("one", "echo.0")])
    answer = jobman("run", "--", "echo")
    assert answer.out == "one\n"
    assert answer.err.splitlines() == [
        "jobman: no promise yet; 2nd in batch",
        "✔ echo succeeded in 2.0 s  0001beef",
    ]


def test_of_what_starts_at_once_nothing_is_said(jobman, service):
    service.estimates["echo"] = Estimate(starts_now=True)
    service.scripts["echo"] = Script([line("one", "echo.0")])
    assert jobman("run", "--", "echo").err.splitlines() == ["✔ echo succeeded in 2.0 s  0001beef"]


@pytest.mark.parametrize("option", [("-q",), ("-q", "-o", "json")])
def test_quiet_does_not_say_when_it_starts(jobman, service, option):
    service.estimates["echo"] = Estimate(position=2, queue="batch")
    assert jobman("run", *option, "--", "echo").err == ""


def test_what_if_says_when_it_would_start_and_runs_nothing(jobman, service):
    service.estimates["echo"] = Estimate(starts_now=True)
    answer = jobman("run", "--what-if", "--", "echo")
    assert answer == (0, "echo  would start now\n", "jobman: nothing was submitted\n")
    assert service.jobs == {}


def test_a_failed_job_ends_with_its_own_code_and_its_last_words(jobman, service):
    service.scripts["flop"] = Script(
        [line("begun", "flop.0"), line("\x1b[31mValueError\x1b[0m: no", "flop.0", stream="stderr")],
        state="failed",
        exit_code=42,
        replicas=[
            Replica(
                key="flop.0", unit="flop", index=0, state="failed", attempt=2, exit_code=42, reason="exit"
            )
        ],
    )
    answer = jobman("run", "-j", "flop", "--", "false")
    assert (answer.code, answer.out) == (42, "begun\n")
    assert answer.err.splitlines()[1:] == [
        "✘ flop failed in 2.0 s with exit code 42  0001beef",
        "  flop.0 failed (exit code 42, attempt 2); the last it wrote to stderr:",
        "    │ ValueError: no",
        "    all of it: jobman logs 0001beef --replica flop.0",
    ]


def test_a_job_that_failed_without_a_code_ends_with_1(jobman, service):
    service.scripts["x"] = Script(state="failed", exit_code=None, reason="its time was up")
    answer = jobman("run", "-j", "x", "--", "x")
    assert answer.code == 1
    assert answer.err == "✘ x failed in 2.0 s: its time was up  0001beef\n"


def test_a_cancelled_job_ends_with_1(jobman, service):
    service.scripts["x"] = Script(state="cancelled", exit_code=None, reason="cancelled by ada")
    assert jobman("run", "-j", "x", "--", "x").code == 1


# -- many copies --------------------------------------------------------------------------------------------


def test_lines_of_several_copies_stand_behind_their_names(jobman, service, write):
    service.scripts["pair"] = Script(
        [line("one", "left.0"), line("two", "left.1", stream="stderr"), line("three", "right.0")]
    )
    answer = jobman("run", write(PAIR))
    assert answer.out == "left.0  │ one\nright.0 │ three\n"
    assert answer.err.splitlines()[0] == "left.1  │ two"


def test_copies_of_one_replica_are_told_apart(jobman, service, write):
    service.scripts["pair"] = Script([line("one", "left.0", copy=1), line("two", "left.0", copy=2)])
    assert jobman("run", write(PAIR)).out == "left.0/1 │ one\nleft.0/2 │ two\n"


def test_pieces_of_a_line_are_put_together_before_they_are_mixed_with_others(jobman, service, write):
    service.scripts["pair"] = Script(
        [
            line("a", "left.0", partial=True),
            line("x", "left.1"),
            line("b", "left.0"),
            line("rest", "right.0", partial=True),
        ]
    )
    assert jobman("run", write(PAIR)).out == "left.1  │ x\nleft.0  │ ab\nright.0 │ rest\n"


def test_the_summary_shows_every_task(jobman, service, write):
    def attempt(replica, start, end):
        return Attempt(replica=replica, attempt=1, granted_at=NOW, started_at=NOW + start, ended_at=NOW + end)

    service.scripts["pair"] = Script(
        seconds=5,
        counts={"left": {"succeeded": 2, "retried": 1}, "right": {"succeeded": 1}},
        attempts=[attempt("left.0", 0, 3), attempt("left.1", 1, 3.5), attempt("right.0", 4, 5)],
    )
    assert jobman("run", write(PAIR)).err.splitlines()[-4:] == [
        "✔ pair succeeded in 5.0 s  0001beef",
        "  task   outcome    replicas  succeeded  retried   time  longest",
        "  left   succeeded         2          2        1  3.5 s    3.0 s",
        "  right  succeeded         1          1           1.0 s",
    ]


def test_a_task_that_has_ended_is_told_where_nobody_sees_bars(jobman, service, write):
    def on_line(job, number):
        job.tasks[0].outcome, job.tasks[0].counts = "succeeded", {"succeeded": 2}
        wait_for(lambda: sum("GET /v1/jobs/0001beef" in one for one in service.requests) > 4)

    service.scripts["pair"] = Script([line("late", "right.0")], on_line=on_line)
    assert "jobman: left succeeded\n" in jobman("run", write(PAIR)).err


def test_several_jobs_of_one_document_are_followed_together(jobman, service, write):
    task = "tasks: [{name: t, command: [a], resources: {type: node, count: 1}}]\n"
    service.scripts["good"] = Script([line("g", "t.0")])
    service.scripts["bad"] = Script([line("b", "t.0")], state="failed", exit_code=3)
    answer = jobman("run", write(f"version: 1\nname: good\n{task}---\nversion: 1\nname: bad\n{task}"))
    assert answer.code == 3
    assert sorted(answer.out.splitlines()) == ["bad:t.0 │ b", "good:t.0 │ g"]


def test_the_answer_as_data_is_the_job_and_its_output_stands_aside(jobman, service):
    service.scripts["echo"] = Script([line("one", "echo.0")])
    answer = jobman("run", "-o", "json", "--", "echo")
    assert (answer.data["state"], answer.data["exit_code"]) == ("succeeded", 0)
    assert answer.err == "one\n"


# -- wrong uses ---------------------------------------------------------------------------------------------


def test_a_wrong_document_is_told_and_nothing_is_run(jobman, service, write):
    answer = jobman("run", write("version: 1\ntasks: []\n"))
    assert (answer.code, answer.out) == (3, "")
    assert "job.yaml:" in answer.err


@pytest.mark.parametrize("arguments", [(), ("python", "train.py"), ("-i", "x", "job.yaml"), ("--",)])
def test_a_wrong_use_ends_with_2(jobman, service, arguments):
    answer = jobman("run", *arguments)
    assert (answer.code, answer.out) == (2, "")


def test_a_job_that_is_there_is_gone_on_with(jobman, service):
    service.add(make_job("echo"), Script([line("one", "echo.0")]))
    assert jobman("run", "-q", "--resume", "echo").out == "one\n"


@pytest.mark.parametrize("more", [("job.yaml",), ("--", "true")])
def test_who_goes_on_with_a_job_gives_no_other(jobman, service, more):
    answer = jobman("run", "--resume", "echo", *more)
    assert (answer.code, answer.out) == (2, "")
    assert "--resume" in answer.err


def test_an_engine_that_is_not_there_ends_with_5(jobman, service, monkeypatch):
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert jobman("run", "--engine", "slurm", "--", "true").code == 5


# -- people and terminals -----------------------------------------------------------------------------------


def test_ctrl_c_detaches_and_says_how_to_return(service):
    service.scripts["sleep"] = Script([line("begun", "sleep.0")], endless=True)
    process = started("run", "--", "sleep", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "the job goes on" in told
    assert "jobman logs -f 0001beef" in told
    assert "jobman cancel 0001beef" in told
    assert service.jobs["0001beef"].details.state == "running"


def test_a_reader_that_has_gone_detaches_too(service):
    service.scripts["yes"] = Script([line("y" * 1000, "yes.0") for _ in range(1000)], endless=True)
    process = started("run", "--", "yes", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert "the job goes on" in process.stderr.read()


def test_a_terminal_shows_bars_below_the_lines_and_the_lines_unchanged(service, write):
    painted = "\x1b[35mpainted\x1b[0m [bold]not markup[/] :smile: " + "x" * 200

    def on_line(job, number):
        wait_for(lambda: sum("GET /v1/jobs/0001beef" in one for one in service.requests) > 4)

    service.scripts["pair"] = Script(
        [line(painted, "left.0"), line("half", "left.1", partial=True)], on_line=on_line
    )
    ours, theirs = pty.openpty()
    process = started("run", write(PAIR), stdout=theirs, stderr=theirs, env={"TERM": "xterm-256color"})
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(ours)
    assert process.wait(timeout=20) == 0
    text = shown.decode()
    assert f"{painted}\r\n" in text
    assert "half\r\n" in text
    assert "━" in text
    assert "pair  running" in text
    assert text.rstrip().splitlines()[-4].startswith("\x1b[1;32m✔")


def test_a_note_of_the_service_is_no_output(jobman, service):
    note = LogLine(at=NOW, replica="echo.0", attempt=1, copy=0, stream="note", text="12 lines were lost")
    service.scripts["echo"] = Script([note, line("one", "echo.0")])
    answer = jobman("run", "--", "echo")
    assert answer.out == "one\n"
    assert "── 12 lines were lost\n" in answer.err


@pytest.mark.parametrize(
    "words", [("logs", "-f", "sleep"), ("events", "-f", "sleep"), ("wait", "sleep"), ("list", "--watch")]
)
def test_ctrl_c_ends_what_would_go_on_for_ever(service, words):
    service.add(make_job("sleep"), Script(endless=True))
    process = started(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: any("follow=true" in one or "limit=50" in one for one in service.requests))
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert (process.returncode, told.strip()) == (130, "")
