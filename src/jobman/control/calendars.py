"""The calendar of a service: from requests to definitions that make sense here, and from these to blocks.

Decides and remembers; writes nothing. Whoever leads commits a record, and then has it kept.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from jobman.control.administration import CalendarEntry, NewEntry
from jobman.control.overbooking import Shortage, shortage
from jobman.control.refusals import Refusal
from jobman.control.store.records import CalendarRecord
from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import mismatch
from jobman.sched.blocks import Block, give_way
from jobman.sched.calendar import (
    DAY,
    Definition,
    Entry,
    Fault,
    Reservation,
    Window,
    clashes,
    faults,
    is_over,
    is_zone,
    moment_of,
    occurrences,
    rhythm,
    upcoming,
    wall_of,
)
from jobman.spec.node_names import expand_list, fold_names
from jobman.spec.suggest import closest, listing

log = logging.getLogger("jobman.calendar")
LOOK_AHEAD = 366 * DAY
"""How far clashes are looked for."""
_WORDS = {"maintenance": "window of maintenance", "reservation": "reservation"}
_LISTS = {"reservation": "jobman reserve list", "": "jobman maintenance list"}


class Calendars:
    """All windows and reservations that a service knows, by name."""

    def __init__(self, records: Iterable[CalendarRecord] = ()) -> None:
        self._records: dict[str, CalendarRecord] = {}
        self._definitions: dict[str, Definition] = {}
        for record in records:
            self.keep(record)

    def keep(self, record: CalendarRecord) -> None:
        """Know a record that was committed."""
        try:
            definition = definition_of(record)
        except msgspec.ValidationError as error:
            log.error("the entry %s of the calendar cannot be read: %s", record.name, error)
            return
        self._records[record.name] = record
        self._definitions[record.name] = definition

    def drop(self, name: str) -> None:
        """Forget one whose removal was committed."""
        self._records.pop(name, None)
        self._definitions.pop(name, None)

    def choose(self, block: str, nodes: Iterable[str], known: Iterable[str]) -> CalendarRecord | None:
        """The record to commit when nodes were chosen for a block; of others it keeps what is still known."""
        record = self._records.get(block.partition("/")[0])
        if record is not None:
            kept = {name: record.chosen[name] for name in known if name in record.chosen}
            record.chosen = {**kept, block: fold_names(nodes)}
        return record

    def as_chosen(self, block: Block, nodes: Collection[str]) -> Block:
        """A block that counts nodes with those that were chosen for it, if they are all still there."""
        record = self._records.get(block.definition)
        text = record.chosen.get(block.name) if record is not None else None
        names = expand_list(text) if text else None
        if block.count is None or names is None or not all(name in nodes for name in names):
            return block
        return msgspec.structs.replace(block, nodes=names, count=None)

    def find(self, name: str, kind: str | None = None) -> CalendarRecord:
        """The record of this name and kind, or a refusal."""
        record = self._records.get(name)
        if record is None or kind not in (None, record.kind):
            known = [each.name for each in self._records.values() if kind in (None, each.kind)]
            meant = closest(name, known)
            what = _WORDS.get(kind or "", "entry of the calendar")
            advice = f"Did you mean {meant}?" if meant else f"{_LISTS.get(kind or '', _LISTS[''])} shows all."
            raise Refusal("no-such-entry", f"There is no {what} {name}.", advice)
        return record

    # -- blocks ------------------------------------------------------------------------------------------

    def blocks(self, since: float, until: float, nodes: Sequence[str]) -> list[Block]:
        """All blocks of a span of time, in the order they begin; reservations give way to maintenance.

        What takes all nodes names them. What the planner knows already is told apart by `difference`.
        """
        reserved = self._blocks_of(Reservation, since, until, nodes)
        # Pieces must not change while time passes, so windows are looked for wherever a reservation reaches.
        first = min((block.start for block in reserved), default=since)
        last = max((block.end for block in reserved), default=until)
        windows = self._blocks_of(Window, min(first, since), max(last, until), nodes)
        pieces = [piece for block in reserved for piece in give_way(block, windows, nodes)]
        found = [block for block in (*windows, *pieces) if block.meets(since, until)]
        return sorted(found, key=lambda block: (block.start, block.name))

    def _blocks_of(self, kind: type[Entry], since: float, until: float, nodes: Sequence[str]) -> list[Block]:
        return [
            _named(block, nodes)
            for definition in self._definitions.values()
            if isinstance(definition, kind)
            for block in occurrences(definition, since, until)
        ]

    def refuse_stranger(self, reservation: str, user: str, accounts: Sequence[str], now: float) -> None:
        """Refuse somebody who asks for a reservation that is not there, is over, or is not for them."""
        record = self.find(reservation.partition("/")[0], "reservation")
        coming = upcoming(self._definitions[record.name], now)
        if not coming:
            raise Refusal(
                "wrong-state", f"The reservation {reservation} is over.", "Submit the job without it."
            )
        if not any(coming[0].admits(record.name, user, account) for account in accounts):
            advice = "Whoever made it can add you; jobman reserve list shows for whom it is."
            raise Refusal("forbidden", f"The reservation {reservation} is not for {user}.", advice)

    def is_over(self, reservation: str, now: float) -> bool:
        """Whether a reservation will not come again; one that was removed may be made anew."""
        definition = self._definitions.get(reservation)
        return definition is not None and is_over(definition, now)

    # -- answers -----------------------------------------------------------------------------------------

    def entries(self, now: float) -> list[CalendarEntry]:
        """Everything there is: first what comes first, at last what is over."""
        found = [self.entry(record, now) for record in self._records.values()]
        return sorted(found, key=lambda each: (each.next_start is None, each.next_start or 0.0, each.name))

    def entry(self, record: CalendarRecord, now: float, notes: Iterable[str] = ()) -> CalendarEntry:
        """A record as it is shown."""
        definition = definition_of(record)
        coming = next(iter(upcoming(definition, now)), None)
        reserved = definition if isinstance(definition, Reservation) else None
        return CalendarEntry(
            kind=record.kind,
            name=record.name,
            start=definition.start.isoformat(timespec="seconds"),
            zone=definition.zone,
            duration=definition.duration,
            nodes=list(definition.nodes),
            count=reserved.count if reserved else None,
            requires=reserved.requires if reserved else {},
            users=list(reserved.users) if reserved else [],
            accounts=list(reserved.accounts) if reserved else [],
            repeats=definition.repeats,
            skips=list(definition.skips),
            reason=definition.reason,
            rhythm=rhythm(definition),
            next_start=coming.start if coming else None,
            next_end=None if coming is None or coming.is_open_ended else coming.end,
            created_by=record.created_by,
            created_at=record.created_at,
            notes=list(notes),
        )

    # -- admission ---------------------------------------------------------------------------------------

    def admit(
        self, wanted: NewEntry, who: str, now: float, nodes: Sequence[ClusterNode]
    ) -> tuple[CalendarRecord, list[str]]:
        """The record of what is wanted, and notes for its author; a refusal where it makes no sense."""
        definition = _defined(wanted, who)
        _refuse(faults(definition))
        if is_over(definition, now):
            raise Refusal("bad-request", f"{wanted.name} would be over already.", "Let it begin later.")
        self._refuse_double(definition, now)
        _refuse_misfit(definition, nodes)
        notes = self._clashes(definition, now)
        self._refuse_overbooking(definition, now, nodes)
        record = CalendarRecord(
            name=definition.name,
            kind=wanted.kind,
            definition=msgspec.json.decode(msgspec.json.encode(definition)),
            created_by=who,
            created_at=now,
        )
        return record, notes

    def _refuse_double(self, definition: Definition, now: float) -> None:
        known = self._definitions.get(definition.name)
        if known is not None and not is_over(known, now):
            raise Refusal(
                "wrong-state",
                f"There is a {_WORDS[self._records[known.name].kind]} {known.name} already.",
                "Remove it first, or choose another name.",
            )

    def _clashes(self, definition: Definition, now: float) -> list[str]:
        """What else is planned on the same nodes; nobody gets what others reserved."""
        notes = []
        for other in self._definitions.values():
            if other.name == definition.name:
                continue
            met = clashes(definition, other, now, now + LOOK_AHEAD)
            if met is None:
                continue
            words = _meeting(met[1])
            if isinstance(definition, Reservation) and isinstance(other, Reservation):
                raise Refusal(
                    "wrong-state", f"{definition.name} meets {words}.", "Take other nodes or times."
                )
            both = isinstance(definition, Window) and isinstance(other, Window)
            notes.append(f"it meets {words}" + ("" if both else "; maintenance goes first"))
        return notes

    def _refuse_overbooking(self, definition: Definition, now: float, nodes: Sequence[ClusterNode]) -> None:
        if not isinstance(definition, Reservation):
            return
        others = [
            other
            for other in self._definitions.values()
            if isinstance(other, Reservation) and other.name != definition.name
        ]
        short = shortage(definition, others, nodes, now, now + LOOK_AHEAD)
        if short is not None:
            raise Refusal(
                "wrong-state",
                f"{definition.name} wants more nodes than there are: {_left(short, definition.zone)}.",
                "Take fewer nodes or other times; jobman reserve list shows what is reserved.",
            )


def _left(short: Shortage, zone: str) -> str:
    left = {0: "no node is", 1: "1 node is"}.get(short.left, f"{short.left} nodes are")
    return f"at {wall_of(short.at, zone):%Y-%m-%d %H:%M} {left} not reserved"


def definition_of(record: CalendarRecord) -> Definition:
    """The definition in a record."""
    made: Definition = msgspec.convert(record.definition, Definition)
    return made


def _meeting(block: Block) -> str:
    day = wall_of(block.start, "UTC").date()
    return f"the {_WORDS[block.kind]} {block.definition} of {day} on the same nodes"


def _named(block: Block, nodes: Sequence[str]) -> Block:
    return msgspec.structs.replace(block, nodes=tuple(nodes)) if block.takes_all else block


def _refuse(found: list[Fault]) -> None:
    if found:
        words = " ".join(fault.message for fault in found)
        raise Refusal("bad-request", words, "\n".join(fault.advice for fault in found))


def _refuse_misfit(definition: Definition, nodes: Sequence[ClusterNode]) -> None:
    known = {node.name: None for node in nodes}
    if unknown := [name for name in definition.nodes if name not in known]:
        advice = f"There are {fold_names(known)}."
        raise Refusal("no-such-node", f"There is no node {fold_names(unknown)}.", advice)
    if isinstance(definition, Reservation) and definition.count is not None:
        fitting = sum(mismatch(node, definition.requires, {}) is None for node in nodes)
        if definition.count > fitting:
            facts = f" with {listing(definition.requires)} as required" if definition.requires else ""
            there = "is 1 node" if fitting == 1 else f"are {fitting or 'no'} nodes"
            raise Refusal(
                "does-not-fit",
                f"There {there}{facts}, not {definition.count}.",
                "Take fewer nodes, or those with other facts; jobman nodes shows what there is.",
            )


# -- from a request to a definition --------------------------------------------------------------------------


def _defined(wanted: NewEntry, who: str) -> Definition:
    zone = wanted.zone or _offset(wanted)
    if not is_zone(zone):
        _refuse([Fault(f"There is no time zone {zone}.", "Write one such as Europe/Berlin, UTC or +01:00.")])
    common = {
        "name": wanted.name,
        "start": _wall(wanted, zone),
        "zone": zone,
        "duration": wanted.duration,
        "nodes": _names(wanted.nodes),
        "repeats": wanted.repeats,
        "skips": tuple(sorted(set(wanted.skips))),
        "reason": wanted.reason,
    }
    if wanted.kind == "maintenance":
        if wanted.users or wanted.accounts or wanted.count is not None or wanted.requires:
            words = "Maintenance is for nobody, and on nodes that are named."
            raise Refusal("bad-request", words, "Leave out users, accounts, count and requires.")
        return Window(**common)  # type: ignore[arg-type]
    if wanted.duration is None:
        raise Refusal("bad-request", "A reservation has an end.", "Say how long it lasts.")
    return Reservation(
        **common,  # type: ignore[arg-type]
        users=tuple(dict.fromkeys(wanted.users)) or (() if wanted.accounts else (who,)),
        accounts=tuple(dict.fromkeys(wanted.accounts)),
        count=wanted.count,
        requires=wanted.requires,
    )


def _offset(wanted: NewEntry) -> str:
    offset = wanted.start.utcoffset()
    if not offset:
        return "UTC"
    sign, minutes = ("-", -offset) if offset < timedelta() else ("+", offset)
    hours, rest = divmod(int(minutes.total_seconds()) // 60, 60)
    return f"{sign}{hours:02d}:{rest:02d}"


def _wall(wanted: NewEntry, zone: str) -> datetime:
    try:
        moment = wanted.start.timestamp() if wanted.start.tzinfo else moment_of(wanted.start, zone)
        wall = wall_of(moment, zone) if wanted.start.tzinfo else wanted.start
    except (OverflowError, ValueError, OSError):
        raise Refusal("bad-request", "The start is no day of this or the next century.") from None
    return wall.replace(microsecond=0)


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for text in texts:
        names = expand_list(text)
        if names is None:
            raise Refusal(
                "bad-request", f"{text!r} names no nodes.", "Write names and ranges such as n[1-4],gpu7."
            )
        found.update(dict.fromkeys(names))
    return tuple(found)
