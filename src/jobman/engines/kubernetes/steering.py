"""Steering a driven job: what people want is written on its anchor, where whoever drives it finds it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.course import LEASE_SECONDS, UnknownCourse, course_of, driver_of
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from jobman.engines.kubernetes.objects import ConfigMap
from jobman.engines.kubernetes.states import FINAL
from jobman.engines.kubernetes.underway import DrivenJob, NobodyDrives
from jobman.engines.kubernetes.watching import Watched, moments

OPEN = "open"
_LOOK_SECONDS = 5.0


async def want(api: Api, job: DrivenJob, **annotations: str) -> None:
    """Write down what somebody wants: `held`, `cancelled`, or `gate`, which is a name."""
    known = {"held": names.HOLD, "cancelled": CANCELLED}
    notes = {
        known.get(word, names.GATE + value): OPEN if word == "gate" else value
        for word, value in annotations.items()
    }
    await api.merge_patch(CONFIG_MAPS, job.anchor.metadata.name, {"metadata": {"annotations": notes}})


async def until_over(api: Api, job_id: str) -> None:
    """Wait until a driven job is over or gone; raises NobodyDrives when nobody has driven it for a while."""
    configs = Watched(CONFIG_MAPS, f"{names.JOB}={job_id},!{names.TASK}")
    changed = asyncio.Event()
    silence = _Silence()
    async with aclosing(moments(changed, [configs.keep(api, changed), _ring(changed)])) as bursts:
        async for _ in bursts:
            course = next(
                (each for each in configs.objects if names.COURSE in each.metadata.annotations), None
            )
            if course is None or _is_over(course):
                return
            if silence.lasts(course):
                raise NobodyDrives(job_id)


class _Silence:
    """How long nothing was heard of a driver, by our own clock."""

    def __init__(self) -> None:
        self._heard = ""
        self._since = time.monotonic()

    def lasts(self, course: ConfigMap) -> bool:
        driver = driver_of(course)
        heard = course.metadata.annotations.get(names.DRIVER, "")
        if driver is not None and heard != self._heard:
            self._heard, self._since = heard, time.monotonic()
        return time.monotonic() - self._since > LEASE_SECONDS


def _is_over(course: ConfigMap) -> bool:
    try:
        return course_of(course).state in FINAL
    except UnknownCourse:
        return False


async def _ring(changed: asyncio.Event) -> None:
    """Silence makes no noise, so one has to listen for it."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        changed.set()
