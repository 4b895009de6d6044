"""Instances inside others: what a user runs in those that are jobs of the user's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from jobman.engines.flux.names import whose
from jobman.engines.flux.queue import NO_QUEUE, FluxJob

Ask = Callable[[str], str]
"""The address of an instance in, what `flux jobs --recursive --json` says there out, or nothing."""


class Nested(FluxJob, frozen=True, kw_only=True):
    """A job, and what it runs where it is an instance that could be asked."""

    uri: str = ""
    jobs: list[Nested] | None = None


class Inner(msgspec.Struct, frozen=True):
    """A job, and where it was found."""

    job: Nested
    uri: str
    """The address of its instance; empty for the one that was asked first."""
    inside: tuple[Nested, ...] = ()
    """The jobs that it is part of, from the outermost."""

    @property
    def place(self) -> str:
        """What counts as its queue: that of the outermost, and which jobs of that it is in."""
        outermost = self.inside[0] if self.inside else self.job
        return "/".join((outermost.queue or NO_QUEUE, *map(_label, self.inside)))


class _Listing(msgspec.Struct):
    jobs: list[Nested] = []


def walk(ask: Ask, user: int, uri: str = "") -> Iterator[Inner]:
    """All jobs of an instance, and of those inside it that are this user's, however deep."""
    return _walk(_read(ask(uri)), ask, user, uri, ())


def _walk(
    jobs: Sequence[Nested], ask: Ask, user: int, uri: str, inside: tuple[Nested, ...]
) -> Iterator[Inner]:
    for job in jobs:
        yield Inner(job, uri, inside)
        if job.uri and job.state == "RUN" and job.userid == user:
            # One level is told with the jobs themselves; what is deeper is asked.
            inner = _read(ask(job.uri)) if job.jobs is None else job.jobs
            yield from _walk(inner, ask, user, job.uri, (*inside, job))


def _read(text: str) -> list[Nested]:
    return msgspec.json.decode(text.encode() or b"{}", type=_Listing).jobs


def _label(job: FluxJob) -> str:
    """Jobs of ours by their names, so that replicas count together; others by their ids, as Flux does."""
    if whose(job.name) is None:
        return job.jobid
    return re.sub(r"(\[\d+/\d+\])? jobman:\S+$", "", job.name)
