"""Environments of submission, each kept once under the digest of its content."""

from __future__ import annotations

import hashlib
import os
import pwd
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from jobman.engines.vault import OWN_PREFIX

_OF_THE_SHELL = frozenset(("_", "SHLVL", "PWD", "OLDPWD"))
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NEW = 600.0
_ENCODER = msgspec.json.Encoder(order="deterministic")


class Environments:
    """A folder of environments. A user's variables may hold secrets, so nobody else can read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = lru_cache(maxsize=64)(self._read_file)

    def keep(self, environment: Mapping[str, str]) -> str:
        """Keep an environment and return its digest; nothing is written where it is kept already."""
        content = _ENCODER.encode(portable(environment))
        digest = hashlib.sha256(content).hexdigest()
        path = self._folder / digest
        if path.exists():
            os.utime(path)  # it is in use again, and must not be swept away
        else:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._folder / f".{digest}.{os.getpid()}"
            draft.touch(mode=0o600)
            draft.write_bytes(content)
            draft.replace(path)
        return digest

    def sweep(self, used: Collection[str]) -> None:
        """Remove what is not among those in use; new ones may belong to a submission that is under way."""
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if path.name not in used and time.time() - path.stat().st_mtime > _NEW:
                    path.unlink()

    def read(self, digest: str) -> dict[str, str]:
        """The environment of a digest; raises LookupError where it is not kept."""
        return dict(self._read(digest))

    def _read_file(self, digest: str) -> dict[str, str]:
        try:
            return msgspec.json.decode((self._folder / digest).read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError) as error:
            raise LookupError(f"the environment of submission is no longer kept ({digest[:12]})") from error


def portable(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment goes with a job: not what belongs to the shell, to jobman, or is no text."""
    return {name: value for name, value in environment.items() if _goes_along(name) and _is_text(value)}


def minimal(owner: str) -> dict[str, str]:
    """The least a program expects, for a job that came without an environment."""
    account = _account(owner)
    return {
        "PATH": _DEFAULT_PATH,
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
        "LANG": "C.UTF-8",
    }


def _account(owner: str) -> pwd.struct_passwd:
    """The owner's account, ours where the machine does not know them, or one made up where not even us."""
    try:
        return pwd.getpwnam(owner)
    except KeyError:
        pass
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:
        return pwd.struct_passwd((owner, "x", os.getuid(), os.getgid(), "", str(Path.home()), "/bin/sh"))


def _goes_along(name: str) -> bool:
    return not name.startswith(OWN_PREFIX) and name not in _OF_THE_SHELL and _is_text(name)


def _is_text(text: str) -> bool:
    """Bytes that are no UTF-8 come as lone surrogates, which cannot travel as JSON."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
