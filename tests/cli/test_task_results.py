"""`jobman task results`, `batches` and `cancel`: what became of tasks, and ending them."""

import json
import threading

import pytest

from tests.tasks.site import Site


@pytest.fixture
def submitted(jobman, site):
    """Submit tasks and wait for them; returns their batch."""

    def make(text, *options):
        jobman("task", "submit", "-t", "square", "-f", "-", "-w", *options, stdin=text)
        return str(max(site.service.broker.batches))

    return make


def rows(answer):
    return [json.loads(line) for line in answer.out.splitlines()]


def place_of(answer):
    assert answer.err.startswith("jobman: read on with --after ")
    return answer.err.split()[-1]


def test_a_result_is_a_line_of_json(jobman, submitted):
    batch = submitted("3\n")
    (row,) = rows(jobman("task", "results", batch))
    assert row.pop("seconds") >= 0
    assert row == {"batch": int(batch), "index": 0, "status": "completed", "attempts": 1, "result": "9"}


def test_who_reads_on_reads_nothing_twice(jobman, submitted):
    submitted("1\n2\n")
    first = jobman("task", "results")
    assert len(rows(first)) == 2
    second = submitted("3\n")
    after = rows(jobman("task", "results", "--after", place_of(first)))
    assert [(row["batch"], row["result"]) for row in after] == [(int(second), "9")]


def test_only_those_that_failed(jobman, submitted):
    submitted("1\nmany\n")
    (row,) = rows(jobman("task", "results", "--failed"))
    assert (row["index"], row["status"], "result" in row) == (1, "failed", False)
    assert "ValueError" in row["reason"]


def test_batches_are_found_by_their_name(jobman, submitted):
    submitted("1\n", "--name", "one")
    submitted("2\n", "--name", "two")
    assert [row["result"] for row in rows(jobman("task", "results", "two"))] == ["4"]
    answer = jobman("task", "results", "three")
    assert answer.code == 1
    assert "the known names are: one, two" in answer.err


def test_following_named_batches_ends_with_them(jobman, submitted):
    one, two = submitted("1\n"), submitted("2\n")
    submitted("3\n")
    assert [row["result"] for row in rows(jobman("task", "results", "-f", one, two))] == ["1", "4"]


def test_following_waits_for_what_has_not_ended(jobman, tmp_path):
    go_on = threading.Event()

    async def hold(payload):
        import asyncio

        await asyncio.to_thread(go_on.wait, 60)
        return payload

    with Site(tmp_path, hold) as site:
        words = ("--broker", site.url)
        (batch,) = jobman("task", "submit", "-t", "square", "--payload", "later", *words).out.split()
        threading.Timer(0.2, go_on.set).start()
        assert [row["result"] for row in rows(jobman("task", "results", "-f", batch, *words))] == ["later"]


def test_bytes_that_are_no_text_are_base64(jobman, tmp_path):
    async def raw(_):
        return b"\xff\x00"

    with Site(tmp_path, raw) as site:
        answer = jobman("task", "submit", "-t", "square", "--payload", "1", "--results", "--broker", site.url)
    (row,) = rows(answer)
    assert (row["result_base64"], "result" in row) == ("/wA=", False)


def test_for_people_it_is_a_line_of_words(jobman, submitted):
    batch = submitted("3\nmany\n")
    lines = jobman("task", "results", "-o", "table").out.splitlines()
    first, second = sorted(lines)
    assert (first.split()[:2], first.split()[-1]) == ([f"{batch}/0", "completed"], "9")
    assert (second.split()[:2], "ValueError" in second) == ([f"{batch}/1", "failed"], True)


def test_words_for_people_stand_below_each_other(jobman, submitted):
    batch = submitted("".join(f"{number}\n" for number in range(12)))
    lines = jobman("task", "results", batch, "-o", "table").out.splitlines()
    assert {line.index("completed") for line in lines} == {len(f"{batch}/9999  ")}


def test_what_was_printed_may_be_forgotten(jobman, site, submitted):
    submitted("1\n2\n")
    assert len(rows(jobman("task", "results", "--forget"))) == 2
    assert jobman("task", "batches", "-o", "json").data == {"items": []}


def test_a_batch_that_nobody_knows_is_told(jobman, submitted):
    batch = submitted("1\n")
    jobman("task", "results", batch, "--forget")
    answer = jobman("task", "results", batch)
    assert (answer.code, answer.out, batch in answer.err) == (1, "", True)


def test_a_task_is_shown(jobman, submitted):
    batch = submitted("3\nmany\n", "--name", "night")
    found = jobman("task", "show", f"{batch}/1", "-o", "json").data
    wanted = {"id": f"{batch}/1", "name": "night", "type": "square", "payload": "many", "status": "failed"}
    assert wanted.items() <= found.items()
    facts = dict(line.split(maxsplit=1) for line in jobman("task", "show", f"{batch}/0").out.splitlines())
    assert (facts["task"], facts["status"], facts["payload"]) == (f"{batch}/0", "completed", "3")
    assert jobman("task", "show", "night/1", "-o", "json").data == found
    assert jobman("task", "show", f"{batch}/7").code == 1
    assert jobman("task", "show", "day/1").code == 1
    assert [jobman("task", "show", word).code for word in ("seven", f"{batch}/0-1")] == [2, 2]


def test_batches_are_listed(jobman, submitted):
    batch = submitted("1\nmany\n", "--name", "night")
    (found,) = jobman("task", "batches", "-o", "json").data["items"]
    wanted = {"batch": int(batch), "name": "night", "type": "square", "size": 2, "left": 0, "failed": 1}
    assert wanted.items() <= found.items()
    table = jobman("task", "batches").out.splitlines()
    assert table[0].split() == ["batch", "name", "type", "image", "tasks", "left", "failed", "submitted"]
    assert table[1].split()[:7] == [batch, "night", "square", "squares", "2", "0", "1"]


def test_a_batch_is_cancelled(jobman, tmp_path):
    go_on = threading.Event()

    async def hold(payload):
        import asyncio

        await asyncio.to_thread(go_on.wait, 60)
        return payload

    with Site(tmp_path, hold) as site:
        words = ("--broker", site.url)
        jobman("task", "submit", "-t", "square", "--count", 50, "--name", "night", *words)
        (batch,) = site.service.broker.batches
        assert jobman("task", "cancel", "night", *words) == (0, f"{batch}  cancelled\n", "")
        go_on.set()
        found = rows(jobman("task", "results", "-f", batch, *words))
        assert {row["status"] for row in found} == {"killed"}
        assert jobman("task", "cancel", "--all", *words) == (0, "", "jobman: nothing is under way\n")


@pytest.fixture
def held(jobman, tmp_path):
    """A batch of ten tasks under a name that looks like a task; they go on when the test lets them."""
    go_on = threading.Event()

    async def hold(payload):
        import asyncio

        await asyncio.to_thread(go_on.wait, 60)
        return payload

    with Site(tmp_path, hold) as site:
        words = ("--broker", site.url)
        jobman("task", "submit", "-t", "square", "--count", 10, "--key", "7/3", "--estimate", "10s", *words)
        (batch,) = site.service.broker.batches
        yield batch, words, go_on
        go_on.set()


@pytest.mark.parametrize(
    ("indexes", "ended"), [("3", {3}), ("0-2", {0, 1, 2}), ("0,7-8,0", {0, 7, 8}), ("9", {9})]
)
def test_single_tasks_are_cancelled_and_the_others_go_on(jobman, held, indexes, ended):
    batch, words, go_on = held
    answer = jobman("task", "cancel", f"{batch}/{indexes}", *words)
    assert answer == (0, f"{batch}/{indexes}  cancelled\n", "")
    go_on.set()
    found = rows(jobman("task", "results", "-f", batch, *words))
    assert {row["index"] for row in found if row["status"] == "killed"} == ended
    assert {row["index"] for row in found if row["status"] == "completed"} == set(range(10)) - ended


def test_as_data_it_says_which_tasks_were_cancelled(jobman, held):
    batch, words, _ = held
    some = jobman("task", "cancel", f"{batch}/4", f"{batch}/1-2", "-o", "json", *words).data
    assert some == {"batch": batch, "indexes": [1, 2, 4], "state": "cancelled", "cancelled": 3}
    whole = jobman("task", "cancel", f"{batch}/4", batch, "-o", "json", *words).data
    assert whole == {"batch": batch, "state": "cancelled", "cancelled": 7}


def test_of_tasks_of_which_some_have_ended_it_is_said_how_many(jobman, held):
    batch, words, _ = held
    jobman("task", "cancel", f"{batch}/1-2", *words)
    assert jobman("task", "cancel", f"{batch}/0-4", *words).out == (
        f"{batch}/0-4  3 cancelled, 2 had ended before\n"
    )
    assert jobman("task", "cancel", f"{batch}/1-2", *words).out == f"{batch}/1-2  has ended before\n"


def test_a_name_that_looks_like_a_task_is_a_name(jobman, held):
    batch, words, _ = held
    assert jobman("task", "cancel", "7/3", *words).out == f"{batch}  cancelled\n"


def test_a_task_is_named_by_the_name_of_its_batch_where_only_one_has_it(jobman, site):
    submit = ("task", "submit", "-t", "square", "-w")
    (batch,) = jobman(*submit, "--count", 3, "--name", "one").out.split()
    assert jobman("task", "cancel", "one/1").out.split()[0] == f"{batch}/1"
    first, second = jobman(*submit, "--count", 4, "--chunk", 2, "--name", "two").out.split()
    answer = jobman("task", "cancel", "two/1")
    assert (answer.code, answer.out) == (1, "")
    assert f"say which one: {first}, {second}" in answer.err


def test_of_what_has_ended_before_it_is_said_so(jobman, submitted):
    batch = submitted("1\n")
    assert jobman("task", "cancel", batch) == (0, f"{batch}  has ended before\n", "")
    as_data = jobman("task", "cancel", batch, "-o", "json").data
    assert as_data == {"batch": int(batch), "state": "ended", "cancelled": 0}


def test_what_is_cancelled_is_named(jobman, site):
    assert jobman("task", "cancel").code == 2
    assert jobman("task", "cancel", "17").code == 1


@pytest.mark.parametrize("word", ["{batch}/x", "{batch}/", "{batch}/7-3", "{batch}/1,", "{batch}/-1"])
def test_tasks_that_are_written_wrongly_end_with_2(jobman, submitted, word):
    answer = jobman("task", "cancel", word.format(batch=submitted("1\n2\n")))
    assert (answer.code, answer.out) == (2, "")
    assert "12/0,3-7" in answer.err


def test_tasks_that_a_batch_has_not_end_with_1_and_say_which_it_has(jobman, submitted):
    batch = submitted("1\n2\n")
    answer = jobman("task", "cancel", f"{batch}/0-7")
    assert (answer.code, answer.out) == (1, "")
    assert f"batch {batch} has no task 7" in answer.err
    assert "its tasks have the indexes 0 to 1" in answer.err
    assert jobman("task", "cancel", "17/0").code == 1
