"""Flux, spoken to through its command: submit once, look, stop, hold, release."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from jobman.engines.base import Refused
from jobman.engines.flux.api import Bindings
from jobman.engines.flux.by_hand import BY_HAND
from jobman.engines.flux.choosing import PROGRAM, choose
from jobman.engines.flux.compile import AFTER, Script, compile_plan, plain_ids, queue_of
from jobman.engines.flux.config import Config, read_config
from jobman.engines.flux.elsewhere import Elsewhere
from jobman.engines.flux.facts import prop
from jobman.engines.flux.features import refusals
from jobman.engines.flux.names import Whose, whose
from jobman.engines.flux.nested import walk
from jobman.engines.flux.nodes import read_drained, read_nodes, with_lacks, with_memory
from jobman.engines.flux.queue import (
    ACTIVE,
    EVERY,
    NO_QUEUE,
    RESOURCES,
    FluxJob,
    ids_by_piece,
    listing,
    natives,
    read_jobs,
    rows,
)
from jobman.engines.flux.submitting import Submitter, order_for
from jobman.engines.flux.urgencies import HELD, asked_for, written
from jobman.engines.flux.urgencies import PROGRAM as URGENCIES
from jobman.engines.flux.whys import read_stopped, waits
from jobman.engines.scripts.by_hand import submit_script
from jobman.engines.scripts.commands import Commands, Failed, NotThere, Said
from jobman.engines.scripts.delegate import NodeAt, QueueRowAt, Waiting
from jobman.engines.scripts.delegate import Script as AnyScript
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.matching import matches
from jobman.engines.scripts.site import Job
from jobman.plan.model import Plan
from jobman.plan.satisfy import Match
from jobman.settings.flux import FluxSite, flux_of

_TRANSIENT = re.compile(
    r"Connection (?:refused|timed out|reset)|Resource temporarily unavailable|Broken pipe"
    r"|did not answer within|No route to host|Host is unreachable|lost connection",
    re.IGNORECASE,
)
_NOBODY = re.compile(r"Unable to connect to Flux|flux_open: |broker socket .* was not found")
_TOO_LATE = re.compile(r"inactive|unknown|invalid job id|not running|once resources are allocated|not found")
_MANY = 500
"""Ids in one command."""
_AFTERSTART_SINCE = (0, 85)
_OF_THE_INSTANCE = ("FLUX_URI", "FLUX_F58_FORCE_ASCII", "FLUX_URI_RESOLVE_LOCAL")


def is_transient(words: str) -> bool:
    return bool(_TRANSIENT.search(words)) and not re.search("was not found", words)


class Flux:
    """One instance, as the command on this machine reaches it."""

    name = "flux"
    title = "Flux"
    picks_replicas = True

    def __init__(self, environment: Mapping[str, str] | None = None, *, bindings: bool = True) -> None:
        # Ids in plain letters: others get lost where a locale does not have them.
        self._environment = {
            **(os.environ if environment is None else environment),
            "FLUX_F58_FORCE_ASCII": "1",
        }
        self.commands = Commands("Flux", is_transient, self._environment)
        self._bindings = Bindings(self._environment) if bindings else None
        self._elsewhere = Elsewhere(self.commands, self._environment)

    # -- submitting ------------------------------------------------------------------------------

    def site(self, values: Mapping[str, Any]) -> FluxSite:
        return flux_of(values)

    def refusals(self, plan: Plan, site: FluxSite, *, no_container: bool = False) -> list[Refused]:
        return refusals(plan, site, no_container=no_container)

    def compile(self, plan: Plan, job: Job, site: FluxSite) -> list[Script]:
        return compile_plan(plan, job, site)

    def by_hand(self, job: Job, scripts: Sequence[AnyScript]) -> str:
        return submit_script(job, [script.piece for script in scripts], BY_HAND)

    def choose(self, plan: Plan, job: Job, site: FluxSite) -> tuple[Plan, list[str]]:
        """Of alternatives, the leftmost that Flux says it could ever run."""
        del job
        if site.reservation is not None:
            raise Failed(Said(1, "", "there are no reservations; leave --reservation out"), "flux")
        try:
            return choose(plan, site, self._against, self._config.requires(queue_of(plan, site)))
        except NotThere:
            if any(len(unit.alternatives) > 1 for unit in plan.units):
                raise
            return plan, []

    def _against(self, requests: Sequence[Sequence[str]]) -> list[str]:
        """What is against each request, asked with one question for all of them."""
        specs: dict[tuple[str, ...], Said] = {}
        for words in requests:
            if tuple(words) not in specs:
                specs[tuple(words)] = self._said(
                    "flux", "submit", "--dry-run", "--env-remove=*", *words, "true"
                )
        good = [words for words, said in specs.items() if said.code == 0]
        answers = self._said(
            "flux", "python", "-c", PROGRAM, text="".join(f"{specs[words].out.strip()}\n" for words in good)
        )
        told = answers.out.splitlines() if answers.code == 0 else []
        against = {words: said.words for words, said in specs.items() if said.code != 0}
        against |= dict(zip(good, told, strict=False))
        return [against.get(tuple(words), "") for words in requests]

    def submit(self, piece: Piece, folder: Folder, ids: Mapping[str, str], *, held: bool) -> str:
        """Submit a script, once: whatever happens on the way, there is one such job in the end."""
        longest = self._config.longest
        order = order_for(piece, folder, ids, held=held, begun=self._begun, longest=longest)
        submitter = Submitter(self.commands, self.jobs, self._environment_of(folder))
        native = submitter.submit(order)
        self._elsewhere.here.update(plain_ids(native))
        return native

    def _environment_of(self, folder: Folder) -> Mapping[str, str]:
        """That of submission goes to the job; which instance is meant is known here."""
        given = folder.environment()
        if given is None:
            return self._environment
        own = {name: self._environment[name] for name in _OF_THE_INSTANCE if name in self._environment}
        return {**given, **own, "PATH": self._with_flux(given.get("PATH", os.defpath))}

    def _with_flux(self, path: str) -> str:
        """Scripts call `flux`, too: it is found where it is found here."""
        here = shutil.which("flux", path=self._environment.get("PATH"))
        if here is None or shutil.which("flux", path=path) is not None:
            return path
        return f"{path}{os.pathsep}{os.path.dirname(here)}"  # noqa: PTH120

    @cached_property
    def _begun(self) -> str:
        found = re.search(r"(\d+)\.(\d+)", self._ask("flux", "--version"))
        version = (int(found[1]), int(found[2])) if found is not None else _AFTERSTART_SINCE
        return AFTER["begun"] if version >= _AFTERSTART_SINCE else "after"

    def known(self, job: str) -> dict[str, str]:
        """The pieces of a job that Flux has the whole of, by their names."""
        ours = _of_job(self.jobs(), job) or _of_job(self._elsewhere.jobs(), job)
        sizes = {found.piece: found.all for _, found in ours}
        ids = {piece: ids for (_, piece), ids in ids_by_piece(ours).items()}
        return {piece: found for piece, found in ids.items() if len(plain_ids(found)) == sizes[piece]}

    # -- looking ---------------------------------------------------------------------------------

    def jobs(self, states: str = EVERY, *, everybody: bool = False) -> list[FluxJob]:
        """This user's jobs, with those that are over, in one call; or those of all users."""
        found = self._bindings.jobs(states, everybody=everybody) if self._bindings is not None else None
        if found is None:
            found = read_jobs(self._ask(*listing(states, everybody=everybody)))
        self._elsewhere.here.update(job.jobid for job in found)
        return found

    def queue(self) -> list[Native]:
        found: list[FluxJob] = self.jobs()
        # Once some were found elsewhere, that is where they are looked for.
        return list(natives([*found, *(self._elsewhere.jobs() if self._elsewhere.away else ())]))

    def finished(self, ids: Iterable[str]) -> list[Native]:
        """Flux tells of those that are over with the others, and of those it forgot it tells nothing.

        What it never knew may be in an instance around this one or inside it, and not over at all.
        """
        wanted = set(ids)
        found = natives(self._elsewhere.jobs()) if wanted else ()
        return [native for native in found if native.id in wanted]

    def why(self, job: BatchJob) -> list[Waiting]:
        waiting = any(native.reason == RESOURCES for native in job.natives if native.state == "waiting")
        return waits(job, self._stopped() if waiting else {})

    def _stopped(self) -> dict[str, str]:
        """Jobs that no scheduler looks at, by their ids, and what was said of their queues."""
        stopped = read_stopped(self._ask("flux", "queue", "status"))
        return {job.jobid: stopped[job.queue] for job in self.jobs("pending") if job.queue in stopped}

    def nodes(self) -> list[NodeAt]:
        states = ("all", "allocated", "down")
        sets = self._bindings.resources() if self._bindings is not None else None
        sets = sets or {state: self._ask("flux", "resource", "R", f"--states={state}") for state in states}
        every, used, down = (sets[state] for state in states)
        drained = self._ask("flux", "resource", "drain", "-n", "-o", "{nodelist}|{reason}")
        found = read_nodes(every, used, down, read_drained(drained))
        return [self._config.with_queues(node) for node in found]

    def matches(self, plan: Plan, nodes: Sequence[NodeAt], site: FluxSite) -> list[Match]:
        """Nodes that are up, with the properties that stand for facts."""
        seen = with_lacks([with_memory(node, site.memory_per_core) for node in nodes])
        queue = queue_of(plan, site) or self._config.default_queue
        return matches(plan, seen, queue, lambda key, value: prop(key, value, site.facts))

    @cached_property
    def _config(self) -> Config:
        return read_config(self._ask("flux", "config", "get"))

    def queues(self) -> list[QueueRowAt]:
        """Jobs of all, and below them what this user runs in instances that are among these."""
        if not (first := self._elsewhere.told(ACTIVE, everybody=True)):
            plain = ((job.queue or NO_QUEUE, job) for job in self.jobs(ACTIVE, everybody=True))
            return rows(plain, os.geteuid())
        found = walk(lambda uri: self._elsewhere.told(ACTIVE, uri) if uri else first, os.geteuid())
        return rows(((inner.place, inner.job) for inner in found), os.geteuid())

    # -- acting ----------------------------------------------------------------------------------

    def folder_of(self, native: str) -> Path | None:
        """Where it writes: beside all else that is known of the job."""
        try:
            text = self.commands.ask("flux", "job", "info", native, "jobspec")
        except Failed:
            return None
        found = re.search(r'"path": ?"([^"]*)/flux-[^"/]*\.out"', text)
        return Path(found[1]) if found is not None else None

    def cancel(self, waiting: Iterable[str], running: Iterable[str] = ()) -> None:
        """Those that wait go at once; those that run are asked, and end as their grace allows."""
        states = {job.jobid: job.state for job in self.jobs(ACTIVE)}
        (waiting, away), (running, gone) = self._apart(waiting), self._apart(running)
        self.kill(id_ for id_ in _each(waiting) if states.get(id_) in ("DEPEND", "PRIORITY", "SCHED"))
        for some in _chunks(id_ for id_ in _each(running) if states.get(id_) == "RUN"):
            self._tolerant("flux", "job", "kill", "--signal=URG", *some)
        for other, ids in away:
            other.cancel(ids)
        for other, ids in gone:
            other.cancel((), ids)

    def kill(self, ids: Iterable[str]) -> None:
        """At once, whatever they do."""
        here, away = self._apart(ids)
        for some in _chunks(_each(here)):
            self._tolerant("flux", "cancel", *some)
        for other, others in away:
            other.kill(others)

    def hold(self, ids: Iterable[str]) -> None:
        here, away = self._apart(ids)
        self._set_urgencies([(id_, HELD) for id_ in _each(here)])
        for other, others in away:
            other.hold(others)

    def release(self, ids: Iterable[str]) -> None:
        here, away = self._apart(ids)
        self._set_urgencies(asked_for(here))
        for other, others in away:
            other.release(others)

    def _apart(self, ids: Iterable[str]) -> tuple[list[str], list[tuple[Flux, list[str]]]]:
        """Jobs of this instance, and those of others that are around it or inside."""
        each = [one for some in ids for one in some.split(",") if one]
        places = self._elsewhere.places(each, self.jobs)
        here = places.pop("", [])
        return here, [(self._at(uri), some) for uri, some in places.items()]

    def _at(self, uri: str) -> Flux:
        return Flux({**self._environment, "FLUX_URI": uri}, bindings=self._bindings is not None)

    def _set_urgencies(self, wanted: Sequence[tuple[str, int]]) -> None:
        """With one question: what belongs together is to start together. One by one where that fails."""
        if not wanted:
            return
        said = self._said("flux", "python", "-c", URGENCIES, text=written(wanted))
        if said.code == 0:
            _need_no_more(said.out, said)
            return
        for id_, urgency in wanted:
            self._tolerant("flux", "job", "urgency", id_, str(urgency))

    def requeue(self, ids: Iterable[str]) -> None:
        """Whoever would need it was refused before."""
        words = f"nothing goes back to the queue here: {', '.join(_each(ids))}"
        raise Failed(Said(1, "", words), "flux")

    def freeze(self, ids: Iterable[str]) -> None:
        states = {job.jobid: job.state for job in self.jobs("running")}
        here, away = self._apart(ids)
        for some in _chunks(id_ for id_ in _each(here) if states.get(id_) == "RUN"):
            self._tolerant("flux", "job", "kill", "--signal=WINCH", *some)
        for other, others in away:
            other.freeze(others)

    def add_time(self, id_: str, seconds: float) -> None:
        """Raises Failed where this user may not. Who has no limit needs no more."""
        here, away = self._apart([id_])
        wanted = set(_each(here))
        for other, others in away:
            other.add_time(",".join(others), seconds)
        for job in self.jobs("running"):
            if job.jobid in wanted and job.duration:
                self._tolerant("flux", "update", job.jobid, f"duration=+{seconds:g}s")

    def _tolerant(self, *words: str) -> None:
        """What is over meanwhile needs nothing done to it."""
        try:
            self._ask(*words)
        except Failed as error:
            _need_no_more(error.said.error, error.said)

    def _ask(self, *words: str) -> str:
        try:
            return self.commands.ask(*words)
        except Failed as error:
            _need_somebody(error.said)
            raise

    def _said(self, *words: str, text: str | None = None) -> Said:
        said = self.commands.once(*words, text=text)
        _need_somebody(said)
        return said


def _need_somebody(said: Said) -> None:
    if said.code != 0 and _NOBODY.search(said.error):
        advice = "run jobman inside an instance, or name one in FLUX_URI"
        raise NotThere(f"no Flux instance is found: {said.words}", advice)


def _need_no_more(complaints: str, said: Said) -> None:
    """Raises where a job that is not over could not be treated as it should."""
    lines = [line for line in complaints.splitlines() if line.strip()]
    if not all(_TOO_LATE.search(line) for line in lines):
        raise Failed(Said(said.code or 1, "", complaints), "flux")


def _of_job(jobs: Iterable[FluxJob], job: str) -> list[tuple[FluxJob, Whose]]:
    return [(each, found) for each in jobs if (found := whose(each.name)) and found.job == job]


def _each(ids: Iterable[str]) -> Iterable[str]:
    return (id_ for some in ids for id_ in plain_ids(some))


def _chunks(ids: Iterable[str]) -> Iterable[list[str]]:
    every = list(ids)
    return (every[start : start + _MANY] for start in range(0, len(every), _MANY))
