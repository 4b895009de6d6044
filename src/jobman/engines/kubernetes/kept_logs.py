"""Where the output of copies is kept: a cluster forgets it; a volume or a store does not. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import msgspec

from jobman.engines.kubernetes import names

LOGS = "/jobman/logs"
"""Where the volume is found in a pod."""
VOLUME = "jobman-logs"
END = f"{LOGS}/.end"
"""Is there from when a copy has written its last line until all of it is in the store."""
_CLAIM = "claim:"
_STORE = "s3://"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_FORMS = (
    "write `claim:NAME`, `claim:NAME/folder`, `s3://BUCKET/folder`,"
    " or the absolute path of a folder on the nodes"
)


class KeptLogs(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of a claim, of a bucket, or of the nodes."""

    text: str
    """As it was written."""
    claim: str = ""
    bucket: str = ""
    path: str = ""

    @property
    def volume(self) -> dict[str, Any]:
        if self.bucket:
            return {"emptyDir": {}}
        if self.claim:
            return {"persistentVolumeClaim": {"claimName": self.claim}}
        return {"hostPath": {"path": self.path, "type": "DirectoryOrCreate"}}

    @property
    def mount(self) -> dict[str, Any]:
        return {"subPath": self.path} if self.claim and self.path else {}

    def words(self, job: str) -> str:
        """Where somebody finds what a job wrote."""
        folder = posixpath.join(self.path, job)
        if self.bucket:
            return f"{_STORE}{self.bucket}/{folder}"
        return f"the folder {folder} of the claim {self.claim}" if self.claim else f"{folder} on its nodes"


def kept_logs(text: str) -> KeptLogs:
    """What `--keep-logs` means; raises ValueError with a sentence and, behind a line's end, advice."""
    if text.startswith(_STORE):
        bucket, folder = _parted(text, _STORE)
        if not _BUCKET.fullmatch(bucket) or folder is None or not folder.isprintable():
            raise ValueError(f"'{text}' names no place in a bucket\n{_FORMS}")
        return KeptLogs(text=text, bucket=bucket, path=folder)
    if scheme := _SCHEME.match(text):
        raise ValueError(f"output cannot be kept in {scheme[1]}://: nobody here writes there\n{_FORMS}")
    if text.startswith(_CLAIM):
        claim, folder = _parted(text, _CLAIM)
        if not names.is_object_name(claim) or folder is None:
            raise ValueError(f"'{text}' names no claim\n{_FORMS}")
        return KeptLogs(text=text, claim=claim, path=folder)
    path = posixpath.normpath(text) if text else ""
    if not path.startswith("/") or path == "/" or ".." in text.split("/") or ":" in text:
        raise ValueError(f"'{text}' is no place to keep output\n{_FORMS}")
    return KeptLogs(text=text, path=path)


def _parted(text: str, form: str) -> tuple[str, str | None]:
    """What stands first behind the word for a form, and the folder in it; None for one that is outside."""
    name, _, path = text.removeprefix(form).partition("/")
    folder = posixpath.normpath(path) if path else ""
    if folder.startswith(("/", "..")):
        return name, None
    return name, "" if folder == "." else folder


def log_base(job: str, unit: str) -> str:
    """The beginning of the files of a task, in a pod: replica, rank and attempt follow."""
    return f"{LOGS}/{job}/{unit.replace('/', '-')}"
