"""A job as it is found: its plan, what its scripts left word of, and what its manager says of the rest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from jobman.engines.endings import how_it_ended
from jobman.engines.scripts.folder import About, Folder, plan_of
from jobman.engines.scripts.hosts import expanded
from jobman.engines.scripts.records import Line, by_key
from jobman.plan.model import Edge, Plan, Unit

NativeState = Literal["waiting", "held", "running", "frozen", "over", "gone"]
FINAL = ("succeeded", "failed", "cancelled")
_STATES = {
    "started": "running",
    "frozen": "frozen",
    "thawed": "running",
    "stopping": "stopping",
    "retrying": "resting",
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
}
_OVER = (*FINAL, "skipped")
_ENDS = (*_OVER, "retrying")
_NEEDED = {"success": "succeeded", "failure": "failed"}


LATE = "it did not start within its window"


class Native(msgspec.Struct, frozen=True, kw_only=True):
    """What the manager says of a piece, or of some elements of it."""

    id: str
    piece: str
    job: str
    state: NativeState
    element: int | None = None
    """None for a piece that is no array, or all that waits of one."""
    reason: str = ""
    """In the manager's own word."""
    failure: str = ""
    """Of one that is over: why it failed, as one of jobman.spec.failures.REASONS."""
    starts_at: float | None = None
    ends_at: float | None = None


class AttemptAt(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    nodes: tuple[str, ...] = ()


class ReplicaAt(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    unit: str
    index: int
    state: str
    attempts: tuple[AttemptAt, ...] = ()
    since: float = 0.0

    @property
    def last(self) -> AttemptAt | None:
        return self.attempts[-1] if self.attempts else None


class RowAt(msgspec.Struct, frozen=True, kw_only=True):
    """A task or group in one scope."""

    unit: Unit
    scope: str
    outcome: str | None
    counts: dict[str, int]


class BatchJob:
    """One job, at one moment."""

    def __init__(self, folder: Folder, about: About, natives: Sequence[Native]) -> None:
        self.folder = folder
        self.about = about
        self.natives = natives
        self._lines = folder.lines()
        self._by_key = by_key(self._lines)
        self._known: dict[tuple[str, str | None], ReplicaAt] = {}

    @property
    def id(self) -> str:
        return self.about.id

    @property
    def name(self) -> str:
        return self.about.name

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.about)

    @cached_property
    def ids(self) -> dict[str, str]:
        return self.folder.ids()

    @cached_property
    def lines(self) -> list[Line]:
        return self._lines

    @cached_property
    def is_cancelled(self) -> bool:
        return self.folder.has("cancelled") and not self.folder.has("failed")

    @cached_property
    def is_late(self) -> bool:
        """Whether nothing of it has begun by its latest moment."""
        latest = self.about.latest
        return latest is not None and time.time() > latest and not self.folder.names("began")

    @cached_property
    def is_whole(self) -> bool:
        """Whether all of it was submitted."""
        return self.folder.has("submitted")

    @cached_property
    def is_held(self) -> bool:
        return self.folder.has("held") or (self._asks_for_release and not self.folder.has("released"))

    @cached_property
    def _asks_for_release(self) -> bool:
        return self.plan.policies.hold or any(unit.policies.hold for unit in self.plan.children())

    @cached_property
    def gates(self) -> dict[str, bool]:
        """Its gates, and whether each is open."""
        opened = self.folder.names("gates")
        policies = (self.plan.policies, *(unit.policies for unit in self.plan.units))
        return {name: name in opened for name in sorted({gate for each in policies for gate in each.gates})}

    # -- replicas --------------------------------------------------------------------------------

    @cached_property
    def replicas(self) -> list[ReplicaAt]:
        """Every replica that ever did more than wait."""
        return [
            replica
            for row in self.rows
            for replica in self._replicas_of(row)
            if replica.attempts or replica.state != "waiting"
        ]

    def _replicas_of(self, row: RowAt) -> Iterator[ReplicaAt]:
        prefix = f"{row.scope}/" if row.scope else ""
        for index in range(row.unit.replicas):
            yield self._replica(row.unit, f"{prefix}{row.unit.name}.{index}", index, row.outcome)

    def _replica(self, unit: Unit, key: str, index: int, outcome: str | None) -> ReplicaAt:
        """How a replica stands; it is asked for again and again."""
        known = self._known.get((key, outcome))
        if known is None:
            known = self._known[key, outcome] = self._found(unit, key, index, outcome)
        return known

    def _found(self, unit: Unit, key: str, index: int, outcome: str | None) -> ReplicaAt:
        lines = [line for line in self._by_key.get(key, ()) if line.kind in _STATES]
        attempts = self._attempts(lines)
        state = _STATES[lines[-1].kind] if lines else self._unsaid(unit, index, outcome)
        since = lines[-1].at if lines else self.about.submitted_at
        if state not in _OVER and lines and self._is_dead(unit, key):
            state, attempts = self._killed(unit, index, attempts)
        return ReplicaAt(key=key, unit=unit.id, index=index, state=state, attempts=attempts, since=since)

    def _attempts(self, lines: Sequence[Line]) -> tuple[AttemptAt, ...]:
        found: dict[int, AttemptAt] = {}
        for line in lines:
            if not line.attempt:
                continue
            known = found.get(line.attempt, AttemptAt(number=line.attempt))
            if line.kind == "started":
                nodes = tuple(expanded(line.nodes))
                known = msgspec.structs.replace(known, started_at=line.at, nodes=nodes)
            elif line.kind in _ENDS and not (line.kind == "cancelled" and known.ended_at is not None):
                known = msgspec.structs.replace(
                    known,
                    ended_at=line.at,
                    exit_code=line.exit_code,
                    signal=line.signal,
                    reason=line.reason,
                    message=line.message.partition("; it is tried again")[0].partition("; a rule ignores")[0],
                    nodes=known.nodes or tuple(expanded(line.nodes)),
                )
            found[line.attempt] = known
        return tuple(found[number] for number in sorted(found))

    def _unsaid(self, unit: Unit, index: int, outcome: str | None) -> str:
        """The state of one that left no word."""
        native = self._native(unit, index) if unit.parent is None else None
        if outcome == "failed" and unit.parent is None and native is None and self._is_forgotten(unit):
            return outcome
        if outcome is not None:
            return "skipped" if outcome == "skipped" else "cancelled"
        if unit.parent is not None:
            return "waiting"
        if native is None or native.state == "over" or native.state == "gone":
            return self._never_ran(unit, native)
        if native.state == "running":
            return "starting"
        return "queued" if native.reason in ("Resources", "Priority", "") else "waiting"

    def _never_ran(self, unit: Unit, native: Native | None) -> str:
        if self.is_cancelled or self.folder.has("failed"):
            return "cancelled"
        if not self.is_whole and native is None:
            return "waiting"
        if native is None and self._is_forgotten(unit):
            return "failed"
        waits = any(edge.unit == unit.id for edge in self.plan.edges) or unit.cleanup
        return "skipped" if waits else "failed" if native is not None and native.failure else "cancelled"

    def _is_forgotten(self, unit: Unit) -> bool:
        """Whether the manager knows nothing of one that might run yet, as after a crash that cost its memory.

        One that is only not remembered for long waited for what did not happen, or somebody cancelled it.
        """
        edges = [edge for edge in self.plan.edges if edge.unit == unit.id]
        return bool(edges) and not self._has_begun(unit) and all(self._may_happen(edge) for edge in edges)

    def _has_begun(self, unit: Unit) -> bool:
        return any(f"{unit.name}.{index}" in self._by_key for index in range(unit.replicas))

    def _may_happen(self, edge: Edge) -> bool:
        other = self.plan.unit(edge.after)
        if not self._has_begun(other):
            native = self._native(other, 0)
            return native is not None and native.state not in ("over", "gone")
        outcome = self._outcome(other, other.name, "")
        return outcome is None or edge.when not in ("success", "failure") or outcome == _NEEDED[edge.when]

    def _is_dead(self, unit: Unit, key: str) -> bool:
        """Whether what should be running is not: its script was killed."""
        top = self._top(key)
        if top is None or f"{top[0].name}.{top[1]}" in self._ended:
            return top is not None and unit.parent is not None
        native = self._native(*top)
        return native is None or native.state in ("over", "gone")

    @cached_property
    def _ended(self) -> set[str]:
        return {line.key for line in self._lines if _STATES.get(line.kind) in _OVER}

    def _killed(
        self, unit: Unit, index: int, attempts: tuple[AttemptAt, ...]
    ) -> tuple[str, tuple[AttemptAt, ...]]:
        native = self._native(*(self._top_of_unit(unit, index)))
        if self.is_cancelled or unit.service:
            return "cancelled", attempts
        failure = native.failure if native is not None and native.failure else "node-lost"
        if attempts:
            last = msgspec.structs.replace(
                attempts[-1],
                reason=failure,
                ended_at=native.ends_at if native is not None else None,
                message="its script was killed and could leave no word",
            )
            attempts = (*attempts[:-1], last)
        return "failed", attempts

    def _top_of_unit(self, unit: Unit, index: int) -> tuple[Unit, int]:
        top = unit
        while top.parent is not None:
            top, index = self.plan.unit(top.parent), 0
        return top, index

    def _top(self, key: str) -> tuple[Unit, int] | None:
        name, _, index = key.partition("/")[0].rpartition(".")
        unit = next((unit for unit in self.plan.children() if unit.name == name), None)
        return None if unit is None else (unit, int(index))

    def _native(self, unit: Unit, index: int) -> Native | None:
        """What the manager says of a replica at the top: of the element, or of all that waits."""
        own = self._natives.get(unit.name, {})
        return own.get(index, own.get(None))

    @cached_property
    def _natives(self) -> dict[str, dict[int | None, Native]]:
        """By piece and element; where something of that name came before, those that were written down."""
        found: dict[str, list[Native]] = {}
        for native in self.natives:
            found.setdefault(native.piece, []).append(native)
        mine = {
            piece: [native for native in natives if native.id == self.ids.get(piece)] or natives
            for piece, natives in found.items()
        }
        return {piece: {native.element: native for native in natives} for piece, natives in mine.items()}

    # -- tasks and groups ------------------------------------------------------------------------

    @cached_property
    def rows(self) -> list[RowAt]:
        """Units in the scopes they were run in; those of a group that never ran stand once."""
        return list(self._rows(None, ""))

    def _rows(self, parent: str | None, scope: str) -> Iterator[RowAt]:
        for unit in self.plan.children(parent):
            place = f"{scope}/{unit.name}" if scope else unit.name
            outcome = self._outcome(unit, place, scope)
            yield RowAt(unit=unit, scope=scope, outcome=outcome, counts=self._counts(unit, place, outcome))
            if unit.kind == "group":
                seen = [i for i in range(unit.replicas) if f"{place}.{i}" in self._by_key] or [0]
                for index in seen:
                    yield from self._rows(unit.id, f"{place}.{index}")

    def _counts(self, unit: Unit, place: str, outcome: str | None) -> dict[str, int]:
        replicas = [self._replica(unit, f"{place}.{i}", i, outcome) for i in range(unit.replicas)]
        counts: Counter[str] = Counter(replica.state for replica in replicas)
        if retried := sum(max(0, len(replica.attempts) - 1) for replica in replicas):
            counts["retried"] = retried
        return dict(counts)

    def _outcome(self, unit: Unit, place: str, scope: str) -> str | None:
        said = [line.reason for line in self._by_key.get(place, ()) if line.kind == "task"]
        if said:
            return said[-1]
        if unit.parent is not None:
            above = self._replica_state(scope)
            return None if above not in _OVER else "skipped" if above == "skipped" else "cancelled"
        states = [self._replica(unit, f"{place}.{i}", i, None).state for i in range(unit.replicas)]
        if any(state not in _OVER for state in states):
            return None
        return next((state for state in ("failed", "cancelled", "succeeded") if state in states), "skipped")

    def _replica_state(self, key: str) -> str:
        top = self._top(key)
        if top is None:
            return ""
        if "/" not in key:
            return self._replica(top[0], key, top[1], None).state
        lines = [line for line in self._by_key.get(key, ()) if line.kind in _STATES]
        return _STATES[lines[-1].kind] if lines else self._replica_state(key.rpartition("/")[0])

    # -- the job as a whole ----------------------------------------------------------------------

    @cached_property
    def state(self) -> str:
        work = [row for row in self.rows if not row.scope and not row.unit.service]
        if any(row.outcome is None for row in work):
            return "running" if self.started_at is not None else "waiting"
        if any(self._is_live(row) for row in self.rows if not row.scope):
            return "running"
        if self.is_cancelled:
            return "cancelled"
        outcomes = {row.outcome for row in work}
        if self.folder.has("failed") or "failed" in outcomes or self._was_let_down(work):
            return "failed"
        return "cancelled" if "cancelled" in outcomes else "succeeded"

    def _is_live(self, row: RowAt) -> bool:
        """Whether something of it still runs: a service, or what is stopped because all is decided."""
        return any(state not in _OVER and count for state, count in row.counts.items() if state != "retried")

    def _was_let_down(self, work: Sequence[RowAt]) -> bool:
        """Whether something never began because a service it needs had failed."""
        broken = {
            row.unit.id
            for row in self.rows
            if row.unit.service and not row.scope and row.counts.get("failed")
        }
        skipped = {row.unit.id for row in work if row.outcome == "skipped"}
        needs = ("success", "started", "ready")
        return any(
            edge.unit in skipped and edge.after in broken and edge.when in needs for edge in self.plan.edges
        )

    @property
    def is_over(self) -> bool:
        return self.state in FINAL

    @cached_property
    def started_at(self) -> float | None:
        return next((line.at for line in self._lines if line.kind == "started"), None)

    @cached_property
    def ended_at(self) -> float | None:
        if not self.is_over:
            return None
        ends = [line.at for line in self._lines if line.key]
        natives = [native.ends_at for native in self.natives if native.ends_at is not None]
        return max([*ends, *natives], default=self.about.submitted_at)

    @cached_property
    def first_failure(self) -> ReplicaAt | None:
        """What made it fail: the first failure of a task that has failed, and was not forgiven."""
        failed = [replica for replica in self.replicas if replica.state == "failed"]
        tasks = [replica for replica in failed if self.plan.unit(replica.unit).kind == "task"]
        blamed = {row.unit.id for row in self.rows if row.outcome == "failed" and not row.unit.service}
        for choice in ([each for each in tasks if each.unit in blamed], tasks, failed):
            if choice:
                return min(choice, key=lambda replica: replica.since)
        return None

    @cached_property
    def exit_code(self) -> int | None:
        if self.state == "succeeded":
            return 0
        if self.is_late and self.state == "failed":
            return 1
        if self.state != "failed" or self.first_failure is None:
            return None
        last = self.first_failure.last
        return None if last is None else last.exit_code

    @cached_property
    def reason(self) -> str:
        if self.state == "cancelled":
            return "cancelled"
        if self.is_late and self.state == "failed":
            return LATE
        if self.state != "failed" or self.first_failure is None:
            return ""
        last = self.first_failure.last
        words = (
            "the manager knows nothing of it any more, and it never ran"
            if last is None
            else how_it_ended(last.reason, last.exit_code, last.signal, last.message)
        )
        return f"{self.first_failure.key}: {words}"

    @cached_property
    def counts(self) -> dict[str, int]:
        """Replicas of all tasks by state."""
        total: Counter[str] = Counter()
        for row in self.rows:
            if row.unit.kind == "task":
                total.update(row.counts)
        return dict(total)


def natives_by_job(natives: Sequence[Native]) -> dict[str, list[Native]]:
    """What the manager says, job by job."""
    found: dict[str, list[Native]] = {}
    for native in natives:
        found.setdefault(native.job, []).append(native)
    return found
