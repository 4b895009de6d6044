"""The output of copies, from the files they write: as it is, or as it grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jobman.control.answers import LogLine
from jobman.engines.scripts.found import AttemptAt, BatchJob, ReplicaAt

_LONGEST = 64 * 1024
_STREAMS = {"out": "stdout", "err": "stderr"}


class Tail:
    """One file of output, read on from where it was left."""

    def __init__(self, path: Path, line: LogLine, start: int) -> None:
        self.path = path
        self._end: int | None = None
        self._line = line
        self.began_at = line.at
        self._offset = start
        self._rest = b""

    def read(self, at: float, *, last: bool) -> Iterator[LogLine]:
        """The lines that came since; with `last` also what has no end yet."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = self._rest + file.read(self._left())
        except OSError:
            return
        self._offset += len(data) - len(self._rest)
        *lines, self._rest = data.split(b"\n")
        if last and self._rest:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            yield from self._made(line, at)

    def _left(self) -> int:
        """Of a file that the document names, what belongs to this attempt; -1 for all there is."""
        if self.path.is_symlink() and self._end is None:
            ends = [_sizes(each, ".end", 6) for each in self.path.parent.glob(f"*{self.path.suffix}")]
            sizes = [end.get(self.path.suffix[1:]) for end in ends]
            # While one of those who share it writes, all of it is theirs.
            self._end = None if None in sizes else max(size for size in sizes if size is not None)
        return -1 if self._end is None else max(0, self._end - self._offset)

    def _made(self, line: bytes, at: float) -> Iterator[LogLine]:
        known, text = self._line, line.decode(errors="replace").removesuffix("\r")
        for start in range(0, len(text) or 1, _LONGEST):
            yield msgspec.structs.replace(
                known,
                at=at or known.at,
                text=text[start : start + _LONGEST],
                partial=start + _LONGEST < len(text),
            )


class Outputs:
    """All files of output of a job, found again as there are more."""

    def __init__(self, filters: Mapping[str, Any]) -> None:
        self._filters = filters
        self._tails: dict[Path, Tail] = {}

    def read(self, job: BatchJob, at: float = 0.0, *, last: bool) -> Iterator[LogLine]:
        tails = [
            tail
            for replica in job.replicas
            if self._wants_replica(job, replica)
            for tail in self._of(job, replica)
        ]
        for tail in sorted(tails, key=lambda tail: tail.began_at):
            yield from tail.read(at, last=last)

    def _of(self, job: BatchJob, replica: ReplicaAt) -> Iterator[Tail]:
        for attempt in replica.attempts:
            if self._filters.get("attempt") not in (None, attempt.number):
                continue
            shared: set[Path] = set()
            for path in sorted(job.folder.outputs(replica.key, attempt.number), key=_place_of):
                # Copies may share a file that the document names: what is in it is told once.
                if path.is_symlink() and (target := path.resolve()) in shared:
                    continue
                if path.is_symlink():
                    shared.add(target)
                if path not in self._tails and self._wants_copy(path, attempt.nodes):
                    self._tails[path] = _tail(path, replica, attempt)
                if path in self._tails:
                    yield self._tails[path]

    def _wants_replica(self, job: BatchJob, replica: ReplicaAt) -> bool:
        unit = job.plan.unit(replica.unit)
        named = self._wanted[0]
        is_meant = not named or named in (str(replica.index), replica.key)
        return unit.kind == "task" and self._filters.get("task") in (None, unit.id, unit.name) and is_meant

    @property
    def _wanted(self) -> tuple[str, str, str]:
        """The replica that is asked for, and which copy of it: `KEY`, `NUMBER`, `KEY/COPY`."""
        wanted = str(self._filters.get("replica") or "")
        key, slash, copy = wanted.rpartition("/")
        return (key, slash, copy) if slash and copy.isdecimal() else (wanted, "", "")

    def _wants_copy(self, path: Path, nodes: tuple[str, ...]) -> bool:
        copy, node = self._wanted[2], self._filters.get("node")
        return (
            self._filters.get("stream") in (None, _STREAMS[path.suffix[1:]])
            and copy in ("", str(_copy_of(path)))
            and (node is None or _node_of(path, nodes) == node)
        )


def _tail(path: Path, replica: ReplicaAt, attempt: AttemptAt) -> Tail:
    stream = path.suffix[1:]
    line = LogLine(
        at=attempt.started_at or 0.0,
        replica=replica.key,
        attempt=attempt.number,
        copy=_copy_of(path),
        node=_node_of(path, attempt.nodes),
        stream=_STREAMS[stream],  # type: ignore[arg-type]
        text="",
    )
    return Tail(path, line, _start_of(path, stream))


def _copy_of(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0


def _place_of(path: Path) -> tuple[str, int]:
    return path.suffix[::-1], _copy_of(path)


def _node_of(path: Path, nodes: tuple[str, ...]) -> str:
    fields = _fields(path, ".began")
    return fields[4] if len(fields) > 4 else nodes[0] if len(nodes) == 1 else ""


def _start_of(path: Path, stream: str) -> int:
    """Where output begins in a file that the document names: that of the first of those who share it."""
    if not path.is_symlink():
        return 0
    starts = [_sizes(each, ".began", 3).get(stream, 0) for each in path.parent.glob(f"*{path.suffix}")]
    return min(starts, default=0)


def _sizes(path: Path, suffix: str, field: int) -> dict[str, int]:
    fields = _fields(path, suffix)
    found = (entry.split(":") for entry in fields[field].split()) if len(fields) > field else ()
    return {stream: int(size) for stream, size in found}


def _fields(path: Path, suffix: str) -> list[str]:
    try:
        return path.with_suffix(suffix).read_text().rstrip("\n").split("\t")
    except OSError:
        return []
