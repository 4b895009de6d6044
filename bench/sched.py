"""The scheduler: replays beside bare loops that know nothing but processors, and passes over a large cluster.

Speeds are jobs by seconds of processor time, ours and the loop's measured in turn. The loops are those with
which the tests compare every start.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

from bench import Row
from jobman.plan.nodes import ClusterNode
from jobman.sched.planner import Planner
from jobman.sched.queues import Queue
from jobman.sched.requests import Placed, Request
from jobman.sim.cluster import machine_of
from jobman.sim.expectations import foresee
from jobman.sim.generate import generate
from jobman.sim.metrics import summarise
from jobman.sim.policies import IN_ORDER, policy
from jobman.sim.replay import replay
from jobman.sim.swf import read_swf
from jobman.sim.trace import Trace
from jobman.spec.shapes import Alternatives, Amount, Part
from lab.components import discover, state
from tests.sim import reference

ROUNDS = 3
LEAST = {"easy": 0.25, "easy-sjbf": 0.25, "conservative": 0.5}
LOOPS = {"easy": reference.easy, "easy-sjbf": reference.easy_sjbf, "conservative": reference.conservative}
DEPTH = 64
NODES, SHAPES, WAITING = 5_000, 200, 50_000
ON_EACH = 4
"""Requests that run on each node."""
ENDS = 25
_GIB = 2**30


def main() -> list[Row]:
    """Replays first, then what their forecasts are worth, then the large cluster."""
    return [*_replays(), *_forecasts(), *_passes()]


# -- replays -------------------------------------------------------------------------------------------------


def _replays() -> Iterator[Row]:
    for name, trace in _traces():
        for each, loop in LOOPS.items():
            ours, theirs = _speeds(trace, each, loop)
            note = f"target: ≥ {LEAST[each]}"
            yield Row(f"{each}, {name}", ours, "jobs/s", "a bare loop", theirs, note)


def _forecasts() -> Iterator[Row]:
    """How many of those who wait start when they were told to expect it, and when they were guaranteed to."""
    queue = policy("conservative")
    for name, trace in _traces():
        machine = machine_of(trace)
        outcome = replay(trace, machine, queue)
        outcome.expectations = foresee(outcome, machine, queue)
        told = summarise(outcome).promises
        note = f"{told.p90_coverage or 0:.1%} by the p90; target: 85 to 95"
        shares = (100 * (part or 0) for part in (told.expected_within_600, told.guaranteed_within_600))
        yield Row(f"expected ± 10 min, {name}", next(shares), "%", "the guarantee", next(shares), note)


def _traces() -> Iterator[tuple[str, Trace]]:
    """Logs of real machines where they are, else a generated one."""
    here = state(discover()["traces"])
    if not here.ready:
        yield "generated", generate(1, jobs=10_000, processors=128)
        return
    folder = Path({**os.environ, **here.environment}["JOBMAN_TRACES"])
    for name in ("KTH-SP2", "SDSC-SP2"):
        yield name, read_swf(folder / name / "easy.swf.gz")


def _speeds(trace: Trace, name: str, loop: Callable[..., list[float]]) -> tuple[float, float]:
    """The best of a few rounds in turn, ours and the bare loop's."""
    machine = machine_of(trace)
    bare = [(job.submit, job.run, job.processors, job.requested) for job in trace.jobs]
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_seconds(lambda: replay(trace, machine, policy(name))))
        theirs.append(_seconds(lambda: loop(bare, machine.processors)))
    return len(bare) / min(ours), len(bare) / min(theirs)


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    began = process_time()
    work()
    return process_time() - began


# -- a large cluster -----------------------------------------------------------------------------------------


def _passes() -> Iterator[Row]:
    planner = _busy(NODES, WAITING)
    full = _full_pass(planner)
    words = (
        f"{NODES:,} nodes, {ON_EACH * NODES:,} running, {WAITING:,} waiting of {SHAPES} shapes, depth {DEPTH}"
    )
    yield Row("a full pass", full, "s", note=f"{words}; target: ≤ 1")
    after = median(_after_ends(planner))
    yield Row("a pass after one end", after * 1000, "ms", "a full pass", full * 1000, "target: ≤ 0.05")
    few, many = (_full_pass(_busy(nodes, WAITING)) for nodes in (1_000, 10_000))
    note = "a full pass; running grows with the nodes, waiting stays"
    yield Row("10,000 nodes by 1,000", many / few, "times", "linear", 10.0, note)


def _full_pass(planner: Planner) -> float:
    gc.collect()
    began = process_time()
    planner.plan(0.0)
    return process_time() - began


def _after_ends(planner: Planner) -> Iterator[float]:
    """How long it takes to take in that something ended, and to plan anew."""
    for number, place in enumerate(Random(3).sample(range(ON_EACH * NODES), ENDS), 1):
        now = float(number)
        gc.collect()
        began = process_time()
        planner.ended(f"r{place}", now)
        planner.plan(now)
        yield process_time() - began


def _busy(nodes: int, waiting: int) -> Planner:
    """A cluster with something on every node, and many who wait."""
    dice = Random(nodes)
    queue = Queue(name="batch", depth=DEPTH, weights=IN_ORDER)
    planner = Planner([_node(number) for number in range(nodes)], (queue,))
    held = [((Part(slots=1, each=each),),) for each in _held()]
    for number in range(ON_EACH * nodes):
        limit = dice.choice((3600, 4 * 3600, 24 * 3600, 72 * 3600)) * (1 - dice.random() * 0.9)
        request = Request(id=f"r{number}", alternatives=dice.choice(held), limit=limit, number=number)
        planner.restore(request, Placed(0, ({f"n{number % nodes}": 1},)), 0.0, 0.0)
    shapes = [_shape(dice) for _ in range(SHAPES)]
    for number in range(waiting):
        limit = float(dice.choice((900, 3600, 4 * 3600, 12 * 3600, 24 * 3600)))
        alternatives = dice.choice(shapes)
        planner.submit(Request(id=f"w{number}", alternatives=alternatives, limit=limit, number=number), 0.0)
    return planner


def _node(number: int) -> ClusterNode:
    amounts: dict[str, Amount] = {"core": 64, "memory": 512 * _GIB, "gpu": 8 if number % 4 else 4}
    kind = "a100" if number % 4 else "v100"
    return ClusterNode(
        name=f"n{number}", amounts=amounts, facts={"gpu.kind": kind, "rack": f"r{number // 40}"}
    )


def _held() -> list[dict[str, Amount]]:
    """A quarter of a node, a little less of some of it."""
    return [
        {"core": cores, "memory": memory * _GIB, "gpu": gpus}
        for cores in (12, 15, 16)
        for memory in (64, 96, 128)
        for gpus in (0, 1)
    ]


def _shape(dice: Random) -> Alternatives:
    """Slots anywhere, gangs of nodes, whole nodes and GPUs of a kind, now and then with a second choice."""
    parts = [_part(dice) for _ in range(2 if dice.random() < 0.1 else 1)]
    return tuple((part,) for part in parts)


def _part(dice: Random) -> Part:
    each: dict[str, Amount] = {
        "core": dice.choice((8, 12, 16, 24, 32, 48)),
        "memory": dice.choice((16, 32, 64, 128)) * _GIB,
    }
    if dice.random() < 0.5:
        each["gpu"] = dice.choice((1, 2, 4))
    requires = {"gpu.kind": dice.choice(("a100", "v100"))} if dice.random() < 0.3 else {}
    if dice.random() < 0.5:
        return Part(slots=dice.choice((1, 2, 4, 8, 16, 64)), each=each, requires=requires)
    alone = dice.random() < 0.2
    return Part(nodes=dice.choice((1, 2, 4, 8, 16, 32)), each=each, requires=requires, exclusive=alone)
