"""A ledger on the nodes, in which containers enter their beginning and their end: what ran, whoever asks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

# One short line is one write to a file opened with O_APPEND: lines of many containers never mix. Each
# container has a token that no other has. As in any gang, those who are there wait for the others. Who was
# interrupted does not take as long again.
_SCRIPT = """\
token=$(cat /proc/sys/kernel/random/uuid)
page=/ledger/$JOBMAN_JOB_ID.$JOBMAN_ATTEMPT
echo begin $JOBMAN_RANK $token >> $page
until [ $(grep -c begin $page) -ge {copies} ]; do sleep 0.1; done
[ $JOBMAN_ATTEMPT -gt 1 ] || sleep {seconds}
echo end $JOBMAN_RANK $token >> $page
exit {code}
"""


class Work(NamedTuple):
    """What each copy of a job does after all of them have begun."""

    shape: str
    copies: int
    seconds: int = 1
    code: int = 0


class Entry(NamedTuple):
    what: str
    rank: int
    token: str


class Ledger:
    """A folder with a page for each attempt of each job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "ledger"
        self._folder.mkdir()

    def document(self, work: Work) -> str:
        """Of a job whose containers enter themselves."""
        script = _SCRIPT.format(**work._asdict()).replace("\n", "\n    ")
        return f"""
version: 1
tasks:
- name: work
  grace: 1s
  resources: {work.shape}
  volumes: [{{name: ledger, kind: host, path: {self._folder}, to: /ledger}}]
  command:
  - sh
  - -c
  - |
    {script}
"""

    def attempts(self, job: str) -> list[int]:
        """Those of which any container began."""
        return sorted(int(page.suffix[1:]) for page in self._folder.glob(f"{job}.*"))

    def begun(self, job: str, attempt: int) -> Counter[int]:
        """How many containers began as each rank."""
        return Counter(each.rank for each in self._entries(job, attempt) if each.what == "begin")

    def ended(self, job: str, attempt: int) -> Counter[int]:
        """How many of those that began came to their end, by rank."""
        entries = self._entries(job, attempt)
        begun = {each.token for each in entries if each.what == "begin"}
        return Counter(each.rank for each in entries if each.what == "end" and each.token in begun)

    def text(self, job: str) -> str:
        pages = sorted(self._folder.glob(f"{job}.*"))
        return "\n".join(f"{page.name}: {page.read_text()}" for page in pages)

    def _entries(self, job: str, attempt: int) -> list[Entry]:
        page = self._folder / f"{job}.{attempt}"
        lines = page.read_text().splitlines() if page.exists() else []
        return [Entry(what, int(rank), token) for what, rank, token in (line.split() for line in lines)]
