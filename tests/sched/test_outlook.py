"""Looking at all nodes at once gives the answers that looking at them one by one gives."""

import subprocess
import sys
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.plan.nodes import ClusterNode
from jobman.sched.blocks import Block
from jobman.sched.planner import Planner
from jobman.sched.queues import Queue
from jobman.sched.requests import Request
from jobman.spec.shapes import Part
from tests.sched.clusters import Site, alternatives, equal_nodes, is_alone, piece_count, piece_need
from tests.sched.test_planner_properties import QUEUES, TROUBLE, clusters, histories, play

HORIZON = 64
FEW_NODES = """
import sys
from jobman.plan.nodes import ClusterNode
from jobman.sched.planner import Planner
from jobman.sched.requests import Request
from jobman.spec.shapes import Part

planner = Planner([ClusterNode(name=f"n{number}", amounts={"core": 4}) for number in range(8)])
for number in range(20):
    part = Part(nodes=3, each={"core": 2})
    planner.submit(Request(id=str(number), alternatives=((part,),), limit=10, number=number), 0)
planner.plan(0)
sys.exit("numpy" in sys.modules)
"""


def both_ways(build):
    """What comes of it when nodes are looked at one by one, and when all are looked at at once."""
    found = []
    for few in (1000, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jobman.sched.timeline.FEW", few)
            found.append(build())
    return found


def test_a_few_nodes_are_planned_without_loading_arrays():
    assert subprocess.run([sys.executable, "-c", FEW_NODES], check=False).returncode == 0


@pytest.mark.parametrize("policy", QUEUES)
@given(data=st.data())
def test_starts_places_and_revisions_are_the_same(policy, data):
    cluster, history = data.draw(clusters()), data.draw(histories(*TROUBLE))
    one, other = both_ways(lambda: play(cluster, history, QUEUES[policy]))
    assert one.starts == other.starts
    assert one.placed == other.placed
    assert one.revisions == other.revisions


@pytest.mark.parametrize(
    "part", [Part(nodes=10, each={"core": 1}), Part(nodes=10, exclusive=True), Part(nodes=10)]
)
def test_many_nodes_can_be_borrowed(part):
    queues = (
        Queue(name="batch", borrow=("chat",)),
        Queue(name="chat", nodes=tuple(f"n{at}" for at in range(7, 13))),
    )
    site = Site(equal_nodes(12), queues)
    site.asks("a", part)
    site.plan()
    assert site.starts == {"a": 0}


# -- beside a model that counts seconds --------------------------------------------------------------------

NEED = st.fixed_dictionaries({"core": st.sampled_from([0.5, 1, 2])}, optional={"gpu": st.just(1)})
PARTS = st.one_of(
    st.builds(Part, slots=st.integers(1, 9), each=NEED),
    st.builds(Part, nodes=st.integers(1, 4), slots=st.integers(0, 2), each=NEED),
    st.builds(Part, nodes=st.integers(1, 4), exclusive=st.just(True)),
)
AMOUNTS = st.fixed_dictionaries({"core": st.integers(1, 4)}, optional={"gpu": st.integers(1, 2)})
ASKED = st.lists(
    st.tuples(st.lists(PARTS, min_size=1, max_size=2), st.sampled_from([2, 3, 5, 7, inf])),
    min_size=3,
    max_size=7,
)
WINDOWS = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 9), st.integers(0, 9)), max_size=3)


class Seconds:
    """What is free on each node in each second."""

    def __init__(self, cluster):
        self.amounts = [node.amounts for node in cluster]
        self.free = [[dict(node.amounts) for node in cluster] for _ in range(HORIZON)]
        self.names = [node.name for node in cluster]

    def take(self, number, start, end, need):
        for second in range(start, int(min(end, HORIZON))):
            here = self.free[second][number]
            for kind, amount in need.items():
                here[kind] -= amount

    def take_all(self, number, start, end):
        self.take(number, start, end, self.amounts[number])

    def rooms(self, part, start, end):
        """How many pieces each node can take all the time."""
        span = range(start, int(min(end, HORIZON)))
        for number in range(len(self.names)):
            room = piece_count(part)
            for second in span:
                room = min(room, self._room(part, number, second))
                if not room:
                    break
            yield number, room

    def _room(self, part, number, second):
        free, need = self.free[second][number], piece_need(part)
        if is_alone(part, Request(id="", alternatives=()).wishes):
            return int(free == self.amounts[number])
        if any(kind not in free for kind in need):
            return 0
        room = min(int(free[kind] // amount) for kind, amount in need.items())
        return max(0, min(room, 1 if part.nodes is not None else piece_count(part)))

    def place(self, shape, limit):
        """The first second at which an alternative fits, and what is taken for it then."""
        for start in range(HORIZON):
            for part in shape:
                left, chosen = piece_count(part), {}
                for number, room in self.rooms(part, start, start + limit):
                    if pieces := min(room, left):
                        chosen[number] = pieces
                        left -= pieces
                    if not left:
                        break
                if not left:
                    self._settle(part, chosen, start, start + limit)
                    return start, {self.names[number]: pieces for number, pieces in chosen.items()}
        return None

    def _settle(self, part, chosen, start, end):
        for number, pieces in chosen.items():
            if part.is_whole:
                self.take_all(number, start, end)
            else:
                need = {kind: amount * pieces for kind, amount in piece_need(part).items()}
                self.take(number, start, end, need)


@given(st.lists(AMOUNTS, min_size=1, max_size=10), ASKED, WINDOWS)
def test_each_gets_the_first_moment_and_the_first_nodes_that_a_model_of_seconds_finds(
    amounts, asked, windows
):
    cluster = [ClusterNode(name=f"n{number}", amounts=each) for number, each in enumerate(amounts)]
    for answers in both_ways(lambda: _promised(cluster, asked, windows)):
        model = Seconds(cluster)
        for start, length, node in windows:
            model.take_all(node % len(cluster), start, start + length)
        assert answers == [model.place(shape, limit) for shape, limit in asked]


def _promised(cluster, asked, windows):
    planner = Planner(cluster, (Queue(name="batch"),))
    for number, (start, length, node) in enumerate(windows):
        name = cluster[node % len(cluster)].name
        planner.block(
            Block(name=f"w{number}", start=start, end=start + length, nodes=(name,), kind="maintenance"), 0
        )
    answers = []
    for number, (shape, limit) in enumerate(asked):
        request = Request(id=str(number), alternatives=alternatives(*shape), limit=limit, number=number)
        planner.submit(request, 0)
        starts = planner.plan(0).starts
        promise = planner.promise(str(number))
        if starts:
            answers.append((0, starts[0].placed.places[0]))
        elif promise.guaranteed_by is None:
            answers.append(None)  # type: ignore[arg-type]
        else:
            answers.append((promise.guaranteed_by, promise.placed.places[0]))  # type: ignore[arg-type, union-attr]
    return answers
