"""The calendar of a service: what it admits, what it refuses, and the blocks it gives."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from jobman.control.administration import NewEntry
from jobman.control.calendars import Calendars
from jobman.control.refusals import Refusal
from jobman.control.store.records import CalendarRecord, Changes
from jobman.control.store.store import Store
from jobman.plan.nodes import ClusterNode
from jobman.sched.calendar import Recurrence, moment_of
from jobman.sched.planner import Planner
from jobman.sched.requests import Request
from jobman.spec.shapes import Part

NODES = [
    *(ClusterNode(name=f"n{number}", amounts={"core": 8}) for number in (1, 2, 3)),
    ClusterNode(name="gpu1", amounts={"core": 8, "gpu": 4}, facts={"hardware.gpu.available": "yes"}),
]
NAMES = [node.name for node in NODES]
NOW = moment_of(datetime(2026, 11, 15, 12), "UTC")
DAY = 86400.0
DAILY = Recurrence(every="day")


def window(name: str = "repair", start: str = "2026-11-16T08:00:00", **more: Any) -> NewEntry:
    more = {"duration": 7200.0, **more}
    return NewEntry(kind="maintenance", name=name, start=datetime.fromisoformat(start), **more)


def reservation(name: str = "course", start: str = "2026-11-16T08:00:00", **more: Any) -> NewEntry:
    more = {"duration": 7200.0, **more}
    return NewEntry(kind="reservation", name=name, start=datetime.fromisoformat(start), **more)


def add(calendars: Calendars, wanted: NewEntry, who: str = "root", now: float = NOW) -> CalendarRecord:
    record, _ = calendars.admit(wanted, who, now, NODES)
    calendars.keep(record)
    return record


def refusal(wanted: NewEntry, calendars: Calendars | None = None, now: float = NOW) -> Refusal:
    with pytest.raises(Refusal) as raised:
        (calendars or Calendars()).admit(wanted, "root", now, NODES)
    return raised.value


# -- what is admitted ----------------------------------------------------------------------------------------


def test_a_window_without_nodes_takes_all_there_are() -> None:
    calendars = Calendars()
    add(calendars, window())
    (block,) = calendars.blocks(NOW, NOW + DAY, NAMES)
    assert block.nodes == ("n1", "n2", "n3", "gpu1")
    assert (block.name, block.kind) == ("repair/2026-11-16", "maintenance")


def test_ranges_of_nodes_are_names_from_then_on() -> None:
    calendars = Calendars()
    record = add(calendars, window(nodes=["n[1-2]", "gpu1,n2"]))
    assert record.definition["nodes"] == ["n1", "n2", "gpu1"]


def test_nodes_that_are_counted_are_left_to_the_planner() -> None:
    calendars = Calendars()
    add(calendars, reservation(count=1, requires={"hardware.gpu.available": "yes"}))
    (block,) = calendars.blocks(NOW, NOW + DAY, NAMES)
    assert (block.nodes, block.count, block.requires) == ((), 1, {"hardware.gpu.available": "yes"})


def test_a_reservation_for_nobody_is_for_whoever_makes_it() -> None:
    calendars = Calendars()
    add(calendars, reservation(nodes=["n1"]), who="ada")
    (block,) = calendars.blocks(NOW, NOW + DAY, NAMES)
    assert (block.users, block.accounts) == (("ada",), ())
    add(calendars, reservation("other", nodes=["n2"], accounts=["physics"]), who="ada")
    assert [block.users for block in calendars.blocks(NOW, NOW + DAY, NAMES)] == [("ada",), ()]


def test_a_start_with_an_offset_keeps_it() -> None:
    start = datetime(2026, 11, 16, 8, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))
    record = add(Calendars(), msgspec.structs.replace(window(), start=start))
    assert (record.definition["start"], record.definition["zone"]) == ("2026-11-16T08:00:00", "-03:30")


def test_a_start_with_an_offset_is_shown_by_the_clock_of_its_zone() -> None:
    start = datetime(2026, 11, 16, 8, tzinfo=UTC)
    record = add(Calendars(), msgspec.structs.replace(window(), start=start, zone="Europe/Berlin"))
    assert record.definition["start"] == "2026-11-16T09:00:00"


def test_blocks_of_all_definitions_are_in_the_order_they_begin() -> None:
    calendars = Calendars()
    add(calendars, window("late", "2026-11-16T20:00:00", nodes=["n1"]))
    add(calendars, reservation("nightly", "2026-11-16T02:00:00", nodes=["n2"], repeats=DAILY))
    found = calendars.blocks(NOW, NOW + 2 * DAY, NAMES)
    assert [block.name for block in found] == ["nightly/2026-11-16", "late/2026-11-16", "nightly/2026-11-17"]


GPUS = {"hardware.gpu.available": "yes"}


@pytest.mark.parametrize(
    ("there", "wanted", "left"),
    [
        ([{"count": 2}], {"count": 3}, "2 nodes are"),
        ([{"count": 2}, {"nodes": ["n1"]}], {"count": 2}, "1 node is"),
        ([{"count": 4}], {"nodes": ["n1"]}, "no node is"),
        ([{"count": 1, "requires": GPUS}], {"count": 1, "requires": GPUS}, "no node is"),
        ([{"count": 3}, {"count": 1, "requires": GPUS}], {"count": 1}, "no node is"),
    ],
)
def test_reservations_by_count_leave_no_more_than_there_is(there, wanted, left) -> None:
    calendars = Calendars()
    for number, each in enumerate(there):
        add(calendars, reservation(f"r{number}", **each))
    found = refusal(reservation("late", "2026-11-16T09:00:00", **wanted), calendars)
    assert (found.code, f"at 2026-11-16 09:00 {left} not reserved" in found.message) == ("wrong-state", True)
    add(calendars, reservation("later", "2026-11-16T10:00:00", **wanted))


def test_nodes_with_facts_are_left_to_those_who_need_them() -> None:
    calendars = Calendars()
    add(calendars, reservation("any", count=3))
    add(calendars, reservation("gpus", count=1, requires=GPUS))


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "code", "words"),
    [
        (window(nodes=["n[7-9]"]), "no-such-node", "There is no node n[7-9]."),
        (window(nodes=["n["]), "bad-request", "'n[' names no nodes."),
        (window(zone="Mars/Olympus"), "bad-request", "There is no time zone Mars/Olympus."),
        (window(start="2026-11-15T08:00:00"), "bad-request", "repair would be over already."),
        (
            window(start="9999-11-15T08:00:00"),
            "bad-request",
            "The start is no day of this or the next century.",
        ),
        (window(users=["ada"]), "bad-request", "Maintenance is for nobody"),
        (window(count=2), "bad-request", "Maintenance is for nobody"),
        (window(duration=90000.0, repeats=DAILY), "bad-request", "It would begin again before it has ended."),
        (window(duration=None, repeats=DAILY), "bad-request", "What has no end cannot come again."),
        (reservation(duration=None, nodes=["n1"]), "bad-request", "A reservation has an end."),
        (reservation(nodes=["n1"], count=1), "bad-request", "Nodes are either named or counted."),
        (reservation(count=9), "does-not-fit", "There are 4 nodes, not 9."),
        (
            reservation(count=2, requires={"hardware.gpu.available": "yes"}),
            "does-not-fit",
            "There is 1 node with `hardware.gpu.available` as required, not 2.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(wanted: NewEntry, code: str, words: str) -> None:
    found = refusal(wanted)
    assert (found.code, found.message.startswith(words)) == (code, True), found.message


def test_several_faults_are_told_at_once() -> None:
    found = refusal(reservation(start="1999-01-01T00:00:00", nodes=["n1"], count=1))
    assert "next century" in found.message
    assert "either named or counted" in found.message
    assert len(found.advice.splitlines()) == 2


def test_a_name_is_given_once_while_it_lives() -> None:
    calendars = Calendars()
    add(calendars, window())
    found = refusal(reservation("repair", nodes=["n1"]), calendars)
    assert (found.code, found.message) == ("wrong-state", "There is a window of maintenance repair already.")


def test_the_name_of_what_is_over_can_be_used_again() -> None:
    calendars = Calendars()
    add(calendars, window())
    add(calendars, window(start="2026-12-01T08:00:00"), now=NOW + 10 * DAY)
    (entry,) = calendars.entries(NOW + 10 * DAY)
    assert entry.start == "2026-12-01T08:00:00"


def test_two_reservations_do_not_get_the_same_nodes() -> None:
    calendars = Calendars()
    add(calendars, reservation("weekly", nodes=["n1"], repeats=Recurrence(every="week")))
    found = refusal(reservation("long", "2026-11-29T00:00:00", nodes=["n[1-2]"], duration=2 * DAY), calendars)
    assert found.code == "wrong-state"
    assert found.message == "long meets the reservation weekly of 2026-11-30 on the same nodes."
    add(calendars, reservation("beside", nodes=["n2"]))


def test_maintenance_goes_first_whichever_was_there_before() -> None:
    ways = [(reservation(nodes=["n1"]), window()), (window(), reservation(nodes=["n1"]))]
    for first, second in ways:
        calendars = Calendars()
        add(calendars, first)
        record, notes = calendars.admit(second, "root", NOW, NODES)
        calendars.keep(record)
        (note,) = notes
        assert note.endswith("of 2026-11-16 on the same nodes; maintenance goes first")
        assert [block.kind for block in calendars.blocks(NOW, NOW + DAY, NAMES)] == ["maintenance"]


def test_a_reservation_is_left_what_maintenance_does_not_need() -> None:
    calendars = Calendars()
    add(calendars, reservation("long", "2026-11-16T00:00:00", nodes=["n[1-2]"], duration=DAY))
    add(calendars, window(nodes=["n[2-3]"]))
    found = [(block.name, block.nodes) for block in calendars.blocks(NOW, NOW + 2 * DAY, NAMES)]
    assert found == [
        ("long/2026-11-16", ("n1", "n2")),
        ("long/2026-11-16+1", ("n1",)),
        ("repair/2026-11-16", ("n2", "n3")),
        ("long/2026-11-16+2", ("n1", "n2")),
    ]


def test_what_is_left_of_a_reservation_does_not_change_while_time_passes() -> None:
    calendars = Calendars()
    add(calendars, reservation("long", "2026-11-16T00:00:00", nodes=["n1"], duration=DAY))
    add(calendars, window())
    known = {block.name: block for block in calendars.blocks(NOW, NOW + 9 * DAY, NAMES)}
    for hours in range(48):
        now = NOW + hours * 3600
        for until in (now + 3600, now + 9 * DAY):
            found = calendars.blocks(now, until, NAMES)
            assert found == [block for block in known.values() if block.meets(now, until)]


# -- what is there -------------------------------------------------------------------------------------------


def test_entries_show_what_comes_next_and_last_what_is_over() -> None:
    calendars = Calendars()
    add(calendars, window("past", "2026-11-15T13:00:00"))
    add(calendars, window("soon", repeats=DAILY, reason="new disks", zone="Europe/Berlin"))
    add(calendars, window("open", "2026-11-15T20:00:00", duration=None, nodes=["n3"]))
    later = NOW + DAY
    soon, opened, past = sorted(
        calendars.entries(later), key=lambda entry: ["soon", "open", "past"].index(entry.name)
    )
    assert [entry.name for entry in calendars.entries(later)] == ["open", "soon", "past"]
    assert (soon.rhythm, soon.reason, soon.created_by) == ("every day", "new disks", "root")
    assert soon.next_start == moment_of(datetime(2026, 11, 17, 8), "Europe/Berlin")
    assert soon.next_end == soon.next_start + 7200
    assert (opened.next_start, opened.next_end) == (moment_of(datetime(2026, 11, 15, 20), "UTC"), None)
    assert (past.next_start, past.next_end) == (None, None)


def test_one_is_found_by_name_and_kind() -> None:
    calendars = Calendars()
    add(calendars, window())
    assert calendars.find("repair", "maintenance").name == "repair"
    for name, kind in (("repair", "reservation"), ("other", None)):
        with pytest.raises(Refusal, match="There is no"):
            calendars.find(name, kind)
    with pytest.raises(Refusal) as raised:
        calendars.find("repiar")
    assert raised.value.advice == "Did you mean repair?"


def test_what_was_dropped_is_gone() -> None:
    calendars = Calendars()
    add(calendars, window())
    calendars.drop("repair")
    calendars.drop("repair")
    assert calendars.blocks(NOW, NOW + DAY, NAMES) == []


def test_those_for_whom_a_reservation_is_may_ask_for_it() -> None:
    calendars = Calendars()
    add(calendars, reservation(nodes=["n1"], users=["ada"], accounts=["physics"], repeats=DAILY))
    calendars.refuse_stranger("course", "ada", ("",), NOW)
    calendars.refuse_stranger("course", "bob", ("physics",), NOW)
    calendars.refuse_stranger("course/2026-11-17", "ada", ("",), NOW)


@pytest.mark.parametrize(
    ("name", "user", "now", "code"),
    [
        ("course", "bob", NOW, "forbidden"),
        ("corse", "ada", NOW, "no-such-entry"),
        ("repair", "ada", NOW, "no-such-entry"),
        ("course", "ada", NOW + 9 * DAY, "wrong-state"),
    ],
)
def test_others_are_refused(name: str, user: str, now: float, code: str) -> None:
    calendars = Calendars()
    add(calendars, reservation(nodes=["n1"], users=["ada"]))
    add(calendars, window(nodes=["n2"]))
    with pytest.raises(Refusal) as raised:
        calendars.refuse_stranger(name, user, ("",), now)
    assert raised.value.code == code


def test_what_was_kept_is_there_after_a_restart(tmp_path: Any) -> None:
    store = Store.open(tmp_path / "jobman.db")
    store.claim("a test")
    calendars = Calendars()
    entries = (
        window(
            zone="Europe/Berlin", repeats=Recurrence(every="week", weekdays=("mon",), until=date(2027, 1, 1))
        ),
        reservation(count=2, skips=[date(2026, 12, 24)], start="2026-11-17T08:00:00", repeats=DAILY),
    )
    for wanted in entries:
        record = add(calendars, wanted)
        store.write(Changes(calendar={record.name: record}))
    again = Calendars(store.calendar())
    assert again.blocks(NOW, NOW + 60 * DAY, NAMES) == calendars.blocks(NOW, NOW + 60 * DAY, NAMES)
    store.write(Changes(calendar={"repair": None}))
    assert [record.name for record in store.calendar()] == ["course"]
    store.close()


def test_an_entry_of_another_version_does_not_keep_the_service_from_starting() -> None:
    strange = CalendarRecord(
        name="x", kind="maintenance", definition={"kind": "eclipse"}, created_by="root", created_at=NOW
    )
    assert Calendars([strange]).entries(NOW) == []


# -- with the planner ----------------------------------------------------------------------------------------


def request(name: str, hours: float, number: int, **more: Any) -> Request:
    shape = ((Part(slots=1, each={"core": 8}),),)
    return Request(id=name, alternatives=shape, limit=hours * 3600, number=number, **more)


def planner_with(calendars: Calendars, now: float = NOW) -> Planner:
    planner = Planner(NODES)
    for block in calendars.blocks(now, now + 30 * DAY, NAMES):
        planner.block(block, now)
    return planner


def starts(planner: Planner, now: float) -> dict[str, set[str]]:
    return {
        start.id: {node for places in start.placed.places for node in places}
        for start in planner.plan(now).starts
    }


def test_the_planner_starts_before_a_window_what_fits_and_the_rest_behind_it() -> None:
    calendars = Calendars()
    add(calendars, window(start="2026-11-15T14:00:00", duration=3600.0))
    planner = planner_with(calendars)
    for number, (name, hours) in enumerate((("long", 3.0), ("short", 2.0))):
        planner.submit(request(name, hours, number), NOW)
    assert set(starts(planner, NOW)) == {"short"}
    assert planner.promise("long").guaranteed_by == NOW + 3 * 3600


def test_the_planner_starts_nothing_in_a_window_that_has_begun() -> None:
    calendars = Calendars()
    add(calendars, window(start="2026-11-15T11:00:00", duration=7200.0))
    planner = planner_with(calendars)
    planner.submit(request("any", 0.1, 1), NOW)
    assert starts(planner, NOW) == {}
    assert set(starts(planner, NOW + 3600)) == {"any"}


def test_the_planner_keeps_reserved_nodes_for_those_who_ask_for_them() -> None:
    calendars = Calendars()
    add(calendars, reservation(start="2026-11-15T12:00:00", duration=5 * 3600.0, nodes=["n1"], users=["ada"]))
    add(calendars, window(start="2026-11-15T14:00:00", duration=3600.0))
    planner = planner_with(calendars)
    for number in range(4):
        planner.submit(request(f"other{number}", 1.0, number), NOW)
    planner.submit(request("in", 1.0, 5, user="ada", reservation="course"), NOW)
    planner.submit(request("late", 1.5, 6, user="ada", reservation="course"), NOW)
    found = starts(planner, NOW)
    assert found.pop("in") == {"n1"}
    assert set().union(*found.values()) == {"n2", "n3", "gpu1"}
    assert planner.promise("late").guaranteed_by == NOW + 3 * 3600
