"""How a copy ended, from what was seen of it. Pure: facts in, the record out."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

import msgspec

from jobman.engines.local.memory import memory_words
from jobman.engines.local.orders import Order, Reason
from jobman.engines.local.records import Exit, Refusal, Started


class Seen(msgspec.Struct, kw_only=True):
    """What a shim saw of a copy's end; the status is that of wait, None where nobody saw it."""

    status: int | None
    ended_at: float
    started: Started | None = None
    refusal: Refusal | None = None
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss: int = 0
    usage_lost: bool = False
    has_timed_out: bool = False
    limit: float = 0.0
    out_of_memory: bool = False
    memory_used: int | None = None
    is_stopped: bool = False
    why: str = ""
    killed: bool = False
    after_status: int | None = None
    after_lost: bool = False
    result: str | None = None
    lost: str = ""
    notes: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """The reason of an end, its exit code or signal, and a sentence where these do not say it all."""

    reason: Reason
    exit_code: int | None = None
    signal: str | None = None
    message: str = ""


def conclude(order: Order, seen: Seen) -> Exit:
    """The record of a copy's end."""
    verdict = _judge(order, seen)
    started = seen.started
    return Exit(
        id=order.id,
        copy=order.copy,
        reason=verdict.reason,
        exit_code=verdict.exit_code,
        signal=verdict.signal,
        message=verdict.message,
        stopped=seen.is_stopped,
        why=seen.why,
        killed=seen.killed,
        started_at=started.at if started and not started.void else None,
        ended_at=seen.ended_at,
        user_seconds=round(seen.user_seconds, 6),
        system_seconds=round(seen.system_seconds, 6),
        max_rss=max(seen.max_rss, seen.memory_used or 0),
        result=seen.result,
        usage_lost=seen.usage_lost,
        after_lost=seen.after_lost,
        notes=(*(started.notes if started else ()), *seen.notes),
    )


def _judge(order: Order, seen: Seen) -> Verdict:
    if seen.status is None:
        return Verdict("lost", message=seen.lost)
    code = os.waitstatus_to_exitcode(seen.status)
    ended = Verdict("signal", signal=signal_name(-code)) if code < 0 else Verdict("exit", exit_code=code)
    if seen.has_timed_out:
        return ended._replace(reason="timeout", message=f"ran past its limit of {seen.limit:g} s")
    if code == 0:
        return _judge_after(seen, ended)
    if seen.out_of_memory:
        return ended._replace(
            reason="out-of-memory", message=memory_words(order.memory or 0, seen.memory_used)
        )
    if seen.refusal is not None:
        return ended._replace(reason=seen.refusal.reason, message=seen.refusal.message)
    return ended


def _judge_after(seen: Seen, ended: Verdict) -> Verdict:
    """A hook that fails after the command succeeded fails the copy."""
    code = os.waitstatus_to_exitcode(seen.after_status or 0)
    if code == 0:
        return ended._replace(reason="success")
    if code < 0:
        name = signal_name(-code)
        return Verdict(
            "exit", 128 - code, None, f"the command succeeded, the `after` hook was ended by {name}"
        )
    return Verdict("exit", code, None, f"the command succeeded, the `after` hook ended with exit code {code}")


def signal_name(number: int) -> str:
    """A signal as documents write it, without SIG."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return f"RTMIN+{number - signal.SIGRTMIN}"


def signal_number(name: str) -> int:
    """The number of a signal, written with or without SIG."""
    return signal.Signals[f"SIG{name.upper().removeprefix('SIG')}"].value
