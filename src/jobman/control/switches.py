"""States that administrators give to queues and nodes, over what the settings and the nodes themselves say.

Decides and remembers; writes nothing. Whoever leads commits a record, and then has it kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from jobman.control.administration import QueueInfo, QueueStateName, Standing
from jobman.control.refusals import Refusal
from jobman.control.store.records import StateRecord
from jobman.sched.queues import Queue, QueueState
from jobman.spec.suggest import closest, listing


class Switches:
    """What was said of which queue and which node."""

    def __init__(
        self, queues: Mapping[str, StateRecord] | None = None, nodes: Mapping[str, StateRecord] | None = None
    ) -> None:
        self._queues = dict(queues or {})
        self._nodes = dict(nodes or {})

    # -- queues ------------------------------------------------------------------------------------------

    def switch_queue(
        self, name: str, state: str, reason: str, who: str, now: float, queues: Iterable[Queue]
    ) -> StateRecord:
        """The record of a queue's new state; a refusal where there is no such queue."""
        _refuse_unknown("queue", name, [queue.name for queue in queues])
        return StateRecord(name=name, state=str(QueueState(state)), reason=reason, by=who, at=now)

    def keep_queue(self, record: StateRecord) -> None:
        """Know a state that was committed."""
        self._queues[record.name] = record

    def queues(self, queues: Iterable[Queue]) -> list[Queue]:
        """The queues of the settings in the states they are in."""
        return [msgspec.structs.replace(queue, state=self.state_of_queue(queue)) for queue in queues]

    def state_of_queue(self, queue: Queue) -> QueueState:
        record = self._queues.get(queue.name)
        return queue.state if record is None else QueueState(record.state)

    def refuse_closed(self, queue: Queue) -> None:
        """Refuse a job for a queue that takes none in."""
        state = self.state_of_queue(queue)
        if state is QueueState.OPEN:
            return
        record = self._queues.get(queue.name)
        why = f": {record.reason}" if record is not None and record.reason else ""
        advice = "Name another queue, or submit it when this one is open again."
        raise Refusal("wrong-state", f"The queue {queue.name} is {state}{why}.", advice)

    def infos(self, queues: Sequence[Queue]) -> list[QueueInfo]:
        """The queues as they are shown."""
        return [self._info(queue) for queue in queues]

    def _info(self, queue: Queue) -> QueueInfo:
        record = self._queues.get(queue.name)
        return QueueInfo(
            name=queue.name,
            policy=queue.policy,
            depth=queue.depth,
            shortest_first=queue.shortest_first,
            nodes=list(queue.nodes),
            share=queue.share,
            borrow=list(queue.borrow),
            factor=queue.factor,
            state=_STATES[self.state_of_queue(queue)],
            reason=record.reason if record is not None else "",
            by=record.by if record is not None else "",
            at=record.at if record is not None else None,
        )

    # -- nodes -------------------------------------------------------------------------------------------

    def switch_node(
        self, name: str, state: str, reason: str, who: str, now: float, nodes: Sequence[str]
    ) -> StateRecord:
        """The record of a node's new state, `up` or `draining`; a refusal where there is no such node."""
        _refuse_unknown("node", name, nodes)
        return StateRecord(name=name, state=state, reason=reason, by=who, at=now)

    def keep_node(self, record: StateRecord) -> None:
        """Know a state that was committed."""
        self._nodes[record.name] = record

    def node(self, name: str) -> StateRecord | None:
        """What was last said of a node."""
        return self._nodes.get(name)

    def draining(self) -> dict[str, str]:
        """The nodes that are drained, each with the reason, as a cause in words."""
        return {
            name: f"node {name} is drained by {record.by}" + (f": {record.reason}" if record.reason else "")
            for name, record in self._nodes.items()
            if record.state == "draining"
        }


_STATES: dict[QueueState, QueueStateName] = {
    QueueState.OPEN: "open",
    QueueState.DRAINING: "draining",
    QueueState.CLOSED: "closed",
}


def standing(record: StateRecord) -> Standing:
    """A state as it is shown."""
    return Standing(**msgspec.structs.asdict(record))


def _refuse_unknown(what: str, name: str, known: Sequence[str]) -> None:
    if name in known:
        return
    meant = closest(name, known)
    advice = f"Did you mean {meant}?" if meant else f"There are {listing(known).replace('`', '')}."
    raise Refusal(f"no-such-{what}", f"There is no {what} {name}.", advice)
