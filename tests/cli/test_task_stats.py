"""`jobman task stats`, `types`, `dead`, `events` and `agents`: what a broker has and what happened there."""

import sys
from pathlib import Path

import pytest

from jobman.tasks.embedded import places_of_tasks, types_of
from tests.tasks.site import Site


@pytest.fixture
def submit(jobman, site):
    words = ("task", "submit", "-t", "square", "-f", "-", "-w", "-q", "--name", "letters")
    return lambda text: jobman(*words, stdin=text)


def test_stats_are_a_line_for_each_image(jobman, submit):
    assert jobman("task", "stats").err == "jobman: there are no tasks, and there were none\n"
    submit("1\n2\nmany\n")
    head, row = jobman("task", "stats").out.splitlines()
    assert head.split()[:5] == ["image", "queued", "running", "completed", "failed"]
    assert row.split()[:5] == ["squares", "0", "0", "2", "1"]
    (image,) = jobman("task", "stats", "-o", "json").data["images"]
    assert (image["completed"], image["failed"], image["slots"]) == (2, 1, 8)


def test_tenants_see_their_own(jobman, submit):
    submit("1\n")
    assert jobman("task", "stats", "--tenant", "other", "-o", "json").data["images"] == []


def test_who_used_nothing_is_told_so(jobman, site):
    assert jobman("task", "usage").err.startswith("jobman: nothing was used in this time")
    assert jobman("task", "usage", "-o", "json").data == {"items": []}
    assert jobman("task", "usage", "--since", "yesterday").code == 2


def test_types_say_how_long_their_tasks_take(jobman, submit):
    submit("1\n2\n")
    found = {each["versions"]: each for each in jobman("task", "types", "-o", "json").data["items"]}
    assert {version: each["image"] for version, each in found.items()} == {"1.x": "squares", "2.x": "squares"}
    assert found["2.x"]["estimate"]["count"] == 2
    assert jobman("task", "types").out == jobman("task", "types", "list").out


# -- dead letters -------------------------------------------------------------------------------------------


def test_tasks_that_were_given_up_are_tried_again_or_dropped(jobman, site, submit):
    assert jobman("task", "dead", "list").err == "jobman: no task was given up\n"
    submit("many\nfew\n3\n")
    (batch,) = site.service.broker.batches
    listed = jobman("task", "dead", "list", "-o", "json").data["items"]
    assert [(each["batch"], each["index"], each["payload"]) for each in listed] == [
        (batch, 0, "many"),
        (batch, 1, "few"),
    ]
    assert "ValueError" in jobman("task", "dead", "list").out
    assert jobman("task", "dead", "drop", f"{batch}/0").out == "1 task dropped\n"
    before = site.executed
    assert jobman("task", "dead", "retry", batch).out == "1 task tried again\n"
    jobman("task", "results", "-f", batch)
    assert site.executed == before + 1
    assert jobman("task", "dead", "retry", "--all", "-o", "json").data == {"tasks": 1}


def test_dead_letters_are_named_like_other_tasks(jobman, site, submit):
    submit("a\nb\nc\nd\n")
    (batch,) = site.service.broker.batches
    assert jobman("task", "dead", "drop", f"{batch}/0-1").out == "2 tasks dropped\n"
    assert jobman("task", "dead", "drop", "letters").out == "2 tasks dropped\n"


def test_who_names_none_that_was_given_up_is_told_so(jobman, site, submit):
    submit("1\n")
    (batch,) = site.service.broker.batches
    answer = jobman("task", "dead", "retry", f"{batch}/0")
    assert (answer.code, answer.out) == (0, "0 tasks tried again\n")
    assert "`jobman task dead list` shows those that were" in answer.err


@pytest.mark.parametrize("words", [("retry",), ("drop", "1/x"), ("retry", "1/1", "--all")])
def test_dead_letters_that_are_named_wrongly_end_with_2(jobman, site, words):
    assert jobman("task", "dead", *words).code == 2


@pytest.mark.parametrize(
    ("word", "message"), [("x", "there is no batch `x`"), ("1", "no batch 1"), ("1/1", "no batch 1")]
)
def test_dead_letters_of_a_batch_that_nobody_knows_end_with_1(jobman, site, word, message):
    answer = jobman("task", "dead", "retry", word)
    assert (answer.code, answer.out, message in answer.err) == (1, "", True)


# -- what happened, and who is there ------------------------------------------------------------------------


def test_what_happened_is_listed(jobman, submit):
    submit("many\n")
    found = jobman("task", "events", "-o", "json").data
    assert found["place"] >= max((each["seq"] for each in found["events"]), default=0)
    kinds = [each["kind"] for each in found["events"]]
    shown = jobman("task", "events")
    assert all(kind in shown.out for kind in kinds)


def test_agents_are_for_operators(jobman, site, tmp_path):
    jobman("task", "submit", "-t", "square", "--payload", "1", "-w")
    (agent,) = jobman("task", "agents", "-o", "json").data["items"]
    assert (agent["id"], agent["image"], agent["slots"]) == ("only", "squares", 8)
    assert (
        jobman("task", "agents").out.split()[6:8] == ["only", "squares"]
        or "only" in jobman("task", "agents").out
    )
    (tmp_path / "guarded").mkdir()
    with Site(tmp_path / "guarded", tokens={"t": "desk"}) as guarded:
        assert jobman("task", "agents", "--broker", guarded.url, "--token", "t").code == 6


# -- types --------------------------------------------------------------------------------------------------


def own_types():
    return types_of(places_of_tasks()).read()


def test_a_command_is_added_to_ones_own_broker_which_need_not_run(jobman):
    words = ("--versions", "2.x", "--slots", 3, "--on-port", "--env", "MODEL=heston")
    answer = jobman("task", "types", "add", "price", *words, "--", sys.executable, "-m", "pricing", "--fast")
    assert (answer.code, answer.out) == (0, "price  2.x  added\n")
    (found,) = own_types()
    assert found.command == (sys.executable, "-m", "pricing", "--fast")
    assert (found.type, found.versions, found.slots, found.on_port) == ("price", "2.x", 3, True)
    assert (found.environment, found.folder) == ({"MODEL": "heston"}, str(Path.cwd()))
    assert jobman("task", "types", "remove", "price") == (0, "price  all versions  removed\n", "")
    assert own_types() == []


def test_resources_and_numbers_of_workers_are_kept_and_shown(jobman):
    words = ("--resource", "cpu=500m", "--resource", "memory=64Mi", "--least", 1, "--most", 3)
    assert jobman("task", "types", "add", "price", *words, "--", "sh", "worker").code == 0
    (found,) = own_types()
    resources = {"cpu": "500m", "memory": "64Mi"}
    assert (found.resources, found.least, found.most) == (resources, 1, 3)
    (shown,) = jobman("task", "types", "-o", "json").data["items"]
    assert (shown["resources"], shown["least"], shown["most"]) == (resources, 1, 3)
    assert jobman("task", "types", "remove", "price").code == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--resource", "cores=2"), 3, "`cores=2`: nothing of that name is counted on this machine"),
        (("--resource", "memory=1GB"), 3, "`memory=1GB`: '1GB' is not a quantity"),
        (("--resource", "cpu=1000000"), 4, "a worker needs 1000000 cores, and this machine has"),
        (("--least", 3, "--most", 2), 3, "from 3 to 2 workers there can never be"),
        (("--most", 0), 2, "--most"),
    ],
)
def test_what_no_worker_can_have_is_refused(jobman, words, code, told):
    answer = jobman("task", "types", "add", "price", *words, "--", "sh")
    assert (answer.code, told in answer.err) == (code, True), answer.err
    assert own_types() == []


def test_a_program_is_added_with_its_whole_path(jobman):
    Path("worker").write_text("#!/bin/sh\n")
    jobman("task", "types", "add", "one", "--", "./worker")
    jobman("task", "types", "add", "two", "--", "sh", "worker")
    assert [Path(each.command[0]).is_absolute() for each in own_types()] == [True, True]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("add", "price"), 2),
        (("add", "price", "--image", "pricing:2"), 2),
        (("add", "price", "--", "no-such-program"), 3),
        (("add", "price", "--versions", "<<2", "--", "sh"), 3),
        (("remove", "price"), 1),
    ],
)
def test_what_cannot_be_added_or_removed(jobman, words, code):
    assert jobman("task", "types", *words).code == code
    assert own_types() == []


def test_at_a_site_an_operator_adds_an_image(jobman, site):
    words = ("--versions", "3.x", "--image", "pricing:3", "--resource", "cpu=1", "--env", "MODEL=heston")
    assert jobman("task", "types", "add", "price", *words).code == 0
    added = [each for each in jobman("task", "types", "-o", "json").data["items"] if each["type"] == "price"]
    told = [(each["versions"], each["image"], each["resources"]) for each in added]
    assert told == [("3.x", "pricing:3", {"cpu": "1"})]
    assert "cpu=1" in jobman("task", "types").out
    assert jobman("task", "types", "remove", "price").code == 0
    assert "price" not in jobman("task", "types").out
    assert jobman("task", "types", "add", "price", "--", "sh").code == 2
    assert jobman("task", "types", "add", "price", "--image", "pricing:3", "--most", 2).code == 2


def test_what_says_which_broker_may_stand_before_the_last_word(jobman, site, monkeypatch):
    monkeypatch.delenv("JOBMAN_BROKER")
    assert jobman("task", "types", "--broker", site.url, "add", "price", "--image", "pricing:3").code == 0
    assert own_types() == []
    listed = jobman("task", "types", "--broker", site.url, "-o", "json", "list").data["items"]
    assert "price" in {each["type"] for each in listed}
