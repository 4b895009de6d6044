"""How attempts end, in the words in which the jobs of every engine are told of."""

from __future__ import annotations

from signal import Signals

_REASONS = {
    "exit": "a task of it failed",
    "signal": "ended by a signal",
    "timeout": "its time was up",
    "out-of-memory": "it used more memory than it had",
    "unhealthy": "its check failed",
    "launch-failed": "it could not be started",
    "stage-failed": "a file it needs could not be brought",
    "node-lost": "its node was lost",
    "preempted": "it had to make room",
}


def how_it_ended(reason: str, exit_code: int | None, signal: int | None = None, message: str = "") -> str:
    """The end of an attempt that did not succeed; `reason` is one of jobman.spec.failures.REASONS."""
    if not reason:
        return "it starts over"
    said = _REASONS.get(reason, reason)
    if reason == "exit" and exit_code is not None:
        said = f"exit code {exit_code}"
    elif reason == "signal" and signal is not None:
        said = f"ended by {signal_name(signal)}"
    return f"{said}: {message}" if message else said


def signal_name(number: int) -> str:
    """SIGKILL, or its number where it has no name."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def size_words(number: int) -> str:
    """Bytes in the largest unit that fits."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def why(error: OSError) -> str:
    """What the operating system says, without the number and the path."""
    return (error.strerror or str(error)).lower()
