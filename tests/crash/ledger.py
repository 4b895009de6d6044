"""The ledger: copies write into it that they start and that they end, so that it is known without jobman."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

ONE_CORE = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}

# One short line is one write to a file opened with O_APPEND: lines of many copies never mix.
_PROGRAM = """\
say() { echo "$1 $JOBMAN_JOB_ID $JOBMAN_TASK $JOBMAN_REPLICA $JOBMAN_ATTEMPT $JOBMAN_RANK $$" >> "$LEDGER"; }
end() { say end; exit "$1"; }
until_told() { while [ ! -e "$1" ]; do sleep 0.05; done; }
say start
"""


class Entry(NamedTuple):
    """One line: which copy of which attempt, and its process."""

    what: str
    job: str
    task: str
    replica: int
    attempt: int
    rank: int
    pid: int

    @property
    def copy(self) -> tuple[str, str, int, int, int]:
        return self.job, self.task, self.replica, self.attempt, self.rank


class Ledger:
    """A file that all copies of a test append to, and documents whose copies do so."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger"
        self._program = folder / "program.sh"
        self._program.write_text(_PROGRAM)

    def task(self, script: str, name: str = "main", **keys: Any) -> dict[str, Any]:
        """A task whose copies enter themselves, and then do what a script says; `end N` ends them."""
        command = ["/bin/sh", "-c", f". {self._program}; {script}"]
        return {"name": name, "command": command, "resources": ONE_CORE, **keys}

    def document(self, *tasks: dict[str, Any], **keys: Any) -> str:
        """The text of a document with these tasks."""
        attributes = {"environment": {"LEDGER": str(self.path)}, **keys.pop("attributes", {})}
        work = {"tasks": tasks} if tasks else {}
        return json.dumps({"version": 1, "grace": "5s", "attributes": attributes, **work, **keys})

    def entries(self, what: str = "start", job: str | None = None) -> list[Entry]:
        """The lines of one kind, in the order in which they were written."""
        try:
            *lines, _ = self.path.read_text().split("\n")
        except FileNotFoundError:
            return []
        found = [_entry(line) for line in lines]
        return [one for one in found if one.what == what and job in (None, one.job)]

    def twice(self) -> list[tuple[str, str, int, int, int]]:
        """The copies of attempts that were started more than once."""
        return [copy for copy, times in Counter(one.copy for one in self.entries()).items() if times > 1]


def _entry(line: str) -> Entry:
    what, job, task, *numbers = line.split()
    return Entry(what, job, task, *map(int, numbers))
