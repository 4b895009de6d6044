"""What others use of the nodes, counted as their pods come and go."""

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from jobman.engines.kubernetes.managed.foreign import Foreign
from jobman.engines.kubernetes.managed.nodes import Pool, kind_of
from jobman.engines.kubernetes.needs import needs_of
from jobman.engines.kubernetes.objects import Container, Meta, Pod, PodSpec, PodStatus, Resources
from jobman.plan.nodes import COPY

POOL = Pool()


def counting():
    return Foreign(lambda resource: kind_of(resource, POOL))


def pod(
    name="p", node="n1", phase="Running", cpu="100m", *, namespace="web", sidecar=None, step=None, **more
):
    steps = [Container(name="step", resources=Resources(requests={"cpu": step}))] if step else []
    beside = [
        Container(name="beside", restart_policy="Always", resources=Resources(requests={"cpu": sidecar}))
    ]
    return Pod(
        metadata=Meta(name=name, namespace=namespace),
        spec=PodSpec(
            node_name=node,
            containers=[Container(name="main", resources=Resources(requests={"cpu": cpu, "memory": "1Gi"}))],
            init_containers=[*(beside if sidecar else []), *steps],
            **more,
        ),
        status=PodStatus(phase=phase),
    )


def test_pods_of_others_are_counted_until_they_have_ended():
    found = counting()
    assert found.put(pod(), is_ours=False) == {"n1"}
    assert found.of("n1") == {"core": Fraction(1, 10), "memory": 2**30, COPY: 1}
    assert found.put(pod(), is_ours=False) == set()
    assert found.put(pod(phase="Succeeded"), is_ours=False) == {"n1"}
    assert found.of("n1") == {}


def test_our_own_pods_and_those_without_a_node_are_not():
    found = counting()
    assert found.put(pod(), is_ours=True) == set()
    assert found.put(pod("q", node="", phase="Pending"), is_ours=False) == set()
    assert found.of("n1") == {}


def test_a_pod_that_turns_out_to_be_ours_is_counted_no_more():
    found = counting()
    found.put(pod(), is_ours=False)
    assert found.put(pod(), is_ours=True) == {"n1"}
    assert found.of("n1") == {}


def test_a_pod_is_told_from_one_of_the_same_name_elsewhere():
    found = counting()
    found.put(pod(), is_ours=False)
    found.put(pod(namespace="mail"), is_ours=False)
    assert found.drop(pod()) == {"n1"}
    assert found.of("n1")["core"] == Fraction(1, 10)


def test_a_pod_that_is_made_again_elsewhere_moves_what_it_uses():
    found = counting()
    found.put(pod(), is_ours=False)
    assert found.put(pod(node="n2"), is_ours=False) == {"n1", "n2"}
    assert (found.of("n1"), found.of("n2")["core"]) == ({}, Fraction(1, 10))


def test_helpers_steps_and_the_price_of_the_runtime_are_counted():
    found = counting()
    found.put(pod(cpu="1", sidecar="500m", step="2", overhead={"cpu": "250m"}), is_ours=False)
    assert found.of("n1")["core"] == Fraction("2.75")


def test_what_the_language_does_not_count_is_left_out():
    found = counting()
    spec = PodSpec(
        node_name="n1",
        containers=[Container(name="a", resources=Resources(limits={"hugepages-2Mi": "2Mi", "x.io/y": "1"}))],
    )
    found.put(Pod(metadata=Meta(name="p", namespace="a"), spec=spec), is_ours=False)
    assert found.of("n1") == {"x.io/y": 1, COPY: 1}


happenings = some.lists(
    some.tuples(
        some.sampled_from(["a", "b", "c"]),
        some.sampled_from(["n1", "n2", ""]),
        some.sampled_from(["Running", "Pending", "Failed", "gone"]),
        some.integers(0, 4000),
        some.booleans(),
    ),
    max_size=40,
)


@given(happenings)
def test_sums_are_those_of_the_pods_that_are_there_whatever_happened_before(found):
    foreign = counting()
    there: dict[str, Any] = {}
    for name, node, phase, cores, is_ours in found:
        made = pod(name, node, phase, f"{cores}m")
        before = {each: foreign.of(each) for each in ("n1", "n2")}
        if phase == "gone":
            touched = foreign.drop(made)
            there.pop(name, None)
        else:
            touched = foreign.put(made, is_ours=is_ours)
            there[name] = made, is_ours
        changed = {each for each in ("n1", "n2") if foreign.of(each) != before[each]}
        assert changed <= touched
    for node in ("n1", "n2"):
        counted = [
            needs_of(each)
            for each, is_ours in there.values()
            if each.spec.node_name == node and not is_ours and each.status.phase != "Failed"
        ]
        assert foreign.of(node).get("core", 0) == sum(each.get("cpu", 0) for each in counted)
        assert foreign.of(node).get("memory", 0) == sum(each.get("memory", 0) for each in counted)
