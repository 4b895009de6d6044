"""The folder of a job: what its scripts are told in it, and what they leave there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from jobman.engines.scripts.records import Line, read_logs
from jobman.plan.model import Plan, plan_from_json

_ABOUT = "about.json"
_ENVIRONMENT = "environment.json"
_AT_ONCE = 8
FOLDERS = ("scripts", "log", "out", "outcome", "began", "ready", "gates", "more", "requeued", "claimed")
"""What is in it from the beginning."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was submitted."""

    id: str
    name: str
    owner: str
    engine: str
    submitted_at: float
    document: str = ""
    plan: str
    """Its JSON form, with the alternatives that were chosen."""
    fingerprint: str = ""
    options: dict[str, Any] = {}
    notes: list[str] = []
    priority: int = 0
    latest: float | None = None
    """The moment by which it must have begun."""
    done: dict[str, list[int]] = {}
    """Replicas that an earlier run of the job had done already, and need not be run again."""


class Folder:
    """One job's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock: int | None = None

    # -- what jobman writes ----------------------------------------------------------------------

    def make(
        self,
        about: About,
        scripts: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
        *,
        held: bool = False,
        word: Mapping[str, bytes] | None = None,
    ) -> None:
        """Everything that a job needs before any of it is submitted; it is there when `about` is.

        `word` is what else is in its folder from the beginning: files by their paths.
        """
        for name in FOLDERS:
            (self.path / name).mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        # Each waits for the disk, and those of many wait together.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(self._write_script, scripts.items()):
                pass
        (self.path / "ids").touch()
        self.mark("held", there=held)
        for place, content in (word or {}).items():
            (self.path / place).parent.mkdir(parents=True, exist_ok=True)
            (self.path / place).touch(mode=0o600)
            (self.path / place).write_bytes(content)
        if environment is not None:
            write(self.path / _ENVIRONMENT, msgspec.json.encode(environment).decode())
        write(self.path / _ABOUT, msgspec.json.encode(about).decode())

    def _write_script(self, script: tuple[str, str]) -> None:
        name, text = script
        place = self.script(name)
        write(place, text)
        place.chmod(0o700)

    def add_id(self, piece: str, native: str) -> None:
        """Remember under which id the manager knows a piece; should it be lost, the manager knows as well."""
        with (self.path / "ids").open("a") as file:
            file.write(f"{piece} {native}\n")

    def keep_ids(self) -> None:
        """From now on nobody asks the manager for them."""
        with (self.path / "ids").open("a") as file:
            os.fsync(file.fileno())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else submits it meanwhile. Commands that are given `lock` have their part in that.

        Of a process that was killed, the command that it had just started may still be on its way.
        """
        lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            # Not every file system of a cluster has locks; there nobody is kept out.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            self.lock = lock
            yield
        finally:
            self.lock = None
            os.close(lock)

    @property
    def is_busy(self) -> bool:
        """Whether somebody submits it right now."""
        try:
            with (self.path / "lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def mark(self, name: str, *, there: bool = True) -> None:
        """Tell scripts something by a file that is there or not."""
        place = self.path / name
        if there:
            place.parent.mkdir(exist_ok=True)
            place.touch()
        else:
            place.unlink(missing_ok=True)

    def add_time(self, task: str | None, seconds: float) -> None:
        """Give a task more time, or all of them."""
        with (self.path / "more" / (task or ".all")).open("a") as file:
            file.write(f"{seconds}\n")

    def tell(self, kind: str, message: str = "", *, at: float) -> None:
        """Add what a person did to what happened."""
        (self.path / "log").mkdir(exist_ok=True)
        with (self.path / "log" / ".acts").open("a") as file:
            file.write(f"{at}\t{kind}\t\t\t\t\t\t{message}\n")

    # -- what is there ---------------------------------------------------------------------------

    def about(self) -> About:
        """Raises OSError or msgspec.DecodeError where there is no such job."""
        return msgspec.json.decode((self.path / _ABOUT).read_bytes(), type=About)

    def environment(self) -> dict[str, str] | None:
        """The environment of submission, which the manager hands on; None for that of this process."""
        try:
            return msgspec.json.decode((self.path / _ENVIRONMENT).read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return None

    def ids(self) -> dict[str, str]:
        try:
            lines = (self.path / "ids").read_text().splitlines()
        except OSError:
            return {}
        return dict(line.split(" ", 1) for line in lines if " " in line)

    def claims(self) -> dict[str, str]:
        """Pieces whose scripts have begun, by themselves: under which id."""
        found = {name: (self.path / "claimed" / name).read_text().strip() for name in self.names("claimed")}
        return {name: native for name, native in found.items() if native}

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def names(self, name: str) -> set[str]:
        """The files of one of its folders."""
        try:
            return {each.name for each in (self.path / name).iterdir()}
        except OSError:
            return set()

    def lines(self) -> list[Line]:
        return read_logs(self.path / "log")

    def result(self, key: str, attempt: int) -> str | None:
        for place in sorted((self.path / "out" / key / str(attempt)).glob("*.result")):
            return place.read_bytes().decode(errors="replace")
        return None

    def outputs(self, key: str, attempt: int) -> list[Path]:
        """The output of its copies, `COPY.out` and `COPY.err`.

        Of one that was done in short there is no folder, only `KEY.out` and `KEY.err`.
        """
        folder = self.path / "out" / key / str(attempt)
        found = [*folder.glob("*.out"), *folder.glob("*.err")]
        if not found and attempt == 1:
            beside = (folder.parent.with_name(f"{folder.parent.name}.{stream}") for stream in ("out", "err"))
            found = [path for path in beside if path.exists()]
        return found

    def script(self, piece: str) -> Path:
        return self.path / "scripts" / f"{piece}.sh"


def write(path: Path, text: str) -> None:
    """As a whole, and on the disk."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def plan_of(about: About) -> Plan:
    """The plan of a job; raises PlanError for one of another version."""
    return plan_from_json(about.plan)
