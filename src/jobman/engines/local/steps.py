"""Steps: files and folders brought into place, and files written, before a command runs."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from jobman.engines.endings import why
from jobman.engines.local.orders import CannotRun, Stage, Step, Write

_AT_ONCE = 1 << 20


def carry_out(steps: tuple[Step, ...], cwd: str) -> None:
    """Take the steps in their order; raises CannotRun at the first that fails."""
    for step in steps:
        try:
            if isinstance(step, Stage):
                _stage(step, Path(cwd))
            else:
                _write(step, Path(cwd))
        except OSError as error:
            raise _failed(f"{_words(step)}: {error.filename or step.path}: {why(error)}") from None


def digest(path: Path) -> str:
    """The SHA-256 of a file's content, or of a folder's names, links and contents."""
    if not path.is_dir():
        return f"sha256:{_sum(path)}"
    total = hashlib.sha256()
    for entry in _entries(path):
        name = entry.relative_to(path).as_posix()
        total.update(f"{_kind(entry)}\0{name}\0{_content(entry)}\0".encode("utf-8", "surrogateescape"))
    return f"sha256:{total.hexdigest()}"


def _stage(step: Stage, cwd: Path) -> None:
    source = cwd / step.path
    if not source.exists():
        raise _failed(f"{_words(step)}: {source} does not exist")
    if step.digest is not None and digest(source) != step.digest:
        raise _failed(f"{_words(step)}: {source} has changed since the job was submitted")
    target = cwd / (step.path if step.to is None else step.to)
    if target.exists() and target.samefile(source):
        return
    if source.is_dir():
        _bring_folder(source, target)
    else:
        _bring_file(source, target)


def _bring_folder(source: Path, target: Path) -> None:
    # Listed first: the target may lie inside the source.
    entries = list(_entries(source))
    target.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        place = target / entry.relative_to(source)
        if entry.is_symlink():
            _bring_link(entry, place)
        elif entry.is_dir():
            place.mkdir(exist_ok=True)
        else:
            _bring_file(entry, place)


def _bring_link(source: Path, target: Path) -> None:
    goal = source.readlink()
    if target.is_symlink() and target.readlink() == goal:
        return
    draft = _draft(target)
    draft.symlink_to(goal)
    draft.replace(target)


def _bring_file(source: Path, target: Path) -> None:
    if not source.is_file():
        raise _failed(f"could not stage {source}: it is neither a file nor a folder")
    mode = stat.S_IMODE(source.stat().st_mode)
    if _is_same(source, target):
        if stat.S_IMODE(target.stat().st_mode) != mode:
            target.chmod(mode)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as content:
        _put(iter(lambda: content.read(_AT_ONCE), b""), target, mode)


def _is_same(source: Path, target: Path) -> bool:
    if not target.is_file() or target.stat().st_size != source.stat().st_size:
        return False
    return _sum(source) == _sum(target)


def _write(step: Write, cwd: Path) -> None:
    target, mode, content = cwd / step.path, int(step.mode, 8), step.content.encode()
    if target.is_file() and stat.S_IMODE(target.stat().st_mode) == mode and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    _put(iter((content,)), target, mode)


def _put(parts: Iterator[bytes], target: Path, mode: int) -> None:
    """Write a file beside its place and move it there, so that nobody ever sees a half of it."""
    draft = _draft(target)
    total = hashlib.sha256()
    try:
        with draft.open("xb") as file:
            for part in parts:
                file.write(part)
                total.update(part)
            file.flush()
            os.fchmod(file.fileno(), mode)
        if _sum(draft) != total.hexdigest():
            raise _failed(f"could not write {target}: what arrived is not what was sent; is the disk well?")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _draft(target: Path) -> Path:
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    return draft


def _entries(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)


def _kind(entry: Path) -> str:
    return "link" if entry.is_symlink() else "folder" if entry.is_dir() else "file"


def _content(entry: Path) -> str:
    if entry.is_symlink():
        return str(entry.readlink())
    return _sum(entry) if entry.is_file() else ""


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _words(step: Step) -> str:
    if isinstance(step, Write):
        return f"could not write {step.path}"
    return f"could not stage {step.path}" + (f" to {step.to}" if step.to else "")


def _failed(message: str) -> CannotRun:
    return CannotRun(message, reason="stage-failed", exit_code=1)
