"""`jobman task submit`: tasks from lines, once under a key, and followed until all have ended."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from jobman.tasks.quotas import Quota
from jobman.tasks.submissions import LARGEST
from tests.tasks.site import Site


def results_of(answer):
    return [json.loads(line) for line in answer.out.splitlines()]


def in_order(answer):
    return [each["result"] for each in sorted(results_of(answer), key=lambda each: each["index"])]


# -- what is submitted --------------------------------------------------------------------------------------


def test_every_line_is_a_task(jobman, site, write):
    answer = jobman("task", "submit", "--type", "square", "-f", write("2\n3\n4", "numbers"), "--results")
    assert (answer.code, in_order(answer)) == (0, ["4", "9", "16"])
    assert answer.err.startswith("jobman: 3 completed in ")


def test_lines_come_from_standard_input_too(jobman, site):
    answer = jobman("task", "submit", "-t", "square", "-f", "-", "--results", stdin="5\n6\n")
    assert in_order(answer) == ["25", "36"]


def test_one_task_is_given_a_text_and_many_their_numbers(jobman, site):
    assert in_order(jobman("task", "submit", "-t", "square", "--payload", "7", "--results")) == ["49"]
    assert in_order(jobman("task", "submit", "-t", "square", "--count", 4, "--results")) == [
        "0",
        "1",
        "4",
        "9",
    ]


def test_results_are_words_where_somebody_asks_for_words(jobman, site):
    answer = jobman("task", "submit", "-t", "square", "--payload", "7", "--results", "-o", "table")
    words = answer.out.split()
    assert (words[0].endswith("/0"), words[1], words[-1]) == (True, "completed", "49")


def test_the_numbers_of_batches_are_the_answer(jobman, site):
    answer = jobman("task", "submit", "-t", "square", "--count", 5, "--chunk", 2)
    batches = answer.out.split()
    assert [batch.isdecimal() for batch in batches] == [True] * 3
    assert answer.err == (
        f"jobman: 5 tasks submitted in 3 batches; follow with `jobman task results -f {' '.join(batches)}`\n"
    )


def test_as_data_it_says_which_lines_are_in_which_batch(jobman, site):
    found = jobman("task", "submit", "-t", "square", "--count", 5, "--chunk", 2, "-w", "-o", "json").data
    assert [(each["size"], each["first"]) for each in found["batches"]] == [(2, 1), (2, 3), (1, 5)]
    assert (found["tasks"], found["counts"]) == (5, {"completed": 5})


def test_options_reach_the_broker(jobman, site):
    options = ("--version", "1.4", "--estimate", "20ms", "--priority", "high", "--deadline", "1h")
    more = ("--retries", 2, "--retry-delay", "1s", "--name", "desk")
    (batch,) = jobman("task", "submit", "-t", "square", "--payload", "2", *options, *more).out.split()
    head = site.service.broker.heads[int(batch)]
    assert (head.version, head.estimates, head.priority, head.name) == ("1.4", 0.02, 10, "desk")
    assert (head.retries.limit, head.retries.delay, head.ends_at is not None) == (2, 1.0, True)


def test_references_are_places_of_payloads(jobman, site, write):
    (batch,) = jobman(
        "task", "submit", "-t", "square", "--references", "-f", write("file:/data/one\n", "places")
    ).out.split()
    assert site.service.broker.heads[int(batch)].by_reference


# -- once ---------------------------------------------------------------------------------------------------


def test_the_same_command_under_a_key_submits_nothing_twice(jobman, site, write):
    words = ("task", "submit", "-t", "square", "-f", write("1\n2\n3\n", "numbers"), "--chunk", 2)
    first = jobman(*words, "--key", "night")
    assert jobman(*words, "--key", "night", "--wait").out == first.out
    assert site.executed == 3
    assert jobman(*words, "--key", "day", "--wait").out != first.out


def test_who_comes_again_under_a_key_sees_what_has_ended_before(jobman, site):
    words = ("task", "submit", "-t", "square", "--count", 3, "--key", "night", "--results")
    assert in_order(jobman(*words)) == in_order(jobman(*words)) == ["0", "1", "4"]
    assert site.executed == 3


# -- what is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1\n\n2\n", (), "lines:2: the line is empty"),
        (f"1\n{'x' * (LARGEST + 1)}\n", (), f"lines:2: a payload has at most {LARGEST:,} bytes"),
        ("s3://a/b\nnowhere\n", ("--references",), "lines:2: `nowhere` is no reference"),
        ("", (), "lines: there is no line in it"),
    ],
)
def test_a_line_that_cannot_be_a_task_is_told_with_its_place(jobman, site, write, text, options, message):
    answer = jobman("task", "submit", "-t", "square", "-f", write(text, "lines"), *options)
    assert (answer.code, answer.out) == (3, "")
    assert f"jobman: {message}" in answer.err
    assert "nothing was submitted" in answer.err
    assert not site.service.broker.batches


def test_of_a_stream_it_says_what_was_accepted_before(jobman, site):
    answer = jobman("task", "submit", "-t", "square", "-f", "-", "--chunk", 2, stdin="1\n2\n3\n\n")
    assert (answer.code, len(site.service.broker.batches)) == (3, 1)
    (batch,) = site.service.broker.batches
    assert "standard input:4: the line is empty" in answer.err
    accepted = f"2 tasks (up to line 2) were accepted: {batch}"
    assert f"{accepted}; `jobman task cancel {batch}` ends them" in answer.err


def test_one_task_was_accepted_and_several_were(jobman, site):
    words = ("task", "submit", "-t", "square", "-f", "-", "--chunk", 1)
    assert "1 task (up to line 1) was accepted" in jobman(*words, stdin="1\n\n").err


def test_under_a_key_the_same_command_goes_on(jobman, site):
    words = ("task", "submit", "-t", "square", "-f", "-", "--chunk", 2, "--key", "k")
    assert "the same command goes on behind them" in jobman(*words, stdin="1\n2\n\n").err
    assert jobman(*words, "-w", stdin="1\n2\n3\n").code == 0
    assert site.executed == 3


def test_a_file_that_is_not_there_ends_with_3(jobman, site):
    answer = jobman("task", "submit", "-t", "square", "-f", "nowhere", "-o", "json")
    assert (answer.code, answer.data["code"], answer.data["place"]) == (3, "wrong-line", "nowhere")


def test_an_unknown_type_ends_with_4_and_the_known_ones(jobman, site):
    answer = jobman("task", "submit", "-t", "squares", "--payload", "1")
    assert (answer.code, answer.out) == (4, "")
    assert "the known types are: square" in answer.err
    wrong = jobman("task", "submit", "-t", "square", "--version", "7", "--payload", "1", "-o", "json")
    assert (wrong.code, wrong.data["code"], wrong.data["exit"]) == (4, "unmappable", 4)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--payload", "1", "--count", "2"),
        ("--payload", "1", "--references"),
        ("--payload", "1", "--estimate", "soon"),
        ("--payload", "1", "--priority", "urgent"),
        ("--payload", "1", "--broker", "nonsense"),
        ("--payload", "1", "-p", "nothing"),
    ],
)
def test_a_wrong_use_ends_with_2(jobman, site, options):
    assert jobman("task", "submit", "-t", "square", *options).code == 2


def test_a_task_that_fails_is_the_exit_code_and_told(jobman, site):
    answer = jobman("task", "submit", "-t", "square", "-f", "-", "--wait", stdin="1\nmany\n")
    (batch,) = answer.out.split()
    assert answer.code == 1
    assert "jobman: 1 completed, 1 failed in " in answer.err
    assert f"`jobman task results --failed {batch}` says why" in answer.err


# -- which broker -------------------------------------------------------------------------------------------


def test_a_broker_that_is_away_ends_with_5(jobman, tmp_path, monkeypatch):
    monkeypatch.setattr("jobman.tasks.courier._FIRST_PATIENCE", 0.1)
    answer = jobman("task", "submit", "-t", "square", "--count", 1, "--broker", tmp_path / "nobody")
    assert (answer.code, answer.out) == (5, "")
    assert f"the broker at {tmp_path}/nobody does not answer" in answer.err


def test_the_settings_name_a_broker(jobman, site, monkeypatch, write):
    monkeypatch.delenv("JOBMAN_BROKER")
    settings = write(f"tasks: {{broker: {site.url}}}\n", "settings.yaml")
    assert jobman("-s", settings, "task", "submit", "-t", "square", "--payload", "3", "-w").code == 0


def test_without_a_token_a_broker_that_wants_one_ends_it_with_6(jobman, tmp_path, monkeypatch):
    with Site(tmp_path, tokens={"secret": "desk"}) as site:
        words = ("task", "submit", "-t", "square", "--payload", "3", "--broker", site.url)
        assert jobman(*words).code == 6
        assert jobman(*words, "--token", "wrong", "-o", "json").data["code"] == "unauthorized"
        assert jobman(*words, "--token", "secret").code == 0
        monkeypatch.setenv("JOBMAN_TOKEN", "secret")
        assert jobman(*words).code == 0


def test_more_than_a_quota_ends_with_6_and_says_how_much_there_is(jobman, tmp_path):
    with Site(tmp_path, quotas={"desk": Quota(tasks=3)}) as site:
        words = ("task", "submit", "-t", "square", "--broker", site.url, "--tenant", "desk")
        answer = jobman(*words, "--count", 5)
        assert (answer.code, answer.out) == (6, "")
        assert "more than the 3 you may have" in answer.err
        assert jobman(*words, "--count", 5, "--chunk", 3, "--wait").code == 0


# -- on a terminal ------------------------------------------------------------------------------------------


def on_a_terminal(*words):
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jobman.cli.main", *words],
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    with suppress(OSError):  # nobody has the terminal open any more
        while piece := os.read(ours, 65536):
            written += piece
    os.close(ours)
    assert process.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def test_a_terminal_shows_a_bar_or_the_results_and_not_one_over_the_other(site):
    words = ("task", "submit", "-t", "square", "--count", "30")
    assert "square ━" in on_a_terminal(*words, "--wait")
    shown = on_a_terminal(*words, "--results")
    assert shown.count('{"batch"') == 30
    assert "square ━" not in shown


# -- Ctrl-C -------------------------------------------------------------------------------------------------


def test_ctrl_c_detaches_and_says_how_to_return(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    async def hold(payload):
        import asyncio

        begun.set()
        await asyncio.to_thread(go_on.wait, 60)
        return payload

    with Site(tmp_path, hold) as site:
        words = ("task", "submit", "-t", "square", "--payload", "3", "--name", "night", "--wait")
        process = subprocess.Popen(
            [sys.executable, "-m", "jobman.cli.main", *words],
            env={**os.environ, "JOBMAN_BROKER": site.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        assert begun.wait(60)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        go_on.set()
    assert process.returncode == 130
    assert "return with `jobman task results -f night`" in err
    assert "end them with `jobman task cancel night`" in err
