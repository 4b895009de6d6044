"""A journey: one job driven from where it is to its end, or until somebody takes over or calls a halt."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from jobman.client.driving.driver import Driver
from jobman.client.driving.ground import ClusterGround
from jobman.client.driving.tenure import Tenure, is_dead
from jobman.control.refusals import Refusal
from jobman.control.states import State
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.course import LEASE_SECONDS, UnknownCourse, course_name, course_of
from jobman.engines.kubernetes.driven import DrivenCompiler, target_from
from jobman.engines.kubernetes.errors import KubernetesError, ServerFault, TooMany, Unreachable
from jobman.engines.kubernetes.found import FoundJob
from jobman.engines.kubernetes.underway import DrivenJob

_PAUSE = 2.0
_PATIENCE = 300.0
"""Seconds for a cluster that does not answer; then somebody should hear of it."""


async def drive(
    api: Api,
    job: FoundJob,
    *,
    taken: Callable[[], None] = lambda: None,
    waiting: Callable[[str], None] | None = None,
    lease: float = LEASE_SECONDS,
) -> State:
    """Drive a job to its end; raises Refusal where somebody else does.

    `taken` is called once we do, `waiting` with the one who may still be at it.
    """
    tenure = Tenure(api, course_name(job.anchor.metadata.name), job.id, lease=lease, waiting=waiting)
    await tenure.take()
    taken()
    compiler = DrivenCompiler(job.plan, target_from(job.anchor.metadata.annotations[names.TARGET]))
    try:
        return await _through_breaks(api, job, compiler, tenure)
    finally:
        await asyncio.shield(_let_go(tenure))


def is_abandoned(job: DrivenJob, now: float) -> bool:
    """Whether nobody drives a job, as far as can be said at once."""
    return not job.is_driven(now) or (job.driver is not None and is_dead(job.driver))


async def _through_breaks(api: Api, job: FoundJob, compiler: DrivenCompiler, tenure: Tenure) -> State:
    """A cluster that does not answer for a while is waited for; then everything is looked at anew."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        begun = time.monotonic()
        try:
            return await _drive(api, job, compiler, tenure)
        except (Unreachable, TooMany, ServerFault):
            if time.monotonic() - begun > _PATIENCE:
                deadline = time.monotonic() + _PATIENCE
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_PAUSE)


async def _drive(api: Api, job: FoundJob, compiler: DrivenCompiler, tenure: Tenure) -> State:
    config = await tenure.take()
    try:
        course = course_of(config)
    except UnknownCourse as error:
        words = f"the job {job.id} cannot be driven: {error}"
        raise Refusal("cannot", words, "use the version of jobman that it was submitted with") from error
    if course.ended_at is not None:
        return State(course.state)
    ground = ClusterGround(api, job, compiler, tenure)
    try:
        await ground.open()
        return await Driver(job.plan, course, job.submitted_at, ground).drive()
    finally:
        await ground.close()


async def _let_go(tenure: Tenure) -> None:
    """Somebody else may go on at once; where the cluster does not hear of it, after the lease."""
    with contextlib.suppress(KubernetesError, Refusal):
        await tenure.leave()
