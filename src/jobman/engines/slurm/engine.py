"""Slurm, spoken to through its commands: submit once, look, stop, hold, release."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any

from jobman.engines.base import Refused
from jobman.engines.scripts import delegate
from jobman.engines.scripts.by_hand import submit_script
from jobman.engines.scripts.commands import Commands, Failed, NotThere, Said
from jobman.engines.scripts.delegate import NodeAt, QueueRowAt, Waiting
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.matching import matches
from jobman.engines.scripts.site import Job
from jobman.engines.slurm.by_hand import BY_HAND
from jobman.engines.slurm.choosing import choose
from jobman.engines.slurm.cluster import OLDEST, Cluster, read_config, recall, remember
from jobman.engines.slurm.compile import Script, compile_plan, dependency, partition
from jobman.engines.slurm.facts import feature
from jobman.engines.slurm.features import refusals
from jobman.engines.slurm.nodes import fields_of, read_nodes, with_types
from jobman.engines.slurm.queue import FORMAT, minutes, read_accounts, read_queue, read_rows
from jobman.engines.slurm.whys import waits
from jobman.plan.model import Plan
from jobman.plan.satisfy import Match
from jobman.settings.slurm import SlurmSite, slurm_of

_TRANSIENT = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (?:refused|timed out|reset)"
    r"|temporarily unable|Resource temporarily unavailable|Zero Bytes were transmitted|Transport endpoint"
    r"|did not answer within|slurm_persist_conn_open|Slurm backup controller in standby",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"Could not establish a configuration source|Unable to process configuration file")
_TOO_LATE = re.compile(
    r"already (?:completed|completing|finished)|Invalid job id|not pending|Job/step already"
)
_SEVERAL = re.compile(r"not supported for job arrays")
_AMBIGUOUS = 90.0
"""Seconds after which a submission that may or may not have arrived is given up."""
_MANY = 500
"""Ids in one command."""


def is_transient(words: str) -> bool:
    return bool(_TRANSIENT.search(words))


def is_absent(words: str) -> bool:
    """Whether the commands are here, and no cluster for them."""
    return bool(_ABSENT.search(words))


class Slurm:
    """One cluster, as the commands on this machine reach it."""

    name = "slurm"
    title = "Slurm"
    picks_replicas = True

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.commands = Commands("Slurm", is_transient, environment, is_absent=is_absent)
        self._conf = (os.environ if environment is None else environment).get("SLURM_CONF", "")
        self._admitting = Lock()
        self._is_admitted = False

    # -- submitting ------------------------------------------------------------------------------

    def site(self, values: Mapping[str, Any]) -> SlurmSite:
        return slurm_of(values)

    def refusals(self, plan: Plan, site: SlurmSite, *, no_container: bool = False) -> list[Refused]:
        return refusals(plan, site, no_container=no_container)

    def compile(self, plan: Plan, job: Job, site: SlurmSite) -> list[Script]:
        return compile_plan(plan, job, site)

    def by_hand(self, job: Job, scripts: Sequence[delegate.Script]) -> str:
        return submit_script(job, [script.piece for script in scripts], BY_HAND)

    def choose(self, plan: Plan, job: Job, site: SlurmSite) -> tuple[Plan, list[str]]:
        """Of alternatives, the leftmost that Slurm says it could ever run."""
        return choose(plan, job, site, self._could_run)

    def _could_run(self, text: str) -> Said:
        try:
            return Said(0, self.commands.ask("sbatch", "--test-only", text=text), "")
        except Failed as error:
            return error.said

    def submit(self, piece: Piece, folder: Folder, ids: Mapping[str, str], *, held: bool) -> str:
        """Submit a script, once: whatever happens on the way, there is one such job in the end."""
        self._admit(folder.path.parent)
        words = ["sbatch", "--parsable", *dependency(piece, ids), *(["--hold"] if held else [])]
        words.append(str(folder.script(piece.name)))
        environment = folder.environment()
        deadline = time.monotonic() + _AMBIGUOUS
        while True:
            said = self.commands.once(*words, environment=environment, lock=folder.lock)
            if said.code == 0:
                return said.out.strip().partition(";")[0]
            if not self.commands.is_transient(said):
                raise Failed(said, "sbatch")
            folder.mark("ambiguous")
            time.sleep(1.0)
            # It may have arrived all the same.
            if (arrived := self._arrived(piece, folder, deadline)) is not None:
                return arrived
            if time.monotonic() > deadline:
                raise NotThere(f"Slurm does not answer: {said.words}", "try again in a while")

    def _admit(self, root: Path) -> None:
        """Raises Failed for a version that would take the scripts, and stumble over what is in them.

        One that does not answer may be any: whoever submits to it is told so by sbatch.
        """
        with self._admitting:
            if self._is_admitted:
                return
            cluster = recall(root, self._conf)
            if cluster is None or cluster.is_too_old:
                cluster = self._ask_once(root)
            if cluster.is_too_old:
                words = f"version {cluster.version} is too old; jobman needs {OLDEST} or later"
                raise Failed(Said(1, "", words), "slurm")
            self._is_admitted = True

    def _ask_once(self, root: Path) -> Cluster:
        said = self.commands.once("scontrol", "show", "config")
        cluster = read_config(said.out)
        if said.code == 0:
            remember(root, self._conf, cluster)
        return cluster

    def _arrived(self, piece: Piece, folder: Folder, deadline: float) -> str | None:
        """The id of a piece, if it is there; without an answer to that it may not be submitted again."""
        while True:
            try:
                return {**self.known(folder.path.name), **folder.claims()}.get(piece.name)
            except NotThere:
                if time.monotonic() > deadline:
                    raise

    def known(self, job: str) -> dict[str, str]:
        """The pieces of a job that Slurm has and that are not over, by their comments."""
        found = [native for native in self.queue() if native.job == job and native.state != "over"]
        return {native.piece: native.id for native in found}

    # -- looking ---------------------------------------------------------------------------------

    def queue(self) -> list[Native]:
        """All jobs of this user that Slurm remembers, in one call."""
        text = self.commands.ask(
            "squeue", "--noheader", "--states=all", f"--user={user()}", f"--format={FORMAT}"
        )
        return list(read_queue(text))

    def finished(self, ids: Iterable[str]) -> list[Native]:
        """Of those that left the queue, where there is accounting."""
        wanted = list(ids)
        if not wanted or not self.has_accounting:
            return []
        found: list[Native] = []
        for some in _chunks(wanted):
            text = self.commands.ask(
                "sacct",
                "--noheader",
                "--parsable2",
                "--allocations",
                f"--jobs={','.join(some)}",
                "--format=JobID,State,End",
            )
            found += read_accounts(text)
        return found

    def folder_of(self, native: str) -> Path | None:
        """Where it writes: beside all else that is known of the job."""
        try:
            text = self.commands.ask("scontrol", "--oneliner", "show", "job", native)
        except Failed:
            return None
        place = fields_of(text.partition("\n")[0]).get("StdOut")
        return Path(place).parent if place else None

    @cached_property
    def has_accounting(self) -> bool:
        """Whether anybody remembers jobs that left the queue."""
        return read_config(self.commands.ask("scontrol", "show", "config")).has_accounting

    def why(self, job: BatchJob) -> list[Waiting]:
        return waits(job, self.nodes)

    def nodes(self) -> list[NodeAt]:
        text = self.commands.ask("scontrol", "--oneliner", "--detail", "show", "nodes")
        return list(read_nodes(text))

    def matches(self, plan: Plan, nodes: Sequence[NodeAt], site: SlurmSite) -> list[Match]:
        """Nodes that are up, in the partition of the plan, with the features that stand for facts."""
        queue = partition(plan, site) or self._default_partition
        seen = [with_types(node, site.resources) for node in nodes]
        return matches(plan, seen, queue, lambda key, value: feature(key, value, site.facts))

    @cached_property
    def _default_partition(self) -> str | None:
        """That of whoever names none; it is marked with a star."""
        names = self.commands.ask("sinfo", "--noheader", "--format=%P").split()
        return next((name.rstrip("*") for name in names if name.endswith("*")), None)

    def queues(self) -> list[QueueRowAt]:
        text = self.commands.ask("squeue", "--noheader", "--array", "--format=%P|%u|%T|%i")
        return read_rows(text, user())

    # -- acting ----------------------------------------------------------------------------------

    def cancel(self, waiting: Iterable[str], running: Iterable[str] = ()) -> None:
        """Those that wait go at once; those that run are asked, and end as their grace allows."""
        for some in _chunks(waiting):
            self._tolerant("scancel", "--state=PENDING", *some)
        for some in _chunks(running):
            self._tolerant("scancel", "--batch", "--signal=URG", "--state=RUNNING", *some)

    def kill(self, ids: Iterable[str]) -> None:
        """At once, whatever they do."""
        for some in _chunks(ids):
            self._tolerant("scancel", *some)

    def hold(self, ids: Iterable[str]) -> None:
        for some in _chunks(ids):
            self._tolerant("scontrol", "hold", ",".join(some))

    def release(self, ids: Iterable[str]) -> None:
        for some in _chunks(ids):
            self._tolerant("scontrol", "release", ",".join(some))

    def requeue(self, ids: Iterable[str]) -> None:
        """Their scripts stop what runs, and go back to the queue by themselves."""
        self.cancel((), ids)

    def freeze(self, ids: Iterable[str]) -> None:
        for some in _chunks(ids):
            # Slurm knows SIGWINCH by its number alone.
            self._tolerant("scancel", "--batch", "--signal=28", *some)

    def add_time(self, id_: str, seconds: float) -> None:
        """Raises Failed where this user may not."""
        more = max(1, -(-int(seconds) // 60))
        try:
            self.commands.ask("scontrol", "update", f"JobId={id_}", f"TimeLimit=+{more}")
        except Failed as error:
            # What is several jobs to Slurm can be told a limit, and not how much more it is.
            if not _SEVERAL.search(error.said.error):
                raise
            said = self.commands.ask("squeue", "--noheader", f"--jobs={id_}", "--format=%l")
            if (limit := max(map(minutes, said.split()), default=inf)) < inf:
                self.commands.ask("scontrol", "update", f"JobId={id_}", f"TimeLimit={int(limit) + more}")

    def _tolerant(self, *words: str) -> None:
        """What is over meanwhile needs nothing done to it."""
        try:
            self.commands.ask(*words)
        except Failed as error:
            if not _TOO_LATE.search(error.said.error):
                raise


def user() -> str:
    """Whose jobs these are."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _chunks(ids: Iterable[str]) -> Iterable[list[str]]:
    every = list(ids)
    return (every[start : start + _MANY] for start in range(0, len(every), _MANY))
