"""Priorities of all who wait: what somebody holds is charged to their share as it is held."""

import pytest

from jobman.plan.nodes import ClusterNode
from jobman.sched.accounts import DEFAULT, AccountTree
from jobman.sched.priorities import Priorities
from jobman.sched.requests import Placed, Request
from jobman.sched.scheduling import Scheduling
from jobman.sched.wishes import Wishes
from jobman.spec.shapes import Part

NODES = [ClusterNode(name=f"n{number}", amounts={"core": 8, "gpu": 2}) for number in range(4)]
ONE, FOUR = Part(slots=1, each={"core": 1}), Part(slots=1, each={"core": 4})
GPU = Part(slots=1, each={"core": 1, "gpu": 1})


def charged(*parts, places, alternative=0, **rest):
    """The part of the cluster that somebody is charged for who was placed so."""
    site = Priorities(Scheduling(), AccountTree(), NODES)
    request = Request(id="r", user="ada", alternatives=parts, **rest)
    site.start(request, Placed(alternative, places), 0.0, 100.0)
    return site.tree.usage(DEFAULT, "ada", 0.0) / 100.0


def test_the_alternative_that_was_given_is_the_one_that_counts():
    alternatives = (FOUR,), (ONE,)
    assert charged(*alternatives, places=({"n0": 1},)) == pytest.approx(4 / 32)
    assert charged(*alternatives, places=({"n0": 1},), alternative=1) == pytest.approx(1 / 32)


def test_of_all_kinds_that_counts_of_which_most_is_held():
    assert charged((GPU,), places=({"n0": 1},)) == pytest.approx(1 / 8)


def test_nodes_that_are_held_as_a_whole_count_with_all_that_is_on_them():
    alone = Wishes(exclusive=True)
    assert charged((ONE,), places=({"n0": 1},), wishes=alone) == pytest.approx(1 / 4)
    assert charged((ONE, ONE), places=({"n0": 1}, {"n0": 1}), wishes=alone) == pytest.approx(1 / 4)
    nodes = Part(nodes=2, exclusive=True)
    assert charged((nodes, ONE), places=({"n0": 1, "n1": 1}, {"n2": 1})) == pytest.approx(17 / 32)


def test_nodes_of_which_only_some_is_held_do_not_count_as_nodes():
    spread = Part(nodes=4, slots=1, each={"core": 1})
    assert charged((spread,), places=(dict.fromkeys(["n0", "n1", "n2", "n3"], 1),)) == pytest.approx(4 / 32)


def test_what_is_forgiven_leaves_nothing():
    site = Priorities(Scheduling(), AccountTree(), NODES)
    site.start(Request(id="r", user="ada", alternatives=((FOUR,),)), Placed(0, ({"n0": 1},)), 1000.0, 500.0)
    site.end("r", 1400.0)
    assert site.tree.usage(DEFAULT, "ada", 2000.0) > 0
    site.forgive(DEFAULT, "ada", 4.0, 1000.0, 1400.0)
    assert site.tree.usage(DEFAULT, "ada", 2000.0) == pytest.approx(0.0, abs=1e-6)
