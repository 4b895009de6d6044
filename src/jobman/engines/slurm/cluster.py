"""What a cluster says of itself, and which of them are too old; asked once, and remembered for a day."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from jobman.engines.scripts.folder import write

OLDEST = "20.11.3"
"""The first whose srun knows --exact, by which the tasks of a group share its nodes."""
_FRESH = 86400.0
_FILE = ".clusters.json"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, as `scontrol show config` tells of it."""

    version: str = ""
    has_accounting: bool = False
    """Whether anybody remembers jobs that left the queue."""

    @property
    def is_too_old(self) -> bool:
        """One that does not say how old it is may be new."""
        own = _numbers(self.version)
        return bool(own) and own < _numbers(OLDEST)


def read_config(text: str) -> Cluster:
    accounting = _value(text, "AccountingStorageType")
    return Cluster(
        version=_value(text, "SLURM_VERSION"),
        # From 23.11 on, what is not there is told as (null) and no longer as a plugin of that name.
        has_accounting=bool(accounting) and not accounting.endswith(("/none", "(null)")),
    )


def _value(text: str, name: str) -> str:
    found = re.search(rf"^{name}[ \t]*=[ \t]*(\S+)", text, re.MULTILINE)
    return found[1] if found is not None else ""


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found is not None else ()


# -- remembered beside the folders of jobs -------------------------------------------------------------------


class _Kept(msgspec.Struct, frozen=True):
    cluster: Cluster
    asked_at: float


def recall(folder: Path, conf: str) -> Cluster | None:
    """What the cluster of a configuration said, unless that is long ago."""
    kept = _read(folder).get(conf)
    return kept.cluster if kept is not None and 0 <= time.time() - kept.asked_at < _FRESH else None


def remember(folder: Path, conf: str, cluster: Cluster) -> None:
    """Nobody needs it: where it cannot be written, it is asked again."""
    known = {**_read(folder), conf: _Kept(cluster, time.time())}
    with suppress(OSError):
        write(folder / _FILE, msgspec.json.encode(known).decode())


def _read(folder: Path) -> dict[str, _Kept]:
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=dict[str, _Kept])
    except (OSError, msgspec.MsgspecError):
        return {}
