"""Whatever administrators plan: nobody gets what others reserved, and maintenance goes first."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobman.control.administration import CalendarKind, NewEntry
from jobman.control.calendars import Calendars
from jobman.control.refusals import Refusal
from jobman.plan.nodes import ClusterNode
from jobman.sched.blocks import Block, difference
from jobman.sched.calendar import Recurrence, moment_of

NODES = [ClusterNode(name=f"n{number}", amounts={"core": 4}) for number in range(1, 5)]
NAMES = [node.name for node in NODES]
FIRST = datetime(2026, 11, 15)
NOW = moment_of(FIRST, "UTC")
HOUR, DAY = 3600.0, 86400.0
KINDS: tuple[CalendarKind, ...] = ("maintenance", "reservation")
SOME = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)
RHYTHMS = st.none() | st.builds(
    Recurrence,
    every=st.sampled_from(("day", "week")),
    interval=st.integers(1, 3),
    count=st.none() | st.integers(1, 4),
)


@st.composite
def entries(draw: st.DrawFn) -> NewEntry:
    kind = draw(st.sampled_from(KINDS))
    counted = kind == "reservation" and draw(st.booleans())
    more: dict[str, Any] = {"count": draw(st.integers(1, 4))} if counted else {"nodes": draw(SOME)}
    return NewEntry(
        kind=kind,
        name=draw(st.sampled_from("abcdef")),
        start=FIRST + timedelta(hours=draw(st.integers(0, 96))),
        zone=draw(st.sampled_from(("UTC", "Europe/Berlin"))),
        duration=draw(st.integers(1, 30)) * HOUR,
        repeats=draw(RHYTHMS),
        **more,
    )


def calendars_of(wanted: Iterable[NewEntry]) -> Calendars:
    """What of it is admitted, one after the other."""
    calendars = Calendars()
    for each in wanted:
        with suppress(Refusal):
            calendars.keep(calendars.admit(each, "ada", NOW, NODES)[0])
    return calendars


def share(first: Block, second: Block) -> bool:
    """Whether two blocks have a node in common at one time, as far as their nodes are named."""
    in_common = set(first.nodes) & set(second.nodes)
    return bool(in_common) and first.meets(second.start, second.end)


WANTED = st.lists(entries(), max_size=6)


@given(WANTED)
def test_reserved_nodes_are_never_reserved_twice_nor_under_maintenance(wanted: list[NewEntry]) -> None:
    blocks = calendars_of(wanted).blocks(NOW, NOW + 60 * DAY, NAMES)
    for first, second in combinations(blocks, 2):
        if "reservation" in (first.kind, second.kind):
            assert not share(first, second), (first, second)


@given(WANTED)
def test_every_block_has_a_name_of_its_own_and_nodes_that_are_there(wanted: list[NewEntry]) -> None:
    blocks = calendars_of(wanted).blocks(NOW, NOW + 60 * DAY, NAMES)
    assert len({block.name for block in blocks}) == len(blocks)
    assert blocks == sorted(blocks, key=lambda block: (block.start, block.name))
    assert all(block.start < block.end for block in blocks)
    assert all(set(block.nodes) <= set(NAMES) and (block.nodes or block.count) for block in blocks)


@given(WANTED, st.integers(0, 200))
def test_time_takes_blocks_away_and_brings_new_ones_but_changes_none(
    wanted: list[NewEntry], hours: int
) -> None:
    calendars = calendars_of(wanted)
    later = NOW + hours * HOUR
    before = {block.name: block for block in calendars.blocks(NOW, NOW + 20 * DAY, NAMES)}
    gone, come = difference(before, calendars.blocks(later, later + 20 * DAY, NAMES))
    assert all(before[name].end <= later for name in gone)
    assert all(block.start >= NOW + 20 * DAY for block in come)


@given(WANTED)
def test_a_calendar_that_was_kept_is_the_same_calendar(wanted: list[NewEntry]) -> None:
    calendars = calendars_of(wanted)
    again = Calendars(calendars.find(entry.name) for entry in calendars.entries(NOW))
    assert again.entries(NOW) == sorted(calendars.entries(NOW), key=_order)
    assert again.blocks(NOW, NOW + 30 * DAY, NAMES) == calendars.blocks(NOW, NOW + 30 * DAY, NAMES)


def _order(entry: Any) -> tuple[bool, float, str]:
    return entry.next_start is None, entry.next_start or 0.0, entry.name
