"""The machine of a replay: one node of so many processors, or the nodes of a file."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Pool
from jobman.sim.trace import LeftOut, Trace, TraceError, TraceJob
from jobman.spec.shapes import Alternatives, Amount, Part

_NEVER = "never, even when everything is free: "


class Machine(msgspec.Struct, frozen=True):
    """Nodes, and how many processors they have in all."""

    nodes: tuple[ClusterNode, ...]
    processors: int

    @property
    def counts_memory(self) -> bool:
        """Whether each node says how much memory it has."""
        return all("memory" in node.amounts for node in self.nodes)


def one_node(processors: int) -> Machine:
    """A machine of which only the processors count, as traces describe them."""
    if processors < 1:
        raise TraceError(f"a machine of {processors} processors runs nothing")
    return Machine((ClusterNode(name="machine", amounts={"core": processors}),), processors)


def cluster(nodes: Sequence[ClusterNode]) -> Machine:
    """A machine of nodes; raises TraceError where they have no cores."""
    without = [node.name for node in nodes if not node.amounts.get("core")]
    if without:
        raise TraceError(f"{without[0]} has no cores", "write `cores: 8` for each node")
    return Machine(tuple(nodes), sum(int(node.amounts["core"]) for node in nodes))


def machine_of(trace: Trace) -> Machine:
    """The machine that the head of a trace describes."""
    if trace.processors is None:
        raise TraceError(
            f"{trace.name} does not say how many processors there are",
            "give --processors N or --cluster FILE",
        )
    return one_node(trace.processors)


class Shapes:
    """What the jobs of a trace ask for on a machine; equal jobs share one shape."""

    def __init__(self, machine: Machine) -> None:
        self._pool = Pool(machine.nodes)
        self._counts_memory = machine.counts_memory
        self._known: dict[tuple[int, int], Alternatives] = {}

    def of(self, job: TraceJob) -> Alternatives:
        if job.shape:
            return job.shape
        key = (job.processors, job.memory if self._counts_memory else 0)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _slots(*key)
        return found

    def misfit(self, shape: Alternatives) -> str:
        """Why the machine could never take a shape, in words; nothing where it could."""
        return "" if self._pool.could_ever(shape) else self._pool.why_not(shape)


def _slots(processors: int, memory: int) -> Alternatives:
    each: dict[str, Amount] = {"core": 1, "memory": memory} if memory else {"core": 1}
    return ((Part(slots=processors, each=each),),)


def fitting(trace: Trace, machine: Machine) -> tuple[list[TraceJob], list[Alternatives], list[LeftOut]]:
    """The jobs that the machine could take, what each asks for, and those that are left out."""
    shapes = Shapes(machine)
    asked = [shapes.of(job) for job in trace.jobs]
    # Shapes hold mappings and so have no hash; equal jobs share one, and their number is small.
    why = {id(shape): shapes.misfit(shape) for shape in {id(shape): shape for shape in asked}.values()}
    if not any(why.values()):
        return trace.jobs, asked, []
    pairs = list(zip(trace.jobs, asked, strict=True))
    kept = [(job, shape) for job, shape in pairs if not why[id(shape)]]
    left_out = [
        LeftOut(0, f"job {job.number} could never start: {_obstacle(job, machine, why[id(shape)])}")
        for job, shape in pairs
        if why[id(shape)]
    ]
    return [job for job, _ in kept], [shape for _, shape in kept], left_out


def _obstacle(job: TraceJob, machine: Machine, why: str) -> str:
    """Why a job could never start, in the words of traces where that is enough."""
    if not job.shape and job.processors > machine.processors:
        there = "is 1" if machine.processors == 1 else f"are {machine.processors:,}"
        return f"it asks for {job.processors:,} processors, and there {there}"
    return why.removeprefix(_NEVER)
