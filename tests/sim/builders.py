"""Traces in a few words, and the bare loops as policies."""

from jobman.plan.nodes import ClusterNode
from jobman.sim.cluster import Machine, one_node
from jobman.sim.outcome import Outcome
from jobman.sim.policies import policy
from jobman.sim.replay import replay
from jobman.sim.trace import Trace, TraceJob
from tests.sim import reference

PROCESSORS = 8
LOOPS = {
    "fcfs": reference.fcfs,
    "easy": reference.easy,
    "easy-sjbf": reference.easy_sjbf,
    "conservative": reference.conservative,
}


def trace(*jobs, processors=PROCESSORS, **fields):
    """Jobs as `(submit, run, processors, requested)`; what is left out of the end is as the run time is."""
    found = [job if isinstance(job, TraceJob) else _job(number, *job) for number, job in enumerate(jobs, 1)]
    return Trace(name="trace.swf", jobs=found, processors=processors, **fields)


def _job(number, submit, run, size, requested=None):
    return TraceJob(number, submit, run, size, run if requested is None else requested)


def bare(found):
    """The jobs of a trace as the bare loops take them."""
    return [(job.submit, job.run, job.processors, job.requested) for job in found.jobs]


def replayed(found, name="easy", machine: Machine | None = None, **options) -> Outcome:
    machine = machine or one_node(found.processors)
    return replay(found, machine, policy(name), policy=name, **options)


def outcome(*jobs, starts, processors=PROCESSORS, users=(), **fields) -> Outcome:
    """What came of jobs that started when it is said."""
    found = trace(*jobs, processors=processors).jobs
    if users:
        found = [
            TraceJob(job.number, job.submit, job.run, job.processors, job.requested, user)
            for job, user in zip(found, users, strict=True)
        ]
    fields.setdefault("guarantees", [None] * len(found))
    fields.setdefault("policy", "easy")
    return Outcome(processors=processors, jobs=found, starts=list(starts), **fields)


def nodes(count=4, **amounts):
    return [ClusterNode(name=f"n{number}", amounts=amounts or {"core": 4}) for number in range(count)]
