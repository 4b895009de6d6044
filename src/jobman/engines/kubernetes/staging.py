"""The files of the submitter's side that a plan names, read so that they can travel with a job."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from jobman.engines.kubernetes.target import StagedFile
from jobman.engines.kubernetes.volumes import MOST_BYTES, staged_paths
from jobman.plan.model import Plan, Unit
from jobman.plan.replicas import for_replica


def files_at_hand(plan: Plan, folder: Path) -> dict[str, tuple[StagedFile, ...]]:
    """What `stage` steps and `env_from` name, by the path as written; what cannot be brought is left out.

    Of what is too large to travel only so much is read that it is seen to be.
    """
    found: dict[str, tuple[StagedFile, ...]] = {}
    for unit in plan.units:
        for written in dict.fromkeys(staged_paths(unit)):
            filled = _filled(unit, written)
            read = {path: _read(folder / path) for path in filled if path not in found}
            if any(files is None for files in read.values()):
                continue
            found.update({path: files for path, files in read.items() if files is not None})
            # A path with values of the matrix in it stands for those that they make.
            found.setdefault(written, ())
    return found


def _filled(unit: Unit, written: str) -> list[str]:
    """A path with each value of the matrix that stands in it."""
    if not unit.matrix or "{{" not in written:
        return [written]
    place = list(staged_paths(unit)).index(written)
    return list(dict.fromkeys(list(staged_paths(for_replica(unit, n)))[place] for n in range(unit.replicas)))


def _read(path: Path) -> tuple[StagedFile, ...] | None:
    try:
        return tuple(_files(path)) if path.is_dir() else (_file(path, "", MOST_BYTES),)
    except (OSError, ValueError):
        return None


def _files(folder: Path) -> Iterator[StagedFile]:
    room = MOST_BYTES
    for entry in _entries(folder):
        file = _file(entry, entry.relative_to(folder).as_posix(), room)
        yield file
        room -= len(file.content)
        if room < 0:
            return


def _entries(folder: Path) -> Iterator[Path]:
    """All files below a folder. A link to a folder may lead round in a circle, and is no file to be read."""
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)
        else:
            yield entry


def _file(path: Path, name: str, most: int) -> StagedFile:
    if not path.is_file():
        raise ValueError(f"{path} is no file")
    with path.open("rb") as file:
        content = file.read(most + 1)
    return StagedFile(name, content, stat.S_IMODE(path.stat().st_mode) & 0o777)
