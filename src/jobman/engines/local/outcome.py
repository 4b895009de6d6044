"""How an attempt ended, from how its copies did. Pure."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from jobman.engines.endings import size_words
from jobman.engines.local.containers import launch_failure
from jobman.engines.local.prepared import Copy
from jobman.engines.local.records import Exit

KILLED = 128 + signal.SIGKILL
_REASONS = {"success": "", "lost": "node-lost"}


class Verdict(NamedTuple):
    """What is said of an attempt that is over."""

    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""


def judge(exits: Sequence[Exit], copies: Sequence[Copy]) -> Verdict:
    """Copies are one program: the first that failed by itself tells how it ended."""
    failed = [end for end in exits if end.reason != "success"]
    if not failed:
        return Verdict(exit_code=0)
    first = min(failed, key=lambda end: (end.stopped, end.ended_at, end.copy))
    number = signal_number(first.signal)
    code = 128 + number if number is not None else first.exit_code
    message = first.message
    if len(copies) > 1:
        words = message or (
            f"was ended by SIG{first.signal}" if first.signal else f"ended with exit code {code}"
        )
        message = f"copy {first.copy} on {copies[first.copy].node}: {words}"
    return Verdict(_REASONS.get(first.reason, first.reason), code, number, message)


def signal_number(name: str | None) -> int | None:
    """The number of a signal as records name it."""
    if name is None:
        return None
    if name.startswith("RTMIN+"):
        return signal.SIGRTMIN + int(name.removeprefix("RTMIN+"))
    return signal.Signals[f"SIG{name}"].value


def seen_through(end: Exit, copy: Copy, last_line: str) -> Exit:
    """The end of a container from that of its client, which speaks for both."""
    container, runtime = copy.container, copy.runtime
    if container is None or runtime is None or end.reason != "exit":
        return end
    if failure := launch_failure(runtime, end.exit_code, last_line):
        message = f"{runtime.dialect}: {failure}"
        return msgspec.structs.replace(end, reason="launch-failed", message=message)
    if end.exit_code is not None and end.stopped and end.exit_code > 128:
        name = signal.Signals(end.exit_code - 128).name if end.exit_code - 128 in _SIGNALS else None
        return end if name is None else _signalled(end, name)
    if end.exit_code == KILLED and container.memory is not None:
        message = f"used more than the {size_words(container.memory)} of memory it was given"
        return msgspec.structs.replace(end, reason="out-of-memory", message=message)
    return end


_SIGNALS = frozenset(number.value for number in signal.Signals)


def _signalled(end: Exit, name: str) -> Exit:
    return msgspec.structs.replace(end, reason="signal", exit_code=None, signal=name.removeprefix("SIG"))
