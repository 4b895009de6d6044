"""What is said of an end, from what was seen of it."""

import pytest

from jobman.engines.endings import size_words
from jobman.engines.local.ending import Seen, conclude, signal_name, signal_number
from jobman.engines.local.orders import Order
from jobman.engines.local.records import Refusal, Started

ORDER = Order(id="x", folder="/x", memory=64 << 20)
EXIT_3 = 3 << 8
KILLED = 9


def end(order=ORDER, **seen):
    return conclude(order, Seen(**{"status": 0, "ended_at": 2.0, **seen}))


@pytest.mark.parametrize(
    ("seen", "reason", "code", "signal"),
    [
        ({}, "success", 0, None),
        ({"status": EXIT_3}, "exit", 3, None),
        ({"status": KILLED}, "signal", None, "KILL"),
        ({"status": None, "lost": "why"}, "lost", None, None),
        ({"has_timed_out": True, "limit": 5.0}, "timeout", 0, None),
        ({"status": KILLED, "has_timed_out": True, "out_of_memory": True}, "timeout", None, "KILL"),
        ({"status": KILLED, "out_of_memory": True}, "out-of-memory", None, "KILL"),
        ({"out_of_memory": True}, "success", 0, None),
        ({"status": 1 << 8, "refusal": Refusal("stage-failed", "no")}, "stage-failed", 1, None),
        ({"status": 15, "refusal": None, "is_stopped": True}, "signal", None, "TERM"),
        ({"after_status": EXIT_3}, "exit", 3, None),
        ({"status": 1 << 8, "after_status": EXIT_3}, "exit", 1, None),
    ],
)
def test_the_reason_of_an_end(seen, reason, code, signal):
    ended = end(**seen)
    assert (ended.reason, ended.exit_code, ended.signal) == (reason, code, signal)


def test_a_hook_that_was_killed_has_the_code_a_shell_would_tell():
    ended = end(after_status=KILLED)
    assert ended.exit_code == 137
    assert ended.message == "the command succeeded, the `after` hook was ended by KILL"


def test_too_much_memory_is_told_with_both_numbers():
    ended = end(status=KILLED, out_of_memory=True, memory_used=80 << 20)
    assert ended.message == "used 80 MiB of memory, more than the 64 MiB it was given"
    assert ended.max_rss == 80 << 20


def test_notes_of_the_start_and_of_the_end_are_kept():
    started = Started(at=1.0, notes=("first",))
    ended = end(started=started, notes=("second",))
    assert (ended.started_at, ended.notes) == (1.0, ("first", "second"))


@pytest.mark.parametrize(("number", "words"), [(0, "0 B"), (1536, "1.5 KiB"), (3 << 30, "3 GiB")])
def test_sizes_are_said_in_the_largest_unit(number, words):
    assert size_words(number) == words


def test_signals_have_names_and_numbers():
    assert (signal_name(9), signal_name(36)) == ("KILL", "RTMIN+2")
    assert (signal_number("USR1"), signal_number("SIGUSR1")) == (10, 10)
