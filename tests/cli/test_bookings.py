"""`jobman maintenance` and `jobman reserve`.

The service is the stub of the command line's tests: it keeps a real calendar, but plans nothing.
"""

import json
import time
from datetime import datetime

import pytest
import yaml

from jobman.control.refusals import Refusal

YEAR = datetime.now().year + 1


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def entries(service):
    return service.calendars.entries(time.time())


# -- maintenance ---------------------------------------------------------------------------------------------


def test_maintenance_is_planned_once(jobman, service):
    answer = jobman(
        "maintenance", "add", "disks", "--start", f"{YEAR}-12-01T08:00", "--for", "4h", "--nodes", "n[1-2]"
    )
    assert answer == (0, f"disks  on n[1-2] from {YEAR}-12-01 08:00:00 to {YEAR}-12-01 12:00:00\n", "")
    (entry,) = entries(service)
    assert (entry.kind, entry.nodes, entry.duration, entry.zone) == (
        "maintenance",
        ["n1", "n2"],
        14400.0,
        "UTC",
    )


@pytest.mark.parametrize("nodes", [(), ("--nodes", "all")])
def test_maintenance_is_about_all_nodes_unless_some_are_named(jobman, service, nodes):
    assert (
        "on all nodes from" in jobman("maintenance", "add", "a", "--start", "+2h", "--for", "1h", *nodes).out
    )
    assert entries(service)[0].nodes == []


def test_maintenance_without_a_length_lasts_until_it_is_removed(jobman, service):
    answer = jobman("maintenance", "add", "fire", "--start", "now", "--reason", "no cooling")
    assert answer.out.endswith("to its removal\n")
    assert "until removed" in jobman("maintenance", "list").out


def test_maintenance_comes_again(jobman, service):
    answer = jobman(
        *("maintenance", "add", "weekly", "--start", f"{YEAR}-12-01T08:00", "--for", "1h30m"),
        *("--every", "2weeks", "--on", "mon,thu", "--until", f"{YEAR + 1}-06-01", "--skip", f"{YEAR}-12-24"),
        *("--zone", "Europe/Berlin"),
    )
    assert answer.code == 0, answer.err
    assert answer.out.endswith(f", every 2 weeks on mon, thu until {YEAR + 1}-06-01\n")
    (entry,) = entries(service)
    assert (entry.zone, entry.start) == ("Europe/Berlin", f"{YEAR}-12-01T08:00:00")
    assert [str(day) for day in entry.skips] == [f"{YEAR}-12-24"]


def test_what_is_planned_is_listed(jobman, service):
    jobman("maintenance", "add", "late", "--start", f"{YEAR}-12-02T08:00", "--for", "4h", "--nodes", "n1")
    jobman(
        "maintenance",
        "add",
        "early",
        "--start",
        f"{YEAR}-12-01T08:00",
        "--for",
        "4h",
        "--every",
        "week",
        "--nodes",
        "n2",
        "--reason",
        "disks",
    )
    assert jobman("maintenance", "list").out.splitlines() == [
        "name   from              to     nodes  often       reason  by",
        f"early  {YEAR}-12-01 08:00  12:00  n2     every week  disks   ada",
        f"late   {YEAR}-12-02 08:00  12:00  n1                         ada",
    ]
    assert f"{YEAR}-12-01 08:00:00Z" in jobman("maintenance", "list", "--utc").out


def test_the_day_of_an_end_is_told_where_it_is_another(jobman, service):
    jobman("maintenance", "add", "night", "--start", f"{YEAR}-12-01T22:00:30", "--for", "4h", "--nodes", "n1")
    row = jobman("maintenance", "list").out.splitlines()[1]
    assert row.startswith(f"night  {YEAR}-12-01 22:00:30  {YEAR}-12-02 02:00:30")


def test_how_often_it_comes_is_seen_in_80_columns(jobman, service, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ("--start", f"{YEAR}-12-01T08:00", "--for", "4h", "--nodes", "n[1-2]", "--reason", "new disks")
    jobman("maintenance", "add", "weekly", "--every", "week", *words)
    assert "every week" in jobman("maintenance", "list").out


def test_nothing_planned_is_no_error(jobman, service):
    assert jobman("maintenance", "list") == (0, "", "jobman: no maintenance is planned\n")
    assert jobman("reserve", "list") == (0, "", "jobman: nothing is reserved\n")


def test_maintenance_is_called_off(jobman, service):
    for name in ("a", "b"):
        jobman("maintenance", "add", name, "--start", "+2h", "--for", "1h", "--nodes", "n1")
    assert jobman("maintenance", "remove", "a", "b") == (0, "a  removed\nb  removed\n", "")
    assert entries(service) == []


def test_what_was_removed_before_a_refusal_is_told(jobman, service):
    jobman("maintenance", "add", "a", "--start", "+2h", "--for", "1h", "--nodes", "n1")
    answer = jobman("maintenance", "remove", "a", "b")
    assert (answer.code, answer.out) == (1, "a  removed\n")
    assert "There is no window of maintenance b." in answer.err


def test_maintenance_over_a_reservation_is_told(jobman, service):
    jobman("reserve", "add", "course", "--start", "tomorrow 08:00", "--for", "8h", "--nodes", "n1")
    answer = jobman("maintenance", "add", "disks", "--start", "tomorrow 09:00", "--for", "1h")
    assert answer.code == 0
    assert answer.err.startswith("jobman: it meets the reservation course of ")


# -- reservations --------------------------------------------------------------------------------------------


def test_nodes_are_reserved_by_name(jobman, service):
    answer = jobman(
        *(
            "reserve",
            "add",
            "course",
            "--start",
            f"{YEAR}-12-01T08:00",
            "--for",
            "4h",
            "--nodes",
            "n[1-2],gpu1",
        ),
        *("--user", "bob", "--user", "eve", "--account", "physics"),
    )
    assert answer == (0, f"course  on n[1-2],gpu1 from {YEAR}-12-01 08:00:00 to {YEAR}-12-01 12:00:00\n", "")
    row = jobman("reserve", "list").out.splitlines()[1]
    assert "bob, eve, account physics" in row


def test_nodes_are_reserved_by_number(jobman, service):
    answer = jobman(
        "reserve",
        "add",
        "exam",
        "--start",
        "+1d",
        "--for",
        "2h",
        "--count",
        "2",
        "--every",
        "day",
        "--times",
        "3",
    )
    assert answer.out.startswith("exam  on 2 nodes from ")
    assert answer.out.endswith(", every day, 3 times\n")
    (entry,) = entries(service)
    assert (entry.count, entry.users) == (2, ["ada"])


def test_facts_of_counted_nodes(jobman, service):
    wanted = ("--count", "1", "--requires", "gpu=yes")
    answer = jobman("reserve", "add", "exam", "--start", "+1d", "--for", "2h", *wanted)
    assert (answer.code, answer.out) == (4, "")
    assert "There are no nodes with `gpu` as required" in answer.err


def test_a_reservation_is_removed_as_such(jobman, service):
    jobman("maintenance", "add", "disks", "--start", "+2h", "--for", "1h", "--nodes", "n1")
    answer = jobman("reserve", "remove", "disks")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("jobman: There is no reservation disks.\n")
    assert "jobman reserve list" in answer.err


# -- as data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["maintenance", "reserve"])
def test_everything_is_said_as_data_too(jobman, service, family):
    add = (
        family,
        "add",
        "it",
        "--start",
        f"{YEAR}-12-01T08:00",
        "--for",
        "4h",
        "--nodes",
        "n1",
        "--every",
        "week",
    )
    made = jobman(*add, "-o", "json").data
    assert (made["name"], made["nodes"], made["repeats"]) == ("it", ["n1"], {"every": "week"})
    listed = jobman(family, "list", "-o", "json").data["items"]
    assert listed == [made]
    assert yaml.safe_load(jobman("-o", "yaml", family, "list").out)["items"][0]["name"] == "it"
    assert json.loads(jobman(family, "remove", "it", "-o", "json").out)["name"] == "it"


# -- what is used wrongly ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--start", "soon", "--for", "1h"), "'soon' is no moment"),
        (("--start", "+1h", "--for", "ages"), "'ages' is no length of time"),
        (("--start", "+1h", "--for", "1h", "--every", "moon"), "'moon' is no time"),
        (("--start", "+1h", "--for", "1h", "--until", "2030-01-01"), "are for what comes again"),
        (("--start", "+1h", "--for", "1h", "--skip", "2030-01-01"), "are for what comes again"),
        (("--start", "+1h", "--for", "1h", "--every", "day", "--until", "later"), "'later' is no day"),
        (("--start", "+1h", "--for", "1h", "--zone", "Mars"), "'Mars' is no time zone"),
        (("--for", "1h"), "--start"),
        (("--start", "+1h", "--for", "1h", "--", "b d"), "'b d' is no name"),
    ],
)
@pytest.mark.parametrize("family", ["maintenance", "reserve"])
def test_a_wrong_use_is_explained(jobman, service, family, arguments, words):
    nodes = ("--nodes", "n1")
    name = () if "--" in arguments else ("it",)
    answer = jobman(family, "add", *name, *nodes, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in " ".join(answer.err.replace("│", " ").split())
    assert service.requests == []


@pytest.mark.parametrize("nodes", [(), ("--nodes", "n1", "--count", "2")])
def test_reserved_nodes_are_named_or_counted(jobman, service, nodes):
    answer = jobman("reserve", "add", "it", "--start", "+1h", "--for", "1h", *nodes)
    assert answer.code == 2
    assert "name the nodes, or say how many" in answer.err
    answer = jobman(
        "reserve", "add", "it", "--start", "+1h", "--for", "1h", "--count", "1", "--requires", "gpu"
    )
    assert answer.code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--start", "+1h", "--for", "1h", "--nodes", "n[7-9]"), 1, "There is no node n[7-9]."),
        (("--start", "2020-01-01T00:00", "--for", "1h"), 2, "it would be over already"),
        (("--start", "+1h", "--for", "2d", "--every", "day"), 2, "It would begin again before it has ended."),
    ],
)
def test_what_the_service_refuses_is_told(jobman, service, arguments, code, words):
    answer = jobman("maintenance", "add", "it", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


def test_only_administrators_change_the_calendar(jobman, service):
    service.refusal = Refusal("forbidden", "Only an administrator may do this.", "Ask one of your service.")
    answer = jobman("maintenance", "add", "it", "--start", "+1h", "--for", "1h")
    assert answer == (6, "", "jobman: Only an administrator may do this.\n        Ask one of your service.\n")


@pytest.mark.parametrize("width", [60, 100])
def test_the_list_fits_the_terminal(jobman, service, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    jobman(
        "reserve",
        "add",
        "a" * 30,
        "--start",
        "+1h",
        "--for",
        "1h",
        "--nodes",
        "n[1-3]",
        "--every",
        "week",
        "--reason",
        "words " * 30,
    )
    assert max(map(len, jobman("reserve", "list").out.splitlines())) <= width


# -- jobs in a reservation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["submit", "run"])
def test_a_job_asks_for_a_reservation(jobman, service, good, command):
    answer = jobman(command, good, "--reservation", "course")
    assert answer.code == 0, answer.err
    assert service.submissions[-1].reservation == "course"
    jobman(command, good)
    assert service.submissions[-1].reservation is None
