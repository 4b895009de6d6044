"""Jobs of ours that another instance has: one around this one, as its login node sees it, or one inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from jobman.engines.flux.names import whose
from jobman.engines.flux.nested import Nested, walk
from jobman.engines.flux.queue import EVERY, listing
from jobman.engines.scripts.commands import Commands

_BRIEFLY = "20"
"""Seconds in which other instances must have answered."""
_NO_QUESTIONS = {"SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "force"}
"""Flux reaches instances on other nodes by ssh, and nobody is there to answer that."""


class Elsewhere:
    """Where jobs are that this instance does not know, as far as others can be asked."""

    def __init__(self, commands: Commands, environment: Mapping[str, str]) -> None:
        self._commands = commands
        self._environment = environment
        self.here: set[str] = set()
        """Ids of jobs that this instance was seen to have."""
        self.away: dict[str, str] = {}
        """Ids of jobs of ours that others have, and the addresses of these."""

    def jobs(self) -> list[Nested]:
        """Our jobs in all instances of this user but this one, from the outermost."""
        root = self._commands.once("flux", "--root", "env", "printenv", "FLUX_URI").out.strip()
        found = walk(lambda uri: self.told(EVERY, uri), os.geteuid(), root)
        ours = [each for each in found if whose(each.job.name) and each.job.jobid not in self.here]
        self.away |= {each.job.jobid: each.uri for each in ours}
        return [each.job for each in ours]

    def told(self, states: str, uri: str = "", *, everybody: bool = False) -> str:
        """What an instance says of its jobs and theirs; nothing where it does not, as one that has ended."""
        environment = {**self._environment, **_NO_QUESTIONS, **({"FLUX_URI": uri} if uri else {})}
        words = [*listing(states, everybody=everybody), "--recursive", "--level=1"]
        said = self._commands.once("timeout", "--kill-after=1", _BRIEFLY, *words, environment=environment)
        return said.out if said.code == 0 else ""

    def places(self, ids: Iterable[str], look_here: Callable[[], object]) -> dict[str, list[str]]:
        """Ids by the address of their instance; with none for those that are here, or nowhere."""
        each = {one: one.partition("@")[0] for one in ids}
        for look in (look_here, self.jobs):
            if not self.here | self.away.keys() >= set(each.values()):
                look()
        found: dict[str, list[str]] = {}
        for one, id_ in each.items():
            found.setdefault("" if id_ in self.here else self.away.get(id_, ""), []).append(one)
        return found
