"""What holds for every placement: nothing is given twice, all of it comes back, and groups are respected."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import satisfy
from jobman.sched.placement import Evenly, Neighbours, Pool, Wishes
from jobman.spec.placement import Placement
from jobman.spec.policies import Policies
from jobman.spec.shapes import Part, copies, misfit

AMOUNTS = {
    "core": st.sampled_from([0.25, 0.5, 1, 1.5, 2, 3]),
    "gpu": st.integers(1, 2),
    "memory": st.integers(1, 4),
    "socket": st.just(1),
}
NEEDS = st.fixed_dictionaries({}, optional=AMOUNTS)
FACTS = st.fixed_dictionaries({}, optional={"rack": st.sampled_from("ab")})
PARTS = st.builds(
    Part,
    nodes=st.none() | st.integers(1, 3),
    slots=st.integers(0, 3),
    each=NEEDS,
    beside=st.just({}) | NEEDS,
    exclusive=st.booleans(),
    requires=FACTS,
)
ALTERNATIVES = st.lists(st.lists(PARTS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple)


def pool_of(cluster):
    return Pool(cluster)


def within(group, cluster):
    return Pool.within(group, cluster)


@st.composite
def clusters(draw):
    has = st.fixed_dictionaries(
        {"core": st.integers(1, 8)},
        optional={"gpu": st.integers(0, 3), "memory": st.integers(1, 16), "socket": st.integers(1, 2)},
    )
    kinds = draw(st.lists(st.tuples(has, FACTS), min_size=1, max_size=5))
    return [
        ClusterNode(name=f"n{number}", amounts=amounts, labels=labels)
        for number, (amounts, labels) in enumerate(kinds)
    ]


@st.composite
def wishes(draw, cluster):
    names = st.lists(st.sampled_from([node.name for node in cluster]), max_size=3).map(tuple)
    level = st.sampled_from(["node", "rack"])
    neighbours = st.none() | st.builds(Neighbours, names, level, st.booleans(), st.booleans())
    spread = st.none() | st.builds(Evenly, level, st.integers(1, 2), st.booleans(), names)
    return draw(st.builds(Wishes, FACTS, st.booleans(), neighbours, neighbours, spread))


@st.composite
def histories(draw):
    """A cluster, and what is asked of it: a number gives back one of those that are held."""
    cluster = draw(clusters())
    asked = st.tuples(ALTERNATIVES, st.just(Wishes()) | wishes(cluster))
    return cluster, draw(st.lists(asked | st.integers(0, 9), min_size=1, max_size=8))


def play(cluster, history):
    """The pool after a history, and what is held with what was asked for."""
    pool = pool_of(cluster)
    held = []
    for event in history:
        if not isinstance(event, int):
            found = pool.place(*event)
            if found is not None:
                held.append((found, event))
        elif held:
            pool.give_back(held.pop(event % len(held))[0])
    return pool, held


@given(histories())
def test_nothing_is_given_twice(scene):
    cluster, history = scene
    pool, held = play(cluster, history)
    used: Any = {node.name: Counter() for node in cluster}
    ids: Any = {node.name: Counter() for node in cluster}
    for allocation, _ in held:
        for each in allocation.held:
            used[each.node].update(each.amounts)
            ids[each.node].update([("core", number) for number in each.cores])
            ids[each.node].update([("gpu", number) for number in each.gpus])
    for node in cluster:
        assert all(count == 1 for count in ids[node.name].values())
        assert all(number < node.amounts[kind] for kind, number in ids[node.name])
        free = pool.free()[node.name]
        assert {kind: free[kind] + used[node.name][kind] for kind in free} == node.amounts
        assert min(free.values()) >= 0


@given(histories())
def test_whole_nodes_are_not_shared(scene):
    _, held = play(*scene)
    holders = Counter(each.node for allocation, _ in held for each in allocation.held)
    whole = [each.node for allocation, _ in held for each in allocation.held if each.whole]
    assert all(holders[name] == 1 for name in whole)


@given(histories())
def test_slots_divide_what_their_allocation_holds(scene):
    _, held = play(*scene)
    for allocation, (alternatives, wish) in held:
        assert len(allocation.slots) == copies(alternatives[allocation.alternative])
        theirs = {each.node: each for each in allocation.held}
        assert list(theirs) == list(dict.fromkeys(slot.node for slot in allocation.slots))
        for name, holding in theirs.items():
            slots = [slot for slot in allocation.slots if slot.node == name]
            for own, all_ in (("cores", holding.cores), ("gpus", holding.gpus)):
                given_ = [number for slot in slots for number in getattr(slot, own)]
                assert len(given_) == len(set(given_))
                assert set(given_) <= set(all_)
            for kind, amount in holding.amounts.items():
                assert sum(slot.amounts.get(kind, 0) for slot in slots) <= amount
        if wish.exclusive:
            assert all(each.whole for each in allocation.held)


@given(histories())
def test_what_is_asked_for_is_given(scene):
    cluster, history = scene
    labels = {node.name: node.labels for node in cluster}
    _, held = play(cluster, history)
    for allocation, (alternatives, wish) in held:
        slots = iter(allocation.slots)
        for part in alternatives[allocation.alternative]:
            mine = [next(slots) for _ in range(part.copies)]
            assert part.nodes is None or len({slot.node for slot in mine}) == part.nodes
            for slot in mine:
                assert all(slot.amounts[kind] == amount for kind, amount in part.each.items())
                assert labels[slot.node].items() >= part.requires.items() | wish.labels.items()
                count = part.each.get("core", len(slot.cores))
                assert len(slot.cores) == (count if isinstance(count, int) else 0)
                assert len(slot.gpus) == part.each.get("gpu", len(slot.gpus))


@given(histories())
def test_giving_everything_back_restores_everything(scene):
    cluster, history = scene
    pool, held = play(cluster, history)
    for allocation, _ in reversed(held):
        pool.give_back(allocation)
    assert pool.free() == pool.capacity == pool_of(cluster).free()
    asks = [event for event in history if not isinstance(event, int)]
    fresh = pool_of(cluster)
    assert [pool.place(*ask) for ask in asks] == [fresh.place(*ask) for ask in asks]


@given(histories())
def test_the_same_history_gives_the_same_allocations_and_can_be_taken_again(scene):
    pool, held = play(*scene)
    again, held_again = play(*scene)
    assert held == held_again
    restarted = pool_of(scene[0])
    for allocation, _ in reversed(held):
        restarted.take(allocation)
    assert restarted.free() == again.free() == pool.free()
    asks = [event for event in scene[1] if not isinstance(event, int)]
    assert [restarted.place(*ask) for ask in asks] == [pool.place(*ask) for ask in asks]


@given(histories(), st.data())
def test_what_is_refused_changes_nothing_and_is_explained(scene, data):
    pool, _ = play(*scene)
    alternatives = data.draw(ALTERNATIVES)
    wish = data.draw(wishes(scene[0]))
    before = pool.free()
    placed = pool.place(alternatives, wish)
    if placed is None:
        assert pool.free() == before
        words = pool.why_not(alternatives, wish)
        assert ("not now: " in words) is pool.could_ever(alternatives, wish)
        assert pool.free() == before


def unmixed(alternatives):
    """Nodes with slots beside them, and slots of several kinds, are packed by rules of thumb."""
    return all(len(parts) == 1 or all(part.nodes for part in parts) for parts in alternatives)


@given(clusters(), ALTERNATIVES.filter(unmixed), FACTS)
def test_an_empty_pool_takes_what_satisfy_says_it_can(cluster, alternatives, labels):
    policies = Policies(placement=Placement(labels=labels))
    unit = Unit(id="a", name="a", alternatives=alternatives, policies=policies)
    (match,) = satisfy(Plan(version=1, units=(unit,)), cluster)
    found = pool_of(cluster).place(alternatives, Wishes(labels=labels))
    assert match.chosen == (None if found is None else found.alternative)


@given(clusters(), ALTERNATIVES, st.lists(ALTERNATIVES, max_size=6))
def test_what_is_placed_within_a_group_stays_within_what_it_holds(cluster, of_group, asks):
    pool = pool_of(cluster)
    group = pool.place(of_group)
    if group is None:
        return
    inner = within(group, cluster)
    theirs = {held.node: held for held in group.held}
    used: Any = {name: Counter() for name in theirs}
    for ask in asks:
        found = inner.place(ask)
        for held in found.held if found is not None else ():
            assert set(held.cores) <= set(theirs[held.node].cores)
            assert set(held.gpus) <= set(theirs[held.node].gpus)
            used[held.node].update(held.amounts)
    for name, held in theirs.items():
        assert all(used[name][kind] <= held.amounts.get(kind, 0) for kind in used[name])


PLAIN = st.builds(Part, nodes=st.none() | st.integers(1, 3), slots=st.integers(0, 3), each=NEEDS)


@given(clusters(), PLAIN.filter(lambda part: not part.is_whole), PLAIN)
def test_a_task_that_fits_into_its_group_can_be_placed_in_it(cluster, parent, child):
    group = pool_of(cluster).place(((parent,),))
    if group is None or misfit((child,), (parent,)) is not None:
        return
    # Slots without nodes may come to lie on several: whether a larger piece has a place there is open.
    is_scattered = parent.nodes is None and len(group.held) > 1
    is_larger = any(amount > parent.each.get(kind, 0) for kind, amount in child.each.items())
    if not (is_scattered and is_larger):
        assert within(group, cluster).place(((child,),)) is not None
