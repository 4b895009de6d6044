"""An attempt as the engine follows it: which copies run, which are over, and when all of them are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from jobman.engines import base
from jobman.engines.local.compile import output_paths
from jobman.engines.local.outcome import Verdict, judge
from jobman.engines.local.prepared import Copy
from jobman.engines.local.preparing import Kept
from jobman.engines.local.probes import Probes
from jobman.engines.local.records import Exit, Started


class Attempt:
    """One attempt that is not over. It decides nothing and calls nobody; the engine asks it."""

    def __init__(self, order: base.Order, copies: Sequence[Copy], kept: Kept) -> None:
        self.order = order
        self.copies = copies
        self.kept = kept
        self.started: dict[int, Started] = {}
        self.ended: dict[int, Exit] = {}
        self.probes: Probes | None = None
        self.verdict: Verdict | None = None
        """Where the engine itself had to end it."""
        self.is_running = False
        self.is_told = False
        """Whether it was said that it runs."""
        self.why_stopped = ""

    @property
    def address(self) -> base.Address:
        return self.order.address

    @property
    def is_over(self) -> bool:
        return len(self.ended) == len(self.copies)

    @property
    def is_ending(self) -> bool:
        """Whether its copies were asked to stop."""
        return bool(self.why_stopped)

    @property
    def has_sizes(self) -> bool:
        """Whether a volume of it has a size to be kept."""
        return any(mount.size is not None for mounts in self.kept.mounts for mount in mounts)

    def unfinished(self) -> list[Copy]:
        """The copies that have not ended."""
        return [copy for copy in self.copies if copy.order.copy not in self.ended]

    def begins_to_run(self) -> bool:
        """Whether now, for the first time, all copies have been started."""
        if self.is_running or len(self.started) < len(self.copies):
            return False
        self.is_running = True
        return True

    def running(self) -> base.Running:
        at = max(started.at for started in self.started.values())
        ports = self.copies[0].ports
        return base.Running(**self._named(at), outputs=self.outputs(), ports=ports)

    def over(self) -> base.Over:
        exits = [self.ended[number] for number in sorted(self.ended)]
        verdict = self.verdict or judge(exits, self.copies)
        began = [end.started_at for end in exits if end.started_at is not None]
        results = [end.result for end in exits if end.result is not None]
        return base.Over(
            **self._named(max((end.ended_at for end in exits), default=time.time())),
            **verdict._asdict(),
            started_at=min(began, default=None),
            cpu_seconds=sum(end.user_seconds + end.system_seconds for end in exits),
            max_rss=max((end.max_rss for end in exits), default=0),
            result=results[0] if results else None,
            outputs=tuple(_measured(self.outputs())),
            notes=tuple(dict.fromkeys(note for end in exits for note in end.notes)),
        )

    def outputs(self) -> tuple[base.OutputFile, ...]:
        """Where all output goes, and where this attempt's part of each file begins."""
        return tuple(
            base.OutputFile(copy.order.copy, stream, path, copy.node, self.kept.starts.get(path, 0))
            for copy in self.copies
            for stream, path in output_paths(copy.order).items()
        )

    def prolong(self, seconds: float) -> list[tuple[str, float]]:
        """All the time each copy has that is limited, with so much more than its document says."""
        orders = [copy.order for copy in self.unfinished()]
        return [(order.id, order.duration + seconds) for order in orders if order.duration is not None]

    def infos(self) -> list[base.CopyInfo]:
        """The copies that run."""
        return [
            base.CopyInfo(
                replica=self.order.key,
                attempt=self.order.attempt,
                copy=copy.order.copy,
                node=copy.node,
                pid=self.started[copy.order.copy].pid,
                cwd=copy.order.cwd,
                container=_container(copy),
            )
            for copy in self.unfinished()
            if copy.order.copy in self.started
        ]

    def _named(self, at: float) -> dict[str, Any]:
        return named(self.address, at)


def named(address: base.Address, at: float | None = None) -> dict[str, Any]:
    """What every report says of its attempt."""
    job, key, attempt = address
    return {"job": job, "key": key, "attempt": attempt, "at": time.time() if at is None else at}


def never_began(order: base.Order, verdict: Verdict) -> base.Over:
    """The end of an attempt of which no copy was started."""
    return base.Over(**named(order.address), **verdict._asdict())


def given_up(copy: Copy) -> Exit:
    """The end of a copy that somebody made sure never starts."""
    return Exit(
        id=copy.order.id,
        copy=copy.order.copy,
        reason="launch-failed",
        exit_code=126,
        message="it was given up before it started",
        ended_at=time.time(),
    )


def _container(copy: Copy) -> str | None:
    """The container of a copy, as `RUNTIME:NAME`."""
    if copy.container is None or copy.runtime is None:
        return None
    return f"{copy.runtime.dialect}:{copy.container.name}"


def _measured(outputs: Sequence[base.OutputFile]) -> Iterator[base.OutputFile]:
    """Files with their sizes; what never started wrote none."""
    for output in outputs:
        with suppress(FileNotFoundError):
            yield msgspec.structs.replace(output, size=Path(output.path).stat().st_size)
