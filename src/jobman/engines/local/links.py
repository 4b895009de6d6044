"""Links: how a volume appears where the copies look for it when there is no container to mount it in.

A link is the whole machine's, so who uses it is written down, and the last one takes it away.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from jobman.engines.endings import why
from jobman.engines.local.orders import CannotRun


class Link(msgspec.Struct):
    """A link that was made here: where, to what, for whom, and the folders made to hold it."""

    to: str
    source: str
    users: list[str]
    folders: list[str] = []


class Links:
    """The links of one engine, kept in files so that they outlive it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, to: str, source: str, user: str, what: str) -> None:
        """Let `to` lead to `source`; raises CannotRun, about `what`, where something else is there."""
        if to == source:
            return
        known = self._read(to)
        if known is not None and known.source == source and Path(to).is_symlink():
            self._write(msgspec.structs.replace(known, users=sorted({*known.users, user})))
        elif known is not None and known.users and Path(to).is_symlink():
            raise CannotRun(_taken(what, to))
        elif not _leads_to(to, source):
            self._make(to, source, user, what)

    def release(self, user: str) -> None:
        """Take away the links that nobody else uses."""
        for record in sorted(self._folder.glob("*.json")):
            link = _decode(record)
            if link is None or user not in link.users:
                continue
            link.users.remove(user)
            if link.users:
                self._write(link)
            else:
                _unmake(link)
                record.unlink(missing_ok=True)

    def _make(self, to: str, source: str, user: str, what: str) -> None:
        path = Path(to)
        if path.is_symlink() or path.exists():
            raise CannotRun(_in_the_way(what, to))
        missing = [str(each) for each in path.parents if not each.exists()]
        # Written first: a link without a record would stay for ever.
        self._write(Link(to, source, [user], missing))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(source)
        except OSError as error:
            self.release(user)
            raise CannotRun(
                f"{what} cannot be put at {to}: {why(error)}; outside a container it has to be a link there. "
                "Choose a place you may write to, or give the task an image"
            ) from None

    def _read(self, to: str) -> Link | None:
        return _decode(self._record(to))

    def _write(self, link: Link) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = self._record(link.to)
        draft = record.with_suffix(f".{os.getpid()}")
        draft.write_bytes(msgspec.json.encode(link))
        draft.replace(record)

    def _record(self, to: str) -> Path:
        return self._folder / f"{hashlib.sha256(os.fsencode(to)).hexdigest()[:32]}.json"


def _decode(record: Path) -> Link | None:
    try:
        return msgspec.json.decode(record.read_bytes(), type=Link)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _leads_to(to: str, source: str) -> bool:
    try:
        return Path(to).samefile(source)
    except OSError:
        return False


def _unmake(link: Link) -> None:
    path = Path(link.to)
    try:
        if path.is_symlink() and str(path.readlink()) == link.source:
            path.unlink()
        for folder in link.folders:
            Path(folder).rmdir()
    except OSError:
        pass  # somebody put something there, and it is theirs now


def _in_the_way(what: str, to: str) -> str:
    return (
        f"{what} cannot be put at {to}: something else is there. Outside a container it has to be a link; "
        "choose a place where nothing is, or give the task an image"
    )


def _taken(what: str, to: str) -> str:
    return (
        f"{what} cannot be put at {to}: another attempt that runs now has its own there. Outside a container "
        "they cannot both; let them run one after the other (`parallelism: 1`), or give the task an image"
    )
