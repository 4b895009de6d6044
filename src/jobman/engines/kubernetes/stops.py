"""Acts that keep a Job from going on: holds and closed gates, in the words every engine uses. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.blockers import Blocker
from jobman.engines.kubernetes.found import FoundJob, closed_gates
from jobman.engines.kubernetes.indexes import is_over
from jobman.engines.kubernetes.objects import Job


def stops(job: FoundJob, each: Job, task: str) -> Iterator[Blocker]:
    """What has to be lifted before a Job of a task goes on."""
    if not each.spec.suspend or is_over(each):
        return
    if names.HOLD in each.metadata.annotations:
        yield _held(job, task)
    for gate in closed_gates(each):
        words = f"the gate {gate} is closed"
        is_of_all = gate in job.plan.policies.gates
        yield Blocker(
            kind="gate",
            message=words if is_of_all else f"{task}: {words}",
            advice=f"jobman gate open {job.id} {gate}",
        )


def _held(job: FoundJob, task: str) -> Blocker:
    own = next((unit.policies.hold for unit in job.plan.units if unit.id == task), None)
    by_hand = [act.kind for act in job.acts if act.kind in ("held", "released")][-1:] == ["held"]
    is_of_all = by_hand or job.plan.policies.hold or not own
    message = "the job is held" if is_of_all else f"{task} is held"
    return Blocker(kind="hold", message=message, advice=f"jobman release {job.id}")
