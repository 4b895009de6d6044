"""Cleaning: taking what is over off the cluster. All of it may be repeated.

An attempt is a Job with its pods; our finalizer keeps each of them until its end is written down. The Job
goes last: what it owns goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from jobman.engines.failpoints import failpoint
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.endings import is_over
from jobman.engines.kubernetes.errors import Conflict, NotFound
from jobman.engines.kubernetes.kinds import CONFIG_MAPS, JOBS, NETWORK_POLICIES, PODS, SERVICES, Kind
from jobman.engines.kubernetes.managed.names import FINALIZER, JOB, SERVICE
from jobman.engines.kubernetes.objects import Kept, Pod

SHARED: tuple[Kind[Any], ...] = (SERVICES, NETWORK_POLICIES, CONFIG_MAPS)
"""Kinds of objects that belong to a whole job."""


async def remove_attempt(api: Api, job: Kept | None, pods: Iterable[Pod]) -> None:
    """Take an attempt off the cluster, whether it has ended or not."""
    for pod in pods:
        if not is_over(pod):
            # Nobody waits for it any more; where its node is lost, nobody would ever confirm its end.
            await api.delete(PODS, pod.metadata.name, pod.metadata.namespace, grace=0, uid=pod.metadata.uid)
        await let_go(api, PODS, pod)
        failpoint("clean.after-pod")
    if job is not None:
        await api.delete(JOBS, job.metadata.name, job.metadata.namespace)
        failpoint("clean.before-job")
        await let_go(api, JOBS, job)


async def remove_shared(api: Api, job: str, service: str) -> None:
    """Remove what all attempts of a job had in common."""
    for kind in SHARED:
        await api.delete_all(kind, f"{JOB}={job},{SERVICE}={service}")


async def let_go(api: Api, kind: Kind[Any], item: Kept) -> None:
    """Take our finalizer off, and leave those of others."""
    left = [name for name in item.metadata.finalizers if name != FINALIZER]
    if len(left) == len(item.metadata.finalizers):
        return
    patch = {"metadata": {"finalizers": left or None}}
    with suppress(NotFound, Conflict):
        await api.merge_patch(kind, item.metadata.name, patch, item.metadata.namespace)
