"""How jobs are scheduled here: queues, accounts and times, made of what the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from jobman.sched.accounts import Account
from jobman.sched.queues import NO_LIMITS, Limits, Queue, QueueState, Weights
from jobman.settings import Settings
from jobman.settings.accounts import Account as WrittenAccount
from jobman.settings.queues import Limits as WrittenLimits
from jobman.settings.queues import Queue as WrittenQueue
from jobman.settings.queues import Weights as WrittenWeights
from jobman.settings.scheduler import FOREVER, UNLIMITED
from jobman.spec.node_names import names_of

WEEK = 7 * 86400.0
DEFAULT_QUEUES = (Queue(name="interactive", policy="interactive"), Queue(name="batch"))
"""Both on all nodes; every job that waits in `batch` has a reservation of its own."""
_USUAL_QUEUE = "batch"


class Scheduling(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the settings say about scheduling, in the values that the scheduler works with."""

    queues: tuple[Queue, ...] = DEFAULT_QUEUES
    default_queue: str = _USUAL_QUEUE
    """Of jobs that name none."""
    accounts: tuple[Account, ...] = ()
    half_life: float = WEEK
    """Seconds after which past usage counts half in fair share."""
    default_duration: float | None = None
    """Seconds that a job may run which gives no limit; None for no limit."""
    stop_margin: float = 10.0
    """Seconds planned for the end of a job beside its limit and its grace."""
    keep_logs: float | None = None
    """Seconds for which output is kept after the end of a job; None for ever."""
    keep_log_size: int | None = None
    """The most bytes of output that are kept of jobs that are over; None for all."""

    def queue(self, name: str) -> Queue | None:
        """The queue that a job names, or the one of jobs that name none."""
        wanted = name or self.default_queue
        return next((queue for queue in self.queues if queue.name == wanted), None)


def scheduling(settings: Settings) -> Scheduling:
    """What settings that were read without an error say about scheduling."""
    values = settings.values
    queues = tuple(_queue(queue) for queue in values.get("queues", {}).values()) or DEFAULT_QUEUES
    written: Mapping[str, Any] = values.get("scheduler", {})
    logs: Mapping[str, Any] = written.get("logs", {})
    given = {name: written[name] for name in ("half_life", "stop_margin") if name in written}
    return Scheduling(
        queues=queues,
        default_queue=written.get("default_queue") or _usual(queues),
        accounts=tuple(_account(account) for account in values.get("accounts", {}).values()),
        default_duration=_unless(written.get("default_duration"), UNLIMITED),
        keep_logs=_unless(logs.get("keep"), FOREVER),
        keep_log_size=logs.get("keep_size"),
        **given,
    )


def _usual(queues: tuple[Queue, ...]) -> str:
    names = [queue.name for queue in queues]
    return _USUAL_QUEUE if _USUAL_QUEUE in names else names[0]


def _unless(value: float | str | None, word: str) -> float | None:
    return None if value is None or value == word else float(value)


def _queue(written: WrittenQueue) -> Queue:
    defaults = Queue(name=written.name)
    return Queue(
        name=written.name,
        policy="interactive" if written.is_interactive else "batch",
        depth=written.depth if isinstance(written.depth, int) else None,
        shortest_first=written.order == "shortest-first",
        nodes=names_of(written.nodes),
        share=written.share,
        borrow=written.borrow,
        factor=defaults.factor if written.factor is None else written.factor,
        weights=_weights(written.weights),
        limits=_limits(written.limits),
        each_user=_limits(written.each_user),
        each_account=_limits(written.each_account),
        state=QueueState(written.state or defaults.state),
    )


def _weights(written: WrittenWeights | None) -> Weights:
    return Weights() if written is None else Weights(**_given(written))


def _limits(written: WrittenLimits | None) -> Limits:
    if written is None:
        return NO_LIMITS
    given = _given(written)
    amounts = {kind: float(amount) for kind, amount in given.pop("resources", {}).items()}
    return Limits(**given, amounts=amounts)


def _account(written: WrittenAccount) -> Account:
    return Account(
        name=written.name,
        parent=written.parent or "",
        shares=1.0 if written.shares is None else written.shares,
        users=dict(written.users),
        active=written.active is not False,
        limits=_limits(written.limits),
        each_user=_limits(written.each_user),
    )


def _given(written: msgspec.Struct) -> dict[str, Any]:
    """What of a record was written; for the rest the scheduler has its own defaults."""
    return {name: value for name, value in msgspec.structs.asdict(written).items() if value is not None}
