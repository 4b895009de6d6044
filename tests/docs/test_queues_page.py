"""The page on queues says what the settings read, and what is so without them."""

import pytest

from jobman.sched.queues import Queue, Weights
from jobman.sched.scheduling import Scheduling, scheduling
from jobman.settings import accounts, queues, scheduler, settings_from_text
from jobman.spec.quantities import parse_duration
from jobman.spec.records import keys_of
from tests.docs.pages import code_in, fences, rows

TABLES = {
    "<!-- keys of a queue -->": queues.Queue,
    "<!-- keys of weights -->": queues.Weights,
    "<!-- keys of limits -->": queues.Limits,
    "<!-- keys of an account -->": accounts.Account,
    "<!-- keys of the scheduler -->": scheduler.Scheduler,
}


@pytest.mark.parametrize("title", TABLES)
def test_every_key_is_on_the_page_and_no_other(title):
    shown = [code_in(row[0])[0] for row in rows("queues.md", title)]
    assert sorted(shown) == sorted(keys_of(TABLES[title]))


def without(title):
    return {code_in(row[0])[0]: row[2].strip("`") for row in rows("queues.md", title)}


def test_weights_without_settings_are_those_of_the_page():
    shown = without("<!-- keys of weights -->")
    assert {name: parse_duration(value) for name, value in shown.items()} == {
        name: getattr(Weights(), name) for name in shown
    }


def test_times_without_settings_are_those_of_the_page():
    shown = without("<!-- keys of the scheduler -->")
    found = Scheduling()
    assert parse_duration(shown["half_life"]) == found.half_life
    assert parse_duration(shown["stop_margin"]) == found.stop_margin
    assert (shown["default_duration"], found.default_duration) == ("none", None)
    assert (found.keep_logs, found.keep_log_size) == (None, None)


def test_a_queue_without_a_word_is_that_of_the_page():
    shown = without("<!-- keys of a queue -->")
    queue = Queue(name="any")
    assert (shown["depth"], queue.depth) == ("all", None)
    assert (shown["state"], int(shown["factor"])) == (queue.state, queue.factor)
    assert (shown["order"], queue.shortest_first) == ("priority", False)


@pytest.mark.parametrize("fence", fences("queues.md", "yaml"), ids=str)
def test_settings_on_the_page_can_be_used(fence):
    assert scheduling(settings_from_text(fence.text))
